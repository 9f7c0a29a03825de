"""Parameters that are records of attributes: a NamedTuple or a dataclass.

    class Window(NamedTuple):           def conv(x, w, p_stride: int = 1, p_mode: str = "zeros"):
        stride: int = 1                     ...
        mode: str = "zeros"                 y[i] = x[i * p_stride]

    def conv(x, w, p: Window):
        ...
        y[i] = x[i * p.stride]

The fields become attributes when the text is read, so nothing behind the front end knows of records. A field
may be a record again: ``p.window.stride`` is the attribute ``p_window_stride``.

A helper keeps its records: what a parameter of it means is known only once the arguments of a call are bound.
There ``p`` may be a record of the kernel, a part of one, or a record of the module, which is a constant.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

from ...core.errors import ArgumentTypeError, ArgumentValueError
from .syntax_tree import copied, is_target, path_of_names, walk

Source = Any
"""A ``source.Source``; its module imports this one."""
_KINDS = {int: "int", float: "float", bool: "bool", str: "str"}
_NONE = object()


class Record(NamedTuple):
    """A parameter that is a record: its name, its position, its class, and the paths of its numbers.

    The path of a field of a record inside is ``window.stride``.
    """

    name: str
    position: int
    cls: type
    fields: tuple[str, ...]

    @property
    def flat(self) -> tuple[str, ...]:
        """The names of the attributes that stand for the fields."""
        return tuple(f"{self.name}_{field.replace('.', '_')}" for field in self.fields)

    def values(self, record: Any) -> tuple[Any, ...]:
        """Return the values of the fields."""
        return tuple([_at(record, field) for field in self.fields])


def _at(record: Any, path: str) -> Any:
    for name in path.split("."):
        record = getattr(record, name)
    return record


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
        if fields_of(cls) is not None:
            found.append(Record(name, position, cls, _paths(cls)))
    return tuple(found)


def is_record(value: Any) -> bool:
    """Whether a value is a NamedTuple or an object of a dataclass."""
    return fields_of(type(value)) is not None


def has_record(value: Any) -> bool:
    """Whether a value is a record, or a tuple that has one."""
    return is_record(value) or (isinstance(value, tuple) and any(map(has_record, value)))


def _hints(cls: type) -> Mapping[str, Any]:
    """Return the types of the fields; of a class whose types cannot be read, none."""
    try:
        return typing.get_type_hints(cls)
    except NameError:
        return {}


def _paths(cls: Any, around: tuple[Any, ...] = ()) -> tuple[str, ...]:
    """Return the paths of what is no record in a class of records."""
    hints, found = _hints(cls), []
    for field in fields_of(cls) or ():
        inner = hints.get(field)
        if fields_of(inner) is None or inner in (cls, *around):
            found.append(field)
        else:
            found += [f"{field}.{path}" for path in _paths(inner, (cls, *around))]
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
    written = copied(source.tree)  # a kernel that calls this function as a helper reads the text as it is
    arguments = written.args
    taken = {n.id for n in walk(written) if isinstance(n, ast.Name)} | {*source.parameters}
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
    tree = replace_arguments(written, found)
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
    texts = []
    for path in record.fields:
        *outer, field = path.split(".")
        cls = _class_at(record.cls, outer)
        try:
            hint = typing.get_type_hints(cls).get(field)
        except NameError as error:
            rule = f"the fields of {cls.__name__} have types that cannot be read"
            raise source.error(ArgumentTypeError, rule, argument, str(error)) from None
        listed = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
        if listed and all(isinstance(text, str) for text in listed):
            texts.append(f"Literal[{', '.join(map(repr, listed))}]")
        elif isinstance(hint, type) and hint in _KINDS:
            texts.append(_KINDS[hint])
        else:
            rule = f"the field {field} of {cls.__name__} must be int, float, bool or str, or such a record"
            way = f"pass {field} as a tensor, or as a parameter of its own"
            raise source.error(ArgumentTypeError, rule, argument, getattr(hint, "__name__", hint), way)
    return texts


def _class_at(cls: Any, path: Sequence[str]) -> Any:
    """Return the class of the record that a path of fields leads to."""
    for name in path:
        cls = _hints(cls)[name]
    return cls


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


def defaults_of_fields(records: Sequence[Record]) -> dict[str, Any]:
    """Return the default of each field that has one, by attribute, also where a call must give the field."""
    pairs = [pair for one in records for pair in zip(one.flat, _field_defaults(one), strict=True)]
    return {name: value for name, value in pairs if value is not _NONE}


def _field_defaults(record: Record) -> list[Any]:
    """Return the default of each field, of a record inside those of the record that is the default there."""
    own = _own_defaults(record.cls)
    found = []
    for path in record.fields:
        head, _, rest = path.partition(".")
        value = own.get(head, _NONE)
        found.append(value if value is _NONE or not rest else _at(value, rest))
    return found


def _own_defaults(cls: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(cls):
        return dict(cls._field_defaults)
    found = {}
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            found[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory()
    return found


def with_attributes(source: Source, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements with the attribute ``p_stride`` in place of ``p.stride``; raise for another field.

    A field of a record that is a constant, as a helper may get one, becomes its value.
    """
    change, names = _Fields(source), {record.name for record in source.records}
    while True:  # a name of a record may be a part of another one
        body = [change.visit(node) for node in body]
        alias = _alias(body, names)
        if alias is None:
            return body
        body = [alias.visit(node) for node in body]


class _Fields(ast.NodeTransformer):
    def __init__(self, source: Source) -> None:
        self.source = source
        self.records = {record.name: record for record in source.records}

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Constant) and is_record(node.value.value):
            record = node.value.value
            if node.attr not in (fields_of(type(record)) or ()):
                self._refuse(node, type(record), type(record).__name__)
            return ast.copy_location(ast.Constant(getattr(record, node.attr)), node)
        root, *names = path_of_names(node).split(".")
        own = self.records.get(root)
        if own is None:
            return node
        if not isinstance(node.ctx, ast.Load):
            rule, hint = f"the field {ast.unparse(node)} cannot be assigned", "assign another variable"
            raise self.source.error(ArgumentValueError, rule, node, hint=hint)
        path = ".".join(names)
        if path in own.fields:
            flat = own.flat[own.fields.index(path)]
            return ast.copy_location(ast.Name(flat, ast.Load()), node)
        if not any(field.startswith(f"{path}.") for field in own.fields):
            self._refuse(node, _class_at(own.cls, names[:-1]), ".".join((root, *names[:-1])))
        return node  # a record inside, which a helper may get

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return a record that is an item of a tuple, and an item of a NamedTuple that is a constant."""
        self.generic_visit(node)
        return record_of_item(node, self.records)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Return a return of several numbers for one of a NamedTuple."""
        self.generic_visit(node)
        node.value = None if node.value is None else as_tuple(node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.records and not isinstance(node.ctx, ast.Load):
            rule = f"{node.id} is a {self.records[node.id].cls.__name__}, and cannot be assigned"
            raise self.source.error(ArgumentValueError, rule, node, hint="assign another variable")
        return node

    def _refuse(self, node: ast.Attribute, cls: type, owner: str) -> NoReturn:
        fields = fields_of(cls) or ()
        near = difflib.get_close_matches(node.attr, fields, n=1, cutoff=0.5)
        hint = f"did you mean {owner}.{near[0]}?" if near else f"it has {', '.join(fields)}"
        rule = f"{cls.__name__} has no field {node.attr}"
        raise self.source.error(ArgumentValueError, rule, node, ast.unparse(node), hint)


def record_of_item(node: ast.Subscript, records: Collection[str] = ()) -> ast.expr:
    """Return the item of a tuple that is a constant, or that has a record; of another one the node."""
    items = as_tuple(node.value)
    place = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if not isinstance(items, ast.Tuple) or type(place) is not int:
        return node
    whole = items is node.value and not any(_means_record(one, records) for one in items.elts)
    return node if whole or not -len(items.elts) <= place < len(items.elts) else items.elts[place]


def may_be_record(node: ast.expr) -> bool:
    """Whether an argument may be a record: a name, a part of a name, or a record that is a constant."""
    return is_record(node.value) if isinstance(node, ast.Constant) else bool(path_of_names(node))


def _means_record(node: ast.expr, records: Collection[str]) -> bool:
    """Whether an expression is a record: a parameter, a part of one, or a constant."""
    if isinstance(node, ast.Constant):
        return is_record(node.value)
    return path_of_names(node).partition(".")[0] in records


def _alias(body: Sequence[ast.stmt], records: Collection[str]) -> _Alias | None:
    """Return what removes a name of a record, as ``w = p.window``; None if there is none.

    A name that has another value elsewhere is none.
    """
    stored = [n.id for one in body for n in walk(one) if isinstance(n, ast.Name) and is_target(n)]
    for node in (n for one in body for n in walk(one) if isinstance(n, ast.Assign) and len(n.targets) == 1):
        names, values = node.targets, [node.value]
        if isinstance(names[0], (ast.Tuple, ast.List)) and isinstance(node.value, (ast.Tuple, ast.List)):
            names, values = names[0].elts, node.value.elts
        for name, value in zip(names, values, strict=False):
            if isinstance(name, ast.Name) and stored.count(name.id) == 1 and _means_record(value, records):
                return _Alias(name, value)
    return None


class _Alias(ast.NodeTransformer):
    """Puts a record where a name of it is read, and removes the assignment."""

    def __init__(self, name: ast.Name, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        (target, *_), value = node.targets, node.value
        if target is self.name:
            return ast.copy_location(ast.Pass(), node)
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            kept = [k for k, one in enumerate(target.elts) if one is not self.name]
            if len(kept) < len(target.elts) == len(value.elts):
                target.elts, value.elts = [target.elts[k] for k in kept], [value.elts[k] for k in kept]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copied(self.value) if node.id == self.name.id and not is_target(node) else node


def as_tuple(node: ast.expr) -> ast.expr:
    """Return a tuple that is a constant as a literal of its items; anything else as it is."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, tuple):
        return node
    items = [as_tuple(ast.copy_location(ast.Constant(one), node)) for one in node.value]
    return ast.copy_location(ast.Tuple(items, ast.Load()), node)


def check_whole(source: Source, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Raise for a record that is left as a value, after helpers have been inlined.

    Return the statements, in which a NamedTuple that is a constant is a tuple of numbers.
    """
    records = {record.name: record for record in source.records}
    for node in (n for one in body for n in walk(one)):
        if isinstance(node, ast.Name) and node.id in records:
            record = records[node.id]
            rule = f"{node.id} is a {record.cls.__name__}, which is no value of a kernel"
            hint = f"write {node.id}.{record.fields[0]}, or pass {node.id} to a helper"
            raise source.error(ArgumentTypeError, rule, node, hint=hint)
        if isinstance(node, ast.Constant) and is_record(node.value) and not isinstance(node.value, tuple):
            rule = f"a {type(node.value).__name__} is no value of a kernel"
            raise source.error(ArgumentTypeError, rule, node, hint="read its fields, or pass it to a helper")
    change = _Tuples()
    return [change.visit(node) for node in body]


class _Tuples(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return as_tuple(node)


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
        default = defaults[record.position - first] if record.position >= first else _NONE
        own = _field_defaults(record) if default is _NONE else record.values(default)
        known = {field: one for field, one in zip(record.fields, own, strict=True) if one is not _NONE}
        found[record.name] = _made(record.cls, {**known, **values})
    return found


def _made(cls: Any, values: Mapping[str, Any]) -> Any:
    """Return the record of a class that has these values, by path."""
    own: dict[str, Any] = {}
    for path, value in values.items():
        head, _, rest = path.partition(".")
        if not rest:
            own[head] = value
        elif head not in own:
            inner = {p.removeprefix(f"{head}."): v for p, v in values.items() if p.startswith(f"{head}.")}
            own[head] = _made(_class_at(cls, [head]), inner)
    return cls(**own)
