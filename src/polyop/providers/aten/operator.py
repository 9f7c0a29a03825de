"""An operator of PyTorch as a bound operator of polyop."""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from ...call import registry
from ...call.bound import BoundOperator
from ...call.host import Host, find_host
from ...call.operator import Operator
from ...call.prepare import Prepared, normalise
from ...core.arguments import bind
from ...core.errors import ArgumentTypeError, GradientError, HostError
from ...core.origin import caller
from ...core.schema import Schema
from ...core.untraced import untraced
from ...rules.elementwise import ElementwiseBatch
from .function import SPECIAL, TorchFunction, special, to_torch, unflatten_tensors
from .functional import Functionals
from .gradient import Backward, check_draws, record
from .infer import FromMeta, UnknownOutputsError
from .kernel import AtenKernel
from .names import overload_of, qualified
from .results import python_values, regroup
from .schema import signature

_lock = threading.RLock()


def find(name: Any, batch: Any = None) -> BoundOperator:
    """Return the operator for a name or an object of ``torch.ops``; the same object each time.

    For an operator that polyop registered with PyTorch, that is polyop's own operator. With ``batch``
    it is a new one, which is not registered. Raises ``ArgumentTypeError`` for a wrong ``batch``.
    """
    overload = overload_of(name)
    if batch is not None:
        if batch != "elementwise" and not callable(batch):
            rule = "batch must be 'elementwise' or a function"
            raise ArgumentTypeError(qualified(overload), rule, repr(batch))
        return AtenOperator(overload, ElementwiseBatch() if batch == "elementwise" else batch)
    with _lock:
        operator: BoundOperator | None = registry.named(qualified(overload))
        if isinstance(operator, AtenOperator) and operator.overload is not overload:
            registry.discard(operator)  # its library was registered again
            operator = None
        return operator or AtenOperator(overload)


class AtenOperator(BoundOperator):
    """An operator of PyTorch. PyTorch tensors go to PyTorch's own; other tensors are passed by memory."""

    def __init__(self, overload: Any, batch: Any = None) -> None:
        """Take schema, infer rule and gradient from PyTorch; raises ``UnsupportedError``.

        An operator with a batch rule has the name of the one without, and is not registered.
        """
        parsed = signature(overload._schema)
        schema = parsed.schema
        function = TorchFunction(
            schema, overload, torch.Tag.nondeterministic_seeded in overload.tags, parsed.layout
        )
        self.overload, self.function, self._repeats = overload, function, parsed.repeats
        self.torch_overload = overload  # tells the PyTorch host that it is registered already
        kinds = [(i, a) for i, a in enumerate(schema.arguments) if a.type.base in SPECIAL]
        self._special: dict[int | str, str] = {
            key: argument.type.base for i, argument in kinds for key in (i, argument.name)
        }
        super().__init__(
            Operator(
                schema=schema,
                infer=FromMeta(function),
                kernels=(AtenKernel(function),),
                gradient=None if schema.mutates or not _has_tensors(schema) else Backward(function),
                batch=batch,
                doc=f"PyTorch's operator {overload._schema}.",
                origin=caller(),
            ),
            register=batch is None,
        )
        self._functionals = Functionals(function, _functional_operator)
        self._functionals.operator((True,) * len(schema.arguments))  # programs of other processes name it

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs. torch.compile traces this function."""
        if torch.compiler.is_compiling():
            return self._on_torch(args, kwargs)
        return self._slow(*args, **kwargs)

    @property
    def torch(self) -> Any:
        """PyTorch's own operator."""
        return self.overload

    def vjp(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the output, and a function from its gradient to the tuple of input gradients.

        Raises ``GradientError`` if PyTorch has no derivative, if an argument is written in place, and,
        for hosts other than PyTorch, if the operator draws random numbers.
        """
        if not self._is_for_torch(args, kwargs):
            return self._vjp_on_arrays(self._arguments(args, kwargs))
        self._check_vjp()
        return self._vjp_on_torch(bind(self.schema, args, kwargs))

    def _check_vjp(self) -> None:
        if not _has_tensors(self.schema):
            raise GradientError(self.name, "returns no tensor, and so has no vjp")
        if self.schema.mutates:
            hint = "use the operator that returns a new tensor"
            raise GradientError(self.name, "writes an argument in place, and so has no vjp", hint=hint)

    def _vjp_on_arrays(self, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        positional, keywords = self.schema.split(arguments)
        functional = self._functional(find_host(self.operator, arguments), arguments)
        if functional is not None:
            return functional.vjp(*positional, **keywords)  # type: ignore[no-any-return]
        self._check_vjp()
        check_draws(self.function, arguments)
        return super().vjp(*positional, **keywords)

    def prepare(self, host: Host, arguments: tuple[Any, ...]) -> Prepared:
        """Return the only kernel. For NumPy the infer rule does not run, because its result is not needed."""
        operator = self.operator
        if host.name != "numpy":
            return super().prepare(host, arguments)
        if operator.schema.mutates:
            with contextlib.suppress(UnknownOutputsError):
                super().prepare(host, arguments)  # raises for an out= that PyTorch would resize
        return Prepared(operator, operator.kernels[0], (), (), {}, repeatable=False)

    def traced(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the outputs of PyTorch's operator unchanged."""
        del args, kwargs
        return outputs

    def __reduce__(self) -> Any:
        """Pickle as the name, which any process with the same PyTorch extensions can look up."""
        batch = self.operator.batch
        return find, (self.name, "elementwise" if isinstance(batch, ElementwiseBatch) else batch)

    @untraced
    def _slow(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._is_for_torch(args, kwargs):
            return self._on_torch(args, kwargs)
        arguments = self._arguments(args, kwargs)
        host = find_host(self.operator, arguments)
        functional = self._functional(host, arguments)
        if functional is not None:
            positional, keywords = self.schema.split(arguments)
            return functional(*positional, **keywords)
        layout = self.function.layout
        outputs = host.call(self, arguments) if not layout or _has_tensors(self.schema) else ()
        if not layout:
            return self.pack(outputs)
        return regroup(layout, outputs, python_values(self.function, self.operator, host, arguments))

    def _functional(self, host: Host, arguments: tuple[Any, ...]) -> Any:
        """Return the operator to call in place of this one where arrays cannot be written, or None."""
        return self._functionals.operator(arguments) if host.name == "jax" else None

    def _on_torch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._special:
            kinds = self._special
            args = tuple(special(kinds[i], v) if i in kinds else v for i, v in enumerate(args))
            kwargs = {k: special(kinds[k], v) if k in kinds else v for k, v in kwargs.items()}
        return self.overload(*args, **kwargs)

    def _is_for_torch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether any argument is a PyTorch tensor; raises ``HostError`` if another is a NumPy array."""
        if not self.schema.tensor_positions and _has_tensors(self.schema):
            hint = f"{self.name} has none: call .torch for a tensor of PyTorch"
            rule = "needs at least one tensor to know which framework is calling"
            raise HostError(self.name, rule, where=self.operator.origin, hint=hint)
        values = list(_items((*args, *kwargs.values())))
        if not any(isinstance(value, torch.Tensor) for value in values):
            return False
        if any(isinstance(value, np.ndarray) for value in values):
            find_host(self.operator, bind(self.schema, args, kwargs))  # raises, and names the two
        return True

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return bound arguments; a single number for an ``int[N]`` of PyTorch is repeated N times."""
        values = list(bind(self.schema, args, kwargs, self.operator.origin))
        for position, count in self._repeats.items():
            if values[position] is not None and not isinstance(values[position], (list, tuple)):
                values[position] = (values[position],) * count
        return normalise(self.operator, tuple(values))

    def _vjp_on_torch(self, arguments: tuple[Any, ...]) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
        schema = self.schema
        converted = to_torch(schema, arguments, lambda tensor: tensor)
        outputs, pull = record(self.function, converted)

        def pullback(grads: Any) -> tuple[Any, ...]:
            input_grads = pull(tuple(grads) if self.operator.several else (grads,))
            return unflatten_tensors(schema, converted, iter(input_grads))

        return self.pack(tuple(outputs)), pullback


def _functional_operator(function: TorchFunction) -> BoundOperator:
    doc = f"PyTorch's operator {function.schema}, which returns what it would write."
    infer, kernels = FromMeta(function), (AtenKernel(function),)
    return BoundOperator(
        Operator(function.schema, infer, kernels, gradient=Backward(function), doc=doc, origin=caller())
    )


def _has_tensors(schema: Schema) -> bool:
    """Whether any result is a tensor; an operator without results counts as one of tensors."""
    return not schema.returns or any(result.type.is_tensor for result in schema.returns)


def _items(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _items(value)
        else:
            yield value
