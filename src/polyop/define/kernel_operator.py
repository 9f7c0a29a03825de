"""The object that ``@polyop.kernel`` returns: the operator of a loop kernel, bound at its first use.

::

    @polyop.kernel
    def times(x, factor: float = 2.0): ...      module shop.prices, x is indexed

    shop_prices::times(Tensor x, float factor=2.0) -> Tensor

To decorate a function must stay cheap, so the loop compiler's front end reads the function only when the
operator is needed: at the first call, or when an attribute such as ``schema`` is read. From then on the
object is an ordinary :class:`BoundOperator`, and a call is as fast as that of another.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import math
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..call import registry
from ..call.bound import BoundOperator
from ..core import locks
from ..core.errors import ArgumentTypeError, ArgumentValueError, SchemaError
from ..core.origin import of_function, place
from ..core.parse import parse
from ..core.schema import alias_names, format_default
from ..core.tracebacks import quiet
from ..core.untraced import Paused, untraced
from ..loops.frontend.records import flat_arguments, records_of
from ..loops.frontend.source import read
from ..loops.frontend.wrapped import unwrapped
from .operator import RESERVED_NAMESPACES, of_loop_kernel

if TYPE_CHECKING:
    from ..call.operator import Operator
    from ..core.schema import Schema
    from ..loops.frontend.parse import Outline

_BOUND_ATTRIBUTES = ("operator", "native", "torch_overload", "_aliases")
"""The instance attributes that an operator has once it is bound."""
_TYPES = {"bool": (bool, np.bool_), "int": (int, np.integer), "float": (float, np.floating)}
"""The types of attributes, and the Python types of their values; a bool is also an int, so bool is first."""
_NAME = re.compile(r"[A-Za-z]\w*::[A-Za-z_]\w*", re.ASCII)


class KernelOperator(BoundOperator):
    """A loop kernel as an operator; see :func:`polyop.kernel`.

    ``python``         the function as plain Python over NumPy arrays, which defines what the operator means.
    ``compile_attrs``  the options of the loop kernel.
    ``defined_in``     the module of the function. Its last definition has the name.
    ``named``          whether the author chose the name.
    """

    own_attributes = ("compile_attrs", "python")

    def __init__(self, python: Callable[..., Any], name: str | None = None) -> None:
        """Take a function of ``python_kernel``. Raises ``SchemaError`` if another module has ``name``."""
        self.python = python
        self.named = name is not None
        self.defined_in = python.__module__
        self.compile_attrs = python.compile_attrs  # type: ignore[attr-defined]
        if hasattr(python, "reg_info"):
            self.reg_info = python.reg_info
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__", "__wrapped__"):
            setattr(self, attribute, getattr(python, attribute))
        self._reserved_name = name or default_name(python)
        self.records = records_of(unwrapped(python))  # type: ignore[arg-type]  # a function, as plain() checks
        self.await_first_use()
        registry.declare(self)

    def __getattr__(self, name: str) -> Any:
        """Bind the operator when one of its attributes is read for the first time."""
        if name in _BOUND_ATTRIBUTES:
            if "operator" not in vars(self):
                self._bind()
            if name in vars(self):  # another thread may have bound it since the attribute was missed
                return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        """Return the schema, or the name of an operator that was not used yet."""
        if "operator" in vars(self):
            return super().__repr__()
        return f"<polyop operator {self.name}{inspect.signature(self.python)}>"

    @property
    def name(self) -> str:
        """``namespace::name``; known before the operator is bound."""
        return self.operator.name if "operator" in vars(self) else self._reserved_name

    @property
    def origin(self) -> Any:
        """Where the function is defined."""
        return of_function(self.python)

    @property
    def torch(self) -> Any:
        """The operator as ``torch.ops.<namespace>.<name>.default``; needs PyTorch."""
        _ = self.operator
        return super().torch

    def as_schema_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with the fields of records in place of the records."""
        return flat_arguments(self.records, args, kwargs)

    def source(self, /, *inputs: Any, **attributes: Any) -> str:
        """Return the C text; see :meth:`BoundOperator.source`."""
        _ = self.operator
        _, attributes = self.as_schema_arguments((), attributes)
        return super().source(*inputs, **attributes)

    def vjp(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the outputs and the pull-back; see :meth:`BoundOperator.vjp`."""
        _ = self.operator
        args, kwargs = self.as_schema_arguments(args, kwargs)
        return super().vjp(*args, **kwargs)

    @untraced
    @quiet
    def _slow(self, /, *args: Any, **kwargs: Any) -> Any:
        _ = self.operator  # bound: from then on the records are known
        for record in self.records:
            here = args[record.position : record.position + 1]
            value = kwargs.get(record.name, here[0] if here else None)
            if isinstance(value, record.cls):
                # with numbers in place of records the native core takes the call
                args, kwargs = self.as_schema_arguments(args, kwargs)
                return self(*args, **kwargs)
            if record.name in kwargs:
                rule = f"{record.name} must be a {record.cls.__name__}"
                hint = f"or give a field alone: {record.flat[0]}=..."
                raise ArgumentTypeError(self.name, rule, repr(value), where=self.origin, hint=hint)
        return super()._slow(*args, **kwargs)

    def retire(self) -> None:
        """Leave the name to the next definition; what is derived from now on has the new name too."""
        super().retire()
        self.update(self._derived(self.schema))
        registry.add_generated(self)

    def _derived(self, schema: Schema) -> Operator:
        return of_loop_kernel(schema, self.python, self.__doc__ or "", self.origin)

    def _bind(self) -> None:
        """Make the operator and register it, under another name if the name belongs to a later definition."""
        with locks.define, Paused():
            if "operator" in vars(self):
                return  # another thread was faster
            has_name = registry.has_name(self)
            namespace, name = self._reserved_name.split("::")
            other = None if has_name else registry.other_module(self)
            if not has_name:
                name = registry.unique(namespace, name)
            self.python.compile_attrs = self.compile_attrs  # type: ignore[attr-defined]  # perhaps changed
            schema = schema_of(self.python, f"{namespace}::{name}")
            records = read(self.python).records
            if records != self.records:  # a class that was defined after the function
                self.records = records
            try:
                super().__init__(self._derived(schema), register=has_name)
            except Exception:  # the next use tries again
                for attribute in _BOUND_ATTRIBUTES:
                    vars(self).pop(attribute, None)
                self.await_first_use()
                raise
            if not has_name:
                registry.add_generated(self)
            if other is not None:
                self._warn_of(other)

    def _warn_of(self, other: BoundOperator) -> None:
        """Warn that an operator of another module has the name, as ``a.b`` and ``a_b`` derive the same."""
        self.name_note = (
            f"the module {other.defined_in} has an operator {self._reserved_name}, "
            f"defined at {other.origin}; "
            f"so the one of the module {self.defined_in}, defined at {self.origin}, is called {self.name}"
        )
        warnings.warn(
            f'{self._reserved_name}: {self.name_note}; @polyop.kernel(name="...") chooses a name',
            stacklevel=2,
        )


def check_name(name: Any) -> None:
    """Raise ``ArgumentTypeError`` or ``ArgumentValueError`` unless it is ``"namespace::name"``."""
    if not isinstance(name, str):
        raise ArgumentTypeError("kernel", "The input 'name' of @kernel must be a str", type(name).__name__)
    if not _NAME.fullmatch(name):
        rule = "The input 'name' of @kernel must be a namespace and a name"
        raise ArgumentValueError("kernel", rule, repr(name), hint='as in name="shop::times"')
    namespace = name.partition("::")[0]
    if namespace in RESERVED_NAMESPACES:
        rule = f"the namespace {namespace!r} is reserved for PyTorch or polyop"
        raise SchemaError(name, rule, hint="choose another namespace")


def default_name(function: Callable[..., Any]) -> str:
    """Return the operator's name: the function's module, with ``_`` for dots, and its name.

    The script that Python runs is ``main``, also in the processes that multiprocessing starts, where its
    module is ``__mp_main__``.

    >>> default_name(default_name)
    'polyop_define_kernel_operator::default_name'
    """
    module = function.__module__ or "main"
    namespace = "main" if module in ("__main__", "__mp_main__") else _identifier(module)
    if namespace in RESERVED_NAMESPACES:
        namespace = f"{namespace}_"
    return f"{namespace}::{_identifier(function.__name__)}"


def _identifier(text: str) -> str:
    clean = re.sub(r"\W", "_", text, flags=re.ASCII).strip("_")
    clean = re.sub("__+", "_", clean)  # two mark the name of a derived operator, as in f__backward
    return clean if clean[:1].isalpha() and not keyword.iskeyword(clean) else f"op_{clean}"


def schema_of(function: Callable[..., Any], name: str) -> Schema:
    """Return the schema of a loop kernel: tensors and results from its text, attributes from its signature.

    Raises what the static checks of the loop compiler raise, and ``SchemaError`` for an attribute that has
    neither an annotation nor a default.
    """
    from ..loops.frontend.parse import outline

    signature = outline(function)
    parameters = parameters_of(function)
    where = place(signature.file, signature.line)
    _check_order(name, signature, where)
    arguments = {n: _argument(name, parameters[n], signature, where) for n in signature.parameters}
    results = ["Tensor"] * len(signature.outputs)
    for alias, (result, position) in zip(alias_names(), signature.inplace, strict=False):
        results[result] = f"Tensor({alias}!)"
        argument = signature.parameters[position]
        arguments[argument] = arguments[argument].replace("Tensor", results[result], 1)
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return parse(f"{name}({', '.join(arguments.values())}) -> {returned}")


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a kernel by name, with those of the fields of records."""
    source = read(function)
    found = dict(inspect.signature(function).parameters)
    if not source.records:
        return found
    flat: dict[str, inspect.Parameter] = {}
    for argument in source.tree.args.args:
        own = found.get(argument.arg)
        kind = own.annotation if own else ast.literal_eval(argument.annotation)  # type: ignore[arg-type]
        default = source.defaults.get(argument.arg, inspect.Parameter.empty)
        flat[argument.arg] = inspect.Parameter(
            argument.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind
        )
    return flat


def _check_order(operator: str, outline: Outline, where: str) -> None:
    """Raise ``SchemaError`` for a tensor behind an attribute: the loop compiler counts on the order."""
    is_tensor = [name in outline.tensors for name in outline.parameters]
    for k in range(1, len(is_tensor)):
        if is_tensor[k] and not is_tensor[k - 1]:
            attribute, tensor = outline.parameters[k - 1 : k + 1]
            rule = "the parameters that are tensors come first, then the attributes"
            seen, hint = (
                f"the attribute {attribute} before the tensor {tensor}",
                f"move {attribute} behind {tensor}",
            )
            raise SchemaError(operator, rule, seen, where=where, hint=hint)


def _argument(operator: str, parameter: inspect.Parameter, outline: Outline, where: str) -> str:
    """Return the text of a parameter in the schema."""
    has_default = parameter.default is not parameter.empty
    if parameter.name in (*outline.optional, *outline.strings):
        return _choice(operator, parameter, outline, where)
    if parameter.name in outline.tensors:
        if has_default or _annotated(parameter):
            rule = (
                f"the parameter {parameter.name} is used as a tensor, which is no number and has no default"
            )
            raise SchemaError(
                operator, rule, str(parameter), where=where, hint=f"write {parameter.name} alone"
            )
        return f"Tensor {parameter.name}"
    kind_of_default = next((k for k, types in _TYPES.items() if isinstance(parameter.default, types)), None)
    kind = _annotated(parameter) or kind_of_default
    if kind is None:
        raise _no_type(operator, parameter, where)
    if not has_default:
        return f"{kind} {parameter.name}"
    if kind_of_default != kind and (kind_of_default, kind) != ("int", "float"):
        rule = f"the default of the attribute {parameter.name} must be of its type, {kind}"
        raise SchemaError(operator, rule, repr(parameter.default), where=where)
    default = _TYPES[kind][0](parameter.default)
    if isinstance(default, float) and not math.isfinite(default):
        rule = (
            f"the default of the attribute {parameter.name} must be finite: a schema has no text for others"
        )
        hint = f"write {parameter.name}: float, and pass it at each call"
        raise SchemaError(operator, rule, repr(default), where=where, hint=hint)
    return f"{kind} {parameter.name}={format_default(default)}"


def _no_type(operator: str, parameter: inspect.Parameter, where: str) -> SchemaError:
    """Return the error for an attribute whose type nothing tells."""
    name, annotation, default = parameter.name, parameter.annotation, parameter.default
    rule = f"the parameter {name} is never indexed, so it is an attribute, which needs a type"
    seen = "no annotation and no default"
    if annotation is not parameter.empty:
        seen = f"the annotation {annotation!r}, which is none of float, int and bool"
    elif default is not parameter.empty:
        seen = f"the default {default!r}, which is none of float, int and bool"
    hint = f"write {name}: float, or {name}=1.0; or {name}[:] in the text, if it is a tensor"
    if annotation is complex or isinstance(default, complex):
        hint = "pass its two parts as floats, and make the number in the text: complex(re, im)"
    return SchemaError(operator, rule, seen, where=where, hint=hint)


def _choice(operator: str, parameter: inspect.Parameter, outline: Outline, where: str) -> str:
    """Return the text of an optional tensor or a string in the schema."""
    has_default, default = parameter.default is not parameter.empty, parameter.default
    if parameter.name in outline.optional:
        if has_default and default is not None:
            rule = f"the default of the optional tensor {parameter.name} is None"
            raise SchemaError(operator, rule, repr(default), where=where)
        return f"Tensor? {parameter.name}{'=None' * has_default}"
    if has_default and not isinstance(default, str):
        rule = f"the default of the attribute {parameter.name} must be a string"
        raise SchemaError(operator, rule, repr(default), where=where)
    return f"str {parameter.name}{f'={format_default(default)}' if has_default else ''}"


def _annotated(parameter: inspect.Parameter) -> str | None:
    """Return the attribute type of an annotation, which may be a text; None for any other annotation."""
    annotation = parameter.annotation
    text = annotation.strip("'\"") if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text if text in _TYPES else None
