r"""The list of mutants and the bugs of the past: how they are written in files.

A line of list.txt has these columns, with tabs between:

    id, file, function or table, kind, occurrence, the lines as they are, the mutated lines

The file is named from src/polyop. Whole lines without their indentation are the fragment, \n stands between
them; a fragment that a function has more than once is counted in it. Another column is written by hand, for a
mutant that no test can tell from the original:

    equivalent: both bounds are the same here

A file of past/ says what was wrong, names the commit that corrected it, and has the changes that put the bug
back, of a fragment that its file has once:

    file: loops/passes/fuse.py
    now:
        the lines as they are
    bug:
        the lines with the bug, none where lines are missing
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from places import Change, indent_of
from sites import without_indent

HERE = Path(__file__).resolve().parent
LIST, PAST = HERE / "list.txt", HERE / "past"
EQUIVALENT = "equivalent: "
PARTED = ("loops",)  # rooms whose sub-folders are rooms
CHANGE = re.compile(r"^file: (\S+)\nnow:\n(.*?)^bug:\n((?:    [^\n]*\n)*)", re.MULTILINE | re.DOTALL)


class Mutant(NamedTuple):
    """One or more changes that are tried together. ``equivalent`` is why no test can see them."""

    name: str
    kind: str
    changes: tuple[Change, ...]
    equivalent: str = ""

    @property
    def room(self) -> str:
        """The room of the first file."""
        return room_of(self.changes[0].file)


def room_of(file: str) -> str:
    """Return the room of a file.

    >>> room_of("core/dtypes.py"), room_of("loops/emit/c/file.py"), room_of("loops/loop_tree.py")
    ('core', 'loops/emit', 'loops')
    """
    parts = file.split("/")[:-1]
    return "/".join(parts[: 1 + (parts[:1] == [*PARTED])])


def name_of(change: Change) -> str:
    """Return a name that the other lines of the list do not change."""
    digest = hashlib.sha256("\0".join(map(str, change)).encode()).hexdigest()
    return f"{room_of(change.file).replace('/', '.')}-{digest[:6]}"


def to_line(mutant: Mutant) -> str:
    """Return the line of a mutant with one change."""
    (change,) = mutant.changes
    before, after = (
        text.replace("\\", "\\\\").replace("\n", "\\n") for text in (change.before, change.after)
    )
    columns = [mutant.name, change.file, change.scope, mutant.kind, str(change.occurrence), before, after]
    return "\t".join([*columns, *([EQUIVALENT + mutant.equivalent] if mutant.equivalent else [])])


def from_line(line: str) -> Mutant:
    """Return the mutant of a line."""
    name, file, scope, kind, occurrence, before, after, *rest = line.split("\t")
    old, new = (
        re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)
        for text in (before, after)
    )
    reason = rest[0].strip().removeprefix(EQUIVALENT) if rest else ""
    return Mutant(name, kind, (Change(file, old, new, scope, int(occurrence)),), reason)


def mutants() -> list[Mutant]:
    """Return the mutants of the list; lines that begin with # are remarks."""
    lines = LIST.read_text().splitlines()
    return [from_line(line) for line in lines if line and not line.startswith("#")]


def past() -> list[Mutant]:
    """Return the bugs of the past."""
    return [Mutant(f"past-{path.stem}", "past", changes_of(path)) for path in sorted(PAST.glob("*.txt"))]


def changes_of(path: Path) -> tuple[Change, ...]:
    """Return the changes that a file of past/ describes."""
    return tuple(
        Change(file, without_indent(old, indent_of(old)), without_indent(new, indent_of(old)))
        for file, old, new in CHANGE.findall(path.read_text())
    )
