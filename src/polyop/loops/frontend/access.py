"""Translate elements of tensors, and the tuples of a kernel: shapes, grid variables and literals."""

from __future__ import annotations

import ast
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError, ArgumentValueError, PolyopError
from ..ir.grammar import BOOL, FLOAT, INT, Buffer, Const, Demand, Expr, Load, Stmt, Type
from ..ir.operate import as_index
from ..ir.types import BYTE_FLOATS, Refusal, cast, complex_constant, kind, number_of
from .language import DTYPES, WORDS
from .names import Scopes
from .rows import Row, Value
from .source import Source
from .suggestions import suggestion_for_elements, suggestion_for_rank
from .syntax_tree import path_of_names


@dataclass
class Access(ABC):
    """The state of the translation of one function, for given dtypes, and its accesses to tensors.

    ``buffers``: the tensors declared so far; ``variables``: the types of scalars, loop variables
    and attributes; ``bindings``: names that are replaced by an expression; ``tuples``: names of tuples,
    with the expression of each element; ``rows``: names of rows; ``natural``: variables that are at least 0;
    ``ranges``: each loop variable with the least value that it has, and the end below which it stays;
    ``narrow``: the sizes of slices whose ends are one apart, unless a narrow dtype wraps;
    ``demands``: what each call is checked for, by a size and a condition on it;
    ``unequal``: conditions on which rows that are combined have different sizes: the next loops of a row
    check them;
    ``before``: statements that compute what the current statement needs; ``reduce`` adds those of a sum
    there, and returns the sum.
    """

    source: Source
    scopes: Scopes
    attributes: dict[str, Type]
    buffers: dict[str, Buffer] = field(default_factory=dict)
    variables: dict[str, Type] = field(default_factory=dict)
    bindings: dict[str, Expr] = field(default_factory=dict)
    tuples: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    natural: set[str] = field(default_factory=set)
    ranges: list[tuple[Expr, Expr, Expr]] = field(default_factory=list)
    narrow: set[Expr] = field(default_factory=set)
    demands: dict[tuple[Expr, Expr], Demand] = field(default_factory=dict)
    unequal: list[Expr] = field(default_factory=list)
    before: list[Stmt] = field(default_factory=list)
    reduce: Callable[[ast.Call, str, Row], Expr] | None = None

    def fail(
        self,
        rule: str,
        node: ast.AST,
        seen: object = None,
        hint: str | None = None,
        kind: type[PolyopError] = ArgumentTypeError,
    ) -> NoReturn:
        """Raise an error that points at the node."""
        raise self.source.error(kind, rule, node, seen, hint)

    @abstractmethod
    def expression(self, node: ast.expr) -> Expr:
        """Return the typed expression; errors name the line."""

    def constant(self, node: ast.expr, value: Any) -> Expr:
        """Return a number from outside the function as a constant."""
        if not isinstance(value, (numbers.Complex, np.generic)):
            self.fail("only numbers can be read from outside the function", node, type(value).__name__)
        constant = number(value)
        allowed = [name for name in DTYPES if name not in BYTE_FLOATS]
        if constant.type.dtype not in allowed:
            rule = f"a number from outside the function must have one of the dtypes {', '.join(allowed)}"
            self.fail(rule, node, repr(value))
        return constant

    def dtype(self, node: ast.expr) -> str:
        """Return the name of the dtype that ``"float32"``, ``x.dtype`` or ``np.float32`` means."""
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value in self.scopes.names
        ):
            owner = self.scopes.names[node.value]
            if owner not in self.buffers or node.attr != "dtype":
                self.fail(f"{ast.unparse(node)} is not a dtype", node)
            return self.buffers[owner].dtype
        try:
            value: Any = node.value if isinstance(node, ast.Constant) else None
            if isinstance(node, ast.Name) and node.id in WORDS and WORDS[node.id].type is not None:
                value = str(WORDS[node.id].type.dtype)  # type: ignore[union-attr]
            elif isinstance(node, (ast.Attribute, ast.Name)):
                value = self.outside(node)
            name = dtype(value).name
        except (PolyopError, KeyError, AttributeError, AssertionError):
            name = ast.unparse(node)
        if name not in DTYPES:
            rule = f"the dtype of a tensor must be one of {', '.join(DTYPES)}"
            self.fail(rule, node, name, 'write x.dtype or a name such as "float32"')
        return name

    def outside(self, node: ast.expr) -> Any:
        """Return the value of ``name`` or ``module.name`` from outside the function."""
        return self.source.outer(path_of_names(node))

    @abstractmethod
    def is_row(self, node: ast.Subscript) -> bool:
        """Whether a subscript means several elements, or an element of a named row."""

    @abstractmethod
    def part(self, node: ast.Subscript) -> Value:
        """Return the row, or the element of a row, that a subscript means."""

    def element(self, node: ast.Subscript) -> Value:
        """Return an element of a tensor, or of a tuple such as ``x.shape``, or a row."""
        items = self.tuple_of(node.value)
        if items is not None:
            return self.item(node, items)
        if self.is_row(node):
            return self.part(node)
        buffer, index = self.buffer_and_index(node)
        return load(buffer, index, node.lineno)

    def item(self, node: ast.Subscript, items: tuple[Expr, ...]) -> Expr:
        """Return an item of a tuple; the position must be a constant."""
        position = None if isinstance(node.slice, ast.Slice) else self.expression(node.slice)
        if not isinstance(position, Const) or not isinstance(position.value, int):
            hint = "a shape and a grid variable have fixed positions, as in x.shape[0]"
            self.fail("a tuple must be indexed by a constant", node, ast.unparse(node.slice), hint)
        if not -len(items) <= position.value < len(items):
            rule = f"{ast.unparse(node.value)} has {count(items, 'element')}"
            needed = -position.value if position.value < 0 else position.value + 1
            way = suggestion_for_rank(node.value, len(items), needed)
            self.fail(rule, node, f"index {position.value}", way, ArgumentValueError)
        return items[position.value]

    def buffer_and_index(self, node: ast.Subscript) -> tuple[Buffer, tuple[Expr, ...]]:
        """Return the buffer and the index of ``a[i, j]``, ``a[i][j]`` or ``a[arg]``."""
        parts: list[ast.expr] = []
        value: ast.expr = node
        while isinstance(value, ast.Subscript):
            parts = [*(value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]), *parts]
            value = value.value
        if not isinstance(value, ast.Name) or self.scopes.names.get(value) not in self.buffers:
            attribute = isinstance(value, ast.Name) and self.scopes.names.get(value) in self.attributes
            hint = (
                "an attribute is a number" if attribute else suggestion_for_elements(value, parts, node.ctx)
            )
            if self.tuple_of(value) is not None:
                hint = "it is a tuple, which cannot be written: a tensor of allocate can"
            self.fail(f"{ast.unparse(value)} is not a tensor and has no elements", node, hint=hint)
        buffer = self.buffers[self.scopes.names[value]]
        index: list[tuple[Expr, ast.expr]] = []
        for part in parts:
            items = self.tuple_of(part)
            if items is not None and len(parts) > 1:
                hint = f"write {ast.unparse(part)}[0], ..."
                self.fail("a grid variable must be the whole index", node, hint=hint)
            index += [(item, part) for item in ((self.expression(part),) if items is None else items)]
        if len(index) != len(buffer.shape):
            rule = f"{buffer.name} has {count(buffer.shape, 'dimension')} and needs as many indices"
            hint = f"write {buffer.name}[{', '.join('ijklmn'[: len(buffer.shape)]) or '()'}]"
            if not buffer.shape:
                hint += f", or pass {buffer.name}.reshape({', '.join('1' * len(index))})"
            self.fail(rule, node, f"{len(index)} in {ast.unparse(node)}", hint, ArgumentValueError)
        return buffer, tuple(self.position(item, k, buffer, part) for k, (item, part) in enumerate(index))

    def position(self, part: Expr, axis: int, buffer: Buffer, node: ast.expr) -> Expr:
        """Return one index as an int64; a negative constant counts from the end."""
        part = self.integer(part, f"index {axis} of {buffer.name}", node, node)
        try:
            if isinstance(part, Const) and part.value < 0:
                return buffer.shape[axis] + part
        except Refusal as refusal:
            self.fail(refusal.rule, node, refusal.seen, refusal.hint)
        return part

    def integer(self, value: Expr, subject: str, text: ast.expr | None, node: ast.AST) -> Expr:
        """Return an index, a bound or a size as an int64; the error about a float shows how to convert it.

        ``text`` is what the author wrote for it, if that is known.
        """
        try:
            return as_index(value, subject)
        except Refusal as refusal:
            is_float = kind(value.type) not in "iu"
            hint = f"write int({ast.unparse(text)})" if is_float and text is not None else refusal.hint
            if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Div):
                hint = f"divide with //: {ast.unparse(ast.BinOp(text.left, ast.FloorDiv(), text.right))}"
            self.fail(refusal.rule, node, refusal.seen, hint)

    def tuple_of(self, node: ast.expr) -> tuple[Expr, ...] | None:
        """Return the items of a tuple (a shape, a grid variable, a literal, a sum of tuples), or None."""
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self.expression(item) for item in items)
            case ast.Attribute(value=ast.Name() as owner, attr="shape") if owner in self.scopes.names:
                return self.shape(owner)
            case ast.Name() if node in self.scopes.names:
                return self.tuples.get(self.scopes.names[node])
            case ast.Name() if isinstance(value := self.source.outer(node.id), tuple):
                return tuple(self.constant(node, item) for item in value)
            case ast.Subscript(value=value, slice=ast.Slice() as part):
                whole_tuple = self.tuple_of(value)
                return None if whole_tuple is None else whole_tuple[self.slice_of(part)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                one, other = self.tuple_of(left), self.tuple_of(right)
                return None if one is None or other is None else one + other
        return None

    def shape(self, owner: ast.Name) -> tuple[Expr, ...]:
        """Return the sizes of a tensor."""
        unique = self.scopes.names[owner]
        if unique not in self.buffers:
            self.fail(f"{owner.id} is a number here and has no shape", owner)
        return self.buffers[unique].shape

    def slice_of(self, node: ast.Slice) -> slice:
        """Return a slice of a tuple; its ends must be constants."""
        ends = [None if end is None else self.expression(end) for end in (node.lower, node.upper, node.step)]
        if not all(end is None or (isinstance(end, Const) and isinstance(end.value, int)) for end in ends):
            self.fail("a slice of a shape must have constant ends", node, ast.unparse(node))
        return slice(*(end and end.value for end in ends if end is None or isinstance(end, Const)))


def load(buffer: Buffer, index: tuple[Expr, ...], line: int) -> Expr:
    """Return an element of a tensor as a number: that of a float of one byte is a float32."""
    element = Load(buffer.name, index, Type(buffer.dtype), line)
    return cast(element, number_of(element.type))


def count(items: Sequence[object], noun: str) -> str:
    """Return how many items there are, in words.

    >>> count([7], "dimension"), count([], "element")
    ('1 dimension', '0 elements')
    """
    return f"{len(items)} {noun}{'s' * (len(items) != 1)}"


def number(value: Any) -> Const:
    """Return a number as a constant; the type of a Python number is weak, that of a NumPy scalar is not."""
    if isinstance(value, np.generic):
        return Const(value.item(), Type(str(value.dtype)))
    if isinstance(value, bool):
        return Const(value, BOOL)
    if isinstance(value, complex):
        return complex_constant(value)
    return Const(int(value), INT) if isinstance(value, numbers.Integral) else Const(float(value), FLOAT)
