"""The work of a call of an operator: operations and bytes; ``loops/analysis/work.py`` counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..call.bound import BoundOperator
from ..call.explain import arguments_of
from ..call.prepare import prepare
from ..call.rule import Rule
from ..kernels.base import LoopKernelBase, flatten
from ..loops.analysis.work import Work, widest, work_of_loops


def work_of(bound: BoundOperator, specs: Sequence[Any], attributes: Mapping[str, Any] | None = None) -> Work:
    """Return the work of a call with these specs, one for each tensor, and attributes by name.

    For a kernel that is no loop kernel it is the bytes of inputs and outputs. Raises what a call raises for
    arguments that do not fit.

    >>> import polyop
    >>> from polyop.core.dtypes import dtype
    >>> from polyop.core.spec import Spec
    >>> @polyop.kernel
    ... def doc_axpy(x, y):
    ...     out = output_tensor(x.shape, x.dtype)
    ...     for i in range(x.shape[0]):
    ...         out[i] = 2.0 * x[i] + y[i]
    ...     return out
    >>> work = work_of(doc_axpy, [Spec((1000,), dtype("float32"))] * 2)
    >>> work.flops, work.bytes_read, work.bytes_written
    (2000.0, 8000.0, 4000.0)
    """
    arguments = arguments_of(bound, tuple(specs), attributes or {})
    inputs, _ = bound.schema.tensors_and_attributes(arguments)
    prepared = prepare(bound.operator, arguments, infer=True)
    kernel: Any = prepared.kernel
    if isinstance(prepared.kernel, LoopKernelBase):
        typed = kernel.typed(inputs, prepared.attributes)
        return work_of_loops(typed, list(flatten(inputs)), prepared.attributes)
    given = [spec for spec in flatten(inputs) if spec is not None]
    read, written = (float(sum(s.nbytes for s in some)) for some in (given, prepared.outputs))
    return Work(None, read, written, widest([spec.dtype.name for spec in (*given, *prepared.outputs)]))


def work_of_gradient(
    bound: BoundOperator, specs: Sequence[Any], attributes: Mapping[str, Any] | None = None
) -> Work | None:
    """Return the work of the derived gradient of all outputs with respect to all inputs; None without one.

    Raises ``GradientError`` where a line has no gradient.
    """
    rule: Any = derived_rule(bound)
    if rule is None:
        return None
    arguments = arguments_of(bound, tuple(specs), attributes or {})
    inputs, _ = bound.schema.tensors_and_attributes(arguments)
    prepared = prepare(bound.operator, arguments, infer=True)
    given = list(flatten(inputs))
    typed = rule.adjoints(given, prepared.attributes).within_limit().kernel
    return work_of_loops(typed, [*given, *prepared.outputs, *prepared.outputs], prepared.attributes)


def derived_rule(bound: BoundOperator) -> Rule | None:
    """Return the gradient rule that polyop derived from the operator's loops, or None."""
    rule = bound.operator.gradient
    return rule if isinstance(rule, Rule) and rule.is_derived else None
