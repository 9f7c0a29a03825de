"""Operators that write arguments, as operators that return what was written: for arrays that never change."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...call import registry
from ...core import locks
from ...core.derived_names import derived_from
from ...core.errors import ArgumentValueError
from ...core.schema import MISSING, Argument, Return, Schema, Type
from ...core.spec import Spec
from .function import TENSOR, TENSORS, TorchFunction
from .infer import FromMeta
from .overloads import derived_namespace

_TRAINING: Mapping[str, str] = {  # writes its statistics if this argument is true; PyTorch's schema hides it
    "batch_norm": "training",
    "native_batch_norm": "training",
    "cudnn_batch_norm": "training",
    "miopen_batch_norm": "training",
    "instance_norm": "use_input_stats",
}
STATISTICS = ("running_mean", "running_var")
"""Arguments that PyTorch writes in training, although its schemas do not say so."""


def written(schema: Schema, arguments: Sequence[Any]) -> tuple[int, ...]:
    """Return the positions of the tensors that PyTorch writes in this call: absent ones are left out.

    They are empty for lists of tensors, and for ``out=``, of which PyTorch gives no gradient.
    """
    training = _TRAINING.get(schema.name, "") if schema.namespace == "aten" else ""
    names = [argument.name for argument in schema.arguments]
    if training and arguments[names.index(training)]:
        positions = [names.index(name) for name in STATISTICS]
    else:
        positions = [i for i, argument in enumerate(schema.arguments) if argument.type.writes]
    outs = [schema.arguments[i] for i in positions if _is_out(schema.arguments[i])]
    listed = any(schema.arguments[i].type.is_list for i in positions)
    absent = any(arguments[schema.alias_of(i)] is None for i in _aliases(schema))
    if outs or listed or absent:
        return ()
    return tuple(i for i in positions if arguments[i] is not None)


def _is_out(argument: Argument) -> bool:
    return argument.keyword_only and argument.type.writes


def _aliases(schema: Schema) -> list[int]:
    return [i for i, result in enumerate(schema.returns) if result.type.alias]


def not_returned(schema: Schema, positions: Sequence[int]) -> list[int]:
    """Return which of the written arguments at ``positions`` the schema does not return."""
    returned = {schema.alias_of(i) for i in _aliases(schema)}
    return [i for i in positions if i not in returned]


def functional(first: TorchFunction, positions: Sequence[int]) -> TorchFunction:
    """Return the function that copies the arguments at ``positions``, and returns them as it wrote them.

    They come where the schema returns the argument, and the others come last: the order in which the JAX host
    returns what any operator writes. Raises ``ArgumentValueError`` if PyTorch gave a copy another shape.
    """
    schema = first.schema
    last = not_returned(schema, positions)

    def function(*args: Any, **kwargs: Any) -> Any:
        arguments = [*args, *(kwargs[a.name] for a in schema.arguments[len(args) :])]
        shapes = {i: tuple(arguments[i].shape) for i in positions}
        for i in positions:
            arguments[i] = arguments[i].clone()
        with _quiet(arguments[positions[0]]):
            result = first.result(arguments)
        for i, shape in shapes.items():
            if tuple(arguments[i].shape) != shape:
                subject = f"{schema.qualified_name}: argument {schema.arguments[i].name}"
                rule = f"must have the result's shape {tuple(arguments[i].shape)}"
                raise ArgumentValueError(subject, rule, shape)
        return _with_written(first, result, [arguments[i] for i in last], arguments)

    kinds = (*first.result_kinds, *[TENSOR] * len(last)) if first.result_kinds else ()
    return dataclasses.replace(first, schema=_schema(first, len(last)), function=function, result_kinds=kinds)


class WithWritten:
    """The infer rule of what :func:`functional` returns: the author's for new outputs, and the written.

    Without such a rule PyTorch is asked. The rule is looked up when it is needed, as it may be given later.
    """

    def __init__(
        self, author: Any, first: TorchFunction, function: TorchFunction, last: Sequence[int]
    ) -> None:
        """Take the bound operator of ``first``, and the written arguments that come last."""
        self._author, self._first, self._meta, self._last = author, first, FromMeta(function), last

    @property
    def repeatable(self) -> bool:
        """Whether equal arguments always give an equal result."""
        return bool(self._author.operator.infer.repeatable)

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError``."""
        rule = self._author.operator.infer
        if isinstance(rule, FromMeta) or self._first.result_kinds:
            return self._meta(arguments)
        last = [arguments[i] for i in self._last]
        return tuple(_in_places(self._first.schema, iter(rule(arguments)), last, arguments))


def _in_places(
    schema: Schema, new: Iterator[Any], last: Sequence[Any], arguments: Sequence[Any]
) -> list[Any]:
    """Return what the schema returns, of the new outputs and the written arguments, then ``last``."""
    places = [schema.alias_of(i) if i in _aliases(schema) else -1 for i in range(len(schema.returns))]
    return [*(next(new) if i < 0 else arguments[i] for i in places), *last]


def _with_written(first: TorchFunction, result: Any, last: Sequence[Any], arguments: Sequence[Any]) -> Any:
    """Return the results of PyTorch's operator, with the written arguments that it does not return last."""
    if first.result_kinds:
        every = [*(result if len(first.result_kinds) > 1 else (result,)), *last]
    else:
        every = _in_places(first.schema, iter(first.tensors(result)), last, arguments)
    return every[0] if len(every) == 1 else tuple(every)


@contextlib.contextmanager
def _quiet(tensor: Any) -> Iterator[None]:
    if not tensor.is_meta:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a resized tensor, which is an error here
        yield


def _schema(first: TorchFunction, last: int) -> Schema:
    schema = first.schema
    tensor = Return(Type(TENSOR))
    if not first.result_kinds:
        returns = (tensor,) * (len(schema.returns) + last)
    elif TENSORS in first.result_kinds:
        returns = (Return(Type("Tensor", ("[]",))),)
    else:
        returns = (tensor,) * (first.result_kinds.count(TENSOR) + last)
    namespace, name = derived_namespace(schema), f"{schema.name}_functional"
    unused = dataclasses.replace(schema, namespace=namespace, name=name)
    if registry.known(unused.qualified_name) is not None:
        name = registry.unique(namespace, name)
    without_writes = dataclasses.replace(
        unused,
        name=name,
        arguments=tuple(_read(argument) for argument in schema.arguments),
        returns=returns,
    )
    return derived_from(schema, "functional", without_writes)


def _read(argument: Argument) -> Argument:
    kind = dataclasses.replace(argument.type, alias="")
    return dataclasses.replace(argument, type=kind, default=MISSING)


Make = Callable[[TorchFunction, tuple[int, ...]], Any]


class Functionals:
    """The functional operators of one function, made at their first use: one for each set of arguments."""

    def __init__(self, function: TorchFunction, make: Make) -> None:
        """Keep the function; ``make`` turns a functional one into an operator."""
        self.function, self._make = function, make
        schema = function.schema
        self.can_write = schema.mutates or (schema.namespace == "aten" and schema.name in _TRAINING)
        self._operators: dict[tuple[int, ...], Any] = {}

    def operator(self, arguments: Sequence[Any]) -> Any:
        """Return the operator that takes bound arguments in place of one that writes; None: none does."""
        positions = written(self.function.schema, arguments)
        return self.at(positions) if positions else None

    def at(self, positions: tuple[int, ...]) -> Any:
        """Return the operator that returns the arguments at these positions."""
        with locks.define:
            if positions not in self._operators:
                self._operators[positions] = self._make(functional(self.function, positions), positions)
            return self._operators[positions]
