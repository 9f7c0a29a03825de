"""Find the libraries of loop kernels that a package ships, compiled ahead of time.

    myops/kernels.py                            the functions
    myops/__polyop__/kernels.json               the index: of each library the typed kernel, and its notes
    myops/__polyop__/softmax-5b1edd949132.so    the library of one typed kernel

A typed kernel is found by its digest. If the function is edited, or a number that it reads changes, the
digest changes as well, and the library is not used. The index may be damaged: it is checked.
"""

from __future__ import annotations

import os
import platform
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from ...binary import verified
from ...binary.allowed import check_allowed
from ...core.errors import ArgumentTypeError
from ...core.versions import ABI_VERSION
from ..ir.grammar import Kernel
from ..ir.schedule import NOTHING, Schedule
from ..targets import isa

FOLDER = "__polyop__"
FORMAT = 1
"""Goes up when the layout of the index changes."""
MEANING = 4
"""Goes up when the meaning or the digest of a typed kernel changes, or the way to call its library. Libraries
of another level are refused, with that reason."""
GRADIENT = "__backward"
"""The suffix of the name of a derived gradient."""
REMEDY = "build its package again with this polyop"


class Search(NamedTuple):
    """The result of a search for a shipped library: its ``path`` and ``row`` of the index, or ``why`` not.

    Both are empty if no library of the function was shipped. ``requested``: the user has asked for
    something that is never shipped, so no warning is due when the kernel is compiled.
    """

    path: str = ""
    row: Any = None
    why: str = ""
    requested: bool = False


def index_file(module_file: str) -> str:
    """Return the path of the index of a module's loop kernels.

    >>> index_file("/site/myops/kernels.py")
    '/site/myops/__polyop__/kernels.json'
    """
    folder, _, name = module_file.rpartition("/")
    return f"{folder}/{FOLDER}/{name.rpartition('.')[0] or name}.json"


def digest(kernel: Kernel, *, precise: bool, schedule: Schedule = NOTHING) -> str:
    """Return a digest of a typed kernel, the same on every machine: the path of its file is left out."""
    from ...binary.hashes import text_digest

    steps = f" {schedule}" if schedule else ""
    return text_digest(f"{MEANING} {precise} {text_of(replace(kernel, file=''))}{steps}")[:24]


def text_of(node: Any, without: frozenset[str] = frozenset()) -> str:
    """Return a part of a kernel as text, the same in every process and every version of Python.

    Fields with their default value are left out, so a field that a later polyop adds changes no digest.
    ``without`` names further fields that do not matter.

    >>> from polyop.loops.ir.grammar import Load, Type
    >>> text_of((Load("x", (), Type("int8")), {"a": 1}))
    "(Load(buffer='x',index=(),type=Type(dtype='int8',),),{'a':1,},)"
    """
    if isinstance(node, tuple):
        return f"({''.join(f'{text_of(item, without)},' for item in node)})"
    if isinstance(node, dict):
        return f"{{{''.join(f'{key!r}:{text_of(value, without)},' for key, value in sorted(node.items()))}}}"
    if not is_dataclass(node):
        return repr(node)
    values = ((field, getattr(node, field.name)) for field in fields(node))
    kept = (pair for pair in values if pair[1] != pair[0].default and pair[0].name not in without)
    parts = (f"{field.name}={text_of(value, without)}," for field, value in kept)
    return f"{type(node).__name__}({''.join(parts)})"


def signature(kernel: Kernel) -> str:
    """Return the dtypes and dimensions of a typed kernel's parameters, as ``float32[:,:], float``."""
    parts = []
    for name in kernel.parameters:
        buffer = kernel.buffers.get(name)
        if buffer is None:
            parts.append(str(kernel.attributes[name]))
        else:
            parts.append(f"{buffer.outer_dtype}[{','.join(':' * len(buffer.outer_shape))}]")
    return ", ".join(parts)


def find(
    kernel: Kernel, *, precise: bool, checked: bool, device: str, schedule: Schedule = NOTHING
) -> Search:
    """Return the library that was shipped for a typed kernel, or why none fits."""
    if not os.path.isabs(kernel.file):  # noqa: PTH117 - pathlib is slow to import
        return Search()  # a notebook cell
    path = index_file(kernel.file)
    try:
        index = read_index(path)
        rows = [row for row in index["kernels"] if row["function"] == kernel.name]
        if not rows and not _has_function(kernel, index):
            return Search()
        if reason := _never_shipped(device, checked):
            return Search(why=reason, requested=True)
        return _mismatch(index) or _matching(kernel, precise, schedule, rows, path, index["source"])
    except (FileNotFoundError, NotADirectoryError):
        return Search()
    except (OSError, ValueError) as problem:
        return Search(why=f"{path} cannot be read ({type(problem).__name__}: {problem})")


def lists(kernel: Kernel) -> bool:
    """Whether a package ships libraries of a kernel's function."""
    if not os.path.isabs(kernel.file):  # noqa: PTH117 - pathlib is slow to import
        return False
    try:
        index = read_index(index_file(kernel.file))
    except (OSError, ValueError):
        return False
    return any(row["function"] == kernel.name for row in index["kernels"])


def _has_function(kernel: Kernel, index: Any) -> bool:
    """Whether a kernel is a gradient of a function that was compiled ahead of time."""
    name = kernel.name
    while kernel.derived and name.endswith(GRADIENT):
        name = name.removesuffix(GRADIENT)
    return name != kernel.name and any(row["function"] == name for row in index["kernels"])


def _never_shipped(device: str, checked: bool) -> str:
    """Return a reason why no package can have the library, or ""."""
    requested_isa = os.environ.get("POLYOP_LOOPS_ISA", "")
    if device != "cpu":
        return "kernels for GPUs are not compiled ahead of time"
    if checked:
        return "debug mode is not compiled ahead of time"
    if requested_isa not in ("", isa.PORTABLE):
        return f"POLYOP_LOOPS_ISA={requested_isa} is set, and a package ships portable libraries only"
    return ""


def _mismatch(index: Any) -> Search | None:
    """Return why no library of an index can be used, or None if they can."""
    rules = (
        ("the index has format", index["format"], FORMAT),
        ("loop kernels were compiled by another polyop, at level", index["meaning"], MEANING),
        ("loop kernels were compiled for ABI version", index["abi"], ABI_VERSION),
        ("loop kernels were compiled for", index["machine"], platform.machine()),
    )
    for subject, theirs, ours in rules:
        if theirs != ours:
            return Search(why=f"{subject} {theirs}, and here it is {ours}: {REMEDY}")
    return None


def _matching(
    kernel: Kernel, precise: bool, schedule: Schedule, rows: list[Any], index: str, source: str
) -> Search:
    from ...binary import hashes

    kernel_digest, kernel_signature = digest(kernel, precise=precise, schedule=schedule), signature(kernel)
    row = next((row for row in rows if row["digest"] == kernel_digest), None)
    if row is None and kernel.derived:
        listed = "; ".join(row["signature"] for row in rows) or "none"
        rule = f"this derived gradient was not compiled ahead of time; there are ({listed})"
        return Search(why=f"{rule}: LoopExtension(gradients=[...]) lists them")
    if row is None:
        if any(row["signature"] == kernel_signature for row in rows):
            same = hashes.digest(kernel.file) == source
            changed = "a number that it reads, its schedule, or polyop," if same else "its file"
            return Search(why=f"{changed} has changed since it was compiled ahead of time: {REMEDY}")
        listed = "; ".join(row["signature"] for row in rows)
        return Search(why=f"({kernel_signature}) was not compiled ahead of time; there are ({listed})")
    path = f"{index.rpartition('/')[0]}/{row['library']}"
    try:
        resolved = check_allowed(path)
    except ArgumentTypeError as problem:
        return Search(why=str(problem))
    if not verified.verify(resolved, None, row["sha256"]):
        return Search(why=f"{path} is missing or damaged: install its package again")
    return Search(path, row)


def read_index(path: str) -> dict[str, Any]:
    """Return the index in a file. Raises ``OSError``, and ``ValueError`` for any field that is wrong."""
    from ...build import records

    index, _ = records.read(path)
    for name in ("format", "meaning", "abi"):
        records.int64(records.field(index, name))
    for name in ("machine", "source"):
        records.text(records.field(index, name))
    for row in records.rows(records.field(index, "kernels")):
        for name in ("function", "signature", "digest", "symbol", "passes"):
            records.text(records.field(row, name))
        records.base_name(records.field(row, "library"))
        records.hexadecimal(records.field(row, "sha256"), 64)
        _check_notes(records.field(row, "told"))
    checked: dict[str, Any] = index
    return checked


def _check_notes(table: Any) -> None:
    """Raise ``ValueError`` unless this is a table of notes, (line, text), by instruction set."""
    from ...build import records

    if not isinstance(table, dict) or not table:
        raise ValueError("the notes are not a table by instruction set")
    for notes in table.values():
        for note in records.rows(notes):
            line, text = (*records.rows(note), None, None)[:2]
            records.int64(line)
            records.text(text)
