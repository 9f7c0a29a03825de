"""The top of a page: three questions, and their answers in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..bench.as_text import time_text
from .units import amount, percent
from .values import Answer, Form, Gradient, LoopFact, MachineLoop, Measured, Point

FAR_FROM_ROOF = 0.5
"""Below this fraction of a roof a page says what keeps the kernel away from it."""
SHORT_S = 20e-6
"""Calls that take less are mostly preparation."""


def answers(form: Form | None, measured: Measured, gradient: Gradient | None) -> tuple[Answer, ...]:
    """Return the questions that can be answered, with their answers."""
    rows = []
    if form is not None:
        rows.append(Answer("Why is each loop serial, parallel or vector?", tuple(_loops(form))))
    if measured.points:
        rows.append(Answer("What bounds this kernel?", tuple(_bound(measured, form, gradient))))
    if gradient is not None:
        rows.append(Answer("What does the gradient save?", tuple(_saves(gradient))))
    return tuple(rows)


def _loops(form: Form) -> Iterator[str]:
    serial = [fact for fact in form.loops if fact.is_serial]
    if form.fallback:
        yield f"The compiler gave up: {form.fallback}"
    if not serial and form.loops:
        yield "No loop is serial."
    groups: dict[str, list[str]] = {}
    for fact in serial:
        groups.setdefault(fact.why, []).append(f"{fact.name} (line {fact.line})")
    for why, names in groups.items():
        yield f"{_subject(names, 'is', 'are')} serial. {why}"
    for kind, one, several, rest in _ROLES:
        names = [_named(fact, kind) for fact in form.loops if any(b.kind == kind for b in fact.badges)]
        if names:
            yield f"{_subject(names, one, several)} {rest}."


_ROLES = (("parallel", "is", "are", "shared by threads"), ("vector", "runs", "run", "in vector lanes"))
"""By kind of badge: the verb for one loop, the verb for several, and the rest of the sentence."""


def _subject(names: Sequence[str], one: str, several: str) -> str:
    """Return the start of a sentence on loops, with the verb for one or for several.

    >>> _subject(["i (line 3)"], "is", "are"), _subject(["i (line 3)", "j (line 5)"], "is", "are")
    ('Loop i (line 3) is', 'Loops i (line 3) and j (line 5) are')
    """
    return f"Loop {names[0]} {one}" if len(names) == 1 else f"Loops {listed(names)} {several}"


def _named(fact: LoopFact, kind: str) -> str:
    label = next(b.label for b in fact.badges if b.kind == kind)
    more = f", {label}" if kind == "vector" and label != kind else ""
    return f"{fact.name} (line {fact.line}{more})"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _bound(measured: Measured, form: Form | None, gradient: Gradient | None) -> Iterator[str]:
    if measured.busy:
        yield measured.busy
    point = measured.points[0]
    _, limit, fraction = next(row for row in measured.limits if row[0] == point.name)
    level = limit.split()[0]
    place = "main memory" if measured.level == "dram" else f"the {measured.level.upper()} cache"
    if limit.endswith("bandwidth"):
        yield (
            f"Memory is the roof: it moves {amount(point.bytes, 'B')} between the cores and {place}, "
            f"for {_intensity(point)}."
        )
        roof = f"the bandwidth of {place}"
    else:
        yield (
            f"Arithmetic is the roof: with {_intensity(point)}, {place} delivers its "
            f"{amount(point.bytes, 'B')} sooner than the cores can compute."
        )
        roof = f"the {level} peak, which counts multiply-adds"
    yield f"A call takes {time_text(point.seconds)}, {percent(fraction)} of {roof}."
    if fraction < FAR_FROM_ROOF:
        yield from _away(form, point)
    for name, which, part in measured.limits:
        if name == "gradient":
            row = next(p for p in measured.points if p.name == name)
            yield f"The gradient takes {time_text(row.seconds)}, {percent(part)} of its roof ({which})."
            if gradient is not None and gradient.form is not None and not _has_lanes(gradient.form):
                yield "No loop of the gradient uses vector lanes."
    for row in measured.points:
        if row.kind == "peer":
            ratio = row.seconds / point.seconds
            yield f"{row.name} takes {time_text(row.seconds)}, {ratio:.2f} times as long as a call here."


def _intensity(point: Point) -> str:
    known = point.intensity
    return "an unknown number of operations" if known is None else f"{known:.3g} operations per byte"


def _away(form: Form | None, point: Point) -> Iterator[str]:
    """Yield what keeps a kernel away from its roof, as far as the page shows it."""
    if point.seconds < SHORT_S:
        yield "The call is short: preparing it and waking threads take a good part of the time."
    if form is None:
        return
    if not _has_lanes(form):
        yield "No loop uses vector lanes: each thread computes one element at a time."
    serial = [fact for fact in form.loops if fact.is_serial and fact.accesses]
    if serial:
        names = listed([f"loop {fact.name}" for fact in serial])
        yield f"It is far from the roof because {names} must keep the order of the iterations."
    if form.costly:
        one, *more = form.costly
        rest = f", {', '.join(more)}" if more else ""
        yield f"What it computes costs more than multiply-adds: {one}{rest}."
    main = hottest(form)
    moved = 0 if main is None else main.spills + main.reloads
    if moved:
        values = "1 value" if moved == 1 else f"{moved} values"
        yield f"Its main loop of machine code moves {values} to and from the stack."


def _has_lanes(form: Form) -> bool:
    return any(badge.kind == "vector" for fact in form.loops for badge in fact.badges)


def hottest(form: Form) -> MachineLoop | None:
    """Return the innermost machine loop with the most vector instructions, or None."""
    return max(form.machine.loops, key=lambda loop: loop.vector, default=None)


def _saves(gradient: Gradient) -> Iterator[str]:
    if gradient.missing:
        yield gradient.missing
        return
    kept = [k.name for k in gradient.kept if k.how in ("input", "output")]
    saved, taped = ([k for k in gradient.kept if k.how == how] for how in ("saved", "taped"))
    yield (
        f"The framework keeps {listed(kept)} for it, without a copy."
        if kept
        else "The framework keeps no input and no output for it."
    )
    in_all = sum(k.bytes or 0 for k in saved), sum(k.bytes or 0 for k in taped)
    names = [[f"{k.name} ({k.bytes} bytes)" for k in rows] for rows in (saved, taped)]
    yield (
        f"The forward saves {listed(names[0])}: {in_all[0]} bytes in all."
        if saved
        else "The forward saves nothing else: 0 bytes."
    )
    yield (
        f"While it runs it tapes {listed(names[1])}: {in_all[1]} bytes in all."
        if taped
        else "It tapes nothing while it runs."
    )
    if gradient.recomputed:
        yield f"It recomputes {listed(gradient.recomputed)}."
