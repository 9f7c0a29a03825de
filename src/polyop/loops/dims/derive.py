"""Derive which dimensions of a loop kernel can be cut into slices, and how their results are combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..analysis import affine
from ..ir.failing import without_checks
from ..ir.grammar import Buffer, Expr, Kernel, Size, walk
from ..ir.rewriter import rewrite
from ..ir.uses import stored_by
from ..passes.array_privatisation import array_privatisation
from ..passes.propagate_indices import propagate_indices
from ..passes.remove_empty_loops import remove_empty_loops
from ..passes.strip_gradient_marks import strip_gradient_marks
from ..program import Program
from ..runner import Pass, run_passes
from .dimension import Axis, Dimension, NotSliced, find_dimensions, with_known_sizes, with_one_size_each
from .dimension_sets import DimensionSets
from .halo import ZERO, Radius, added, find_radii, widest
from .index_values import Condition, ValueCheck
from .invariance import Invariance
from .partial import Partial, find_partial
from .sites import Site, find_sites

PASSES: tuple[Pass[Program], ...] = (
    Pass(strip_gradient_marks, "Only derivatives read the marks of gradients.", needed=True),
    Pass(propagate_indices, "Indices become affine expressions of loops and sizes."),
    Pass(remove_empty_loops, "Each loop needs a statement.", needed=True),
)
"""What runs before the proof, from the compiler's own table."""
PRIVATE: tuple[Pass[Program], ...] = (
    Pass(array_privatisation, "A temporary of one iteration belongs to it.", needed=True),
)
MAX_WIDENED = 2
"""How much wider a halo may be than what is read: conditions at borders may look further than indices.

Gradients of stencils need 1; one try more costs one more proof.
"""


@dataclass(frozen=True)
class Slicing:
    """What is proved of one dimension.

    ``kind`` is "parallel", "sum", "max", "min", "halo" or "whole". ``halo`` are the widths of a "halo", and
    of a sum that is ``placed``: of what is read, or of what makes a slice long enough for tensors that are
    shorter. ``reason`` and ``line`` say why it is "whole" or ``placed``. It holds for calls in which all its
    axes have one size.
    """

    dimension: Dimension
    kind: str
    halo: Radius = ZERO
    reason: str = ""
    line: int = 0
    placed: bool = False
    """Whether a slice has to know its place in the whole: :func:`polyop.loops.dims.placed.placed_kernel`."""
    radii: Mapping[str, Radius] = field(default_factory=dict, compare=False, repr=False)
    """How far beyond a slice each buffer has to be right."""
    fewer: Mapping[str, affine.Linear] = field(default_factory=dict, compare=False, repr=False)
    """How many elements fewer than the dimension each tensor has along it."""
    directions: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """1 for each loop along the dimension, or -1 where its indices fall as it runs."""

    @property
    def assumed(self) -> list[affine.Linear]:
        """The linear forms that must be at least 0 in a call, so that no radius is too small."""
        every = self.halo.assumed.union(*(radius.assumed for radius in self.radii.values()))
        return [dict(form) for form in sorted(every)]


def derive_slicing(kernel: Kernel, sizes: Mapping[Axis, Expr] | None = None) -> list[Slicing]:
    """Return what is proved of each dimension of a typed kernel, in the order of its parameters.

    ``sizes`` are sizes of inputs that follow from those of others, as those of an output gradient do.
    """
    kernel = prepared(kernel, sizes or {})
    program = run_passes(Program(kernel), PRIVATE, None)
    dimensions = find_dimensions(program.kernel)  # a temporary may have lost axes
    rows = [_slicing(program, dimension) for dimension in dimensions if dimension.size is not None]
    return [_whole_if_doubled(kernel, row) if row.placed else row for row in rows]


def prepared(kernel: Kernel, sizes: Mapping[Axis, Expr]) -> Kernel:
    """Return the kernel with affine indices, and with one size for all axes of a dimension."""
    kernel = with_known_sizes(without_checks(kernel), sizes)
    kernel = with_one_size_each(kernel, find_dimensions(kernel))
    return run_passes(Program(kernel), PASSES, None).kernel


def sizes_from_forward(forward: Kernel, gradient: Kernel) -> dict[Axis, Expr]:
    """Return what a gradient's kernel knows of its sizes: an output and its gradient have the output's shape.

    If the gradient lacks ``x``, and the output ``y`` has the size ``x.shape[0]``, then ``x.shape[0]`` is
    written ``d_y.shape[0]``.
    """
    rows = {
        (name, axis): size
        for output in forward.outputs
        for name in (f"d_{output}", output)
        if name in gradient.buffers and gradient.buffers[name].role == "input"
        for axis, size in enumerate(forward.buffers[output].outer_shape)
        if axis < len(gradient.buffers[name].outer_shape)
    }
    sizes: dict[Axis, Expr] = {}
    for axis, size in rows.items():
        own = rewrite(size, lambda e: sizes.get((e.buffer, e.axis), e) if isinstance(e, Size) else e)
        absent = [e for e in walk(own) if isinstance(e, Size) and gradient.buffers[e.buffer].absent]
        if isinstance(own, Size) and absent:
            sizes[own.buffer, own.axis] = Size(*axis)
        elif not absent:
            sizes[axis] = own
    return sizes


def _whole_if_doubled(kernel: Kernel, row: Slicing) -> Slicing:
    """Return a placed slicing as whole, if a temporary of the author's kernel has the dimension twice.

    Its second axis would have to be cut too, and one index cannot say which.
    """
    same = [d for d in find_dimensions(kernel) if d.size == row.dimension.size]
    names = [name for d in same for name, _ in d.axes]
    if len(same) == 1 and len(names) == len({*names}):
        return row
    return Slicing(row.dimension, "whole", ZERO, row.reason, row.line)


def _slicing(program: Program, dimension: Dimension) -> Slicing:
    import islpy

    try:
        return _Proof(program, dimension).slicing()
    except NotSliced as reason:
        return Slicing(dimension, "whole", ZERO, reason.text, reason.line)
    except islpy.Error:
        return Slicing(dimension, "whole", ZERO, "the proof exceeds its quota")


class _Proof:
    """The facts that hold for any slices of one dimension; ``slicing`` tries the kernel as it is first."""

    def __init__(self, program: Program, dimension: Dimension) -> None:
        kernel, model = program.kernel, program.model
        _check_axes(kernel, dimension)
        self.kernel, self.model, self.dimension = kernel, model, dimension
        self.sites = find_sites(model, dimension)
        self.partial = find_partial(model, self.sites)
        self.kind = _combination(kernel, dimension, self.partial)
        self.fewer = _fewer(kernel, dimension)
        self.sets = DimensionSets(model, dimension)
        along = [name for name in kernel.outputs if dimension.axis_of(name) is not None]
        self.radii = find_radii(self.sets, self.sites, along)
        self.halo = widest(self.radii, kernel.tensor_parameters)

    def slicing(self) -> Slicing:
        """Return the kind of the dimension; ``placed`` where the kernel as it is would be wrong in slices."""
        directions = {site.loop: site.sign for site in self.sites if site.loop is not None}
        tensors = [name for name, _ in self.dimension.axes]
        known = Slicing(self.dimension, self.kind, radii=self.radii, fewer=self.fewer, directions=directions)
        try:
            return _with_halo(known, self._prove_as_it_is())
        except NotSliced as reason:
            self._check_ends()
            # the outputs and temporaries of a placed slice are cut too
            halo = self._long_enough(widest(self.radii, tensors))
            return replace(_with_halo(known, halo), reason=reason.text, line=reason.line, placed=True)

    def _long_enough(self, halo: Radius) -> Radius:
        """Return a halo with which a placed slice is long enough for tensors shorter than the dimension.

        Beside a slice of x, a tensor of ``n - 2`` elements has two fewer than the slice, so two more
        neighbours are read. At the end of the dimension, a slice has them before it.
        """
        most = widest({name: Radius({}, form) for name, form in self.fewer.items()}, [*self.fewer]).after
        results = [self.fewer[name] for name in self.kernel.outputs if name in self.fewer] or [{}]
        # where all outputs are the shortest, the last slice has the rest of the dimension
        before = {} if all(form == most for form in results) else most
        return widest({"read": halo, "shorter": Radius(before, most)}, ["read", "shorter"])

    def _check_ends(self) -> None:
        """Raise :class:`NotSliced` if something is added up beyond the ends, where no slice is."""
        for site in self.sites:
            if site.coordinate is not None and not site.writes_along:
                outside = f"({site.coordinate} < 0 or {site.coordinate} >= {self.sets.size})"
                inside = [
                    f"0 <= {text} and {text} < {self.sets.size}"
                    for access, text in site.accesses
                    if access.must and access.target in self.kernel.parameters  # else the kernel has failed
                ]
                if not self.sets.whole(site, [outside, *inside]).is_empty():
                    raise NotSliced(site.line, "iterations beyond its ends count too")

    def _prove_as_it_is(self) -> Radius:
        """Return the halo with which the kernel itself is right on slices; raises :class:`NotSliced`."""
        values = ValueCheck(self.dimension, self.model.affine_names(()))
        conditions = dict(zip(self.sites, values.check(self.kernel.body), strict=True))
        if self.kind != "parallel" and not self.halo.is_zero:
            line = next(iter(self.partial.lines.values()))
            raise NotSliced(line, "neighbours of a slice are read, and would be added twice")
        tries = _tries(self.halo)
        if self.halo.is_zero and not any(self.fewer.get(name) for name in self.kernel.parameters):
            tries.append(self._long_enough(ZERO))  # for shorter outputs
        return _narrowest(self.sets, tries, self.radii, conditions, self.sites)


def _narrowest(
    sets: DimensionSets,
    tries: Sequence[Radius],
    radii: Mapping[str, Radius],
    conditions: Mapping[Site, Sequence[Condition]],
    sites: Sequence[Site],
) -> Radius:
    """Return the first halo for which the proof succeeds; raises the reason why that of the first fails."""
    reason: NotSliced | None = None
    for halo in tries:
        proof = Invariance(sets, halo, radii, conditions)
        try:
            for site in sites:
                proof.check(site)
        except NotSliced as problem:
            reason = reason or problem
            continue
        return halo
    assert reason is not None
    raise reason


def _fewer(kernel: Kernel, dimension: Dimension) -> dict[str, affine.Linear]:
    """Return how many elements fewer than the dimension each of its tensors has."""
    assert dimension.size is not None
    size = {affine.name_of(dimension.size): 1}
    extents = {name: kernel.buffers[name].shape[axis] for name, axis in dimension.axes}
    return {name: added(size, affine.linear(extent) or {}, -1) for name, extent in extents.items()}


def _with_halo(slicing: Slicing, halo: Radius) -> Slicing:
    kind = "halo" if slicing.kind == "parallel" and not halo.is_zero else slicing.kind
    return replace(slicing, kind=kind, halo=halo)


def _tries(halo: Radius) -> list[Radius]:
    """Return the halos to prove, the narrowest first."""
    if halo.is_zero:
        return [halo]
    more = ((0, 0), (1, 0), (0, 1), (1, 1), (MAX_WIDENED, MAX_WIDENED))
    return [
        halo._replace(before=_wider(halo.before, one), after=_wider(halo.after, other)) for one, other in more
    ]


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
            if along:
                _check_extent(buffer, extent, size)


def _check_extent(buffer: Buffer, extent: Expr, size: str) -> None:
    """Refuse an output that is longer than the dimension, and a buffer whose size is another one."""
    form, name, line = affine.linear(extent), buffer.name, buffer.line
    if form is None or form.get(size) != 1:
        raise NotSliced(line, f"the size of {name} is not that of an input, or is computed from it")
    if buffer.role == "output" and form.get("", 0) > 0 and len([n for n in form if n]) == 1:
        raise NotSliced(line, f"{name} is longer than its inputs along it")


def _combination(kernel: Kernel, dimension: Dimension, partial: Partial) -> str:
    """Return "parallel" if every output has the dimension, else how slices are combined in the others."""
    kinds = set()
    written = stored_by(kernel.body)
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
