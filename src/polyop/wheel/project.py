"""Write a project for an operator library, ready to build and test."""

from __future__ import annotations

import keyword
import re
import shlex
from pathlib import Path
from typing import NamedTuple

from ..core.errors import ArgumentValueError

COMMON = {
    "pyproject.toml": "pyproject.toml.in",
    "setup.py": "setup.py.in",
    "README.md": "README.md.in",
    ".gitignore": "gitignore.in",
    ".github/workflows/ci.yml": "ci.yml.in",
    "src/@name@/__init__.py": "init.py.in",
}
"""A file of every project -> its template."""
_CPP = {
    "MANIFEST.in": "MANIFEST.in.in",
    "csrc/ops.cpp": "ops.cpp.in",
    "src/@name@/graph.py": "graph.py.in",
    "graph/custom_reg_op.h": "custom_reg_op.h.in",
    "graph/CMakeLists.txt": "CMakeLists.txt.in",
    "tests/test_eager.py": "test_eager.py.in",
    "tests/test_graph.py": "test_graph.py.in",
}
_TORCH = {
    "MANIFEST.in": "MANIFEST_torch.in.in",
    "csrc/ops.cpp": "ops_torch.cpp.in",
    "tests/test_eager.py": "test_eager.py.in",
}
_LOOPS = {"src/@name@/kernels.py": "kernels.py.in", "tests/test_loops.py": "test_loops.py.in"}


class Kind(NamedTuple):
    """What a project of one kind has: more files, and the fields of the templates."""

    files: dict[str, str]
    fields: dict[str, str]


_CPP_ROWS = (
    "| `csrc/ops.cpp` | schemas, functions for the devices, shapes, gradients |\n"
    "| `src/@name@/` | the Python package; `@name@._ops` is made when the wheel is built |\n"
)
_GRAPH_ROWS = (
    "| `src/@name@/graph.py` | the converters for torchair's graphs |\n"
    "| `graph/` | prototypes for GE graphs |\n"
)
_LOOP_ROW = "| `src/@name@/kernels.py` | loop kernels: plain Python, compiled when the wheel is built |\n"
_SETUP_ROW = "| `setup.py` | which dtypes and dimensions the loop kernels are compiled for |\n"
_TEST_ROW = "| `tests/` | calls from each framework, eager and compiled |"
_CPP_USE = "@name@.add_custom(x, y, alpha=2.0)  # x + 2 y, with its gradient; x and y of any framework"
_LOOP_USE = "@name@.softmax(x)  # of each row, with its gradient; x of any framework"
_CPP_TRY = "import numpy, @name@; x = numpy.ones(4); print(@name@.add_custom(x, x, alpha=2.0))"
_LOOP_TRY = "import numpy, @name@; print(@name@.softmax(numpy.ones((2, 4))))"
_FOR_ALL = "in one wheel for PyTorch, JAX, MindSpore and NumPy and for every Python."
_BUILD_TOO = "; python -m build does as well"
_WITHOUT_TORCH = {
    "serves": "every Python",
    "torch": "",
    "isolation": "",
    "ci_needs": "",
    "build_too": _BUILD_TOO,
}
_WITH_TORCH = {
    "serves": "every Python, with the PyTorch that it was compiled for, which it requires",
    "torch": ', "torch"',
    "build_too": "",
    "isolation": " --no-build-isolation",  # else pip compiles for a newer PyTorch than the one that is there
    "ci_needs": " setuptools torch --extra-index-url https://download.pytorch.org/whl/cpu",
}
KINDS = {
    "cpp": Kind(
        _CPP,
        {
            **_WITHOUT_TORCH,
            "summary": f"Operators in C++, {_FOR_ALL}",
            "extensions": "OperatorExtension",
            "ext_modules": "<setup_cpp.py.in>",
            "imports": "<init_cpp.py.in>",
            "use": _CPP_USE,
            "try": _CPP_TRY,
            "layout": _CPP_ROWS + _GRAPH_ROWS + _TEST_ROW,
            "more": "<README_graph.md.in>",
            "ci_graph": "<ci_graph.yml.in>",
        },
    ),
    "loops": Kind(
        _LOOPS,
        {
            **_WITHOUT_TORCH,
            "summary": f"Loop kernels in Python, compiled, {_FOR_ALL}",
            "extensions": "LoopExtension",
            "ext_modules": "<setup_loops.py.in>",
            "imports": "<init_loops.py.in>",
            "use": _LOOP_USE,
            "try": _LOOP_TRY,
            "layout": _LOOP_ROW + _SETUP_ROW + _TEST_ROW,
            "more": "",
            "ci_graph": "",
        },
    ),
    "mixed": Kind(
        _CPP | _LOOPS,
        {
            **_WITHOUT_TORCH,
            "summary": f"Operators in C++ and loop kernels in Python, {_FOR_ALL}",
            "extensions": "LoopExtension, OperatorExtension",
            "ext_modules": "<setup_cpp.py.in><setup_loops.py.in>",
            "imports": "<init_mixed.py.in>",
            "use": f"{_CPP_USE}\n{_LOOP_USE}",
            "try": _LOOP_TRY,
            "layout": _CPP_ROWS + _LOOP_ROW + _SETUP_ROW + _GRAPH_ROWS + _TEST_ROW,
            "more": "<README_graph.md.in>",
            "ci_graph": "<ci_graph.yml.in>",
        },
    ),
    "torch": Kind(
        _TORCH,
        {
            **_WITH_TORCH,
            "summary": "Operators in C++ with `TORCH_LIBRARY`, in one wheel for PyTorch, JAX, MindSpore and "
            "NumPy.",
            "extensions": "OperatorExtension",
            "ext_modules": "<setup_torch.py.in>",
            "imports": "<init_cpp.py.in>",
            "use": _CPP_USE,
            "try": _CPP_TRY,
            "layout": _CPP_ROWS + _TEST_ROW,
            "more": "",
            "ci_graph": "",
        },
    ),
}
"""Kind -> its files and fields. ``<file>`` in a field stands for the template of that name."""
_TEMPLATES = Path(__file__).with_name("template")
_RESERVED = {"polyop", "torch", "jax", "numpy", "mindspore", "aten", "test", "tests", "setup", "std"}


def new_project(name: str, folder: Path, kind: str = "cpp", source: str = "") -> list[Path]:
    """Write the project of the library ``name`` into a folder that is new or empty; return its files.

    ``name`` is the name of the package, and the namespace of its operators. ``kind`` is a key of ``KINDS``.
    ``source`` is what pip installs polyop from, "" for a package index: otherwise the project's README says
    first how pip finds it. Raises ``ArgumentValueError`` for another kind, for a name that Python or C++ does
    not allow, and for a folder with files.
    """
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name.startswith("_"):
        rule = "must be a name in Python and C++: letters, digits, _, and a letter first"
        hint = f"as in {plain}" if (plain := _plain(name)) else None
        raise ArgumentValueError("the name of the library", rule, repr(name), hint=hint)
    if name in _RESERVED:
        raise ArgumentValueError("the name of the library", "must be free", repr(name))
    if kind not in KINDS:
        raise ArgumentValueError("kind", f"must be one of {', '.join(KINDS)}", repr(kind))
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ArgumentValueError(str(folder), "must be a folder that is new or empty")
    fields = _fields(name, kind, source)
    written = []
    try:
        for target, template in (COMMON | KINDS[kind].files).items():
            path = folder / target.replace("@name@", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_filled(_template(template), fields), encoding="utf-8")
            written.append(path)
    except OSError as problem:
        raise ArgumentValueError(str(folder), f"could not be written: {problem.strerror}") from None
    return written


def _fields(name: str, kind: str, source: str) -> dict[str, str]:
    """Return the texts of all fields that the templates have."""
    return {
        "name": name,
        "description": "Operators for PyTorch, JAX, MindSpore and NumPy",
        "source": source,
        "quoted_source": shlex.quote(source),
        "origin": "<README_origin.md.in>" if source else "",
        "ci_origin": "<ci_origin.yml.in>" if source else "",
        **KINDS[kind].fields,
    }


def _template(file: str) -> str:
    return (_TEMPLATES / file).read_text(encoding="utf-8")


def _filled(text: str, fields: dict[str, str]) -> str:
    """Return a template with its fields, and the templates that they name, filled in."""

    def field(match: re.Match[str]) -> str:
        value = re.sub(r"<([\w.]+\.in)>", lambda part: _template(part[1]), fields[match[1]])
        return _filled(value, fields)

    return re.sub(r"@(\w+)@", field, text)


def _plain(name: str) -> str:
    """Return a valid name made of this one, "" if there is none.

    >>> _plain("my-ops"), _plain("2d")
    ('my_ops', 'd')
    """
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).lstrip("_0123456789")
    return "" if keyword.iskeyword(kept) else kept
