"""Schedules that ``polyop tune`` found: kept in a file beside the source, and read when a kernel is compiled.

    ops.py                  the functions
    ops.py.tuned.json       for each function, dtypes, instruction set and class of sizes the schedule

An entry belongs to the content of a function: when the function is edited, it is not used any more, and a
warning says so. Where the folder of the source cannot be written, the file is in the build cache's folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...core.errors import ArgumentValueError, PolyopError
from ..ir.grammar import Kernel
from ..ir.schedule import STEPS, Schedule
from ..targets import isa
from . import shipped
from .options import Options, warn_once

FORMAT = 1
"""Goes up when the layout of the file changes."""
VARIABLE = "POLYOP_TUNED"
"""With the value 0, no tuned schedule is used."""
SUFFIX = ".tuned.json"
SAME_BITS = "the same bits as the default"
"""What an entry says of its values where its schedule changes none of them."""
PLACES = frozenset(("line", "file", "source", "first_read", "of_zeros"))
"""Fields that say where the text is and what it warns of: they do not matter to a schedule."""


class Entry(NamedTuple):
    """A schedule that was the fastest for a kernel, ``signature``, ``target`` and class of ``sizes``.

    ``base`` is the author's schedule, which the steps of ``schedule`` begin with. ``inputs`` are the specs
    that were measured, ``gain`` the time of the default divided by its time, ``values`` how results differ.
    """

    function: str
    signature: str
    digest: str
    base: str
    target: str
    sizes: str
    schedule: Schedule
    date: str
    inputs: str
    threads: int
    gain: float
    values: str

    @property
    def key(self) -> tuple[str, ...]:
        """What it is found by, apart from the content of the function."""
        return self.function, self.signature, self.base, self.target, self.sizes

    def as_data(self) -> dict[str, Any]:
        """Return the entry as JSON has it."""
        steps = [[step.word, list(step.loops), step.factor] for step in self.schedule.steps]
        return {**self._asdict(), "schedule": steps}


class Found(NamedTuple):
    """An entry, and the file that it is from."""

    entry: Entry
    path: str

    def __str__(self) -> str:
        """Return the line that ``explain`` prints."""
        entry = self.entry
        of = f"for {entry.inputs}, {entry.threads} threads, {entry.gain:.2f} times as fast as the default"
        return f"schedule tuned on {entry.date} {of}, from {self.path}; values: {entry.values}"


def size_class(shapes: Sequence[Sequence[int] | None]) -> str:
    """Return the class of sizes: each is rounded to a power of two.

    >>> size_class([(500, 1000), None, (3,)])
    '512x1024 - 4'
    """

    def power(size: int) -> str:
        return str(size if size < 2 else 1 << round_log2(size))

    return " ".join("-" if shape is None else "x".join(map(power, shape)) or "1" for shape in shapes)


def round_log2(size: int) -> int:
    """Return the exponent of the power of two that is nearest by ratio.

    >>> [round_log2(size) for size in (2, 3, 5, 6, 500)]
    [1, 2, 2, 3, 9]
    """
    low = size.bit_length() - 1
    return low + (size * size > 1 << (2 * low + 1))


def content(kernel: Kernel, options: Options) -> str:
    """Return the digest of what a schedule depends on: the typed kernel without the places of its text."""
    from ...binary.hashes import text_digest

    return text_digest(f"{options.precise} {options.schedule} {shipped.text_of(kernel, PLACES)}")[:24]


def find(kernel: Kernel, options: Options, shapes: Sequence[Any]) -> Found | None:
    """Return the tuned schedule for a kernel and the shapes of its tensors, or None.

    Gives a ``FallbackWarning``, once, where there are schedules for another text of the function.
    """
    if any(type(size) is not int for shape in shapes if shape is not None for size in shape):
        return None
    sizes = size_class(shapes)
    return next((found for found in in_use(kernel, options) if found.entry.sizes == sizes), None)


def in_use(kernel: Kernel, options: Options) -> Iterator[Found]:
    """Yield the entries that calls of a kernel take in this process, whatever the sizes.

    A deterministic schedule has none: it would be another one for other sizes. Gives a ``FallbackWarning``,
    once, where there are schedules for another text of the function.
    """
    if options.schedule.is_deterministic or options.checked or os.environ.get(VARIABLE, "") == "0":
        return
    if not os.path.isabs(kernel.file):  # noqa: PTH117 - pathlib is slow to import
        return
    target = isa.available()[0] if options.isa == isa.PORTABLE else options.isa
    start = (kernel.name, shipped.signature(kernel), repr(options.schedule))
    digest = ""
    for path in paths_of(kernel.file):
        entries = [entry for entry in read(path) if entry.key[:3] == start]
        if not entries:
            continue
        digest = digest or content(kernel, options)
        known = [entry for entry in entries if entry.digest == digest]
        if not known:
            remedy = f"polyop tune {kernel.file} {kernel.name} searches again"
            warn_once(
                f"{path}: schedules of {kernel.name} are for another text of it, and not used: {remedy}"
            )
            continue
        yield from (Found(entry, path) for entry in known if entry.target == target)


def of_kernel(kernel: Kernel, options: Options) -> list[Entry]:
    """Return all entries for the content of a kernel, whatever the target and the sizes."""
    start = (kernel.name, shipped.signature(kernel), repr(options.schedule))
    entries = [entry for path in paths_of(kernel.file) for entry in read(path) if entry.key[:3] == start]
    digest = content(kernel, options) if entries else ""
    return [entry for entry in entries if entry.digest == digest]


def paths_of(source: str) -> tuple[str, str]:
    """Return the files that can have the schedules of a source: in the cache's folder, and beside it.

    That in the cache comes first: it has only what could not be written beside the source.
    """
    from ...binary.hashes import text_digest
    from ...build.paths import cache_folder

    name = os.path.basename(source)  # noqa: PTH119 - pathlib is slow to import
    return f"{cache_folder()}/tuned/{name}-{text_digest(source)[:12]}{SUFFIX}", f"{source}{SUFFIX}"


_read: dict[str, list[Entry]] = {}


def read(path: str) -> list[Entry]:
    """Return the entries of a file, read once by a process; none where it is missing.

    A file that cannot be read gives a ``FallbackWarning``, once.
    """
    if path not in _read:
        try:
            _read[path] = _entries(path)
        except (FileNotFoundError, NotADirectoryError):
            _read[path] = []
        except (OSError, ValueError, KeyError, TypeError, PolyopError) as problem:
            _read[path] = []
            warn_once(f"{path} is ignored, as it cannot be read: {type(problem).__name__}: {problem}")
    return _read[path]


def _entries(path: str) -> list[Entry]:
    from ...build import records

    data, _ = records.read(path)
    if records.int64(records.field(data, "format")) != FORMAT:
        raise ValueError(f"it has format {data['format']}, not {FORMAT}")
    entries = []
    for row in records.rows(records.field(data, "entries")):
        texts = {name: records.text(records.field(row, name)) for name in _TEXTS}
        schedule = Schedule()
        for word, loops, factor in records.rows(records.field(row, "schedule")):
            if word not in STEPS:
                raise ValueError(f"{word!r} is no step of a schedule")
            more = (factor,) if STEPS[word].factor else ()
            schedule = getattr(schedule, word)(*loops, *more)
        threads, gain = records.int64(records.field(row, "threads")), float(records.field(row, "gain"))
        entries.append(Entry(**texts, schedule=schedule, threads=threads, gain=gain))
    return entries


_TEXTS = ("function", "signature", "digest", "base", "target", "sizes", "date", "inputs", "values")


def save(source: str, entry: Entry) -> str:
    """Keep an entry, in place of the one with the same key, and of those for another text of the function.

    Returns the path of the file: beside the source where that can be written. Raises ``OSError``, and
    ``ArgumentValueError`` for a file that this version cannot read: its entries would be lost.
    """
    cached, beside = paths_of(source)
    try:
        _save(beside, entry)
    except OSError:
        return _save(cached, entry)
    _without(cached, entry.key)
    return beside


def discard(source: str, key: tuple[str, ...]) -> None:
    """Forget the entry with a key: the default is the best. Raises ``OSError`` where it cannot be."""
    for path in paths_of(source):
        _without(path, key)


def _without(path: str, key: tuple[str, ...]) -> None:
    entries = _current(path)
    kept = [entry for entry in entries if entry.key != key]
    if len(kept) < len(entries):
        _write(path, kept)


def _current(path: str) -> list[Entry]:
    """Return the entries of a file as it is now: another process may have written it."""
    try:
        return _entries(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (ValueError, KeyError, TypeError, PolyopError) as problem:
        rule, seen = (
            "is no file of schedules that this polyop can read",
            f"{type(problem).__name__}: {problem}",
        )
        raise ArgumentValueError(path, rule, seen, hint="move it away, then tune again") from problem


def _save(path: str, entry: Entry) -> str:
    kept = [
        old
        for old in _current(path)
        if old.key != entry.key and (old.key[:3] != entry.key[:3] or old.digest == entry.digest)
    ]
    _write(path, sorted([*kept, entry], key=lambda one: one.key))
    return path


def _write(path: str, entries: Sequence[Entry]) -> None:
    import json

    from ...build import atomic

    data = {"format": FORMAT, "entries": [entry.as_data() for entry in entries]}
    atomic.write_text(path, json.dumps(data, indent=1) + "\n")
    _read[path] = list(entries)
