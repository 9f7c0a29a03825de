"""Write the Python package of an operator library: its module and its type stubs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.annotations import PYTHON_TYPES, Tensor
from ..core.schema import MISSING, Argument, Schema, Type
from .information import Described

# A word of an annotation -> the module it is imported from. An operator may have the name of such a word.
_WORDS = {
    "Any": "typing",
    "TypeVar": "typing",
    "Sequence": "collections.abc",
    **dict.fromkeys(("int", "float", "bool", "str", "complex", "list", "tuple"), "builtins"),
    "_Tensor": "",
}
_FIXED = '''"""Operators of {library}, for every framework; written by polyop when the wheel was built."""
'''


_FOR_TORCH = """import torch as _torch

if _torch.__version__.split(".")[:2] != {numbers!r}:
    raise ImportError(
        f"{{__name__}}: was compiled for PyTorch {version}, but this is PyTorch {{_torch.__version__}}\\n"
        "  pip install 'torch=={version}.*', or build the wheel with this PyTorch"
    )
"""


def module(library: str, operators: Sequence[Described], docs: Mapping[str, str], torch: str = "") -> str:
    """Return the text of ``__init__.py``, which loads the library and names its operators.

    ``torch`` is the version of PyTorch that the library was compiled for, "" for one that needs none.
    """
    docstrings = {one.schema.name: docs[one.function] for one in operators if one.function in docs}
    dims = {
        one.schema.qualified_name: one.notation.keywords() for one in operators if one.notation is not None
    }
    arguments = [f'_pathlib.Path(__file__).with_name("{library}")']
    arguments += [f"docs={docstrings!r}"] if docstrings else []
    arguments += [f"dims={dims!r}"] if dims else []
    lines = [
        _FIXED.format(library=library),
        "import pathlib as _pathlib",
        "",
        "import polyop as _polyop",
        *(_FOR_TORCH.format(version=torch, numbers=torch.split(".")).splitlines() if torch else []),
        "",
        f"library = _polyop.load_library({', '.join(arguments)})",
        *(f'{one.function} = library["{one.schema.qualified_name}"]' for one in operators),
        "",
        f"__all__ = {[one.function for one in operators]!r}",
    ]
    return "\n".join(lines) + "\n"


def stubs(library: str, operators: Sequence[Described], docs: Mapping[str, str]) -> str:
    """Return the text of ``__init__.pyi``: a function with a docstring for each operator."""
    functions = {one.function for one in operators}
    spell = _Spelling({word: f"__{word.strip('_')}" for word in _WORDS if word in functions})
    body = [f"library: {spell('Any')}", f"__all__ = {[one.function for one in operators]!r}"]
    for one in operators:
        body += ["", f"def {one.function}({_parameters(one.schema, spell)}) -> {spell(_result(one.schema))}:"]
        body += _docstring(one, docs.get(one.function, "")).splitlines()
    tensor = spell("_Tensor")
    body = [f'{tensor} = {spell("TypeVar")}("{tensor}")  # of one framework in a call', "", *body]
    return "\n".join([_FIXED.format(library=library), *spell.imports(), "", *body]) + "\n"


class _Spelling:
    """Writes annotations, in which words that are names of operators get another name.

    ``imports`` are the import lines for the words that were used.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases, self._used = aliases, {"Any", "TypeVar"}

    def __call__(self, annotation: str) -> str:
        self._used |= set(re.findall(r"\w+", annotation))
        return re.sub(r"\w+", lambda word: self._aliases.get(word[0], word[0]), annotation)

    def imports(self) -> list[str]:
        rows: dict[str, list[str]] = {}
        for word, module in sorted(_WORDS.items()):
            alias = self._aliases.get(word)
            if module and word in self._used and (alias or module != "builtins"):
                rows.setdefault(module, []).append(f"{word} as {alias}" if alias else word)
        return [f"from {module} import {', '.join(rows[module])}" for module in sorted(rows)]


def _docstring(one: Described, text: str) -> str:
    body = f"{text.rstrip()}\n\n" if text else ""
    where = ", ".join(key for key in one.keys if not key.startswith("Autograd")) or "no device"
    gradient = "with a gradient" if one.has_gradient else "without a gradient"
    notation = "" if one.notation is None else f"\n\n``{one.notation.dims}``"
    whole = f"{body}``{one.schema}``{notation}\n\nFor {where}; {gradient}."
    escaped = whole.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    first, *rest = escaped.splitlines()
    return "\n".join([f'    """{first}', *(f"    {line}" if line else "" for line in rest), '    """'])


def _parameters(schema: Schema, spell: _Spelling) -> str:
    parts: list[str] = []
    for argument in schema.arguments:
        if argument.keyword_only and "*" not in parts:
            parts.append("*")
        parts.append(_parameter(argument, spell))
    return ", ".join(parts)


def _parameter(argument: Argument, spell: _Spelling) -> str:
    text = f"{argument.name}: {spell(python_type(argument.type))}"
    return text if argument.default is MISSING else f"{text} = {_literal(argument.default)}"


def _literal(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "(" + "".join(f"{_literal(one)}, " for one in value).rstrip() + ")"
    return repr(value)


def python_type(type_: Type) -> str:
    """Return the annotation for a schema's type.

    >>> python_type(Type("int", ("[2]", "?"))), python_type(Type("Tensor")), python_type(Type("ScalarType"))
    ('Sequence[int] | None', '_Tensor', 'Any')
    """
    kind = PYTHON_TYPES.get(type_.base)
    text = "Any" if kind is None else "_Tensor" if kind is Tensor else kind.__name__
    for suffix in type_.suffixes:
        text = f"{text} | None" if suffix == "?" else f"Sequence[{text}]"
    return text


def _result(schema: Schema) -> str:
    takes_tensors = bool(schema.tensor_positions)  # else no argument binds the type variable
    kinds = [python_type(one.type).replace("Sequence[", "list[") for one in schema.returns]
    kinds = kinds if takes_tensors else [kind.replace("_Tensor", "Any") for kind in kinds]
    if len(kinds) == 1:
        return kinds[0]
    return f"tuple[{', '.join(kinds)}]" if kinds else "None"
