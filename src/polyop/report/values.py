"""What a report shows, as values. The collectors make them; the templates only print them.

A *line* is the number of a line of the author's file: it is what links the views of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Access:
    """One of the two accesses that make a loop serial: what the line does with ``target``."""

    line: int
    verb: str
    target: str
    text: str


@dataclass(frozen=True)
class Badge:
    """What a loop became. ``kind``: "parallel", "vector", "tile", "band", "fused", "unrolled" or "serial"."""

    kind: str
    label: str


@dataclass(frozen=True)
class LoopFact:
    """A loop of the author, or of a derived kernel: what it became, and why.

    ``accesses`` are the two that isl names where the order of its iterations must stay.
    """

    name: str
    line: int
    text: str
    badges: tuple[Badge, ...]
    why: str
    accesses: tuple[Access, ...] = ()

    @property
    def is_serial(self) -> bool:
        """Whether its iterations run one after the other, each on one lane."""
        return any(badge.kind == "serial" for badge in self.badges)


@dataclass(frozen=True)
class SourceLine:
    """A line of the author's function, with the badges of its loops and what the compiler says of it."""

    line: int
    text: str
    badges: tuple[Badge, ...] = ()
    notes: tuple[str, ...] = ()
    gap: bool = False
    """Whether lines of the file are left out before it: a helper stands elsewhere."""


@dataclass(frozen=True)
class Line:
    """A line of generated text, and the author's line that it is of (0: none)."""

    text: str
    line: int = 0
    mark: str = ""
    """In a listing after a pass: "+" for a line that the pass made, "-" for one that it removed."""


@dataclass(frozen=True)
class PassStep:
    """The loops after a pass that changed something: all lines, with those that it removed."""

    number: int
    name: str
    why: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Instruction:
    """One machine instruction.

    ``lanes`` is for example "16 x f32"; ``marks`` are of "spill", "reload", "unaligned", "call". ``depth``:
    in how many loops of the machine code it is.
    """

    address: str
    name: str
    operands: str
    line: int
    c_line: int
    lanes: str = ""
    marks: tuple[str, ...] = ()
    depth: int = 0
    jump: str = ""
    """The address that it jumps to, inside of the function."""
    is_target: bool = False


@dataclass(frozen=True)
class MachineLoop:
    """An innermost loop of the machine code, which has no other loop inside."""

    lines: tuple[int, ...]
    first: str
    count: int
    vector: int
    lanes: str
    spills: int
    reloads: int
    unaligned: int


@dataclass(frozen=True)
class Machine:
    """The machine code of a kernel by function, its innermost loops, or why there is none."""

    functions: tuple[tuple[str, tuple[Instruction, ...]], ...] = ()
    loops: tuple[MachineLoop, ...] = ()
    missing: str = ""
    left_out: int = 0
    """How many instructions are not shown, because they are in no innermost loop."""
    how: str = ""
    """What compiled it, and with which options."""
    unmarked: str = ""
    """Why no instruction has marks, as on other machines than x86-64."""


@dataclass(frozen=True)
class Arrow:
    """A dependence between two iterations: a pair of points, and what they share."""

    start: tuple[int, int]
    end: tuple[int, int]
    target: str
    commutes: bool
    lines: tuple[int, int]


@dataclass(frozen=True)
class Space:
    """The iterations of one or two loops of a small case, with their direct dependences."""

    loops: tuple[str, ...]
    lines: tuple[int, ...]
    sizes: str
    points: tuple[tuple[int, int], ...]
    arrows: tuple[Arrow, ...]
    others: str = ""
    """The value at which each of the other loops is fixed, as text: "k = 0"."""


@dataclass(frozen=True)
class Form:
    """A kernel on its way: the author's, or its gradient."""

    title: str
    source: tuple[SourceLine, ...]
    loops: tuple[LoopFact, ...]
    start: tuple[Line, ...]
    passes: tuple[PassStep, ...]
    unchanged: tuple[str, ...]
    c: tuple[Line, ...]
    machine: Machine
    spaces: tuple[Space, ...] = ()
    schedule: str = ""
    target: str = ""
    fallback: str = ""
    costly: tuple[str, ...] = ()
    """The functions that cost more than a multiply-add, with their lines and how much more."""


@dataclass(frozen=True)
class Kept:
    """A value that the gradient needs: where it comes from, and its bytes (None where it takes none)."""

    name: str
    how: str
    bytes: int | None
    line: int = 0
    why: str = ""


@dataclass(frozen=True)
class Gradient:
    """The gradient of an operator: what it needs, and its loops where polyop derived it.

    ``kept`` has rows of "input", "output", "saved", "recomputed" and "taped".
    """

    rule: str
    kept: tuple[Kept, ...] = ()
    recomputed: tuple[str, ...] = ()
    form: Form | None = None
    missing: str = ""


@dataclass(frozen=True)
class Point:
    """A measured call in the roofline: operations, bytes, median seconds with their 10 % and 90 %."""

    name: str
    flops: float | None
    bytes: float
    seconds: float
    low: float
    high: float
    dtype: str
    exact: bool
    kind: str = "own"
    """"own", "gradient" or "peer"."""

    @property
    def intensity(self) -> float | None:
        """Operations per byte."""
        return self.flops / self.bytes if self.flops and self.bytes else None


@dataclass(frozen=True)
class Measured:
    """What was measured: the roofs of the machine, calls, and calls by the number of threads."""

    points: tuple[Point, ...] = ()
    bandwidth: tuple[tuple[str, float], ...] = ()
    flops: tuple[tuple[str, float], ...] = ()
    level: str = ""
    """The memory level that holds what a call reads and writes."""
    limits: tuple[tuple[str, str, float], ...] = ()
    """By point: the roof above it, and the fraction of that roof that it reaches."""
    threads: tuple[tuple[int, float, float, float], ...] = ()
    """Number of threads, median seconds, and their 10 % and 90 %."""
    missing: str = ""
    notes: tuple[str, ...] = ()
    busy: str = ""
    """What else the machine did, or an empty text."""


@dataclass(frozen=True)
class Table:
    """A table in words: a caption, heads, rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Answer:
    """A question that the top of the page answers, in sentences."""

    question: str
    sentences: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """All that a page shows. What an operator lacks is None or empty, and ``lacks`` says so."""

    name: str
    schema: str
    where: str
    about: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    machine: str
    answers: tuple[Answer, ...]
    explanation: str
    forward: Form | None = None
    gradient: Gradient | None = None
    measured: Measured = field(default_factory=Measured)
    sharding: tuple[Table, ...] = ()
    sharding_notes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
