"""Write a project for an operator library, ready to build and test."""

from __future__ import annotations

import keyword
from pathlib import Path

from ..core.errors import ArgumentValueError

# A file of the project -> its template.
FILES = {
    "pyproject.toml": "pyproject.toml.in",
    "setup.py": "setup.py.in",
    "MANIFEST.in": "MANIFEST.in.in",
    "README.md": "README.md.in",
    ".gitignore": "gitignore.in",
    ".github/workflows/ci.yml": "ci.yml.in",
    "csrc/ops.cpp": "ops.cpp.in",
    "src/@name@/__init__.py": "init.py.in",
    "src/@name@/graph.py": "graph.py.in",
    "graph/custom_reg_op.h": "custom_reg_op.h.in",
    "graph/CMakeLists.txt": "CMakeLists.txt.in",
    "tests/test_eager.py": "test_eager.py.in",
    "tests/test_graph.py": "test_graph.py.in",
}
_TEMPLATES = Path(__file__).with_name("template")
_RESERVED = {"polyop", "torch", "jax", "numpy", "mindspore", "aten", "test", "tests", "setup", "std"}


def new_project(name: str, folder: Path) -> list[Path]:
    """Write the project of the library ``name`` into a folder that is new or empty; return its files.

    ``name`` is the name of the package, and the namespace of its operators. Raises
    ``ArgumentValueError`` for a name that Python or C++ does not allow, and for a folder with files.
    """
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name.startswith("_"):
        rule = "must be a name in Python and C++: letters, digits, _, and a letter first"
        hint = f"as in {plain}" if (plain := _plain(name)) else None
        raise ArgumentValueError("the name of the library", rule, repr(name), hint=hint)
    if name in _RESERVED:
        raise ArgumentValueError("the name of the library", "must be free", repr(name))
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ArgumentValueError(str(folder), "must be a folder that is new or empty")
    written = []
    try:
        for target, template in FILES.items():
            path = folder / target.replace("@name@", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (_TEMPLATES / template).read_text(encoding="utf-8")
            path.write_text(text.replace("@name@", name), encoding="utf-8")
            written.append(path)
    except OSError as problem:
        raise ArgumentValueError(str(folder), f"could not be written: {problem.strerror}") from None
    return written


def _plain(name: str) -> str:
    """Return a valid name made of this one, "" if there is none.

    >>> _plain("my-ops"), _plain("2d")
    ('my_ops', 'd')
    """
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).lstrip("_0123456789")
    return "" if keyword.iskeyword(kept) else kept
