"""Write the three files that a module with ``op_def`` is built or shipped with.

``gen_custom_ops_def.cc``  binds the operators; it is compiled into the module.
``gen_ops_def.py``         a function for each operator of the built library, for a package that
                           contains the library without its sources.
``gen_ops_prim.py``        a class for each operator; its constructor takes the arguments that op_def
                           marks ``prim_init``, a call takes the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...binary import verified
from ...build import atomic
from ...core.schema import MISSING
from .op_def import ArgumentDef, OperatorDef

CC, FUNCTIONS, CLASSES = "gen_custom_ops_def.cc", "gen_ops_def.py", "gen_ops_prim.py"


def write(folder: Path, module: str, operators: Sequence[OperatorDef]) -> list[Path]:
    """Write the files into ``folder``, except those that are up to date; return all paths."""
    texts = {
        CC: definitions(module, operators),
        FUNCTIONS: functions(module, operators),
        CLASSES: classes(operators),
    }
    for name, text in texts.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            atomic.write_text(path, text)
    verified.remember_source(str(folder / CC))
    return [folder / name for name in texts]


def definitions(module: str, operators: Iterable[OperatorDef]) -> str:
    """Return the C++ source that binds the operators."""
    body = "".join(_definition(one) for one in operators)
    return (
        f"// The operators of {module} that op_def describes. Written by polyop: changes are lost.\n"
        "#define POLYOP_BINDS_DEFINITIONS\n#include <polyop/module/graph.h>\n\n"
        'extern "C" POLYOP_HIDDEN void polyop_bind_definitions(pybind11::module_& m) {\n'
        f"{body}  polyop::graph::finish(m);\n}}\n"
    )


def _definition(one: OperatorDef) -> str:
    order = [a.name for a in one.arguments]
    inplace = [order.index(r.inplace) if r.inplace else -1 for r in one.returns]
    groups = [list(one.positions(group)) for group in one.groups]
    listed = one.returns[0].dtype != "tensor" if one.returns else False
    rows = [
        ("name", _quoted(one.name)),
        ("function", _quoted(one.function)),
        ("schema", _quoted(one.schema.signature)),
        ("doc", _quoted(one.doc)),
        ("inplace", _braces(inplace)),
        ("written", _braces(one.positions(one.written_names()))),
        ("groups", _braces(map(_braces, groups))),
        ("list", str(listed).lower()),
    ]
    values = "".join(f"      /*{name}*/ {value},\n" for name, value in rows)
    return f"  polyop::graph::define(m, {{\n{values[:-2]}}});\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _braces(items: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, items)) + "}"


def functions(module: str, operators: Iterable[OperatorDef]) -> str:
    """Return the Python source with a function for each operator of the library one folder up."""
    return (
        f'"""Operators of {module}, from its library. Written by polyop: changes are lost."""\n\n'
        "from pathlib import Path\n\nfrom polyop.define.module import OperatorModule\n\n"
        f'_library = OperatorModule("{module}", Path(__file__).resolve().parents[1] / "{module}.so")\n'
        + "".join(_function(one) for one in operators if not one.function_disabled)
    )


def _function(one: OperatorDef) -> str:
    names = ", ".join(a.name for a in one.arguments)
    return (
        f"\n\ndef {one.function}({', '.join(map(_parameter, one.arguments))}):\n{_doc(one, 4)}"
        f"    return _library.{one.function}({names})\n"
    )


def classes(operators: Iterable[OperatorDef]) -> str:
    """Return the Python source with a class for each operator: ``Add(alpha)(x, y)``."""
    return (
        '"""Operators as classes: what op_def marks prim_init is given first. Written by polyop."""\n\n'
        "from .gen_ops_def import _library\n"
        + "".join(_class(one) for one in operators if not one.class_disabled)
    )


def _class(one: OperatorDef) -> str:
    first = [a for a in one.arguments if a.prim_init]
    later = [a for a in one.arguments if not a.prim_init]
    kept = "".join(f"        self.{a.name} = {a.name}\n" for a in first)
    start = f"    def __init__(self, {', '.join(map(_parameter, first))}):\n{kept}\n" if first else ""
    passed = ", ".join(f"self.{a.name}" if a.prim_init else a.name for a in one.arguments)
    return (
        f"\n\nclass {one.class_name}:\n{_doc(one, 4)}\n{start}"
        f"    def __call__(self, {', '.join(map(_parameter, later))}):\n"
        f"        return _library.Custom_{one.function}({passed})\n"
    )


def _parameter(argument: ArgumentDef) -> str:
    return argument.name if argument.default is MISSING else f"{argument.name}={argument.default!r}"


def _doc(one: OperatorDef, indent: int) -> str:
    text = one.doc or f"The operator {one.name}."
    return f"{' ' * indent}{text!r}\n"
