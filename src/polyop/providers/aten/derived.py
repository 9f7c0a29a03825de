"""Operators that are derived from a function of PyTorch: its gradient, its batch, and what it would write."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from ...call.batching import BatchedCall
from ...call.bound import BoundOperator
from ...call.host import Host, host_of, specs
from ...call.operator import Operator
from ...call.prepare import Prepared, normalise
from ...call.rule import VJP, Rule
from ...call.uses import Uses
from ...core import locks
from ...core.dtypes import dtype
from ...core.errors import InferError, UnsupportedError
from ...core.infer import InferRule
from ...core.origin import caller
from ...rules.batched_tensors import map_pairs, pairs, samples_first
from .batch import Dims, batched
from .function import TorchFunction, flat_flags, flatten_tensors, unflatten_tensors
from .gradient import NEEDS_KEY, check_draws, differentiated
from .infer import FromMeta, LikeInputs, UnknownOutputsError
from .kernel import AtenKernel


class OnDataOperator(BoundOperator):
    """An operator over a function of PyTorch, whose kernel JAX runs at once outside of programs."""

    runs_on_data = True

    def prepare(self, host: Host, arguments: tuple[Any, ...]) -> Prepared:
        """Return the only kernel. For NumPy the shapes of its outputs may be unknown."""
        with contextlib.suppress(*([UnknownOutputsError] if host.name == "numpy" else [])):
            return super().prepare(host, arguments)
        return self.prepared_on_data()

    def prepared_on_data(self) -> Prepared:
        """Return the only kernel, for outputs of any shape."""
        return Prepared(self.operator, self.operator.kernels[0], (), (), {}, repeatable=False)

    def check_traced(self, arguments: tuple[Any, ...]) -> None:
        """Raise ``UnsupportedError`` if a compiled program would draw random numbers from hidden state."""
        kernel: Any = self.operator.kernels[0]
        if kernel.source.draws(arguments):
            rule = "draws random numbers, and a compiled program has no hidden state to draw them from"
            raise UnsupportedError(self.name, rule, hint=NEEDS_KEY)


def derived_operator(function: TorchFunction, doc: str, infer: InferRule | None = None) -> BoundOperator:
    """Return the operator of a function of PyTorch, with a gradient and a batch rule."""
    return OnDataOperator(_operator(function, infer or FromMeta(function), Batched(function), doc))


def _operator(
    function: TorchFunction, infer: InferRule, batch: Batched | BatchedBackward, doc: str
) -> Operator:
    return Operator(
        schema=function.schema,
        infer=infer,
        kernels=(AtenKernel(function),),
        gradient=Backward(function),
        batch=batch,
        doc=doc,
        origin=caller(),
    )


class Backward(Rule):
    """The gradient rule of a function of PyTorch: it calls an operator ``<name>_backward_of``.

    That operator takes the output gradients and all arguments, recomputes the outputs in PyTorch and
    differentiates them. Its gradient is another such operator.
    """

    made_by = "PyTorch's, if it has one"

    def __init__(self, function: TorchFunction) -> None:
        """Keep the function; the operator is made at its first use."""
        self.function = function
        self._operator: BoundOperator | None = None

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Return one gradient or None per input: None for attributes and integer tensors."""
        *inputs, _, grad = values
        return self.gradients(inputs, tuple(grad) if isinstance(grad, (tuple, list)) else (grad,))

    def at(self, arguments: Sequence[Any]) -> VJP:
        """Return the gradient as a function that computes the gradients that are needed."""
        return Needed(self, len(arguments))

    def reads(
        self, arguments: Sequence[Any], outputs: int, tangents: Sequence[Any] | None = None
    ) -> Uses | None:
        """Return that all arguments and no outputs are read."""
        del outputs, tangents
        return Uses((True,) * len(arguments), False)

    def gradients(
        self, inputs: Sequence[Any], output_grads: Sequence[Any], wanted: Sequence[bool] | None = None
    ) -> tuple[Any, ...]:
        """Return one gradient or None per input: None for what is not wanted; by default all are."""
        schema = self.function.schema
        check_draws(self.function, inputs)
        positional, keywords = schema.split(inputs)
        flags = {} if wanted is None else {self.operator.schema.arguments[-1].name: tuple(wanted)}
        result = self.operator(tuple(output_grads), *positional, **keywords, **flags)
        flat = result if isinstance(result, (tuple, list)) else (result,)
        input_grads = map(_none_unless_floating, flatten_tensors(schema, inputs), flat)
        by_argument = unflatten_tensors(schema, inputs, input_grads)
        if wanted is None:
            return by_argument
        return tuple(grad if flag else None for grad, flag in zip(by_argument, wanted, strict=True))

    @property
    def operator(self) -> BoundOperator:
        """The operator ``polyop_<namespace>::<name>_backward_of``."""
        with locks.define:
            if self._operator is None:
                first, doc = self.function, f"The gradient of PyTorch's {self.function.schema}."
                rules = LikeInputs(first.schema), BatchedBackward(first)
                self._operator = OnDataOperator(_operator(differentiated(first), *rules, doc))
            return self._operator


class Needed:
    """The gradient of a function of PyTorch, of which a call computes the parts that are needed."""

    def __init__(self, rule: Backward, count: int) -> None:
        """Take the rule, and the number of arguments."""
        self.rule = rule
        self.uses = Uses((True,) * count, False)

    def __call__(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        grads: Sequence[Any],
        needs_gradient: Sequence[bool],
    ) -> tuple[Any, ...]:
        """Return one gradient per argument; None where none is needed."""
        del outputs
        return self.rule.gradients(inputs, grads, tuple(map(bool, needs_gradient)))


def _is_floating(value: Any) -> bool:
    return value is not None and dtype(value.dtype).is_floating


def _none_unless_floating(value: Any, grad: Any) -> Any:
    return grad if _is_floating(value) else None


class Batched(Rule):
    """The batch rule of a function of PyTorch: it calls an operator ``<name>_batched``.

    There is one for each way in which arguments are batched. Random numbers differ between the samples.
    """

    made_by = "by torch.vmap"
    batching = "one call of torch.vmap; where PyTorch has no batching rule, it loops itself"

    def __init__(self, function: TorchFunction) -> None:
        """Keep the function; the operators are made at their first use."""
        self.function = function
        self._operators: dict[Dims, BoundOperator] = {}

    def __call__(self, in_dims: Sequence[Any], inputs: Sequence[Any], call: Any) -> Any:
        """Return (outputs, their batch dimensions); ``NotImplemented`` if PyTorch cannot batch the call."""
        del call
        dims = tuple(tuple(dim) if isinstance(dim, (list, tuple)) else dim for dim in in_dims)
        positional, keywords = self.function.schema.split(inputs)
        try:
            result = self._operator(dims)(*positional, **keywords)
        except InferError:
            return NotImplemented
        return result, (0,) * len(result) if isinstance(result, (list, tuple)) else 0

    def _operator(self, dims: Dims) -> BoundOperator:
        with locks.define:
            if dims not in self._operators:
                doc = f"PyTorch's {self.function.schema} for a batch of samples."
                self._operators[dims] = derived_operator(batched(self.function, dims), doc)
            return self._operators[dims]


class BatchedBackward(Rule):
    """The batch rule of a gradient: the gradient of a whole batch in which each sample has its own inputs."""

    batching = Batched.batching

    def __init__(self, first: TorchFunction) -> None:
        """Keep the function that is differentiated; the operators are made at their first use."""
        self.first = first
        self._rules: dict[Dims, Backward] = {}
        self._takes = functools.lru_cache(maxsize=1024)(self._takes_specs)

    def __call__(self, in_dims: Sequence[Any], inputs: Sequence[Any], call: BatchedCall) -> Any:
        """Return (outputs, their batch dimensions); ``NotImplemented`` if PyTorch cannot batch the call."""
        if self.first.differentiates:
            return NotImplemented  # torch.vmap takes no function that differentiates by torch.autograd
        schema, arguments = call.operator.schema, list(inputs)
        rows = [pair for i in schema.tensor_positions for pair in pairs(inputs[i], in_dims[i])]
        size = next(tensor.shape[axis] for tensor, axis in rows if axis is not None)
        for i in schema.tensor_positions:
            arguments[i] = map_pairs(lambda x, axis: samples_first(x, axis, size), inputs[i], in_dims[i])
        grads, *values, wanted = arguments
        tensors = flatten_tensors(self.first.schema, values)
        host = next(h for x in tensors if x is not None and (h := host_of(x)))
        dims = _all_first(self.first, values)
        if not self._takes(dims, normalise(call.operator, specs(host, call.operator, arguments))[1:-1]):
            return NotImplemented
        positional, keywords = self.first.schema.split(values)
        backward = self._rule(dims).operator
        keywords[backward.schema.arguments[-1].name] = wanted
        result = backward(grads, *positional, **keywords)
        outputs = result if isinstance(result, (list, tuple)) else (result,)
        flags = flat_flags(self.first.schema, values, wanted)
        smooth = [flag and _is_floating(x) for x, flag in zip(tensors, flags, strict=True)]
        return list(outputs), [0 if one else None for one in smooth]

    def _takes_specs(self, dims: Dims, values: tuple[Any, ...]) -> bool:
        """Whether PyTorch can batch the function for arguments with specs as tensors."""
        try:
            FromMeta(self._rule(dims).function)(values)
        except InferError:
            return False
        return True

    def _rule(self, dims: Dims) -> Backward:
        with locks.define:
            if dims not in self._rules:
                self._rules[dims] = Backward(batched(self.first, dims))
            return self._rules[dims]


def _all_first(function: TorchFunction, values: Sequence[Any]) -> Dims:
    """Return the batch dimension of each argument, where the batch is first in all tensors."""
    positions = function.schema.tensor_positions
    return tuple(map_pairs(lambda *_: 0, x, None) if i in positions else None for i, x in enumerate(values))
