"""A function of PyTorch as a bound operator: PyTorch's tensors go to it directly, others by memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from ...call import registry
from ...call.bound import BoundOperator
from ...call.host import Host, find_host, host_of, map_tensors, spec_of
from ...call.operator import Operator
from ...call.prepare import Prepared, normalise
from ...core import locks
from ...core.arguments import bind
from ...core.derived_names import derived_from
from ...core.errors import GradientError
from ...core.infer import InferRule
from ...core.origin import caller
from ...core.schema import Schema
from ...core.tracebacks import quiet
from ...core.untraced import untraced
from .batch import in_vmap
from .derived import Backward, Batched, OnDataOperator, derived_operator
from .forward_mode import in_forward_mode
from .function import SPECIAL, TorchFunction, special, to_torch, unflatten_tensors
from .gradient import check_draws, record
from .kernel import AtenKernel, keep_results
from .overloads import as_array, constant, numbers_for_tensors
from .results import python_values, regroup, values_of


class TorchOperator(OnDataOperator):
    """A function of PyTorch. Tensors of other hosts are passed by memory."""

    pickled: Any = None
    """For an operator that belongs to another one: how a process finds it there."""

    def __init__(
        self,
        function: TorchFunction,
        infer: InferRule,
        repeats: Mapping[int, int],
        doc: str,
        batch: Any = None,
        *,
        register: bool = True,
    ) -> None:
        """Take a function, the rule for its outputs, and the positions where a number stands for a list."""
        schema = function.schema
        self._traceable: BoundOperator | None = None
        self.function, self._repeats = function, repeats
        self.torch_overload = function.function  # tells the PyTorch host that it is registered already
        kinds = [(i, a) for i, a in enumerate(schema.arguments) if a.type.base in SPECIAL]
        self._special: dict[int | str, str] = {
            key: argument.type.base for i, argument in kinds for key in (i, argument.name)
        }
        self._numbers = [(i, a) for i, a in schema.attributes() if a.type.base not in (*SPECIAL, "str")]
        derives = has_tensors(schema) and not schema.mutates
        super().__init__(
            Operator(
                schema=schema,
                infer=infer,
                kernels=(AtenKernel(function),),
                gradient=Backward(function) if derives else None,
                batch=batch or (Batched(function) if derives else None),
                doc=doc,
                origin=caller(),
            ),
            register=register and batch is None,
        )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs. torch.compile traces this function."""
        if torch.compiler.is_compiling():
            return self._on_torch(args, kwargs)
        return self._slow(*args, **kwargs)

    def vjp(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the output, and a function from its gradient to the tuple of input gradients.

        Raises ``GradientError`` if PyTorch has no derivative, if an argument is written in place, and,
        for hosts other than PyTorch, if the call draws random numbers without a key.
        """
        if not has_tensors(self.schema):
            raise GradientError(self.name, "returns no tensor, and so has no vjp")
        if self.schema.mutates:
            hint = "use the operator that returns a new tensor"
            raise GradientError(self.name, "writes an argument in place, and so has no vjp", hint=hint)
        if self._is_for_torch(args, kwargs):
            return self._vjp_on_torch(bind(self.schema, args, kwargs))
        arguments = self._arguments(args, kwargs)
        check_draws(self.function, arguments)
        positional, keywords = self.schema.split(arguments)
        return super().vjp(*positional, **keywords)

    def prepare(self, host: Host, arguments: tuple[Any, ...]) -> Prepared:
        """Return the only kernel. For NumPy the infer rule does not run, because its result is not needed."""
        if host.name == "numpy" and not self.schema.mutates:
            return self.prepared_on_data()
        return super().prepare(host, arguments)  # for NumPy it raises for an out= that PyTorch would resize

    def traced(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the outputs of PyTorch's operator unchanged."""
        del args, kwargs
        return outputs

    def __reduce__(self) -> Any:
        """Pickle as a function that finds the operator in any process with the same PyTorch extensions."""
        return self.pickled

    @property
    def traceable(self) -> BoundOperator:
        """The same as an operator that ``torch.compile`` does not look into; it is in ``torch.ops``."""
        with locks.define:
            if self._traceable is None:
                schema = self.schema
                name = registry.unique(schema.namespace, f"{schema.name}_traceable")
                renamed = derived_from(schema, "traceable", dataclasses.replace(schema, name=name))
                function = dataclasses.replace(self.function, schema=renamed)
                doc = f"{schema.qualified_name}, for torch.compile."
                self._traceable = derived_operator(function, doc, self.operator.infer)
            return self._traceable

    @untraced
    @quiet
    def _slow(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._is_for_torch(args, kwargs):
            return self._on_torch(args, kwargs)
        arguments = self._arguments(args, kwargs)
        return self._results(find_host(self.operator, arguments), arguments)

    def _results(self, host: Host, arguments: tuple[Any, ...]) -> Any:
        """Return what PyTorch's operator returns, with tensors of a host."""
        result_kinds = self.function.result_kinds
        if not result_kinds:
            return self.pack(host.call(self, arguments))
        with keep_results(self.function) as kept:
            outputs = host.call(self, arguments) if has_tensors(self.schema) else ()
        if kept:
            values = values_of(self.function, kept[-1])
        else:
            values = python_values(self.function, self.operator, host, arguments)
        return regroup(result_kinds, outputs, values)

    def _on_torch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.function.registered:
            in_vmap(self.function.registered)
            in_forward_mode(self.function.registered)
        if self._special:
            kinds = self._special
            args = tuple(special(kinds[i], v) if i in kinds else v for i, v in enumerate(args))
            kwargs = {k: special(kinds[k], v) if k in kinds else v for k, v in kwargs.items()}
        return self.function.function(*args, **kwargs)

    def _is_for_torch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether any argument is a PyTorch tensor; raises ``HostError`` for two frameworks."""
        values = list(_items((*args, *kwargs.values())))
        if not any(isinstance(value, torch.Tensor) for value in values):
            return False
        if any(hasattr(value, "__dlpack__") and not isinstance(value, torch.Tensor) for value in values):
            find_host(self.operator, bind(self.schema, args, kwargs))  # raises, and names the two
        return True

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return bound arguments; a single number for an ``int[N]`` of PyTorch is repeated N times."""
        values = list(bind(self.schema, args, kwargs, self.operator.origin))
        for position, argument in self._numbers:
            values[position] = constant(argument, values[position])
        self._make_numbers_arrays(values)
        for position, count in self._repeats.items():
            if values[position] is not None and not isinstance(values[position], (list, tuple)):
                values[position] = (values[position],) * count
        return normalise(self.operator, tuple(values))

    def _make_numbers_arrays(self, values: list[Any]) -> None:
        """Replace Python's numbers in the places of tensors, for the hosts whose arrays NumPy makes."""
        numbers = numbers_for_tensors(self.schema, values, {})
        if not numbers:
            return
        found: list[tuple[str, Any]] = []
        others = [None if i in numbers else value for i, value in enumerate(values)]
        map_tensors(self.operator, others, lambda name, value, _: found.append((name, value)))
        host = next((host_of(value) for _, value in found), None)
        if host is None or host.name not in ("numpy", "jax"):
            return
        specs = [spec_of(host, self.operator, name, x) for name, x in found if host_of(x) is host]
        for position in numbers:
            values[position] = as_array(host, values[position], specs)

    def _vjp_on_torch(self, arguments: tuple[Any, ...]) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
        schema = self.schema
        converted = to_torch(schema, arguments, lambda tensor: tensor)
        outputs, pull = record(self.function, converted)

        def pullback(grads: Any) -> tuple[Any, ...]:
            input_grads = pull(tuple(grads) if self.operator.several else (grads,))
            return unflatten_tensors(schema, converted, iter(input_grads))

        return self.pack(tuple(outputs)), pullback


def has_tensors(schema: Schema) -> bool:
    """Whether any result is a tensor; an operator without results counts as one of tensors."""
    return not schema.returns or any(result.type.is_tensor for result in schema.returns)


def _items(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _items(value)
        else:
            yield value
