"""The grammar of typed loop kernels: a kernel is a tree of these values.

Kernel  = parameters, attributes, buffers, outputs, body
Buffer  = a tensor: input, output, inplace (an input that is returned) or local (``allocate``)
Stmt    = For | If | Store | Assign
Expr    = Const | Var | Size | Load | Op | OpenEnd

Loops run upwards by one, ``for v in lo .. hi-1``: the front end folds steps into the expressions. The ``hi``
of a ``while`` is an OpenEnd, which has no value. A reduction ``x = x op e`` is a Store or Assign whose
``op`` is "+", "*", "max" or "min". A variable's name is unique in the kernel, and its scope is the body of
the loop (or kernel) of its first assignment.
Operators have Python's meaning, as ``//`` and ``%`` of negative numbers. operators.py lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from ...core.origin import place


@dataclass(frozen=True, slots=True)
class Type:
    """The dtype of a scalar. ``weak``: a Python number, which takes the dtype of the other operand.

    A weak int is "int64", a weak float "float64"; a comparison is "bool". ``counts``: the dtype that
    it counts as in arithmetic, where the value is held in a wider one; only the front end has such types.
    """

    dtype: str
    weak: bool = False
    counts: str = ""

    def __str__(self) -> str:
        """Return the dtype, or the Python type of a weak one."""
        return _PYTHON[self.dtype] if self.weak else self.dtype


_PYTHON = {"int64": "int", "float64": "float", "complex128": "complex"}
INT, FLOAT, BOOL = Type("int64", weak=True), Type("float64", weak=True), Type("bool")
COMPLEX = Type("complex128", weak=True)
PARTS = {"complex64": "float32", "complex128": "float64"}
"""The dtype of the real and of the imaginary part, by the dtype of a complex number."""
_WHOLE = {part: whole for whole, part in PARTS.items()}


Operand: TypeAlias = "Notation | float"


class Notation:
    """Python's operators on expressions: ``g * (1 - y * y)`` is the tree that ``operate`` builds.

    A Python number takes the type of the other operand. ``==`` and ``!=`` compare trees, and build nothing.
    ``build`` is :func:`~polyop.loops.ir.operate.operate`, which sets it.

    >>> x = Var("x", Type("float32"))
    >>> (1 - x * x).name, (1 - x * x).type.dtype, call("exp", -x).args[0].name
    ('-', 'float32', 'neg')
    """

    __slots__ = ()
    build: ClassVar[Callable[..., Expr]]

    def __add__(self, other: Operand) -> Expr:
        return call("+", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return call("+", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return call("-", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return call("-", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return call("*", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return call("*", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return call("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return call("/", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return call("//", self, other)

    def __mod__(self, other: Operand) -> Expr:
        return call("%", self, other)

    def __neg__(self) -> Expr:
        return call("neg", self)

    def __lt__(self, other: Operand) -> Expr:
        return call("<", self, other)

    def __le__(self, other: Operand) -> Expr:
        return call("<=", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return call(">", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return call(">=", self, other)


def call(name: str, *operands: Operand) -> Expr:
    """Return an operator, by its name in the table, of expressions and Python numbers."""
    return Notation.build(name, *operands)


@dataclass(frozen=True, slots=True)
class Const(Notation):
    """A number."""

    value: bool | int | float
    type: Type


TRUE, FALSE = Const(value=True, type=BOOL), Const(value=False, type=BOOL)


@dataclass(frozen=True, slots=True)
class Var(Notation):
    """A loop variable, a scalar, or an attribute of the kernel."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Size(Notation):
    """``buffer.shape[axis]`` of a parameter. Sizes of other buffers are replaced by their expressions."""

    buffer: str
    axis: int
    type: Type = INT


@dataclass(frozen=True, slots=True)
class Load(Notation):
    """One element of a buffer, with an index for each dimension."""

    buffer: str
    index: tuple[Expr, ...]
    type: Type
    line: int = 0


@dataclass(frozen=True, slots=True)
class Op(Notation):
    """An operator of the table ``OPERATORS`` (operators.py), on arguments of its own type.

    ``cast`` converts its one argument to ``type``. ``select`` is (condition, then, otherwise) and,
    like ``and`` and ``or``, evaluates only what it needs. ``with_gradient`` is (value, x, slope, ...): the
    value, with the author's derivative ``slope`` with respect to ``x``.
    """

    name: str
    args: tuple[Expr, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class OpenEnd(Notation):
    """The end of a ``while``: how often it runs is known only when it has run.

    It stands nowhere but as the ``hi`` of a loop, and has no value: it is not affine, nothing is computed
    from it, and no printer prints it. Flags alone end such a loop (stops.py). ``name`` is the loop's name at
    first, so that two ends are equal only if they are of the same ``while``.
    """

    name: str
    type: Type = INT


Expr = Const | Var | Size | Load | Op | OpenEnd


@dataclass(frozen=True, slots=True)
class For:
    """``for var in lo .. hi-1``. ``hint`` is the kind of loop that the author wrote: "", "serial", ...

    A ``while`` has an :class:`OpenEnd` as its ``hi``.
    """

    var: str
    lo: Expr
    hi: Expr
    body: tuple[Stmt, ...]
    line: int = 0
    hint: str = ""


@dataclass(frozen=True, slots=True)
class If:
    """A condition of type bool."""

    condition: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Store:
    """``buffer[index] op= value``; the value has the buffer's dtype."""

    buffer: str
    index: tuple[Expr, ...]
    value: Expr
    op: str = ""
    line: int = 0

    @property
    def target(self) -> Load:
        """The element that is stored, as an expression."""
        return Load(self.buffer, self.index, Type(self.value.type.dtype), self.line)


@dataclass(frozen=True, slots=True)
class Assign:
    """``name op= value``; the value has the variable's type."""

    name: str
    value: Expr
    op: str = ""
    line: int = 0

    @property
    def type(self) -> Type:
        """The variable's type."""
        return self.value.type

    @property
    def target(self) -> Var:
        """The variable, as an expression."""
        return Var(self.name, self.type)


Stmt = For | If | Store | Assign


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor. ``shape`` consists of expressions of parameters' sizes, attributes and numbers.

    ``zeroed``: the kernel may read elements that it has not written, or leave some unwritten: it starts as
    zeros, as in Python. ``zeroed_if`` is a condition on the sizes: only where it holds zeros are needed; None
    means always. ``first_read`` is the line of a read before any write, or 0.
    ``of_zeros``: the author wrote ``np.zeros``, so such a read is no mistake, and is not in ``first_read``.
    ``exact``: its values are compared for equality, so they are never computed a second time.
    ``pairs``: callers see complex numbers; the last dimension, of size 2, is the real and the imaginary part.
    ``counted``: a tape that a counter indexes. Each element is written before it is read, and most never are.
    ``absent``: no call passes it; it keeps its place among the parameters, as a bool without dimensions.
    ``for_lanes``: a copy that the compiler has made so that lanes find their elements side by side.
    """

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    role: str = "input"
    line: int = 0
    zeroed: bool = False
    zeroed_if: Expr | None = None
    first_read: int = 0
    of_zeros: bool = False
    exact: bool = False
    pairs: bool = False
    counted: bool = False
    absent: bool = False
    for_lanes: bool = False

    @property
    def outer_dtype(self) -> str:
        """The dtype that callers see."""
        return _WHOLE[self.dtype] if self.pairs else self.dtype

    @property
    def outer_shape(self) -> tuple[Expr, ...]:
        """The shape that callers see."""
        return self.shape[:-1] if self.pairs else self.shape


def own_sizes(name: str, like: Buffer) -> tuple[Expr, ...]:
    """Return the shape of an input ``name`` with the dimensions of another buffer, in its own sizes."""
    sizes = tuple(Size(name, axis) for axis in range(len(like.outer_shape)))
    return (*sizes, Const(2, INT)) if like.pairs else sizes


@dataclass(frozen=True, slots=True)
class Demand:
    """What each call of a kernel is checked for before anything runs, so that proofs may rely on it.

    ``condition`` is about sizes and attributes. ``text`` is the message of a call for which it is false.
    """

    condition: Expr
    text: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A loop kernel for given dtypes and numbers of dimensions; sizes are symbols."""

    name: str
    parameters: tuple[str, ...]
    attributes: Mapping[str, Type]
    buffers: Mapping[str, Buffer]
    outputs: tuple[str, ...]
    body: tuple[Stmt, ...]
    file: str = ""
    source: Mapping[int, str] = field(default_factory=dict)
    """The text of each line, for messages and for comments in the emitted code."""
    derived: bool = False
    """Whether it is a gradient or a tangent of another kernel, whose call has been checked. Then reads before
    writes are intended, and the last bits of results are polyop's choice."""
    demands: tuple[Demand, ...] = ()

    @property
    def tensor_parameters(self) -> tuple[str, ...]:
        """The parameters that are tensors, in order."""
        return tuple(name for name in self.parameters if name in self.buffers)

    def where(self, line: int) -> str:
        """Return ``file:line``, or the cell of a notebook and the line in it."""
        return place(self.file, line)

    def sizes_of(self, name: str) -> tuple[Expr, ...]:
        """Return the sizes of a tensor, in terms that the shape of another one may have."""
        buffer = self.buffers[name]
        return own_sizes(name, buffer) if buffer.role in ("input", "inplace") else buffer.shape


REDUCTIONS = ("+", "*", "max", "min")


def children(node: Expr | Stmt) -> tuple[Expr, ...]:
    """Return the expressions directly below a node."""
    match node:
        case Load(index=operands) | Op(args=operands):
            return operands
        case For(lo=lo, hi=hi):
            return (lo, hi)
        case If(condition=condition):
            return (condition,)
        case Store(index=index, value=value):
            return (*index, value)
        case Assign(value=value):
            return (value,)
        case _:
            return ()


def walk(node: Expr | Stmt) -> Iterator[Expr]:
    """Yield all expressions at or below a node, except those in the body of a loop or condition."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, (Const, Var, Size, Load, Op, OpenEnd)):
            yield top
        stack.extend(reversed(children(top)))


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield every statement of a body, outer ones first."""
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from statements(statement.body)
        elif isinstance(statement, If):
            yield from statements(statement.body)
            yield from statements(statement.orelse)


def perfect(loop: For) -> list[For]:
    """Return the loops of the perfect nest that starts with a loop, outermost first."""
    nest = [loop]
    while len(nest[-1].body) == 1 and isinstance(inner := nest[-1].body[0], For):
        nest.append(inner)
    return nest


def is_lazy(expr: Expr) -> bool:
    """Whether an expression computes its operands behind the first only where it needs them."""
    return isinstance(expr, Op) and expr.name in ("select", "and", "or")


def unconditional(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and its operands that are evaluated in any case; indices are left out."""
    yield expr
    if not isinstance(expr, Load):
        for argument in children(expr)[:1] if is_lazy(expr) else children(expr):
            yield from unconditional(argument)


def names_of(kernel: Kernel) -> set[str]:
    """Return all names that a kernel uses."""
    names = {*kernel.parameters, *kernel.attributes, *kernel.buffers}
    for node in statements(kernel.body):
        if isinstance(node, For):
            names.add(node.var)
        elif isinstance(node, Assign):
            names.add(node.name)
        names |= {e.name for e in walk(node) if isinstance(e, Var)}
    return names


def unused(name: str, taken: set[str]) -> str:
    """Return the name, with underscores added until it is not in ``taken``, and add it there.

    >>> unused("t", {"t"})
    't_'
    """
    while name in taken:
        name += "_"
    taken.add(name)
    return name
