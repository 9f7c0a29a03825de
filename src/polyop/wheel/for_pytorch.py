"""Libraries for PyTorch in a wheel: what they register there, and which PyTorch they need."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..binary.elf import read
from ..binary.elsewhere import run_elsewhere
from ..binary.file_kind import subject_of
from ..build.libtorch import find
from ..build.sources import gather
from ..core.errors import LibraryError
from ..core.parse import parse
from ..define.library.first_load import crash
from ..providers.aten import aten
from ..providers.aten.registered import registers_in_torch, torch_operators
from .extension import OperatorExtension
from .information import Described, with_names

_PYTHON = r"\bPYBIND11_MODULE\b|\bNB_MODULE\b|\bPyInit_|\bPyMODINIT_FUNC\b|\bTORCH_EXTENSION_NAME\b"
_PROGRAM = "from polyop.wheel.for_pytorch import write_operators; write_operators(sys.argv[1])"


def uses_pytorch(extension: OperatorExtension) -> bool:
    """Whether a source includes a header of PyTorch."""
    return any(source.uses_pytorch for source in _sources(extension))


def binds_python(extension: OperatorExtension) -> bool:
    """Whether a source has what makes a library a Python module."""
    return any(re.search(_PYTHON, source.text) for source in _sources(extension))


def _sources(extension: OperatorExtension) -> Sequence[Any]:
    return gather(extension.sources, None, "c++", extension.include_dirs)


def version() -> str:
    """Return the version of the installed PyTorch that compiled code is for, as "2.13"."""
    return ".".join(find("a wheel for PyTorch").version.split(".")[:2])


def run_path(name: str, *, package: bool) -> str:
    """Return where a library finds PyTorch's, from its own folder among the installed packages.

    >>> run_path("mine._ops", package=True), run_path("ops", package=False)
    ('$ORIGIN/../../torch/lib', '$ORIGIN/torch/lib')
    """
    return "/".join(["$ORIGIN", *[".."] * (name.count(".") + package), "torch/lib"])


def describe(library: Path, names: Mapping[str, str]) -> list[Described]:
    """Return the operators that a library registers in PyTorch, those that polyop can call.

    Another process opens it. Raises ``LibraryError`` if it registers none or cannot be opened, and
    ``ArgumentValueError`` for names that cannot be used.
    """
    hint = "write TORCH_LIBRARY(namespace, m) { m.def(schema, &function); }, or a PYBIND11_MODULE"
    if not registers_in_torch(read(library)):
        rule = "registers no operators in PyTorch, and is no Python module"
        raise LibraryError(subject_of(library), rule, hint=hint)
    opened = run_elsewhere(library, _PROGRAM)
    if opened.code < 0:
        raise crash(library, opened, None)
    if opened.code:
        last = (opened.errors.strip() or "no message").splitlines()[-1]
        raise LibraryError(subject_of(library), f"cannot be opened: {last}")
    rows = json.loads(opened.output.splitlines()[-1])
    if not rows:
        raise LibraryError(subject_of(library), "registers no operator with a schema", hint=hint)
    return with_names([(parse(schema), dict.fromkeys(keys, ""), "") for schema, keys in rows], names)


def write_operators(path: str) -> None:
    """Open a library and write the schemas and keys of its operators, as JSON."""
    rows = []
    for name, schema, keys in torch_operators(Path(path)):
        if schema is not None:
            try:
                rows.append((str(aten(name).schema), keys))
            except NotImplementedError:  # the schema has types that are only PyTorch's
                continue
    sys.stdout.write(json.dumps(rows) + "\n")
