"""The gradient rule that polyop derives of a loop kernel: one call of ``<name>__backward``."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Any

from ..core import registry
from ..core.errors import PolyopError
from ..core.infer import ShapeAndDtype
from ..core.operator import Operator
from ..core.schema import Argument, Return, Schema, Type
from ..core.spec import Spec
from ..gradients.uses import Uses
from ..hosts.base import host_of
from ..hosts.bound import BoundOperator
from ..kernels.loops.derived import BackwardKernel, described
from .operator import library_halves

_OPTIONAL, _NEW = Type("Tensor", ("?",)), Return(Type("Tensor"))


class DerivedRule:
    """The gradient rule of an operator whose kernels are loop kernels.

    ``backward`` is the operator ``<name>__backward(inputs, outputs, output gradients) -> input gradients``;
    its own gradient is derived in the same way. Nothing is derived before a gradient is asked for.
    """

    is_derived = True

    def __init__(self, operator: Operator) -> None:
        """Take the operator, which is without a rule."""
        self.schema, self.operator = operator.schema, operator
        self.kernels = tuple(k for k in operator.kernels if hasattr(k, "outline"))
        self._backward: BoundOperator | None = None
        self._lock = threading.RLock()

    @property
    def kernel(self) -> BackwardKernel:
        """The gradient's kernel for the CPU."""
        found: Any = self.backward.operator.kernels[0]
        return found

    @property
    def backward(self) -> BoundOperator:
        """The operator that computes the gradients."""
        with self._lock:
            if self._backward is None:
                self._backward = _backward(self.operator)
            return self._backward

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the operator that belongs to this one under the name ``<name>__<suffix>``, or None."""
        return self.backward if suffix == "backward" else None

    def reads(self, arguments: Sequence[Any], outputs: int) -> Uses:
        """Return which of the arguments and of the outputs are kept for the gradient."""
        tensors, numbers = self._split(arguments)
        try:
            read = self.kernel.reads([_spec(x) for x in tensors], numbers)
        except PolyopError:  # said when the gradient is asked for
            read = (False,) * (len(tensors) + outputs)
        inputs = iter(read)
        flags = tuple(next(inputs) if a.type.is_tensor else True for a in self.schema.arguments)
        return Uses(flags, tuple(inputs))

    def without_gradient(self, arguments: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the outputs that no gradient leads through: none, beside those of whole numbers."""
        del arguments, outputs
        return []

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Return one gradient or None per argument."""
        *given, outputs, grads = arguments
        if not (self.operator.several):
            outputs, grads = (outputs,), (grads,)
        tensors, numbers = self._split(given)
        present = tuple(g is not None and _is_real(g) for g in grads)
        if not any(present):
            return (None,) * len(given)
        read = self.kernel.reads([_spec(x) for x in tensors], numbers, present)
        real = [x is not None and _is_real(x) for x in tensors]
        kept = [x if flag else None for x, flag in zip((*tensors, *outputs), read, strict=True)]
        handed = [g if there else None for g, there in zip(grads, present, strict=True)]
        numbers[self.kernel.told] = described([_spec(x) for x in tensors])
        made = self.backward(*kept, *handed, **numbers)
        found = iter(made if isinstance(made, tuple) else (made,))
        smooth = iter(real)
        rows = [next(found) if a.type.is_tensor else None for a in self.schema.arguments]
        return tuple(
            row if not a.type.is_tensor or next(smooth) else None
            for a, row in zip(self.schema.arguments, rows, strict=True)
        )

    def source(self, *inputs: Any, **attributes: Any) -> str:
        """Return the C of the gradient for tensors or specs of the operator; without any, for those seen last."""
        from ..kernels.loops.make import sources

        specs = [x if isinstance(x, Spec) else _spec(x) for x in inputs]
        kernel = self.kernel
        if not specs:
            return kernel.source()
        found = kernel.adjoint(specs, attributes, (True,) * kernel.base.results)
        return "\n".join(sources(found.kernel, kernel.options))

    def _split(self, arguments: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        tensors = [arguments[i] for i in self.schema.tensor_positions]
        numbers = {a.name: arguments[i] for i, a in self.schema.attributes()}
        return tensors, numbers


def _backward(operator: Operator) -> BoundOperator:
    schema = operator.schema
    tensors = [schema.arguments[i] for i in schema.tensor_positions]
    count = len(schema.returns)
    names = [f"out{k}" for k in range(count)] + [f"d_out{k}" for k in range(count)]
    arguments = [dataclasses.replace(a, type=_OPTIONAL, keyword_only=False) for a in tensors]
    arguments += [Argument(name, _OPTIONAL) for name in names]
    arguments += [dataclasses.replace(a, keyword_only=True) for _, a in schema.attributes()]
    kernels: Any = tuple(BackwardKernel.of(k) for k in operator.kernels if hasattr(k, "outline"))
    arguments.append(Argument(kernels[0].told, Type("str"), keyword_only=True))
    made = Schema(schema.namespace, f"{schema.name}__backward", tuple(arguments), (_NEW,) * len(tensors))
    halves = library_halves(made, kernels, operator.attributes)
    assert halves is not None
    whole = Operator(
        schema=made,
        infer=ShapeAndDtype(*halves, len(tensors), made.qualified_name),
        kernels=kernels,
        attributes=operator.attributes,
        attribute_names=operator.attribute_names,
        returns_tuple=True,
        part_of=operator.name,
        origin=operator.origin,
    )
    made_operator = BoundOperator(with_derived(whole), register=False)
    registry.add_derived(made_operator)
    return made_operator


def with_derived(operator: Operator) -> Operator:
    """Return an operator of loop kernels with what it lacks and can be derived: its gradient."""
    loops = operator.kernels and all(hasattr(k, "outline") for k in operator.kernels)
    if not loops or operator.gradient is not None or operator.schema.mutates:
        return operator
    return dataclasses.replace(operator, gradient=DerivedRule(operator))


def _is_real(value: Any) -> bool:
    return _spec(value).dtype.is_floating


def _spec(value: Any) -> Any:
    """Return the spec of a tensor, or of one that was not kept."""
    host: Any = host_of(value)
    return None if value is None else host.spec(value) if host is not None else value.spec
