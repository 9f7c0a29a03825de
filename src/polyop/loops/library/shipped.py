"""Loop kernels compiled ahead of time: how a wheel brings their libraries, and how a call finds them.

Beside the module that has the functions lies a folder ``__polyop__``: ``<module>.json`` tells of every
library, which typed kernel it is for and what became of its loops. A library stands for one typed
kernel, by the digest of that: a function that is edited later, or that reads another number, has
another digest.
"""

from __future__ import annotations

import os
import platform
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from ...binary import verified
from ...binary.allowed import check_allowed
from ...core.abi import ABI_VERSION
from ...core.errors import ArgumentTypeError
from ..ir.grammar import Kernel
from ..targets import isa
from . import shipped_index

FOLDER = "__polyop__"
FORMAT = 1
"""Goes up when the index is written in another way."""
MEANING = 2
"""Goes up when the same typed kernel means something else or has another digest, or its library is called in
another way. Libraries of another level are refused, and the reason is given."""
GRADIENT = "__backward"
"""What the name of a derived gradient ends with."""
REMEDY = "build its package again with this polyop"


class Look(NamedTuple):
    """What a look for a shipped library gives: its ``path`` and ``row`` of the index, or ``why`` not.

    Without either the function is not among those that were compiled ahead of time. ``asked``: the
    user wants what no wheel brings, so that compiling is no surprise.
    """

    path: str = ""
    row: Any = None
    why: str = ""
    asked: bool = False


def index_file(module_file: str) -> str:
    """Return where the index of a module's loop kernels is.

    >>> index_file("/site/myops/kernels.py")
    '/site/myops/__polyop__/kernels.json'
    """
    folder, _, name = module_file.rpartition("/")
    return f"{folder}/{FOLDER}/{name.rpartition('.')[0] or name}.json"


def digest(kernel: Kernel, *, precise: bool) -> str:
    """Return what stands for a typed kernel on every machine: all of it but the place of its file."""
    from ...binary.hashes import text_digest

    return text_digest(f"{MEANING} {precise} {_text(replace(kernel, file=''))}")[:24]


def _text(node: Any) -> str:
    """Return a part of a kernel as text, alike in every process and every Python.

    What has its default is left out: a field that a later polyop adds changes no digest.

    >>> from polyop.loops.ir.grammar import Load, Type
    >>> _text((Load("x", (), Type("int8")), {"a": 1}))
    "(Load(buffer='x',index=(),type=Type(dtype='int8',),),{'a':1,},)"
    """
    if isinstance(node, tuple):
        return f"({''.join(f'{_text(one)},' for one in node)})"
    if isinstance(node, dict):
        return f"{{{''.join(f'{key!r}:{_text(one)},' for key, one in sorted(node.items()))}}}"
    if not is_dataclass(node):
        return repr(node)
    values = ((field, getattr(node, field.name)) for field in fields(node))
    parts = (f"{field.name}={_text(value)}," for field, value in values if value != field.default)
    return f"{type(node).__name__}({''.join(parts)})"


def signature(kernel: Kernel) -> str:
    """Return the dtypes and dimensions of a typed kernel's parameters, as ``float32[:,:], float``."""
    parts = []
    for name in kernel.parameters:
        buffer = kernel.buffers.get(name)
        if buffer is None:
            parts.append(str(kernel.attributes[name]))
        else:
            parts.append(f"{buffer.dtype}[{','.join(':' * len(buffer.shape))}]")
    return ", ".join(parts)


def find(kernel: Kernel, *, precise: bool, checked: bool, device: str) -> Look:
    """Return the library that was shipped for a typed kernel, or why there is none that fits."""
    if not os.path.isabs(kernel.file):  # noqa: PTH117 - pathlib is slow to import
        return Look()  # a notebook's cell
    path = index_file(kernel.file)
    try:
        index = shipped_index.read(path)
        rows = [row for row in index["kernels"] if row["function"] == kernel.name]
        if not rows and not _has_function(kernel, index):
            return Look()
        if wish := _wish(device, checked):
            return Look(why=wish, asked=True)
        return _odd(index) or _fitting(kernel, precise, rows, path, index["source"])
    except (FileNotFoundError, NotADirectoryError):
        return Look()
    except (OSError, ValueError) as problem:
        return Look(why=f"{path} cannot be read ({type(problem).__name__}: {problem})")


def _has_function(kernel: Kernel, index: Any) -> bool:
    """Whether a kernel is the gradient of a function that was compiled ahead of time."""
    name = kernel.name
    while kernel.derived and name.endswith(GRADIENT):
        name = name.removesuffix(GRADIENT)
    return name != kernel.name and any(row["function"] == name for row in index["kernels"])


def _wish(device: str, checked: bool) -> str:
    """Return what the user asks for that is never shipped, "" where nothing is."""
    wanted = os.environ.get("POLYOP_LOOPS_ISA", "")
    if device != "cpu":
        return "kernels for GPUs are not compiled ahead of time"
    if checked:
        return "debug mode is not compiled ahead of time"
    if wanted not in ("", isa.PORTABLE):
        return f"POLYOP_LOOPS_ISA={wanted} asks for a library of its own"
    return ""


def _odd(index: Any) -> Look | None:
    """Return why nothing of an index can be used, None where it can."""
    rules = (
        ("the index has format", index["format"], FORMAT),
        ("loop kernels were compiled by another polyop, at level", index["meaning"], MEANING),
        ("loop kernels were compiled for ABI version", index["abi"], ABI_VERSION),
        ("loop kernels were compiled for", index["machine"], platform.machine()),
    )
    for what, theirs, ours in rules:
        if theirs != ours:
            return Look(why=f"{what} {theirs}, and here it is {ours}: {REMEDY}")
    return None


def _fitting(kernel: Kernel, precise: bool, rows: list[Any], index: str, source: str) -> Look:
    from ...binary import hashes

    mine, wanted = digest(kernel, precise=precise), signature(kernel)
    row = next((row for row in rows if row["digest"] == mine), None)
    if row is None and kernel.derived:
        listed = "; ".join(row["signature"] for row in rows) or "none"
        rule = f"of a gradient that is derived, this was not compiled ahead of time; there are ({listed})"
        return Look(why=f"{rule}: LoopExtension(gradients=[...]) lists them")
    if row is None:
        if any(row["signature"] == wanted for row in rows):
            same = hashes.digest(kernel.file) == source
            rule = "a number that it reads, or this polyop," if same else "its file"
            return Look(why=f"{rule} is another than when it was compiled ahead of time: {REMEDY}")
        listed = "; ".join(row["signature"] for row in rows)
        return Look(why=f"({wanted}) was not compiled ahead of time; there are ({listed})")
    path = f"{index.rpartition('/')[0]}/{row['library']}"
    try:
        resolved = check_allowed(path)
    except ArgumentTypeError as problem:
        return Look(why=str(problem))
    if not verified.verify(resolved, None, row["sha256"]):
        return Look(why=f"{path} is missing or damaged: install its package again")
    return Look(path, row)
