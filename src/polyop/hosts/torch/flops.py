"""What ``torch.utils.flop_counter`` counts for an operator of loops, from the loops themselves."""

from __future__ import annotations

from typing import Any

from ...call.bound import BoundOperator
from ...call.host import specs
from ...call.prepare import normalise
from ...core.arguments import bind
from ...kernels.base import LoopKernelBase, flatten
from . import tensors


def count_flops(bound: BoundOperator, packet: Any) -> None:
    """Give PyTorch's counter the formula of an operator, if its first kernel is a loop kernel.

    A counter that is active already gets it too: it has copied the formulas when it was made.
    """
    kernel: Any = next(iter(bound.operator.kernels), None)
    if not isinstance(kernel, LoopKernelBase):
        return
    from torch.utils import flop_counter
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    def formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        del out_val
        return flops(bound, kernel, bind(bound.schema, args, kwargs))

    flop_counter.flop_registry[packet] = formula
    for mode in _get_current_dispatch_mode_stack():
        counter = getattr(mode, "counter", None)
        if isinstance(counter, flop_counter.FlopCounterMode):
            counter.flop_registry[packet] = formula


def flops(bound: BoundOperator, kernel: Any, arguments: tuple[Any, ...]) -> int:
    """Return the operations of one call; 0 where only data tell how many iterations a loop has."""
    from ...loops.analysis.work import work_of_loops

    values = normalise(bound.operator, specs(tensors, bound.operator, arguments))
    schema = bound.schema
    inputs = tuple(values[i] for i in schema.tensor_positions)
    attributes = {argument.name: values[i] for i, argument in schema.attributes()}
    work = work_of_loops(kernel.for_all_sizes(inputs, attributes), list(flatten(inputs)), attributes)
    return 0 if work.flops is None else round(work.flops)


def forget(packet: Any) -> None:
    """Remove the formula of an operator that is taken out of ``torch.ops``."""
    from torch.utils import flop_counter

    flop_counter.flop_registry.pop(packet, None)
