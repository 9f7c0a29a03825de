"""Run the batch rule of an operator, for every host, and check its result.

An author's rule calls operators itself. A :class:`Rule` of polyop also gets the call, as a ``BatchedCall``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.derived_names import in_words
from ..core.errors import FallbackWarning, GradientError
from ..core.origin import of_function
from .operator import Operator
from .rule import CUSTOM, Rule


@dataclass(frozen=True)
class BatchedCall:
    """One call of ``operator`` with whole batches, by its host.

    ``run`` takes the arguments of the schema, and returns the new outputs, then the written tensors; its
    lists are open.
    """

    operator: Operator
    run: Callable[[Sequence[Any]], Sequence[Any]]

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Return the outputs of the call."""
        return self.run(arguments)


def answer(call: BatchedCall, in_dims: Sequence[Any], inputs: Sequence[Any]) -> Any:
    """Return what the batch rule answers; ``NotImplemented`` if there is none, or none for these tensors."""
    rule = call.operator.batch
    if rule is None:
        return NotImplemented
    return rule(in_dims, inputs, *((call,) if isinstance(rule, Rule) else ()))


_warned: set[tuple[str, str]] = set()


def warn_of_loop(operator: Operator, host: str) -> None:
    """Warn that ``vmap`` calls an operator for each sample, and say what does better; once in a host."""
    shown = in_words(operator.name)
    if (host, shown) in _warned:
        return
    _warned.add((host, shown))
    text = f"{shown}: vmap runs one call per sample{_way_out(operator)}"
    warnings.warn(text, FallbackWarning, stacklevel=3)


def _way_out(operator: Operator) -> str:
    if operator.schema.mutates:
        return ", as it writes an argument; one that returns a new tensor can do better"
    if operator.name.endswith("__backward"):
        return ""
    if _is_recorded(operator):  # a C++ module or library, or a part of one
        return "; give dims= where it is loaded to do better" if operator.dims is None else ""
    if isinstance(operator.batch, Rule):
        return operator.batch.advice
    if operator.schema.namespace != CUSTOM and not operator.part_of:  # Custom has no such parameter
        return "; give batch= ('elementwise' or a rule) to do better"
    return ""


def _is_recorded(operator: Operator) -> bool:
    return isinstance(operator.gradient, Rule) and operator.gradient.is_recorded


def rule_outputs(
    operator: Operator, result: Any, count: int | None, size: int
) -> tuple[list[Any], list[int | None]]:
    """Return (outputs, the batch dimension of each or None) from the result of a batch rule.

    ``count`` is the number of outputs, None if it is not known; ``size`` is the batch size. A negative
    dimension counts from the end. Raises ``GradientError`` with the place of the rule.
    """
    if not isinstance(result, tuple) or len(result) != 2:
        seen = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise _wrong(operator, "batch= must return (outputs, their batch dimensions)", seen)
    outputs, dims = result
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [] if outputs is None else [outputs]
    dims = list(dims) if isinstance(dims, (tuple, list)) else [dims] * len(outputs)
    if count is not None and len(outputs) != count:
        raise _wrong(operator, f"batch= must return {count} output{'s' * (count != 1)}", len(outputs))
    if len(dims) != len(outputs):
        raise _wrong(
            operator, f"batch= must return {len(outputs)} batch dimensions, one per output", len(dims)
        )
    rows = zip(outputs, dims, strict=True)
    return outputs, [_dim(operator, number, *row, size) for number, row in enumerate(rows)]


def _dim(operator: Operator, number: int, output: Any, dim: Any, size: int) -> int | None:
    if not hasattr(output, "shape"):
        raise _wrong(operator, "batch= must return tensors", type(output).__name__, number)
    shape = tuple(output.shape)
    if dim is None:
        return None
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise _wrong(operator, "the batch dimension must be an int, or None", type(dim).__name__, number)
    if not -len(shape) <= dim < len(shape):
        rule = f"the batch dimension must be one of the {len(shape)} of shape {shape}"
        raise _wrong(operator, rule, dim, number)
    if shape[dim] != size:
        rule = f"dimension {dim}, where batch= says the batch is, must have size {size}"
        raise _wrong(operator, rule, f"shape {shape}", number)
    return dim % len(shape)


def _wrong(operator: Operator, rule: str, seen: object, number: int | None = None) -> GradientError:
    subject = operator.name if number is None else f"{operator.name}: output {number}"
    return GradientError(subject, rule, str(seen), where=of_function(operator.batch))
