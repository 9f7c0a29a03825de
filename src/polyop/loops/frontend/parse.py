"""Parse a Python function into a typed kernel of the IR, for given dtypes and numbers of dimensions."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError, ArgumentValueError, PolyopError
from ..ir.grammar import BOOL, FLOAT, INT, Buffer, Kernel, Size, Stmt, Type, Var
from ..ir.held import holding
from ..ir.types import fits
from .access import number
from .check_statements import check_syntax
from .choices import Choices, read_choices
from .complex_pairs import as_pairs
from .counted_whiles import with_counted_whiles
from .desugar.desugar import desugar
from .expressions import Expressions
from .language import DTYPES
from .limits import check_limits
from .names import Scopes
from .narrowing import narrowed
from .outside import MISSING, Outside, described
from .ranks import ranks_of_uses
from .scope import resolve
from .source import Source, read
from .statements import Statements
from .webs import grouped, split


@dataclass(frozen=True, slots=True)
class Outline:
    """What a kernel's text says before any dtype is known.

    ``outputs`` are the returned names. ``inplace`` are the outputs that are parameters: pairs of the
    position of the output and that of the parameter. ``tensors`` are the parameters that are used as
    tensors: indexed, with ``.shape`` or ``.dtype``, or returned; ``optional`` are those that may be None.
    ``strings`` are the parameters that are strings, with their known values. ``ranks`` are the numbers of
    dimensions of the tensors whose uses tell them.
    """

    name: str
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    inplace: tuple[tuple[int, int], ...]
    tensors: tuple[str, ...]
    defaults: Mapping[str, Any]
    file: str
    line: int
    optional: tuple[str, ...] = ()
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranks: Mapping[str, int] = field(default_factory=dict)


_checked: weakref.WeakKeyDictionary[FunctionType, dict[Any, tuple[Source, Scopes]]] = (
    weakref.WeakKeyDictionary()
)


def _check(function: Callable[..., Any], choices: Choices | None = None) -> tuple[Source, Scopes]:
    """Return the source and scopes of a function for some choices; without any, for the first of them."""
    source = read(function)
    source.fix()
    known = _checked.setdefault(source.function(), {})
    chosen = read_choices(source)
    if choices is None:
        choices = chosen.first(source.defaults)
    key = tuple(sorted(choices.items()))
    if key not in known:
        check_limits(source)
        lowered = desugar(source, chosen, choices)
        check_syntax(lowered)
        known[key] = (lowered, resolve(lowered))
    return known[key]


def run_static_checks(function: Callable[..., Any]) -> None:
    """Check what can be checked before dtypes are known; once for each function.

    Raises ``ArgumentTypeError``, ``ArgumentValueError`` or ``UnsupportedError``; the file, the
    line and its text are in the message.
    """
    outline(function)


def outline(function: Callable[..., Any]) -> Outline:
    """Return the names, outputs and defaults of a kernel, after the static checks.

    Each choice of an optional tensor, or of a string, is checked beside the first choices of the others. The
    first outline of a function is its definition: what it reads from outside does not change any more.
    """
    source = read(function)
    if source.outside.is_fixed:
        return _outline(function)
    try:
        return _outline(function)
    except PolyopError:  # it is no kernel yet, and the next use reads anew
        source.outside.release()
        _checked.pop(source.function(), None)
        raise


def outside_of(function: Callable[..., Any]) -> Outside:
    """Return what a kernel reads from outside, as it was at its definition."""
    return read(function).outside


def changes(function: Callable[..., Any]) -> Iterator[str]:
    """Yield what has changed outside of a kernel since its definition, each name once, as warnings say it."""
    source = read(function)
    for path, old, new in source.outside.changes():
        now = "has no value now" if new is MISSING else f"is {described(new)} now"
        yield (
            f"loop kernel {source.name}: {path} was {described(old)} when the kernel was defined, and {now}; "
            f"calls go on with the value of the definition. Define the kernel again to use another one, or "
            f"make {path.rpartition('.')[2]} a parameter"
        )


def _outline(function: Callable[..., Any]) -> Outline:
    source, scopes = _check(function)
    chosen = read_choices(read(function))
    tensors = {*scopes.tensors, *chosen.optional}
    ranks = ranks_of_uses(source, scopes)
    if chosen.optional or chosen.strings:
        for choices in chosen.variants(source.defaults):
            lowered, others = _check(function, choices)
            tensors |= others.tensors
            told = ranks_of_uses(lowered, others)
            ranks = {n: r for n, r in (told | ranks).items() if told.get(n, r) == ranks.get(n, r)}
            if others.outputs != scopes.outputs:
                rule = "every choice returns the same tensors"
                seen = f"{', '.join(others.outputs)} where {_described(choices)}"
                raise source.error(
                    ArgumentValueError, rule, None, seen, f"return {', '.join(scopes.outputs)}"
                )
    parameters = source.parameters
    inplace = tuple(
        (k, parameters.index(name)) for k, name in enumerate(scopes.outputs) if name in parameters
    )
    return Outline(
        source.name,
        parameters,
        scopes.outputs,
        inplace,
        tuple(name for name in parameters if name in tensors),
        source.defaults,
        source.file,
        source.tree.lineno,
        chosen.optional,
        chosen.strings,
        ranks,
    )


def _described(choices: Choices) -> str:
    texts = (
        f"{name} is given" if value is True else f"{name} is {value!r}" for name, value in choices.items()
    )
    return " and ".join(texts)


def parse(
    function: Callable[..., Any], tensors: Sequence[tuple[str, int] | None], attributes: Mapping[str, Any]
) -> Kernel:
    """Return the kernel of a function.

    ``tensors`` are the dtype and the number of dimensions of the first parameters; None for an optional
    tensor that is missing, which is a tensor that the kernel does not read. The others
    are attributes: ``attributes`` has a number for each, or ``int``, ``float`` or ``bool``, or a string; a
    missing one has the type of its default. Numbers from outside are those of the definition. Raises what
    :func:`run_static_checks` raises, and errors that depend on dtypes and dimensions.
    """
    choices = _choices(read(function), tensors, attributes)
    source, scopes = _check(function, choices)
    attributes = {name: value for name, value in attributes.items() if name not in choices}
    types = _attributes(source, tensors, attributes, choices)
    for name in types:
        if name in scopes.outputs:
            rule = f"{name} cannot be returned: only inputs and tensors of output_tensor can"
            raise source.error(ArgumentTypeError, f"{rule}, and {name} is a number")
    inputs = {
        name: _missing(source, name) if tensor is None else _input(source, scopes, name, *tensor)
        for name, tensor in zip(source.parameters, tensors, strict=False)
    }
    webs = split(source.tree.body, scopes)
    if webs is not None:
        apart = grouped(webs, _translated(source, webs, types, inputs)[2])
        scopes = apart or scopes
    state, body, _ = _translated(source, scopes, types, inputs)
    kernel = Kernel(
        source.name,
        tuple(name for name in source.parameters if name in inputs or name in types),
        types,
        state.buffers,
        scopes.outputs,
        narrowed(body),
        source.file,
        source.lines,
        demands=tuple(state.demands.values()),
    )
    return as_pairs(with_counted_whiles(kernel))


def _translated(
    source: Source, scopes: Scopes, types: dict[str, Type], inputs: Mapping[str, Buffer]
) -> tuple[Expressions, tuple[Stmt, ...], dict[str, Type]]:
    """Return what is known of a function at its end, its statements, and the types of its scalars."""
    variables: dict[str, Type] = {}
    for times in itertools.count():  # the type of a scalar holds its values, which may depend on the type
        before = variables
        state = Expressions(source, scopes, types, dict(inputs), {**variables, **types})
        state.bindings = {}
        statements = Statements(state)
        body = statements.block(source.tree.body)
        variables = statements.types
        if times > ROUNDS:
            variables = {n: holding((Var(n, before[n]), Var(n, of))) for n, of in variables.items()}
        if variables == before:
            return state, body, variables
    raise AssertionError("unreachable")


ROUNDS = 16
"""Times that a function is read before types of scalars only grow, so that they become known in any case."""
_PYTHON = {bool: BOOL, int: INT, float: FLOAT}


def _choices(
    source: Source, tensors: Sequence[tuple[str, int] | None], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return which optional tensors are given, and the values of the strings."""
    chosen = read_choices(source)
    choices: dict[str, Any] = {}
    for name, tensor in zip(source.parameters, tensors, strict=False):
        if name in chosen.optional:
            choices[name] = None if tensor is None else True
        elif tensor is None:
            rule = f"the tensor {name} must not be None"
            hint = f'write {name}: "Tensor | None", and if {name} is not None: where it is read'
            raise source.error(ArgumentTypeError, rule, hint=hint)
    choices |= dict.fromkeys(name for name in chosen.optional if name not in choices)
    for name in chosen.strings:
        value = attributes.get(name, source.defaults.get(name))
        if not isinstance(value, str):
            raise source.error(ArgumentTypeError, f"the attribute {name} is a string", None, repr(value))
        choices[name] = value
    return choices


def _attributes(
    source: Source,
    tensors: Sequence[tuple[str, int] | None],
    attributes: Mapping[str, Any],
    choices: Choices,
) -> dict[str, Type]:
    names = [name for name in source.parameters[len(tensors) :] if name not in choices]
    if len(tensors) > len(source.parameters):
        seen = f"{len(tensors)} tensors"
        raise source.error(ArgumentTypeError, f"takes {len(source.parameters)} parameters", None, seen)
    for name in attributes:
        if name not in names:
            rule = f"has no attribute {name}; its attributes are {', '.join(names) or 'none'}"
            raise source.error(ArgumentTypeError, rule)
    values = {**{k: v for k, v in source.defaults.items() if k in names}, **attributes}
    types: dict[str, Type] = {}
    for name in names:
        if name not in values:
            raise source.error(
                ArgumentTypeError,
                f"needs the attribute {name}",
                hint="tensors are the first parameters; every other one is an attribute",
            )
        value = values[name]
        if isinstance(value, Type):
            types[name] = value
        elif isinstance(value, type) and value in _PYTHON:
            types[name] = _PYTHON[value]
        elif isinstance(value, (bool, int, float)) or (getattr(value, "ndim", None) == 0):
            types[name] = (constant := number(value)).type
            if constant.type == INT and not fits(int(constant.value), INT):
                rule = f"the attribute {name} must fit into 64 bits"
                raise source.error(
                    ArgumentValueError, rule, None, value, "make it a float, or two attributes"
                )
        else:
            seen = f"{value!r} for {name}"
            rule = "attributes are numbers: int, float or bool"
            hint = "pass two floats, and write complex(re, im)" if isinstance(value, complex) else None
            raise source.error(ArgumentTypeError, rule, None, seen, hint)
    return types


def _missing(source: Source, name: str) -> Buffer:
    """Return the tensor that stands for an optional one that is missing: no gradient reaches a bool."""
    return Buffer(name, "bool", (), "input", source.tree.lineno, absent=True)


def _input(source: Source, scopes: Scopes, name: str, dtype_like: Any, dimensions: int) -> Buffer:
    name_of_dtype = dtype(dtype_like).name
    if name_of_dtype not in DTYPES:
        rule = f"the dtype of {name} must be one of {', '.join(DTYPES)}"
        raise source.error(ArgumentTypeError, rule, None, name_of_dtype)
    if dimensions < 0:
        raise source.error(
            ArgumentValueError, f"the number of dimensions of {name} must not be negative", None, dimensions
        )
    role = "inplace" if name in scopes.outputs else "input"
    shape = tuple(Size(name, axis) for axis in range(dimensions))
    return Buffer(name, name_of_dtype, shape, role, source.tree.lineno)
