"""Infer rules: from the specs of the inputs to the specs of the outputs.

A rule is called with the operator's arguments in schema order. Each tensor is replaced by its :class:`Spec`,
a list of tensors by a tuple of specs, an absent tensor by None. The rule returns a tuple of specs.
``repeatable`` says that equal arguments always give an equal result, so that the result may be cached. A
Python function that reads variables from outside is not repeatable.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import math
import operator
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .dtypes import DType, dtype
from .errors import ArgumentTypeError, InferError
from .limits import shown
from .origin import caller, of_function
from .schema import Schema
from .spec import Spec
from .takes import check_takes


class InferRule(Protocol):
    """From argument specs to output specs."""

    @property
    def repeatable(self) -> bool:
        """Whether equal arguments always give an equal result."""

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError``."""


_SYMBOLIC = ("SymInt", "_DimExpr")  # PyTorch's and JAX's


def dimension(value: Any, subject: str, where: Any) -> Any:
    """Return a size as an int, or a symbolic integer as it is; raises ``InferError``."""
    if type(value).__name__ in _SYMBOLIC:
        return value
    try:
        size = operator.index(value)
    except TypeError:
        hint = "use // for a division whose result is a size" if isinstance(value, float) else None
        raise InferError(
            subject, "a dimension must be an integer", shown(value), where=where, hint=hint
        ) from None
    if isinstance(value, bool) or size < 0:
        raise InferError(subject, "a dimension must be an integer of at least 0", shown(value), where=where)
    return size


def as_shape(value: Any, subject: str, where: Any) -> tuple[Any, ...]:
    """Return ``value`` as one shape; raises ``InferError``."""
    if not isinstance(value, (list, tuple)):
        raise InferError(
            subject, "'out_shape' must be one of [tuple, list, function]", shown(value), where=where
        )
    return tuple(dimension(size, subject, where) for size in value)


MAX_DIMENSIONS, MAX_BYTES = 64, 2**62
"""Limits of an output, within which every host can represent it. NumPy has no more dimensions."""


def check_size(spec: Spec, subject: str, where: Any) -> Spec:
    """Return the spec of an output if it is within the limits; raises ``InferError``."""
    hint = "is a size computed from another one that was negative or wrapped?"
    if len(spec.shape) > MAX_DIMENSIONS:
        rule = f"an output has at most {MAX_DIMENSIONS} dimensions"
        raise InferError(subject, rule, len(spec.shape), where=where)
    if all(type(size) is int for size in spec.shape):
        size = spec.dtype.itemsize * math.prod(size or 1 for size in spec.shape)
        if size > MAX_BYTES:
            rule = "an output has at most 2**62 bytes, sizes of 0 left out"
            raise InferError(subject, rule, shown(spec.shape), where=where, hint=hint)
    return spec


def is_shape(value: Any) -> bool:
    """Whether ``value`` is one shape, not a list of shapes."""
    return isinstance(value, (list, tuple)) and not any(isinstance(item, (list, tuple)) for item in value)


def first_device(arguments: Sequence[Any]) -> str:
    """Return the device of the first tensor among the arguments, ``"cpu"`` without tensors."""
    for argument in arguments:
        if isinstance(argument, Spec):
            return argument.device
        if isinstance(argument, tuple) and argument and isinstance(argument[0], Spec):
            return argument[0].device
    return "cpu"


# the dtype of a scalar argument, for an out_dtype function
_SCALARS = ((bool, "bool"), (int, "int64"), (float, "float32"), (complex, "complex64"))


def _shape_of(argument: Any) -> Any:
    if isinstance(argument, Spec):
        return list(argument.shape)
    if isinstance(argument, tuple):
        return [_shape_of(item) for item in argument]
    return []


def _dtype_of(argument: Any) -> Any:
    if isinstance(argument, Spec):
        return argument.dtype
    if isinstance(argument, tuple):
        return [_dtype_of(item) for item in argument]
    return next((dtype(name) for kind, name in _SCALARS if isinstance(argument, kind)), None)


def arity(function: Callable[..., Any]) -> int | None:
    """Return how many positional arguments a function requires, or None if it takes any number."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return sum(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters
    )


def _apply(
    function: Callable[..., Any], arguments: Sequence[Any], view: Callable[[Any], Any], subject: str
) -> Any:
    """Call an author's function with the view (shape or dtype) of all arguments, or of the tensors only."""
    arguments = list(arguments)
    tensors = [a for a in arguments if isinstance(a, (Spec, tuple)) or a is None]
    if arity(function) == len(tensors) != len(arguments):  # a function of the tensors only
        arguments = tensors
    try:
        return function(*map(view, arguments))
    except Exception as problem:
        if type(problem).__module__.split(".")[0] == "torch":
            raise  # a guard on a symbolic size, which PyTorch's tracer catches
        raise InferError(
            subject,
            f"the function raised {type(problem).__name__}: {problem}",
            where=of_function(function),
            hint=f"it was called with {', '.join(str(view(a)) for a in arguments)}",
        ) from problem


_PURE_MODULES = {"math", "operator", "itertools", "functools", "numpy"}
_IMPURE = {"open", "input", "globals", "eval", "exec", "vars", "__import__", "random"}


def is_repeatable(function: Callable[..., Any]) -> bool:
    """Whether a function reads nothing that can change between two calls.

    That is so for a function without closure and defaults, whose global names are builtins or pure modules.

    >>> is_repeatable(lambda x: x), is_repeatable(lambda x: [is_repeatable])
    (True, False)
    """
    if not isinstance(function, types.FunctionType):
        return False
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    for instruction in dis.get_instructions(function):
        name = instruction.argval
        if instruction.opname == "IMPORT_NAME" or name in _IMPURE:
            return False
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and not _is_constant(
            name, function.__globals__
        ):
            return False
    return not any(isinstance(constant, types.CodeType) for constant in function.__code__.co_consts)


def _is_constant(name: str, names: dict[str, Any]) -> bool:
    if name not in names:
        return hasattr(builtins, name)  # a global that is not defined yet is no constant
    value = names[name]
    return isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in _PURE_MODULES


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


class ShapeAndDtype:
    """The infer rule of ``out_shape`` and ``out_dtype``.

    Each is a constant, a function (of one shape or dtype per argument, or per tensor), or a
    :class:`DefaultRule` if the author passed None.
    """

    def __init__(self, out_shape: Any, out_dtype: Any, outputs: int, subject: str) -> None:
        self.out_shape, self.out_dtype = _frozen(out_shape), _frozen(out_dtype)
        self.outputs, self.subject = outputs, subject
        self.repeatable = all(map(self._is_repeatable, (out_shape, out_dtype)))

    @staticmethod
    def _is_repeatable(rule: Any) -> bool:
        if isinstance(rule, DefaultRule):
            return True
        return not callable(rule) or isinstance(rule, type) or is_repeatable(rule)

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError``."""
        if self.outputs == 0:
            return ()
        shapes, dtypes = self.shapes(arguments), self.dtypes(arguments)
        device = first_device(arguments)
        return tuple(
            check_size(Spec(s, d, device), f"{self.subject}: out_shape", None)
            for s, d in zip(shapes, dtypes, strict=True)
        )

    def reads_number(self, name: str, kernel: Any) -> bool:
        """Whether a number decides the outputs, as far as ``kernel`` does not infer them itself."""
        del name
        return any(
            callable(half) and not isinstance(half, type)
            if not isinstance(half, DefaultRule)
            else half.kernel is None or half.kernel is not kernel
            for half in (self.out_shape, self.out_dtype)
        )

    def shapes(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the output shapes."""
        rule = self.out_shape
        where: Any = None
        subject = f"{self.subject}: out_shape"
        if isinstance(rule, DefaultRule):
            value, where = rule.infer(arguments), rule.where
        elif callable(rule):
            value, where = _apply(rule, arguments, _shape_of, subject), of_function(rule)
        else:
            value = rule
        if self.outputs == 1 and is_shape(value):
            value = [value]
        if not isinstance(value, (list, tuple)) or (value and not isinstance(value[0], (list, tuple))):
            as_shape(value, self.subject, where)  # raises the error about one shape
        if len(value) != self.outputs:
            raise InferError(subject, f"must give {self.outputs} shapes, one per output", value, where=where)
        return [as_shape(shape, subject, where) for shape in value]

    def dtypes(self, arguments: Sequence[Any]) -> list[DType]:
        """Return the output dtypes."""
        rule = self.out_dtype
        where: Any = None
        subject = f"{self.subject}: out_dtype"
        if isinstance(rule, DefaultRule):
            value, where = rule.infer(arguments), rule.where
        elif callable(rule) and not isinstance(rule, type):
            value, where = _apply(rule, arguments, _dtype_of, subject), of_function(rule)
        else:
            value = rule
        items = list(value) if isinstance(value, (list, tuple)) else [value]
        if len(items) != self.outputs:
            raise InferError(subject, f"must give {self.outputs} dtypes, one per output", value, where=where)
        return [self._dtype(item, where) for item in items]

    def _dtype(self, value: Any, where: Any) -> DType:
        if value is None:
            rule = "'out_dtype' must be one of [mindspore.dtype, tuple, list, function]"
            raise InferError(self.subject, rule, "None", where=where)
        try:
            return dtype(value)
        except ArgumentTypeError as problem:
            raise InferError(f"{self.subject}: out_dtype", str(problem), where=where) from None


@dataclass(frozen=True)
class DefaultRule:
    """The shapes or the dtypes of the outputs if the author passed None, from a library or from information.

    ``where`` names the source in errors. ``kernel`` is the kernel that infers, if one does.
    """

    infer: Callable[[Sequence[Any]], Any]
    where: str
    kernel: Any = None


def reads_number(rule: InferRule, name: str, kernel: Any) -> bool:
    """Whether a rule may answer differently for another value of a number among the arguments.

    ``kernel`` is the kernel of the call. What it infers itself is left to what it says of the number.
    """
    reads: Callable[[str, Any], bool] | None = getattr(rule, "reads_number", None)
    return reads is None or reads(name, kernel)


class FromSpecs:
    """The infer rule of ``infer=``: a function of specs and attribute values, or the name of an argument.

    The function returns a :class:`Spec` or a tuple of them. With a name, every output has the spec of that
    argument.
    """

    def __init__(self, rule: Callable[..., Any] | str, schema: Schema) -> None:
        self.rule, self.outputs, self.subject = rule, len(schema.fresh), f"{schema.qualified_name}: infer"
        self.is_list = schema.returns_list
        self.repeatable = isinstance(rule, str) or (callable(rule) and is_repeatable(rule))
        names = [argument.name for argument in schema.arguments]
        if not isinstance(rule, str) and not callable(rule):
            raise InferError(self.subject, "must be a function, or the name of an argument", repr(rule))
        if isinstance(rule, str):
            if rule not in names or not schema.arguments[names.index(rule)].type.is_tensor:
                tensors = [argument.name for argument in schema.tensor_arguments]
                words = f"must name a tensor argument, one of {tensors}"
                raise InferError(self.subject, words, repr(rule), where=caller())
            self.position = names.index(rule)
        else:
            check_takes("infer", rule, names, schema, None)

    def reads_number(self, name: str, kernel: Any) -> bool:
        """Whether a number decides the outputs: one may, where the rule is a function."""
        del name, kernel
        return not isinstance(self.rule, str)

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError``."""
        if isinstance(self.rule, str):
            like = arguments[self.position]
            if not isinstance(like, Spec):
                rule = f"names {self.rule!r}, which must be one tensor that is given"
                raise InferError(self.subject, rule, "None" if like is None else "a list")
            return (like,) * self.outputs
        where = of_function(self.rule)
        try:
            value = self.rule(*arguments)
        except Exception as problem:
            if type(problem).__module__.split(".")[0] == "torch":
                raise
            text = f"the function raised {type(problem).__name__}: {problem}"
            raise InferError(self.subject, text, where=where) from problem
        items = value if isinstance(value, (tuple, list)) else () if value is None else (value,)
        if len(items) != self.outputs or not all(isinstance(item, Spec) for item in items):
            rule = f"must return {self.outputs} Spec, one per output"
            seen = (
                f"[{', '.join(map(str, items))}]" if all(isinstance(i, Spec) for i in items) else shown(value)
            )
            hint = "name each output in the schema: -> (Tensor, Tensor)" if self.is_list else None
            raise InferError(self.subject, rule, seen, where=where, hint=hint)
        device = first_device(arguments)
        return tuple(
            check_size(
                Spec(as_shape(s.shape, self.subject, where), dtype(s.dtype), device), self.subject, where
            )
            for s in items
        )
