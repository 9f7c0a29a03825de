"""Launch loop kernels on tensors with strided rows, without making dense copies.

A tensor is *in rows* if its last dimension is contiguous and the others have strides of their own, as a slice
of columns has. The native core (csrc/rows.h) finds such tensors among those of a call, if they are large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ... import _core
from ...core.spec import Spec
from ...loops.analysis.sizes import MAX_PROVED
from ...loops.derive.rows import InRows, Rows, in_rows
from ...loops.ir.grammar import INT, Assign, Const, For, Kernel, Size, Store, Var, statements
from ...loops.ir.uses import loads_of
from ...loops.library import shipped
from .kernel import Attributes, Inputs, LoopKernel, specs_of

CALLS_WITH_COPIES = 4
"""So many calls with tensors in rows get dense copies first: to compile a kernel takes far longer."""


class Found(NamedTuple):
    """A tensor in rows: its number among those of the call, and how it lies (``loops/derive/rows.py``)."""

    number: int
    order: tuple[int, ...]
    sizes: tuple[int, ...]


def launch(
    loops: LoopKernel,
    inputs: Inputs,
    outputs: tuple[Spec, ...],
    attributes: Attributes,
    found: Sequence[Found],
) -> tuple[Any, bool]:
    """Return the launch for tensors of which some lie in rows, and whether it serves all such calls."""
    dense = loops.launch(inputs, outputs, attributes)
    kernel = loops.typed(inputs, attributes)
    shapes = {name: spec.shape for name, spec in specs_of(kernel, inputs).items() if spec is not None}
    by_name = {kernel.tensor_parameters[one.number]: one for one in found}
    tensors = {name: one for name, one in by_name.items() if can_read(kernel, name, one, shapes[name])}
    if not tensors or adds_up(kernel) or shipped.lists(kernel) or loops.options.checked:
        return dense, True
    if loops.tuned(kernel, inputs) is not None:  # its schedule is for dense memory
        return dense, True
    longest = max(size for one in tensors.values() for size in one.sizes)
    if longest > MAX_PROVED or loops.is_large(kernel, inputs, attributes):  # only copies are checked
        return dense, True
    how = {name: rows_of(one, shapes[name]) for name, one in tensors.items()}
    key = ("in_rows", id(kernel), tuple(how.items()))
    if not _is_worth(loops, key):
        return dense, False
    variant: InRows = loops.once(key, lambda: in_rows(kernel, how))
    compiled: dict[Any, None] = loops.once(("compiled_in_rows", id(kernel)), dict)
    compiled[tuple(how.items())] = None
    sizes = {attribute: shapes[name][axis] for (name, axis), attribute in variant.sizes.items()}
    library = loops.library(variant.kernel)
    own = loops.launch_of(library, inputs, outputs, {**attributes, **sizes})
    return _core.with_rows(own, [(one.number, list(one.sizes)) for one in tensors.values()]), True


def describe(loops: LoopKernel, inputs: Inputs, attributes: Attributes) -> Iterator[str]:
    """Yield what becomes of tensors in rows, in words; nothing if there were none."""
    kernel = loops.typed(inputs, attributes)
    if shipped.lists(kernel):
        yield "tensors in rows are copied: what was compiled ahead of time reads dense memory"
    if loops.tuned(kernel, inputs) is not None:
        yield "tensors in rows are copied: the schedule that was tuned for these sizes is for dense memory"
        return
    if loops.is_large(kernel, inputs, attributes):
        yield "tensors in rows are copied: sizes or attributes are beyond 2**42"
        return
    compiled: dict[Any, None] = loops.once(("compiled_in_rows", id(kernel)), dict)
    for how in tuple(compiled):  # a call on another thread may add one
        shown = ", ".join(f"{name}[{', '.join(map(str, rows.order))}]" for name, rows in how)
        yield f"compiled for rows that are read where they lie, with these dimensions: {shown}"


def adds_up(kernel: Kernel) -> bool:
    """Whether a kernel has sums or products, whose bits may change with the order that the passes choose."""
    stores = (node for node in statements(kernel.body) if isinstance(node, (Store, Assign)))
    return any(node.op in ("+", "*") for node in stores)


def can_read(kernel: Kernel, name: str, one: Found, shape: Sequence[int]) -> bool:
    """Whether a tensor can be read where it lies: it is not written, and its dimensions are the kernel's.

    A complex tensor has one more in the kernel. Where the memory has longer rows than the author's tensor, a
    check of an index and an index from the end would take the wrong size. So each index there must be the
    variable of a loop over that dimension of that tensor.
    """
    buffer = kernel.buffers[name]
    if buffer.role != "input" or len(buffer.shape) != len(one.order):
        return False
    gaps = [axis for axis, gap in zip(one.order, rows_of(one, shape).has_gap, strict=True) if gap]
    return all(_stays_inside(kernel, name, axis) for axis in gaps)


def _stays_inside(kernel: Kernel, name: str, axis: int) -> bool:
    """Whether each index of an axis is the variable of ``for k in range(tensor.shape[axis])``."""
    loops = [node for node in statements(kernel.body) if isinstance(node, For)]
    over = {loop.var for loop in loops if loop.lo == Const(0, INT) and loop.hi == Size(name, axis)}
    others = {loop.var for loop in loops if loop.hi != Size(name, axis) or loop.lo != Const(0, INT)}
    inside = {Var(var, INT) for var in over - others}
    loads = loads_of(*statements(kernel.body))
    return all(load.index[axis] in inside for load in loads if load.buffer == name)


def rows_of(one: Found, shape: Sequence[int]) -> Rows:
    """Return how a tensor of this shape lies, without the sizes."""
    gaps = (size != shape[axis] for size, axis in zip(one.sizes, one.order, strict=True))
    return Rows(tuple(one.order), tuple(gaps))


def _is_worth(loops: LoopKernel, key: Any) -> bool:
    """Count a call with tensors that lie so, and return whether there were enough to compile a kernel."""
    calls: list[None] = loops.once(("calls_in_rows", *key), list)
    calls.append(None)
    return len(calls) > CALLS_WITH_COPIES
