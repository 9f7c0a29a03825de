"""Parameters whose values are decided when a kernel is compiled: optional tensors, and strings.

    def f(x, b: "Tensor | None" = None, mode: str = "mean"):
        ...
        if b is not None:           b given:    the statements below, as if the if was not there
            y[i] += b[i]            b missing:  nothing
        if mode == "mean":          likewise
            y[i] /= n

Each set of choices is a kernel of its own, so the compiled code tests nothing.
"""

from __future__ import annotations

import ast
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import ArgumentValueError
from .records import defaults_of_fields
from .source import Source
from .syntax_tree import walk

NUMBERS = ("int", "float", "bool")
Choices = Mapping[str, Any]
"""By parameter: True for an optional tensor that is given, None for one that is missing, or a string."""

NO_TEXT = "\0"
"""The value of a string while its kernel is checked, if only helpers know values of it; no call passes it."""


@dataclass(frozen=True)
class Chosen:
    """The parameters that are decided at compile time.

    ``optional``: tensors that may be None. ``strings``: the values of each string that are known; none where
    the text compares it with nothing. ``closed``: the strings whose annotation lists the values. ``usual``:
    the defaults of the other strings, which are values too.
    """

    optional: tuple[str, ...]
    strings: Mapping[str, tuple[str, ...]]
    closed: frozenset[str]
    usual: Mapping[str, str]

    def first(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Return the choices with every tensor, and with the default or first value of each string."""
        texts = {name: self._default(name, values, defaults) for name, values in self.strings.items()}
        return {**dict.fromkeys(self.optional, True), **texts}

    def known(self, name: str, compared: Collection[str]) -> tuple[str, ...]:
        """Return the values that a string may have, beside those that helpers compare it with; () if any."""
        values = self.strings[name]
        if name in self.closed:
            return values
        values = (*values, *sorted({*compared} - {*values}))
        usual = self.usual.get(name)
        return values if not values or usual is None or usual in values else (usual, *values)

    def _default(self, name: str, values: Sequence[str], defaults: Mapping[str, Any]) -> str:
        default = defaults.get(name, self.usual.get(name))
        return default if isinstance(default, str) else next(iter(values), NO_TEXT)

    def variants(self, defaults: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield sets of choices: the first, then each with one other choice, then that with no tensor."""
        first = self.first(defaults)
        yield first
        for name in self.optional:
            yield {**first, name: None}
        for name, values in self.strings.items():
            yield from ({**first, name: value} for value in values if value != first[name])
        if len(self.optional) > 1:
            yield {**first, **dict.fromkeys(self.optional)}


def read_choices(source: Source) -> Chosen:
    """Return which parameters of a function are optional tensors and strings.

    They are told by annotation (``"Tensor | None"``, ``str``, ``Literal["mean", "sum"]``), by default (None,
    a string), or by a comparison in the text. Raises ``ArgumentValueError`` for a comparison with a string
    that the annotation does not list.
    """
    optional: list[str] = []
    strings: dict[str, tuple[str, ...]] = {}
    usual: dict[str, str] = {}
    closed: set[str] = set()
    arguments = {a.arg: a for a in (*source.tree.args.posonlyargs, *source.tree.args.args)}
    compared = _compared(source)
    defaults = {**defaults_of_fields(source.records), **source.defaults}
    for name, argument in arguments.items():
        kind, listed = _annotated(source, argument)
        default = defaults.get(name, ...)
        found = compared.get(name, {})
        if kind == "str" or (kind == "" and (isinstance(default, str) or any(found))):
            texts = [text for text in found if text is not None]
            extra = [] if listed or not isinstance(default, str) or not texts else [default]
            strings[name] = listed or tuple(dict.fromkeys([*extra, *texts]))
            closed |= {name} if listed else set()
            usual |= {name: default} if isinstance(default, str) else {}
            unknown = [text for text in texts if listed and text not in listed]
            if unknown:
                rule = f"{name} is never {unknown[0]!r}: its annotation lists {listed_text(listed)}"
                raise source.error(ArgumentValueError, rule, found[unknown[0]])
        elif kind == "optional" or (kind == "" and (default is None or None in found)):
            optional.append(name)
    return Chosen(tuple(optional), strings, frozenset(closed), usual)


def _annotated(source: Source, argument: ast.arg) -> tuple[str, tuple[str, ...]]:
    """Return "str", "optional", "other" or "" for an annotation, and the strings that it lists."""
    node = argument.annotation
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return "", ()
    match node:
        case ast.Name(id="str"):
            return "str", ()
        case ast.Name(id=name) if name in NUMBERS:
            return "other", ()
        case ast.Name(id=name):
            try:
                value = source.outer(name)  # Mode = Literal["mean", "sum"]
            except KeyError:
                return "", ()
            texts = typing.get_args(value) if typing.get_origin(value) is typing.Literal else ()
            return ("str", texts) if texts and all(isinstance(t, str) for t in texts) else ("", ())
        case ast.Subscript(value=value, slice=index) if ast.unparse(value).endswith("Literal"):
            items = index.elts if isinstance(index, ast.Tuple) else [index]
            texts = tuple(item.value for item in items if isinstance(item, ast.Constant))
            is_text = len(texts) == len(items) and all(isinstance(text, str) for text in texts)
            return ("str", texts) if is_text else ("other", ())
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            parts = [one for one in (left, right) if not is_none(one)]
        case ast.Subscript(value=value, slice=index) if ast.unparse(value).endswith("Optional"):
            parts = [index]
        case _:
            return "", ()
    number = any(isinstance(n, ast.Name) and n.id in (*NUMBERS, "str") for one in parts for n in walk(one))
    return ("optional" if len(parts) == 1 and not number else "other"), ()


def is_none(node: ast.AST) -> bool:
    """Whether a node is the text ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


def _compared(source: Source) -> dict[str, dict[str | None, ast.AST]]:
    """Return what each parameter is compared with, None or strings, and where."""
    found: dict[str, dict[str | None, ast.AST]] = {}
    for node in (n for top in source.tree.body for n in walk(top) if isinstance(n, ast.Compare)):
        sides = [node.left, *node.comparators]
        names = [side.id for side in sides if isinstance(side, ast.Name) and side.id in source.parameters]
        identity = isinstance(node.ops[0], (ast.Is, ast.IsNot))
        for side in sides:
            for one in side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]:
                is_text = isinstance(one, ast.Constant) and isinstance(one.value, str) and not identity
                if is_text or (is_none(one) and identity):
                    for name in names:
                        found.setdefault(name, {}).setdefault(one.value, node)  # type: ignore[attr-defined]
    return found


def listed_text(values: Sequence[str]) -> str:
    """Return strings as an error lists them."""
    return ", ".join(map(repr, values))
