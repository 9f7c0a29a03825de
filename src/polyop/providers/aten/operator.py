"""An operator of PyTorch as a bound operator of polyop."""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

import threading
from typing import Any, cast

import torch

from ...call import registry
from ...call.bound import BoundOperator
from ...call.host import find_host
from ...core.errors import ArgumentTypeError
from ...core.untraced import untraced
from ...rules.elementwise import ElementwiseBatch
from . import factory
from .derived import Batched, derived_operator
from .function import TorchFunction
from .functional import Functionals
from .infer import FromMeta
from .keyed import Keyed, check_host, is_key, key_data
from .names import overload_of, qualified
from .padded import Padded
from .schema import signature
from .torch_operator import TorchOperator, has_tensors

_META_DIFFERS = {  # the operators whose ``TorchFunction.meta_differs`` is true
    ("aten", "embedding_bag"),
    ("aten", "_embedding_bag"),
    ("aten", "_embedding_bag_forward_only"),
    ("aten", "_batch_norm_impl_index"),
    ("aten", "native_batch_norm"),
}
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


class AtenOperator(TorchOperator):
    """An operator of PyTorch.

    Calls with ``size=`` go to :attr:`padded`, and calls with a key as their ``generator=`` to :attr:`keyed`.
    """

    def __init__(self, overload: Any, batch: Any = None) -> None:
        """Take schema, infer rule and gradient from PyTorch; raises ``UnsupportedError``.

        An operator with a batch rule has the name of the one without, and is not registered.
        """
        parsed = signature(overload._schema)
        seeded = torch.Tag.nondeterministic_seeded in overload.tags
        differs = (parsed.schema.namespace, parsed.schema.name) in _META_DIFFERS
        function = TorchFunction(parsed.schema, overload, seeded, parsed.result_kinds, meta_differs=differs)
        self.overload = overload
        self._argument_names = {argument.name for argument in parsed.schema.arguments}
        self._variants: dict[type, TorchOperator] = {}
        doc = f"PyTorch's operator {overload._schema}."
        super().__init__(function, FromMeta(function), parsed.repeats, doc, batch)
        self._functionals = Functionals(function, _functional_operator)
        # made now, so that a process that loads an exported program has it
        self._functionals.operator((True,) * len(parsed.schema.arguments))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs. torch.compile traces this function."""
        if torch.compiler.is_compiling() and not self._has_options(kwargs):
            return self._on_torch(args, kwargs)
        return self._slow(*args, **kwargs)

    @property
    def torch(self) -> Any:
        """PyTorch's own operator."""
        return self.overload

    @property
    def padded(self) -> TorchOperator:
        """The operator with ``size`` and ``fill_value``, whose results are padded or cut to the size."""
        return self._variant(Padded)

    @property
    def keyed(self) -> TorchOperator:
        """The operator with a key as its first argument, from which it draws its random numbers."""
        return self._variant(Keyed)

    def _variant(self, kind: type[Padded | Keyed]) -> TorchOperator:
        with _lock:
            if kind not in self._variants:
                variant = self._variants[kind] = kind(self.function, self._repeats)
                variant.pickled = _variant_of, (self.name, kind.__name__.lower())
            return self._variants[kind]

    def vjp(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the output, and a function from its gradient to the tuple of input gradients.

        Raises what ``TorchOperator.vjp`` raises.
        """
        variant, args, kwargs = self._with_options(args, kwargs)
        if variant is not self:
            return variant.vjp(*args, **kwargs)
        functional, args, kwargs = self._functional(args, kwargs)
        return super().vjp(*args, **kwargs) if functional is None else functional.vjp(*args, **kwargs)

    @untraced
    def _slow(self, /, *args: Any, **kwargs: Any) -> Any:
        variant, args, kwargs = self._with_options(args, kwargs)
        if variant is not self:
            return variant(*args, **kwargs)
        functional, args, kwargs = self._functional(args, kwargs)
        if functional is not None:
            return functional(*args, **kwargs)
        if self.schema.tensor_positions or not has_tensors(self.schema):
            return super()._slow(*args, **kwargs)
        host, kwargs = factory.host_of_call(self.schema, kwargs, self.operator.origin)
        if host.name == "torch":
            return super()._on_torch(args, kwargs)
        return self._results(host, self._arguments(args, kwargs))

    def _functional(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[BoundOperator | None, tuple[Any, ...], dict[str, Any]]:
        """Return the operator that returns what this one would write, or None, and the arguments."""
        if not self._functionals.can_write or self._is_for_torch(args, kwargs):
            return None, args, kwargs
        arguments = self._arguments(args, kwargs)
        if find_host(self.operator, arguments).name != "jax":
            return None, args, kwargs
        return self._functionals.operator(arguments), *self.schema.split(arguments)

    def _has_options(self, kwargs: dict[str, Any]) -> bool:
        """Whether a call has keywords that PyTorch's operator does not take."""
        return any(name not in self._argument_names for name in kwargs)

    def _with_options(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[TorchOperator, tuple[Any, ...], dict[str, Any]]:
        """Return the operator that makes a call, and its arguments."""
        if self.function.result_kinds:
            return self, args, kwargs
        if "size" in kwargs and "size" not in self._argument_names:
            return self.padded, args, kwargs
        if is_key(kwargs.get("generator")) and self.function.seeded:
            others = {name: value for name, value in kwargs.items() if name != "generator"}
            if not self.schema.tensor_positions:
                if factory.has_options(self.schema, others):
                    host, _ = factory.host_of_call(self.schema, others, self.operator.origin)
                    check_host(self.name, kwargs["generator"], host)
                others = factory.without_options(self.schema, others)
            return self.keyed, (key_data(kwargs["generator"]), *args), others
        return self, args, kwargs

    def __reduce__(self) -> Any:
        """Pickle as the name, which any process with the same PyTorch extensions can look up."""
        batch = self.operator.batch
        if isinstance(batch, Batched):
            return find, (self.name,)
        return find, (self.name, "elementwise" if isinstance(batch, ElementwiseBatch) else batch)


def _variant_of(name: str, variant: str) -> TorchOperator:
    return cast("TorchOperator", getattr(find(name), variant))


def _functional_operator(function: TorchFunction) -> BoundOperator:
    doc = f"PyTorch's operator {function.schema}, which returns what it would write."
    return derived_operator(function, doc)
