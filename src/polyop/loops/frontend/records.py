"""Parameters that are records of attributes: a NamedTuple or a dataclass.

    class Window(NamedTuple):           def conv(x, w, p_stride: int = 1, p_mode: str = "zeros"):
        stride: int = 1                     ...
        mode: str = "zeros"                 y[i] = x[i * p_stride]

    def conv(x, w, p: Window):
        ...
        y[i] = x[i * p.stride]

The fields become attributes when the text is read, so nothing behind the front end knows of records.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, NamedTuple

from ...core.errors import ArgumentTypeError, ArgumentValueError
from .syntax_tree import walk

Source = Any
"""A ``source.Source``; its module imports this one."""
_KINDS = {int: "int", float: "float", bool: "bool", str: "str"}
_NONE = object()


class Record(NamedTuple):
    """A parameter that is a record: its name, its position, its class, and the names of its fields."""

    name: str
    position: int
    cls: type
    fields: tuple[str, ...]

    @property
    def flat(self) -> tuple[str, ...]:
        """The names of the attributes that stand for the fields."""
        return tuple(f"{self.name}_{field}" for field in self.fields)

    def values(self, record: Any) -> tuple[Any, ...]:
        """Return the values of the fields."""
        return tuple([getattr(record, field) for field in self.fields])


def fields_of(cls: Any) -> tuple[str, ...] | None:
    """Return the names of the fields of a NamedTuple or a dataclass; None for another class.

    >>> class Window(NamedTuple):
    ...     stride: int = 1
    >>> fields_of(Window), fields_of(int)
    (('stride',), None)
    """
    if not isinstance(cls, type):
        return None
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls) if field.init)
    named = issubclass(cls, tuple) and hasattr(cls, "_field_defaults")
    return tuple(getattr(cls, "_fields")) if named else None  # noqa: B009 - mypy does not know it


def records_of(function: FunctionType) -> tuple[Record, ...]:
    """Return the parameters of a function whose annotations are records."""
    code = function.__code__
    found = []
    for position, name in enumerate(code.co_varnames[: code.co_argcount]):
        cls = _resolved(function, function.__annotations__.get(name))
        fields = fields_of(cls)
        if fields is not None:
            found.append(Record(name, position, cls, fields))
    return tuple(found)


def _resolved(function: FunctionType, annotation: Any) -> Any:
    """Return the class that an annotation is, also if it is a text, as under postponed evaluation."""
    if not isinstance(annotation, str):
        return annotation
    root, *names = annotation.split(".")
    free, cells = function.__code__.co_freevars, function.__closure__ or ()
    try:
        value = cells[free.index(root)].cell_contents if root in free else function.__globals__.get(root)
    except ValueError:  # the cell is still empty
        return None
    for name in names:
        value = getattr(value, name, None)
    return value


def flattened(source: Source) -> Source:
    """Return the source with an attribute in place of each field of a record.

    Raises ``ArgumentTypeError`` for a field that is no int, float, bool or str, and ``ArgumentValueError``
    for a name that the kernel has twice.
    """
    records = records_of(source.function())
    if not records:
        return source
    by_name = {record.name: record for record in records}
    arguments = source.tree.args
    taken = {n.id for n in walk(source.tree) if isinstance(n, ast.Name)} | {*source.parameters}
    found: list[ast.arg] = []
    for argument in (*arguments.posonlyargs, *arguments.args):
        record = by_name.get(argument.arg)
        if record is None:
            found.append(argument)
            continue
        for flat, annotation in zip(record.flat, _annotations(source, record, argument), strict=True):
            if flat in taken:
                rule = f"a field of {record.name} is the attribute {flat}, a name that the kernel has too"
                raise source.error(ArgumentValueError, rule, argument, hint=f"give {flat} another name")
            taken.add(flat)
            new = ast.arg(flat, ast.copy_location(ast.Constant(annotation), argument))
            found.append(ast.copy_location(new, argument))
    tree = replace_arguments(source.tree, found)
    result = replace(source, tree=tree, records=records)
    tree.body = with_attributes(result, tree.body)
    return result


def replace_arguments(tree: ast.FunctionDef, arguments: list[ast.arg]) -> ast.FunctionDef:
    """Return the function with other parameters; defaults are read from the function, not from the text."""
    flat = ast.arguments([], arguments, None, [], [], None, [])
    new = ast.FunctionDef(**{**dict(ast.iter_fields(tree)), "args": flat})
    return ast.copy_location(new, tree)


def _annotations(source: Source, record: Record, argument: ast.arg) -> list[str]:
    """Return the annotation of each field, as text."""
    try:
        hints = typing.get_type_hints(record.cls)
    except NameError as error:
        rule = f"the fields of {record.cls.__name__} have types that cannot be read"
        raise source.error(ArgumentTypeError, rule, argument, str(error)) from None
    texts = []
    for field in record.fields:
        hint = hints.get(field)
        listed = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
        if listed and all(isinstance(text, str) for text in listed):
            texts.append(f"Literal[{', '.join(map(repr, listed))}]")
        elif isinstance(hint, type) and hint in _KINDS:
            texts.append(_KINDS[hint])
        else:
            rule = f"the field {field} of {record.cls.__name__} must be int, float, bool or str"
            way = f"pass {field} as a tensor, or as a parameter of its own"
            raise source.error(ArgumentTypeError, rule, argument, getattr(hint, "__name__", hint), way)
    return texts


def defaults_of(source: Source, given: Mapping[str, Any], originals: Sequence[str]) -> dict[str, Any]:
    """Return the defaults of flat parameters: those of the fields count if all that follows has one."""
    by_name = {record.name: record for record in source.records}
    pairs: list[tuple[str, Any]] = []
    for name in originals:
        record = by_name.get(name)
        if record is None:
            pairs.append((name, given.get(name, _NONE)))
            continue
        default = given.get(name, _NONE)
        if default is not _NONE and not isinstance(default, record.cls):
            rule, kind = f"the default of {name} must be a {record.cls.__name__}", record.cls.__name__
            way = f"write {name}: {kind} = {kind}(...), or no default"
            raise source.error(ArgumentTypeError, rule, source.tree, repr(default), way)
        values = record.values(default) if isinstance(default, record.cls) else _field_defaults(record)
        pairs += zip(record.flat, values, strict=True)
    kept: dict[str, Any] = {}
    for name, value in reversed(pairs):
        if value is _NONE:
            break
        kept[name] = value
    return dict(reversed(kept.items()))


def _field_defaults(record: Record) -> list[Any]:
    if dataclasses.is_dataclass(record.cls):
        found = {field.name: field.default for field in dataclasses.fields(record.cls)}
        return [_NONE if found[f] is dataclasses.MISSING else found[f] for f in record.fields]
    own: Mapping[str, Any] = record.cls._field_defaults  # type: ignore[attr-defined]
    return [own.get(field, _NONE) for field in record.fields]


def with_attributes(source: Source, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements with the attribute ``p_stride`` in place of ``p.stride``; raise for another field."""
    change = _Fields(source)
    return [change.visit(node) for node in body]


class _Fields(ast.NodeTransformer):
    def __init__(self, source: Source) -> None:
        self.source = source
        self.records = {record.name: record for record in source.records}

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        record = self.records.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if record is None:
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            rule, hint = f"the field {ast.unparse(node)} cannot be assigned", "assign another variable"
            raise self.source.error(ArgumentValueError, rule, node, hint=hint)
        if node.attr not in record.fields:
            near = difflib.get_close_matches(node.attr, record.fields, n=1, cutoff=0.5)
            hint = f"did you mean {record.name}.{near[0]}?" if near else f"it has {', '.join(record.fields)}"
            rule = f"{record.cls.__name__} has no field {node.attr}"
            raise self.source.error(ArgumentValueError, rule, node, ast.unparse(node), hint)
        return ast.copy_location(ast.Name(f"{record.name}_{node.attr}", ast.Load()), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.records and not isinstance(node.ctx, ast.Load):
            rule = f"{node.id} is a {self.records[node.id].cls.__name__}, and cannot be assigned"
            raise self.source.error(ArgumentValueError, rule, node, hint="assign another variable")
        return node


def check_whole(source: Source, body: Sequence[ast.stmt]) -> None:
    """Raise for a record that is left as a value, after helpers have been inlined."""
    records = {record.name: record for record in source.records}
    for node in (n for one in body for n in walk(one) if isinstance(n, ast.Name)):
        if node.id in records:
            record = records[node.id]
            rule = f"{node.id} is a {record.cls.__name__}, which is no value of a kernel"
            hint = f"write {node.id}.{record.fields[0]}, or pass {node.id} to a helper"
            raise source.error(ArgumentTypeError, rule, node, hint=hint)


def flat_arguments(
    records: tuple[Record, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with the fields in place of records; others stay as they are."""
    flat_args: list[Any] = []
    for position, value in enumerate(args):
        here = [r for r in records if r.position == position and isinstance(value, r.cls)]
        flat_args += here[0].values(value) if here else (value,)
    flat_kwargs = dict(kwargs)
    for record in records:
        if record.name in flat_kwargs and isinstance(flat_kwargs[record.name], record.cls):
            values = record.values(flat_kwargs.pop(record.name))
            flat_kwargs.update(zip(record.flat, values, strict=True))
    return tuple(flat_args), flat_kwargs


def with_records(function: FunctionType, count: int, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments of a function with records in place of their fields.

    ``count`` arguments are given by position. A record that is not given has its defaults.
    """
    found, defaults = dict(named), function.__defaults__ or ()
    first = function.__code__.co_argcount - len(defaults)
    for record in records_of(function):
        pairs = zip(record.fields, record.flat, strict=True)
        values = {field: found.pop(flat) for field, flat in pairs if flat in found}
        if record.name in found or record.position < count:
            continue
        if record.position >= first:
            own = record.values(defaults[record.position - first])
            values = {**dict(zip(record.fields, own, strict=True)), **values}
        found[record.name] = record.cls(**values)
    return found
