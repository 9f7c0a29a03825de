"""An operator of PyTorch as a bound operator of polyop."""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

from ...call import registry
from ...call.bound import BoundOperator
from ...call.host import find_host, need_own
from ...core import locks
from ...core.errors import ArgumentTypeError, UnsupportedError
from ...core.infer import FromSpecs
from ...core.origin import caller
from ...core.takes import check_takes
from ...core.tracebacks import quiet
from ...core.untraced import untraced
from ...rules.elementwise import ElementwiseBatch
from . import factory
from .derived import Batched
from .function import TorchFunction
from .functional import Functionals, WithWritten, not_returned, written
from .infer import FromMeta
from .keyed import Keyed, check_host, is_key, key_data
from .overloads import numbers_for_tensors, overload_of, qualified, scalar_overload
from .padded import Padded
from .schema import signature
from .torch_operator import TorchOperator, has_tensors

_SHAPES_BY_A_RUN = {  # the operators whose ``TorchFunction.shapes_by_a_run`` is true
    ("aten", "embedding_bag"),
    ("aten", "_embedding_bag"),
    ("aten", "_embedding_bag_forward_only"),
    ("aten", "_batch_norm_impl_index"),
    ("aten", "native_batch_norm"),
    ("aten", "combinations"),
    ("aten", "corrcoef"),
    ("aten", "cov"),
    ("aten", "istft"),
    ("aten", "_native_batch_norm_legit"),
}

Function = TypeVar("Function", bound=Callable[..., Any])


def constant_result(function: Function) -> Function:
    """Mark a function of constants: torch.compile runs it, and does not trace it."""
    function.__dict__["_dynamo_marked_constant"] = True
    return function


def find(name: Any, batch: Any = None, infer: Any = None) -> BoundOperator:
    """Return the operator for a name or an object of ``torch.ops``; the same object each time.

    For an operator that polyop registered with PyTorch, that is polyop's own operator. With ``batch`` or
    ``infer`` it is a new one, which is not registered. Raises ``ArgumentTypeError`` for a wrong ``batch``,
    and ``InferError`` for a wrong ``infer``.
    """
    overload = overload_of(name)
    if batch is not None or infer is not None:
        if batch is not None and batch != "elementwise" and not callable(batch):
            rule = "batch must be 'elementwise' or a function"
            raise ArgumentTypeError(qualified(overload), rule, repr(batch))
        if callable(batch):
            check_takes("batch", batch, ("in_dims", "inputs"), signature(overload._schema).schema, caller())
        find(overload)  # the one with the name, whose rule torch.vmap has
        return AtenOperator(overload, ElementwiseBatch() if batch == "elementwise" else batch, infer)
    with locks.define:
        operator: BoundOperator | None = registry.named(qualified(overload))
        if isinstance(operator, AtenOperator) and operator.overload is not overload:
            registry.discard(operator)  # its library was registered again
            operator = None
        return operator or AtenOperator(overload)


class AtenOperator(TorchOperator):
    """An operator of PyTorch.

    Calls with ``size=`` go to :attr:`padded`, and calls with a key as their ``generator=`` to :attr:`keyed`.
    """

    def __init__(self, overload: Any, batch: Any = None, infer: Any = None) -> None:
        """Take schema, infer rule and gradient from PyTorch; raises ``UnsupportedError``.

        An operator with a batch or infer rule has the name of the one without, and is not registered.
        """
        parsed = signature(overload._schema)
        seeded = torch.Tag.nondeterministic_seeded in overload.tags
        by_a_run = (parsed.schema.namespace, parsed.schema.name) in _SHAPES_BY_A_RUN
        name = parsed.schema.qualified_name
        function = TorchFunction(
            parsed.schema,
            overload,
            seeded,
            parsed.result_kinds,
            shapes_by_a_run=by_a_run,
            registered="" if parsed.schema.namespace == "aten" else name,
        )
        self.overload = overload
        self._argument_names = {argument.name for argument in parsed.schema.arguments}
        self._full_name = qualified(overload)
        self._is_factory = not parsed.schema.tensor_positions
        self._variants: dict[type, TorchOperator] = {}
        doc = f"PyTorch's operator {overload._schema}."
        self._infer = infer
        rule = FromMeta(function) if infer is None else FromSpecs(infer, parsed.schema)
        super().__init__(function, rule, parsed.repeats, doc, batch, register=infer is None)
        if isinstance(self.operator.batch, Batched):
            advice = f'polyop.aten("{self._full_name}", batch=...) takes a rule of yours'
            if function.registered:  # and torch.vmap then calls it for each sample
                advice = f'torch.library.register_vmap("{self._full_name}", rule) does better'
            self.operator.batch.advice = f"; {advice}"
        self._functionals = Functionals(function, self._functional_operator)
        # made now, so that a process that loads an exported program has it
        self._functionals.operator((True,) * len(parsed.schema.arguments))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs. torch.compile traces this function."""
        if torch.compiler.is_compiling():
            return self._compiled(args, kwargs) if self._has_options(kwargs) else self._on_torch(args, kwargs)
        return self._slow(*args, **kwargs)

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the outputs of a call with options on PyTorch's tensors; torch.compile traces this."""
        return compiled_call(self._full_name, *args, **kwargs)

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
        with locks.define:
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
        fitting = self._fitting(args, kwargs)
        if fitting is not self:
            return fitting.vjp(*args, **kwargs)
        functional, args, kwargs = self._functional(args, kwargs)
        return super().vjp(*args, **kwargs) if functional is None else functional.vjp(*args, **kwargs)

    @untraced
    @quiet
    def _slow(self, /, *args: Any, **kwargs: Any) -> Any:
        variant, args, kwargs = self._with_options(args, kwargs)
        if variant is not self:
            return variant(*args, **kwargs)
        fitting = self._fitting(args, kwargs)
        if fitting is not self:
            return fitting(*args, **kwargs)
        functional, args, kwargs = self._functional(args, kwargs)
        if functional is not None:
            return functional(*args, **kwargs)
        if self.schema.tensor_positions or not has_tensors(self.schema):
            return super()._slow(*args, **kwargs)
        host, kwargs = factory.host_of_call(self.schema, kwargs, self.operator.origin)
        if host.name == "torch":
            return super()._on_torch(args, kwargs)
        return self._results(host, self._arguments(args, kwargs))

    def _fitting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AtenOperator:
        """Return the operator of the overload that takes the numbers in the places of tensors."""
        numbers = numbers_for_tensors(self.schema, args, kwargs)
        if not numbers or self._has_batch or self._is_for_torch(args, kwargs):
            return self
        other = scalar_overload(self.overload, numbers)
        return self if other is None else cast("AtenOperator", find(other))

    def _functional_operator(self, function: TorchFunction, positions: tuple[int, ...]) -> TorchOperator:
        doc = f"PyTorch's operator {function.schema}, which returns what it would write."
        batch = self.operator.batch if self._has_batch else None
        rule = WithWritten(self, self.function, function, not_returned(self.schema, positions))
        operator = TorchOperator(function, rule, self._repeats, doc, batch)
        operator.pickled = _functional_of, (self.name, positions)
        return operator

    @property
    def _has_batch(self) -> bool:
        return not isinstance(self.operator.batch, Batched | None)

    def _need_no_batch(self, option: str) -> None:
        if self._has_batch:
            rule = f"has a batch= of its own, which says nothing of a call with {option}"
            hint = f'call polyop.aten("{self._full_name}"), without batch=: there vmap is PyTorch\'s own'
            raise UnsupportedError(self.name, rule, hint=hint)

    def _functional(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[BoundOperator | None, tuple[Any, ...], dict[str, Any]]:
        """Return the operator that returns what this one would write, or None, and the arguments."""
        if not self._functionals.can_write or self._is_for_torch(args, kwargs):
            return None, args, kwargs
        arguments = self._arguments(args, kwargs)
        host = find_host(self.operator, arguments)
        if host.name != "jax":
            return None, args, kwargs
        need_own(self.operator, host, arguments, written(self.schema, arguments))
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
            self._need_no_batch("size=")
            return self.padded, args, kwargs
        if "fill_value" in kwargs and "fill_value" not in self._argument_names:
            hint = "pass size= too; without it the result has the size that follows from the data"
            raise ArgumentTypeError(self.name, "takes fill_value= only beside size=", hint=hint)
        if self.function.seeded and is_key(self.name, kwargs.get("generator")):
            self._need_no_batch("a key")
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
        batch = self.operator.batch if self._has_batch else None
        return find, (
            self.name,
            "elementwise" if isinstance(batch, ElementwiseBatch) else batch,
            self._infer,
        )


def _variant_of(name: str, variant: str) -> TorchOperator:
    return cast("TorchOperator", getattr(find(name), variant))


def _functional_of(name: str, positions: tuple[int, ...]) -> TorchOperator:
    return cast("TorchOperator", cast("AtenOperator", find(name))._functionals.at(positions))


@constant_result
def _kind(name: str, has_key: bool, options: str) -> str:
    """Return what a call with options needs: "padded", "keyed", "factory", or several; "" for nothing."""
    operator = cast("AtenOperator", find(name))
    given = [option for option in options.split() if option not in operator._argument_names]
    kinds = ["factory"] if operator._is_factory else []
    if "size" in given and not operator.function.result_kinds:
        kinds.append("padded")
    elif has_key and operator.function.seeded:
        kinds.append("keyed")
    return " ".join(kinds)


@constant_result
def _torch_path(name: str, variant: str) -> str:
    """Return where in ``torch.ops`` the operator is: namespace, name and overload."""
    operator = cast("AtenOperator", find(name))
    overload = getattr(operator, variant).traceable.torch if variant else operator.overload
    return f"{overload.namespace} {overload._schema.name.partition('::')[2]} {overload._overloadname}"


def _torch_operator(name: str, variant: str) -> Any:
    namespace, short, overload = _torch_path(name, variant).split(" ")
    return getattr(getattr(getattr(torch.ops, namespace), short), overload)


def compiled_call(name: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Return the outputs of a call on PyTorch's tensors, with options too; torch.compile traces this."""
    key = kwargs.get("generator")
    kind = _kind(name, isinstance(key, torch.Tensor), " ".join(kwargs))
    others = dict(kwargs)
    if "factory" in kind and (others.get("host") == "torch" or isinstance(others.get("like"), torch.Tensor)):
        others.pop("host", None)
        others.pop("like", None)
    if "keyed" in kind:
        others.pop("generator")
        return _torch_operator(name, "keyed")(key, *args, **others)
    return _torch_operator(name, "padded" if "padded" in kind else "")(*args, **others)
