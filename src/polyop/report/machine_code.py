"""The machine code of a C text: compiled with line numbers, read with objdump, its instructions marked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..build import build, compilers
from ..build.sources import store_code
from ..core import programs
from ..core.errors import BuildError
from ..loops.library.options import Options, flags_of
from .values import Instruction, Machine, MachineLoop

_FUNCTION = re.compile(r"[0-9a-f]+ <(.+)>:")
_INSTRUCTION = re.compile(r"\s+([0-9a-f]+):\t(\S+)\s*([^<]*)(<[^>]*>)?")
_COMMENTS = {"x86_64": "#", "i686": "#", "aarch64": "//"}
"""Machine -> what starts a comment of objdump. On ARM ``#`` starts a number."""
_PLACE = re.compile(r"\s*(?:\(?inlined by\)? )?(\S.*):(\d+)(?: \(.*\))?")
_REGISTER = re.compile(r"\b([xyz])mm\d+")
_ARM_VECTOR = re.compile(r"\bv\d+\.(\d+)([bhsd])\b")
_SLOT = re.compile(r"\[[^\]]*\b(rsp|rbp)\b")
_VECTOR_OPERAND = re.compile(r"\b[XYZ]MMWORD PTR (?:\w+:)?\[(?!rip|rsp)")
MARKED = "x86_64"
"""The machine whose instructions get marks."""
OBJDUMP_SECONDS = 60.0
"""The time that objdump gets: it takes long for inlined lines of a large library."""
MAX_INSTRUCTIONS = 3000
"""Beyond this many instructions a page shows the innermost loops alone."""
_BYTES = {"x": 16, "y": 32, "z": 64}
_ALIGNED = ("movap", "vmovap", "movdqa", "vmovdqa", "movnt", "vmovnt", "prefetch")
_SCALARS = ("ss", "sd", "sh")
_ELEMENTS = {"ps": (4, "f32"), "pd": (8, "f64"), "ph": (2, "f16")}
_INTEGERS = {"b": (1, "i8"), "w": (2, "i16"), "d": (4, "i32"), "q": (8, "i64")}
_ARM_ELEMENTS = {"b": "8 bits", "h": "16 bits", "s": "32 bits", "d": "64 bits"}


def code(text: str, options: Options, origins: Sequence[int]) -> Machine:
    """Return the machine code of a kernel's C text; ``origins`` has the author's line of each line of C.

    The text is compiled as a call compiles it, with ``-g``. Without objdump, or where the compiler fails, the
    value says what is missing.
    """
    objdump = shutil.which("objdump")
    if objdump is None:
        return Machine(missing="objdump is not installed: it is in the package binutils")
    path = store_code(text, "c")
    try:
        compiler = compilers.find("c")
        flags = flags_of(compiler.family, options)
        library = build([path], flags=[*flags, "-g"])
    except BuildError as problem:
        return Machine(missing=str(problem))
    processor = os.uname().machine
    syntax = ["-M", "intel"] if processor in ("x86_64", "i686") else []
    command = [objdump, "-d", "-l", "--inlines", "--no-show-raw-insn", *syntax, str(library)]
    try:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        listed = programs.run(command, OBJDUMP_SECONDS, text=True, **pipes)
    except subprocess.TimeoutExpired:
        return Machine(missing=f"objdump takes more than {OBJDUMP_SECONDS:g} s to read the library")
    if listed.returncode:
        return Machine(missing=f"objdump cannot read the library: {listed.stderr.strip()}")
    found = [one for one in _functions(listed.stdout, path, processor) if one.is_of_kernel]
    found.sort(key=lambda one: (".cold" in one.name, one.name.startswith("loop_"), one.name))
    functions = [_with_loops(one) for one in found if not one.name.startswith("polyop_")]
    shown = tuple((one.name, tuple(_placed(one.instructions, origins))) for one in functions)
    loops = tuple(loop for _, instructions in shown for loop in _innermost(instructions))
    total = sum(len(instructions) for _, instructions in shown)
    if total > MAX_INSTRUCTIONS:
        shown = tuple((name, tuple(_busiest(instructions, loops))) for name, instructions in shown)
        shown = tuple(row for row in shown if row[1])
    left_out = total - sum(len(instructions) for _, instructions in shown)
    how = f"{compiler.family}, {' '.join(flags)}"
    unmarked = (
        "" if processor == MARKED else f"instructions are marked for {MARKED} only, not for {processor}"
    )
    return Machine(shown, loops, left_out=left_out, how=how, unmarked=unmarked)


def _busiest(instructions: Sequence[Instruction], loops: Sequence[MachineLoop]) -> Iterator[Instruction]:
    """Yield the instructions of the innermost loops with the most vectors, until there are many."""
    at = {one.address: number for number, one in enumerate(instructions)}
    kept: set[int] = set()
    for loop in sorted(loops, key=lambda one: -one.vector):
        if loop.first in at and len(kept) + loop.count <= MAX_INSTRUCTIONS:
            kept |= set(range(at[loop.first], at[loop.first] + loop.count))
    yield from (instructions[number] for number in sorted(kept))


@dataclass
class _Function:
    name: str
    instructions: list[Instruction] = field(default_factory=list)
    is_of_kernel: bool = False
    """Whether an instruction of it is of the kernel's own text, not of a header."""


def _functions(listing: str, path: str, processor: str) -> Iterator[_Function]:
    """Yield the functions of a library; the line of each instruction is that of ``path``, also if inlined."""
    comment = _COMMENTS.get(processor, "//")
    function, place = _Function(""), 0
    for row in listing.splitlines():
        head = _FUNCTION.fullmatch(row)
        if head is not None:
            yield function
            function, place = _Function(head[1]), 0
            continue
        one = _INSTRUCTION.match(row)
        if one is not None:
            operands, _, said = one[3].partition(comment)
            operands = operands.strip()
            jump = operands if one[2].startswith(("j", "b.", "cb", "tb")) or one[2] == "b" else ""
            if "call" in one[2] and one[4] and not said:
                operands = f"{operands} {one[4]}".strip()
            made = Instruction(one[1], one[2], operands, 0, place, jump=jump.rsplit(",", 1)[-1].strip())
            made = replace(made, lanes=_lanes(made))
            function.instructions.append(_marked(made) if processor == MARKED else made)
            continue
        at = _PLACE.fullmatch(row)
        if at is not None and at[1].endswith(path):
            place, function.is_of_kernel = int(at[2]), True
    yield function


def _marked(one: Instruction) -> Instruction:
    """Return an instruction of x86-64 with its marks."""
    marks = []
    # A frame register is the stack, too: gcc aligns the stack of functions with wide vectors.
    moves = "mov" in one.name and not one.name.startswith("cmov")
    slot = _SLOT.search(one.operands)
    if moves and slot:
        marks.append("spill" if slot.start() < one.operands.find(",") else "reload")
    elif slot and _REGISTER.search(one.operands):
        marks.append("reload")
    elif _VECTOR_OPERAND.search(one.operands) and not one.name.startswith(_ALIGNED):
        marks.append("unaligned")
    if one.name == "call":
        marks.append("call")
    return replace(one, marks=tuple(marks))


def _lanes(one: Instruction) -> str:
    """Return how many elements of which kind an instruction works on: "16 x f32", or "" for none.

    >>> _lanes(Instruction("0", "vaddps", "zmm0,zmm1,zmm2", 0, 0))
    '16 x f32'
    """
    arm = _ARM_VECTOR.search(one.operands)
    if arm is not None:
        return f"{arm[1]} x {_ARM_ELEMENTS[arm[2]]}"
    found = _REGISTER.findall(one.operands)
    if not found or one.name.endswith(_SCALARS):
        return ""
    size = max(_BYTES[letter] for letter in found)
    name = one.name
    if name.endswith("x2") or "32x" in name or "64x" in name or name.startswith(("vextract", "vinsert")):
        return f"{size * 8} bits"
    for suffix, (width, kind) in _ELEMENTS.items():
        if re.search(rf"{suffix}(2\w+)?$", name):
            return f"{size // width} x {kind}"
    if name.startswith(("vp", "p")) and name[-1] in _INTEGERS:
        width, kind = _INTEGERS[name[-1]]
        return f"{size // width} x {kind}"
    return f"{size * 8} bits" if name.startswith("v") and size > _BYTES["x"] else ""


def _with_loops(function: _Function) -> _Function:
    """Return a function whose instructions know in how many loops they are."""
    at = {one.address: number for number, one in enumerate(function.instructions)}
    bodies = _loop_bodies(function.instructions, at)
    targets = {one.jump for one in function.instructions if one.jump}
    function.instructions = [
        replace(
            one,
            depth=sum(number in body for body in bodies),
            is_target=one.address in targets,
            jump=one.jump if one.jump in at else "",
        )
        for number, one in enumerate(function.instructions)
    ]
    return function


def _loop_bodies(instructions: Sequence[Instruction], at: Mapping[str, int]) -> list[set[int]]:
    """Return the natural loops: a jump backwards to a head that every way to the jump goes through."""
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for number, one in enumerate(instructions):
        ends = one.name in ("jmp", "ret", "b")
        after[number] = [number + 1] * (not ends and number + 1 < len(instructions))
        after[number] += [at[one.jump]] if one.jump in at else []
        for place in after[number]:
            before.setdefault(place, []).append(number)
    bodies: dict[int, set[int]] = {}
    for number, one in enumerate(instructions):
        head = at.get(one.jump, number + 1)
        if head <= number and (not head or number not in _reached(0, after, head)):
            bodies[head] = bodies.get(head, {head}) | _reached(number, before, head)
    return list(bodies.values())


def _reached(start: int, edges: Mapping[int, Sequence[int]], without: int) -> set[int]:
    """Return what is reached from a start along edges, without going through one place."""
    seen, waiting = {start}, [start]
    while waiting:
        new = [place for place in edges.get(waiting.pop(), ()) if place not in seen and place != without]
        seen.update(new)
        waiting += new
    return seen


def _placed(instructions: Sequence[Instruction], origins: Sequence[int]) -> Iterator[Instruction]:
    """Yield instructions with the author's lines."""
    for one in instructions:
        inside = 0 < one.c_line <= len(origins)
        yield replace(one, line=origins[one.c_line - 1] if inside else 0)


def _innermost(instructions: Sequence[Instruction]) -> Iterator[MachineLoop]:
    """Yield the loops of vectors that have no other loop inside."""
    at = {one.address: number for number, one in enumerate(instructions)}
    for number, one in enumerate(instructions):
        start = at.get(one.jump, number + 1)
        body = instructions[start : number + 1]
        if not body:
            continue
        if {x.depth for x in body} != {body[0].depth} or not body[0].depth:
            continue
        lanes = [x.lanes for x in body if " x f" in x.lanes or " x i" in x.lanes]
        if not lanes:
            continue
        marks = [mark for x in body for mark in x.marks]
        yield MachineLoop(
            lines=tuple(sorted({x.line for x in body if x.line})),
            first=body[0].address,
            count=len(body),
            vector=len([x for x in body if x.lanes]),
            lanes=max(set(lanes), key=lanes.count),
            spills=marks.count("spill"),
            reloads=marks.count("reload"),
            unaligned=marks.count("unaligned"),
        )
