"""Derive which dimensions of a loop kernel can be cut into slices, and how their results are combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analysis import affine
from ..analysis.session import IslSession
from ..ir.grammar import Buffer, Expr, Kernel, Size, Store, rewrite, statements, walk
from ..passes.array_privatisation import array_privatisation
from ..passes.propagate_indices import propagate_indices
from ..passes.remove_empty_loops import remove_empty_loops
from ..passes.strip_gradient_marks import strip_gradient_marks
from ..program import Program
from ..runner import Pass, run_passes
from .dimension import Axis, Dimension, find_dimensions, with_known_sizes, with_one_size_each
from .dimension_sets import DimensionSets
from .halo import ZERO, Radius, find_radii, widest
from .invariance import Invariance
from .partial import Partial, find_partial
from .reason import NotSliced
from .sites import Site, find_sites
from .values import Condition, ValueCheck

PASSES: tuple[Pass[Program], ...] = (
    Pass(strip_gradient_marks, "Only derivatives read the marks of gradients.", needed=True),
    Pass(propagate_indices, "Indices become affine expressions of loops and sizes."),
    Pass(remove_empty_loops, "Each loop needs a statement.", needed=True),
    Pass(array_privatisation, "A temporary of one iteration belongs to it.", needed=True),
)
"""What runs before the proof, from the compiler's own table."""
MORE = 2
"""How much wider a halo may be than what is read: conditions at borders may look further than indices."""


@dataclass(frozen=True)
class Slicing:
    """What is proved of one dimension.

    ``kind`` is "parallel", "sum", "max", "min", "halo" or "whole". ``halo`` are the widths of a "halo".
    ``reason`` and ``line`` say why it is "whole". It holds for calls in which all its axes have one size.
    """

    dimension: Dimension
    kind: str
    halo: Radius = ZERO
    reason: str = ""
    line: int = 0


def derive_slicing(
    kernel: Kernel, sizes: Mapping[Axis, Expr] | None = None, session: IslSession | None = None
) -> list[Slicing]:
    """Return what is proved of each dimension of a typed kernel, in the order of its parameters.

    ``sizes`` are sizes of inputs that follow from those of others, as those of an output gradient do.
    """
    kernel = with_known_sizes(kernel, sizes or {})
    dimensions = find_dimensions(kernel)
    program = run_passes(
        Program(with_one_size_each(kernel, dimensions), session or IslSession()), PASSES, None
    )
    dimensions = find_dimensions(program.kernel)  # a temporary may have lost axes
    return [_slicing(program, dimension) for dimension in dimensions if dimension.size is not None]


def sizes_from_forward(forward: Kernel, backward: Kernel) -> dict[Axis, Expr]:
    """Return what a gradient's kernel knows of its sizes: an output and its gradient have the output's shape.

    A size of a tensor that the gradient has not is that of an output's gradient, where they are equal.
    """
    rows = {
        (name, axis): size
        for output in forward.outputs
        for name in (f"d_{output}", output)
        if name in backward.buffers and backward.buffers[name].role == "input"
        for axis, size in enumerate(forward.buffers[output].shape)
        if axis < len(backward.buffers[name].shape)
    }
    sizes: dict[Axis, Expr] = {}
    for axis, size in rows.items():
        own = rewrite(size, lambda e: sizes.get((e.buffer, e.axis), e) if isinstance(e, Size) else e)
        absent = [e for e in walk(own) if isinstance(e, Size) and backward.is_absent(e.buffer)]
        if isinstance(own, Size) and absent:
            sizes[own.buffer, own.axis] = Size(*axis)
        elif not absent:
            sizes[axis] = own
    return sizes


def _slicing(program: Program, dimension: Dimension) -> Slicing:
    import islpy

    try:
        kind, halo = _prove(program, dimension)
    except NotSliced as reason:
        return Slicing(dimension, "whole", ZERO, reason.text, reason.line)
    except islpy.Error:
        return Slicing(dimension, "whole", ZERO, "the proof exceeds its quota")
    return Slicing(dimension, kind, halo)


def _prove(program: Program, dimension: Dimension) -> tuple[str, Radius]:
    kernel = program.kernel
    _check_axes(kernel, dimension)
    model = program.model
    sites = find_sites(model, dimension)
    values = ValueCheck(dimension, model.affine_names(()))
    conditions = dict(zip(sites, values.check(kernel.body), strict=True))
    partial = find_partial(model, sites)
    kind = _combination(kernel, dimension, partial)
    sets = DimensionSets(model, dimension)
    along = [name for name in kernel.outputs if dimension.axis_of(name) is not None]
    radii = find_radii(sets, sites, along)
    inputs = [name for name in kernel.parameters if name in kernel.buffers]
    halo = widest(radii, inputs)
    if kind != "parallel" and not halo.is_zero:
        line = next(iter(partial.lines.values()))
        raise NotSliced(line, "neighbours of a slice are read, and would be added twice")
    halo = _narrowest(sets, halo, radii, conditions, sites)
    return (kind if halo.is_zero or kind != "parallel" else "halo"), halo


def _narrowest(
    sets: DimensionSets,
    halo: Radius,
    radii: Mapping[str, Radius],
    conditions: Mapping[Site, Sequence[Condition]],
    sites: Sequence[Site],
) -> Radius:
    """Return the narrowest halo from ``halo`` on for which the proof succeeds; raises the first reason."""
    reason: NotSliced | None = None
    tries = [halo] if halo.is_zero else [
        Radius(_wider(halo.before, one), _wider(halo.after, other))
        for one, other in ((0, 0), (1, 0), (0, 1), (1, 1), (MORE, MORE))
    ]  # fmt: skip
    for wider in tries:
        proof = Invariance(sets, wider, radii, conditions)
        try:
            for site in sites:
                proof.check(site)
        except NotSliced as problem:
            reason = reason or problem
            continue
        return wider
    assert reason is not None
    raise reason


def _wider(form: affine.Linear, more: int) -> affine.Linear:
    return {**form, "": form.get("", 0) + more} if more else form


def _check_axes(kernel: Kernel, dimension: Dimension) -> None:
    names = [name for name, _ in dimension.axes]
    for name in names:
        if names.count(name) > 1:
            raise NotSliced(kernel.buffers[name].line, f"two axes of {name} run along it")
    assert dimension.size is not None
    size = affine.name_of(dimension.size)
    for buffer in kernel.buffers.values():
        for axis, extent in enumerate(buffer.shape):
            uses = any(isinstance(e, Size) and affine.name_of(e) == size for e in walk(extent))
            along = (buffer.name, axis) in dimension.axes
            if uses and not along:
                raise NotSliced(buffer.line, f"the size of {buffer.name} depends on it along another axis")
            if along and buffer.role in ("output", "local"):
                _check_extent(buffer, extent, size)


def _check_extent(buffer: Buffer, extent: Expr, size: str) -> None:
    """Refuse an output that is longer than the dimension, and a buffer whose size is another one."""
    form, name, line = affine.linear(extent), buffer.name, buffer.line
    if form is None or form.get(size) != 1:
        raise NotSliced(line, f"the size of {name} along it is another one")
    if buffer.role == "output" and form.get("", 0) > 0 and len([n for n in form if n]) == 1:
        raise NotSliced(line, f"{name} is longer than its inputs along it")


def _combination(kernel: Kernel, dimension: Dimension, partial: Partial) -> str:
    """Return "parallel" if every output has the dimension, else how slices are combined in the others."""
    kinds = set()
    written = {s.buffer for s in statements(kernel.body) if isinstance(s, Store)}
    for name in kernel.outputs:
        if dimension.axis_of(name) is not None or name not in written:
            continue  # what nothing writes are the zeros of a tensor without gradient
        if name not in partial.kinds:
            raise NotSliced(
                kernel.buffers[name].line, f"{name} does not depend on it: each slice would give all of it"
            )
        kinds.add(partial.kinds[name])
    if len(kinds) > 1:
        raise NotSliced(0, f"outputs are combined differently: by {' and '.join(sorted(kinds))}")
    return kinds.pop() if kinds else "parallel"
