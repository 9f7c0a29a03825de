"""Translate the syntax of an expression into a typed expression of the IR."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

import numpy as np

from ...core.dtypes import dtype
from ..ir.compare import COMPARED
from ..ir.complex_numbers import operate_complex
from ..ir.grammar import BOOL, COMPLEX, FLOAT, INT, PARTS, Const, Demand, Expr, Op, Type, Var
from ..ir.operate import as_condition, as_int64, operate, select, where, with_gradient
from ..ir.types import Refusal, cast, common, counted, join, kind, number_of
from .access import count, load, number
from .dtype_limits import limit
from .language import WORDS, Word
from .powers import checked_power
from .random_numbers import check, normal, uniform
from .rejected_syntax import is_dtype_test
from .row_access import RowAccess
from .rows import Row, Value
from .syntax_tree import walk

BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "pow", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


class Expressions(RowAccess):
    """Translates expressions of one function."""

    def expression(self, node: ast.expr) -> Expr:
        """Return the typed expression; errors name the line. Raises for a row."""
        return self.scalar(self.value(node), node)

    def scalar(self, value: Value, node: ast.expr) -> Expr:
        """Return the value of a node if it is a number; raise for a row."""
        if isinstance(value, Row):
            rule = f"{ast.unparse(node)} has {count(value.sizes, 'dimension')}, where a number is needed"
            way = f"write {_element(node, len(value.sizes))}"
            hint = f"{way}, in a loop; or store it into a row: y[:] = ...{self._fewer_dimensions(node)}"
            self.fail(rule, node, hint=hint)
        return value

    def _fewer_dimensions(self, node: ast.expr) -> str:
        """Return which input would make a number of ``x[i]`` if it had fewer dimensions; "" if none would."""
        for part in walk(node):
            if not isinstance(part, ast.Subscript) or not isinstance(part.value, ast.Name):
                continue
            name = part.value.id
            buffer = self.buffers.get(self.scopes.names.get(part.value, ""))
            indices = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
            if buffer is None or name not in self.source.parameters or len(indices) >= len(buffer.shape):
                continue
            if not any(isinstance(index, ast.Slice) for index in indices):
                needed = count(indices, "dimension")
                return f"; or pass {name} with {needed}: it has {len(buffer.shape)} in this call"
        return ""

    def value(self, node: ast.expr) -> Value:
        """Return the typed expression, or the row; errors name the line."""
        try:
            return self._value(node)
        except Refusal as refusal:
            self.fail(refusal.rule, node, refusal.seen, refusal.hint)

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=value):
                return number(value)
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Subscript():
                return self.element(node)
            case ast.Call():
                return self.call(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self.lift(node, self.binary(op, node), self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.Not() as sign, operand=operand):
                return self.unary(sign, self.expression(operand))  # of a row, as of an array, it has no value
            case ast.UnaryOp(op=sign, operand=operand):
                return self.lift(node, functools.partial(self.unary, sign), self.value(operand))
            case ast.BoolOp(op=op, values=values):
                first, *others = values
                rest = [self.scalar(self.lazy(one), one) for one in others]
                return self.logic(isinstance(op, ast.And), [self.expression(first), *rest])
            case ast.Compare():
                return self.compared(node)
            case ast.IfExp():
                return self.chosen(node)
            case _:
                hint = "a table has a name: w = [1.0, 2.0], and w[k]; zeros are allocate((3,), x.dtype)"
                return self.fail(f"a tuple is not a number: {ast.unparse(node)}", node, hint=hint)

    def binary(self, op: ast.operator, node: ast.expr | ast.stmt) -> Callable[..., Expr]:
        """Return the function that an operator of Python means."""
        return self.power(node) if isinstance(op, ast.Pow) else functools.partial(operate, BINARY[type(op)])

    def power(self, node: ast.expr | ast.stmt) -> Callable[[Expr, Expr], Expr]:
        """Return the function of a power in a line."""
        return lambda base, exponent: checked_power(
            base, exponent, self.buffers, self.is_natural, node.lineno
        )

    def compared(self, node: ast.Compare) -> Value:
        """Return a comparison: of dtypes a constant, ``a < b < c`` as ``a < b and b < c``."""
        items = [node.left, *node.comparators]
        if is_dtype_test(node):
            equal = self.dtype(items[0]) == self.dtype(items[1])
            return Const(equal == isinstance(node.ops[0], ast.Eq), BOOL)
        functions = [functools.partial(_comparison, COMPARE[type(op)]) for op in node.ops]
        if len(functions) == 1:
            return self.lift(node, functions[0], *map(self.value, items))
        numbers = [self.expression(item) for item in items]
        pairs = zip(functions, numbers, numbers[1:], strict=False)
        return self.logic(True, [function(a, b) for function, a, b in pairs])

    def chosen(self, node: ast.IfExp) -> Value:
        """Return ``a if c else b``; if c is a constant, the other value is not compiled."""
        condition = self.condition(node.test)
        if isinstance(condition, Const):
            return self.value(node.body if condition.value else node.orelse)
        return self.lift(node, select, condition, self.lazy(node.body), self.lazy(node.orelse))

    def lazy(self, node: ast.expr) -> Value:
        """Return a value that is computed only where it is needed, so no loop can run before it."""
        before = len(self.before)
        value = self.value(node)
        if len(self.before) > before:
            rule = "a sum of a row is not compiled in a part of an expression that is not always computed"
            self.fail(rule, node, ast.unparse(node), "write an if statement")
        return value

    def unary(self, op: ast.unaryop, operand: Expr) -> Expr:
        """Return ``-x``, ``+x``, ``not x`` or ``~x``."""
        if isinstance(op, ast.Not):
            if isinstance(operand, Const) and operand.type == BOOL:
                return Const(not operand.value, BOOL)
            return operate("not", as_condition(operand))
        if isinstance(op, ast.UAdd):
            return operand
        if isinstance(op, ast.USub):
            return -operand
        if operand.type == BOOL:
            return operate("not", operand)
        operand = cast(operand, counted(operand.type))
        bits = dtype(operand.type.dtype).numpy
        ones = Const(int(np.iinfo(bits).max), operand.type) if bits.kind == "u" else Const(-1, INT)
        return operate("^", operand, ones)

    def logic(self, both: bool, items: list[Expr]) -> Expr:
        """Return ``a and b`` or ``a or b``: for bools a bool, for numbers one of them, as in Python."""
        (first, *rest) = items
        if not rest:
            return first
        other = self.logic(both, rest)
        if isinstance(first, Const) and first.type == BOOL:
            return other if first.value == both else first
        if first.type == other.type == BOOL:
            return operate("and" if both else "or", first, other)
        return select(first, other, first) if both else select(first, first, other)

    def condition(self, node: ast.expr) -> Expr:
        """Return the expression as a bool; ``a and b`` of numbers becomes ``a != 0 and b != 0``."""
        if isinstance(node, ast.BoolOp):
            first, *others = node.values
            for other in others:
                self.lazy(other)
            parts = [self.condition(value) for value in (first, *others)]
            return self.logic(isinstance(node.op, ast.And), parts)
        try:
            return as_condition(self.expression(node))
        except Refusal as refusal:
            self.fail(refusal.rule, node, refusal.seen, refusal.hint)

    def name(self, node: ast.Name) -> Value:
        """Return a scalar, a loop variable, an attribute, a tensor, a row, or a number from outside."""
        unique = self.scopes.read_as.get(node) or self.scopes.names.get(node)
        if unique is None:
            return self.constant(node, self.source.outer(node.id))
        if unique in self.bindings:
            return self.bindings[unique]
        if unique in self.variables:
            return Var(unique, self.variables[unique])
        if unique in self.tuples:
            self.fail(f"{node.id} is a tuple, where a number is needed", node, hint=f"write {node.id}[0]")
        if unique in self.rows:
            return self.rows[unique]
        buffer = self.buffers[unique]
        if buffer.shape:
            return self.whole(buffer, node.lineno)
        return load(buffer, (), node.lineno)

    def attribute(self, node: ast.Attribute) -> Expr:
        """Return ``x.ndim``, ``x.size`` or a number of a module; raise for ``x.shape`` and ``x.dtype``."""
        if isinstance(node.value, ast.Name) and node.value in self.scopes.names:
            if node.attr in ("ndim", "size"):
                sizes = self.shape(node.value)
                one = Const(1, INT)
                size = functools.reduce(lambda a, b: a * b, sizes) if sizes else one
                return size if node.attr == "size" else Const(len(sizes), INT)
            hint = f"write {ast.unparse(node)}[0]" if node.attr == "shape" else None
            self.fail(f"{ast.unparse(node)} is not a number", node, hint=hint)
        return self.constant(node, self.outside(node))

    def call(self, node: ast.Call) -> Value:
        """Return a word applied to its inputs."""
        assert isinstance(node.func, ast.Name)
        word = WORDS[node.func.id]
        if word.kind == "size":
            items = self.tuple_of(node.args[0])
            if items is not None:
                return Const(len(items), INT)
            if not isinstance(node.args[0], ast.Name) or not self.shape(node.args[0]):
                name = ast.unparse(node.args[0])
                hint = "write x.shape[k]"
                if isinstance(node.args[0], ast.Name) and self.scopes.names.get(node.args[0]) in self.buffers:
                    hint = f"{name} is a single number here; {name}.reshape(1) has a dimension"
                self.fail("len takes a tensor or a shape", node, ast.unparse(node.args[0]), hint)
            return self.shape(node.args[0])[0]
        if word.kind == "random":
            return self.drawn(node, word)
        if word.kind == "limit":
            return self.limit(node, word)
        inputs = [self.value(item) for item in node.args]
        if word.name.startswith("math.") and any(isinstance(one, Row) for one in inputs):
            name = word.name.removeprefix("math.")
            self.fail(f"{word.name} takes numbers", node, "a row", f"write np.{name}, which takes rows")
        if word.kind == "reduction" or (word.reduces and len(inputs) == 1):
            return self.reduced(node, word, inputs)
        apply = self.power(node) if word.operator == "pow" else functools.partial(_apply, word)
        return self.lift(node, apply, *inputs)

    def unpacked(
        self, value: Value, number: int, text: ast.expr, node: ast.stmt
    ) -> tuple[list[Expr], Expr | None]:
        """Return the elements of a row of one dimension, and on what condition there is another number.

        None stands for a condition that each call checks.
        """
        if not isinstance(value, Row) or len(value.sizes) != 1:
            seen = count(value.sizes, "dimension") if isinstance(value, Row) else "a number"
            hint = "write the elements: a, b = x[i, 0], x[i, 1]"
            self.fail(f"several names take a row of one dimension: {ast.unparse(text)}", node, seen, hint)
        (size,), needed = value.sizes, Const(number, INT)
        rule = f"{ast.unparse(text)} must have {number} elements, one for each name"
        if isinstance(size, Const) and size != needed:
            self.fail(rule, node, size.value)
        items = [value.element([Const(k, INT)]) for k in range(number)]
        if isinstance(size, Const):
            return items, None
        if not self.is_symbolic(size):
            return items, operate("!=", size, needed)
        demand = Demand(operate("==", size, needed), f"line {node.lineno}: {rule}")
        self.demands.setdefault((size, needed), demand)
        return items, None

    def limit(self, node: ast.Call, word: Word) -> Expr:
        """Return ``finfo(x.dtype).max``, of which the second input is the attribute, as a constant."""
        of, attribute = self.dtype(node.args[0]), ast.literal_eval(node.args[1])
        value = limit(word.name, of, attribute)
        if value is None:
            rule = f"{word.name} of {of} has no number called {attribute}"
            hint = "finfo is of floats, iinfo of integers: branch by if x.dtype in (float32, float64)"
            self.fail(rule, node, hint=hint)
        return number(value)

    def drawn(self, node: ast.Call, word: Word) -> Expr:
        """Return a random number; each call of the kernel checks that the key has one or two items."""
        key, counters = self.value(node.args[0]), [self.expression(item) for item in node.args[1:]]
        text = ast.unparse(node.args[0])
        if not isinstance(key, Row) or len(key.sizes) != 1:
            seen = count(key.sizes, "dimension") if isinstance(key, Row) else "a number"
            hint = "pass two integers: np.array([seed, 0], np.uint32), or a row of several keys, keys[i]"
            self.fail(f"{word.name} takes a key of one dimension, {text}", node, seen, hint)
        of = self.dtype(node.keywords[0].value) if node.keywords else "float32"
        (size,), one, two = key.sizes, Const(1, INT), Const(2, INT)
        low, high = (key.element([at]) for at in (Const(0, INT), operate("min", one, size - one)))
        check(low.type.dtype, counters, of)
        rule, hint = f"the key {text} must have one or two items", "np.array([seed, 0], np.uint32)"
        if isinstance(size, Const) and size not in (one, two):
            self.fail(rule, node, size.value, f"write {hint}")
        if not isinstance(size, Const) and self.is_symbolic(size):
            allowed = Op("and", (size >= one, size <= two), BOOL)
            self.demands.setdefault((size, two), Demand(allowed, f"line {node.lineno}: {rule}, as {hint}"))
        high = Op("select", (operate("==", size, two), high, Const(0, high.type)), high.type)
        return (uniform if word.name == "random" else normal)((low, high), counters, of)

    def reduced(self, node: ast.Call, word: Word, inputs: list[Value]) -> Expr:
        """Return what a reduction of a row gives; ``before`` gets the loops that compute it."""
        if word.name == "dot":
            if not all(isinstance(one, Row) and len(one.sizes) == 1 for one in inputs):
                self.fail("dot takes two rows of one dimension", node, hint="or a number: sum(x[i] * w)")
            inputs = [self.lift(node, functools.partial(operate, "*"), *inputs)]
        (row,) = inputs
        if not isinstance(row, Row):
            rule = f"{word.name} takes a row: {ast.unparse(node.args[0])} is a number"
            self.fail(rule, node, hint="pass a part of a tensor, such as x[i]")
        assert self.reduce is not None
        if word.name in ("any", "all"):  # a sum or a product of zeros and ones
            row = self.lift(node, as_condition, row)
            assert isinstance(row, Row)
        if word.name == "mean":
            return self.mean(node, row)
        result = self.reduce(node, word.reduces, row)
        return as_condition(result) if word.name in ("any", "all") else result

    def mean(self, node: ast.Call, row: Row) -> Expr:
        """Return the mean of a row: NumPy adds integers in float64, and narrow floats in float32."""
        assert self.reduce is not None
        of = row.first.type
        sums = FLOAT if of.weak else Type("float64") if kind(of) in "iub" else of
        sums = Type("float32") if dtype(of.dtype).numpy.itemsize == 2 and kind(of) == "f" else sums
        wide = self.lift(node, lambda element: cast(element, sums), row)
        assert isinstance(wide, Row)
        size = functools.reduce(lambda a, b: a * b, row.sizes)
        mean = self.reduce(node, "+", wide) / size
        return cast(mean, of) if kind(of) == "f" else mean


def _comparison(name: str, left: Expr, right: Expr) -> Expr:
    """Return a comparison; that of two whole numbers, as in ``x.ndim == 2``, is a constant."""
    if isinstance(left, Const) and isinstance(right, Const) and left.type == right.type == INT:
        return Const(bool(COMPARED[name](left.value, right.value)), BOOL)
    return operate(name, left, right)


def _apply(word: Word, *inputs: Expr) -> Expr:
    """Return a word applied to numbers."""
    if word.kind == "cast":
        assert word.type is not None
        to = word.type
        return cast(_cast(inputs[0], to), number_of(to))
    if word.expansion and len(inputs) > bool(word.operator):  # round of one number is an operator
        return word.expansion(*inputs)
    if word.kind == "complex":
        return _of_parts(word.name, *inputs)
    if word.operator == "with_gradient":
        return with_gradient(*inputs)
    if word.operator == "select":
        return where(*inputs)
    if len(inputs) > 2:
        return functools.reduce(lambda a, b: operate(word.operator, a, b), inputs)
    return operate(word.operator, *inputs)


def _of_parts(name: str, *inputs: Expr) -> Expr:
    """Return ``complex(re, im)``, or a part of a number: a real number is its own real part."""
    (first, *others) = inputs
    if name == "complex":
        if any(one.type.dtype in PARTS for one in inputs):
            hint = "complex64(z) and complex128(z) convert z"
            raise Refusal("complex takes real numbers", common(inputs), hint)
        of = join(COMPLEX, common(inputs))
        part = Type(PARTS[of.dtype], of.weak)
        return Op("complex", tuple(cast(one, part) for one in (first, *(others or [Const(0, INT)]))), of)
    if first.type.dtype in PARTS:
        return operate_complex(name, inputs)
    if name == "angle":
        return operate("atan2", Const(0, INT), first)
    return cast(Const(0, INT), first.type) if name == "imag" else first


def _cast(expression: Expr, to: Type) -> Expr:
    """Return a cast that the author wrote; ``int(x)`` of a large uint64 does not become negative."""
    if to == BOOL:
        return as_condition(expression)
    return (
        as_int64(expression) if to == INT and expression.type.dtype == "uint64" else explicit(expression, to)
    )


def explicit(expression: Expr, to: Type) -> Expr:
    """Return a converted expression; ``int(x)`` of an int64 and ``float(x)`` of a float64 become weak."""
    if expression.type.dtype == to.dtype and expression.type != to and not isinstance(expression, Const):
        return Op("cast", (expression,), to)
    return cast(expression, to)


def _element(node: ast.expr, dimensions: int) -> str:
    """Return the text of an element of a row, with letters that the text does not have.

    >>> _element(ast.parse("x[i]", mode="eval").body, 1), _element(ast.parse("x + y", mode="eval").body, 1)
    ('x[i, j]', 'its elements')
    """
    used = {part.id for part in walk(node) if isinstance(part, ast.Name)}
    more = ", ".join([letter for letter in "ijklmn" if letter not in used][:dimensions])
    text = ast.unparse(node)
    if isinstance(node, ast.Name):
        return f"{text}[{more}]"
    if isinstance(node, ast.Subscript) and not any(isinstance(part, ast.Slice) for part in walk(node)):
        return f"{text[:-1]}, {more}]"
    return "its elements"
