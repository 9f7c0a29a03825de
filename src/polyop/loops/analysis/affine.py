"""Expressions of the IR as linear forms, and as the text that isl reads; None where they are not affine.

i + 2 * n + 1    ->    {"i": 1, "n": 2, "": 1}    ->    "(1*v_i + 2*v_n + 1)"
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..ir.grammar import BOOL, INT, Const, Expr, If, Op, Size, Stmt, Type, Var, walk
from ..ir.operate import operate
from ..ir.rewriter import rewrite
from .sizes import MAX_BYTES, MAX_PROVED

INDEX_DTYPE = "int64"
"""The dtype of indices and bounds. Narrower integers wrap, which no affine form does."""
Linear = dict[str, int]
"""Coefficients by name; the constant is under ""."""


def name_of(leaf: Var | Size) -> str:
    """Return the name of a variable or size in linear forms. A size's name is no identifier, so it is unique.

    >>> name_of(Size("x", 1))
    'x.n1'
    """
    return leaf.name if isinstance(leaf, Var) else f"{leaf.buffer}.n{leaf.axis}"


@functools.lru_cache(maxsize=4096)
def word(name: str) -> str:
    """Return isl's name for a variable: ASCII, and no keyword of isl's language.

    >>> word("mod")
    'v_mod'
    """
    return "v_" + "".join(c if c.isascii() and c != "." else f"_{ord(c):x}_" for c in name)


def is_integer(kind: Type) -> bool:
    """Whether values of the type are whole numbers."""
    return kind.dtype.startswith(("int", "uint"))


def _is_narrow(expr: Expr) -> bool:
    """Whether an expression and its intermediate results fit into 64 bits.

    isl's integers are unbounded, and compiled ones wrap. Calls with sizes or attributes beyond
    ``MAX_PROVED`` run a kernel without proofs.
    """
    return _bound(expr) <= MAX_BYTES


def _bound(expr: Expr) -> int:
    """Return a bound of the absolute value; beyond ``MAX_BYTES`` where an intermediate result is."""
    match expr:
        case Const(value=value):
            return abs(int(value)) if isinstance(value, int) else 0
        case Op(name=name, args=args):
            parts = [_bound(a) for a in args]
            if max(parts) > MAX_BYTES:
                return MAX_BYTES + 1
            if name in ("//", "%"):
                return parts[name == "%"]
            return math.prod(parts) if name == "*" else sum(parts)
    return MAX_PROVED


def linear(expr: Expr) -> Linear | None:
    """Return the expression as a linear form with integer coefficients, or None.

    >>> i = Var("i", Type("int64", True))
    >>> linear(Op("+", (Op("*", (Const(2, i.type), i), i.type), Const(3, i.type)), i.type))
    {'i': 2, '': 3}
    """
    return _linear(expr) if _is_narrow(expr) else None


def linear_with_terms(expr: Expr, fixed: Collection[str] = ()) -> tuple[Linear, dict[str, Expr]] | None:
    """Return the expression as a linear form, and its leaves by name; None if it is not linear.

    An expression of sizes that is not linear itself, as ``n // 2``, counts as one leaf. It may have the
    variables ``fixed``, such as attributes.

    >>> i, n = Var("i", INT), Size("x", 0)
    >>> half = Op("//", (n, Const(2, INT)), INT)
    >>> form, leaves = linear_with_terms(Op("-", (i, half), INT))
    >>> sorted(form.values()), half in leaves.values()
    ([-1, 1], True)
    """
    leaves: dict[str, Expr] = {}
    form = linear(_with_leaves(expr, leaves, fixed))
    return None if form is None else (form, leaves)


def step(index: Expr, var: str) -> int:
    """Return by how much an index grows with a variable; 0 where it does not, or is not linear."""
    found = linear_with_terms(index)
    return 0 if found is None else found[0].get(var, 0)


def _with_leaves(expr: Expr, leaves: dict[str, Expr], fixed: Collection[str]) -> Expr:
    """Return an expression with a variable for each nonlinear expression of sizes; fill ``leaves``."""
    if isinstance(expr, (Var, Size)):
        leaves[name_of(expr)] = expr
    if not isinstance(expr, Op) or expr.type.dtype != INDEX_DTYPE:
        return expr
    # what is not linear is one of the operands of a sum, or of a multiple
    is_multiple = expr.name == "*" and any(isinstance(a, Const) for a in expr.args)
    is_sum = is_multiple or expr.name in ("+", "-", "neg")
    if not is_sum and _linear(expr) is None and all(_is_fixed(e, fixed) for e in walk(expr)):
        leaves[repr(expr)] = expr
        return Var(repr(expr), INT)
    return replace(expr, args=tuple(_with_leaves(a, leaves, fixed) for a in expr.args))


def _is_fixed(expr: Expr, fixed: Collection[str]) -> bool:
    return isinstance(expr, (Size, Const, Op)) or (isinstance(expr, Var) and expr.name in fixed)


def _linear(expr: Expr) -> Linear | None:
    if expr.type.dtype != INDEX_DTYPE and not isinstance(expr, Const):
        return None
    match expr:
        case Const(value=bool()):
            return None
        case Const(value=int(value)):
            return {"": value}
        case Var() | Size():
            return {name_of(expr): 1}
        case Op(name="neg", args=(a,)):
            return _scaled(_linear(a), -1)
        case Op(name="cast", args=(a,)) if a.type.dtype == INDEX_DTYPE:
            return _linear(a)
        case Op(name="+", args=(a, b)):
            return _sum(_linear(a), _linear(b))
        case Op(name="-", args=(a, b)):
            return _sum(_linear(a), _scaled(_linear(b), -1))
        case Op(name="*", args=(a, b)):
            left, right = _linear(a), _linear(b)
            if left is not None and not left.keys() - {""}:
                return _scaled(right, left.get("", 0))
            if right is not None and not right.keys() - {""}:
                return _scaled(left, right.get("", 0))
    return None


def _scaled(form: Linear | None, factor: int) -> Linear | None:
    return None if form is None else {name: factor * c for name, c in form.items() if factor * c}


def _sum(a: Linear | None, b: Linear | None) -> Linear | None:
    if a is None or b is None:
        return None
    form = {name: a.get(name, 0) + b.get(name, 0) for name in (*a, *b)}
    return {name: c for name, c in form.items() if c}


def text(expr: Expr, known: frozenset[str]) -> str | None:
    """Return the expression in isl's syntax, if it is affine in the names ``known``; else None."""
    return _text(expr, known) if _is_narrow(expr) else None


def _text(expr: Expr, known: frozenset[str]) -> str | None:
    form = _linear(expr)
    if form is not None:
        if not form.keys() - {""} <= known:
            return None
        return (
            "(" + " + ".join(f"{c}{'*' + word(n) if n else ''}" for n, c in form.items()) + ")"
            if form
            else "0"
        )
    if expr.type.dtype != INDEX_DTYPE:
        return None
    match expr:
        case Op(name="neg", args=(a,)):
            inner = _text(a, known)
            return inner and f"(-{inner})"
        case Op(name="+" | "-" as sign, args=(a, b)):
            left, right = _text(a, known), _text(b, known)
            return None if left is None or right is None else f"({left}{sign}{right})"
        case Op(name="*", args=(Const(value=int(c)), a)) | Op(name="*", args=(a, Const(value=int(c)))):
            inner = _text(a, known)
            return inner and f"({c}*{inner})"
        case Op(name="//" | "%" | "ceil_div" as op, args=(a, Const(value=int(c)))) if c > 0:
            inner = _text(a, known)
            forms = {"//": f"floor(({inner})/{c})", "%": f"(({inner}) mod {c})"}
            return inner and forms.get(op, f"floor(({inner}+{c - 1})/{c})")
        case Op(name="cast", args=(a,)) if a.type.dtype == INDEX_DTYPE:
            return _text(a, known)
        case Op(name="min" | "max" as clamp, args=(a, b)):
            left, right = _text(a, known), _text(b, known)
            return None if left is None or right is None else f"{clamp}({left}, {right})"
    return None


def is_clamp(expr: Expr) -> bool:
    """Whether an expression is the minimum or the maximum of two integers."""
    return isinstance(expr, Op) and expr.name in ("min", "max") and expr.type == INT


def varies(expr: Expr) -> bool:
    """Whether an expression has a variable: it is more than constants and sizes."""
    return any(isinstance(e, Var) for e in walk(expr))


def unclamped(expr: Expr) -> Expr:
    """Return an index without its clamps: the operand that has variables, where only one of them has.

    >>> i, n = Var("i", INT), Size("x", 0)
    >>> unclamped(Op("min", (Op("max", (i, Const(0, INT)), INT), n), INT)) == i
    True
    """

    def change(node: Expr) -> Expr:
        if not isinstance(node, Op) or not is_clamp(node):
            return node
        varying = [a for a in node.args if varies(a)]
        return varying[0] if len(varying) == 1 else node

    result: Expr = rewrite(expr, change)
    return result


def at_least(var: str, bound: Expr, known: frozenset[str]) -> list[str]:
    """Return constraints for ``var >= bound``; parts that are not affine are left out."""
    if isinstance(bound, Op) and bound.name == "max":
        return [c for arg in bound.args for c in at_least(var, arg, known)]
    if isinstance(bound, Op) and bound.name == "min":
        return _either([at_least(var, arg, known) for arg in bound.args])
    lower = text(bound, known)
    return [] if lower is None else [f"{word(var)} >= {lower}"]


def is_exact(bound: Expr, known: frozenset[str]) -> bool:
    """Whether :func:`at_least` and :func:`below` express all of a bound."""
    if isinstance(bound, Op) and bound.name in ("max", "min"):
        return all(is_exact(arg, known) for arg in bound.args)
    return text(bound, known) is not None


def _either(parts: list[list[str]]) -> list[str]:
    """Return the disjunction of the parts; nothing where one of them is not affine."""
    if not all(parts):
        return []
    return [f"({' or '.join('(' + ' and '.join(part) + ')' for part in parts)})"]


def below(var: str, bound: Expr, known: frozenset[str]) -> list[str]:
    """Return constraints for ``var < bound``; parts that are not affine are left out."""
    match bound:
        case Op(name="min", args=args):
            return [c for arg in args for c in below(var, arg, known)]
        case Op(name="max", args=args):
            return _either([below(var, arg, known) for arg in args])
        case Op(name="ceil_div", args=(a, Const(value=int(c)))) if c > 0:
            upper = text(a, known)
            return [] if upper is None else [f"{c}*{word(var)} < {upper}"]
    upper = text(bound, known)
    return [] if upper is None else [f"{word(var)} < {upper}"]


_SIGNS = {">=": (1, -1, 0), ">": (1, -1, -1), "<=": (-1, 1, 0), "<": (-1, 1, -1)}
"""By comparison the signs of its sides, and a constant: it holds where their sum is not negative."""


def nonnegative(test: Expr, fixed: Collection[str] = ()) -> tuple[Linear, dict[str, Expr]] | None:
    """Return the linear form that is not negative where a comparison holds, and its leaves; or None.

    ``fixed`` are variables that count as sizes.

    >>> i, n = Var("i", INT), Size("x", 0)
    >>> form, _ = nonnegative(i < n)
    >>> form
    {'i': -1, 'x.n0': 1, '': -1}
    """
    if not isinstance(test, Op) or test.name not in _SIGNS:
        return None
    left, right = (linear_with_terms(side, fixed) for side in test.args)
    if left is None or right is None:
        return None
    a, b, constant = _SIGNS[test.name]
    names = dict.fromkeys((*left[0], *right[0]))
    form = {n: a * left[0].get(n, 0) + b * right[0].get(n, 0) for n in names}
    form[""] = form.get("", 0) + constant
    return form, left[1] | right[1]


_COMPARISONS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "==": "=", "!=": "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def condition(expr: Expr, known: frozenset[str], holds: bool = True) -> tuple[str | None, bool]:
    """Return the affine part of a condition (or of its negation) in isl's syntax, and whether it is all."""
    match expr:
        case Op(name="not", args=(a,)):
            return condition(a, known, not holds)
        case Op(name="and" | "or" as name, args=args):
            parts = [condition(a, known, holds) for a in args]
            texts = [t for t, _ in parts if t is not None]
            exact = all(e for _, e in parts)
            if (name == "and") == holds:
                return (f"({' and '.join(texts)})" if texts else None), exact
            return (f"({' or '.join(texts)})", exact) if len(texts) == len(parts) else (None, False)
        case Op(name="<", args=(a, Op(name="min", args=ends))):
            return condition(_all(tuple(Op("<", (a, end), expr.type) for end in ends)), known, holds)
        case Op(name="<", args=(Op(name="max", args=starts), b)):
            return condition(_all(tuple(Op("<", (start, b), expr.type) for start in starts)), known, holds)
        case Op(name=name, args=(a, b)) if name in _COMPARISONS:
            left, right = text(a, known), text(b, known)
            if left is None or right is None:
                return None, False
            return f"({left} {_COMPARISONS[name if holds else _OPPOSITE[name]]} {right})", True
        case Op(name="cast", args=(a,)) if a.type.dtype == "bool" and expr.type.dtype == "bool":
            return condition(a, known, holds)
    return None, False


def _all(conditions: tuple[Expr, ...]) -> Expr:
    return Op("and", conditions, conditions[0].type)


def from_linear(form: Linear, leaves: Mapping[str, Expr]) -> Expr:
    """Return the expression of a linear form; ``leaves`` are the expressions of its names."""
    coefficients = {name: c for name, c in form.items() if name and c}
    if coefficients and max(coefficients.values()) < 0:
        return -from_linear({name: -c for name, c in form.items()}, leaves)
    total: Expr = Const(0, INT)
    for name, coefficient in sorted(coefficients.items(), key=lambda item: item[1] < 0):
        term = Const(abs(coefficient), INT) * leaves[name]
        total = operate("+" if coefficient > 0 else "-", total, term)
    return total + Const(form.get("", 0), INT)


def simplified(expr: Expr) -> Expr:
    """Return an expression with like terms collected, if it is linear in loops and expressions of sizes.

    >>> n = Size("x", 0)
    >>> two_less = Op("+", (Const(-2, INT), n), INT)
    >>> simplified(Op("+", (two_less, Const(1, INT)), INT)) == operate("-", n, Const(1, INT))
    True
    >>> half = Op("//", (n, Const(2, INT)), INT)
    >>> simplified(Const(3, INT) * half + half) == operate("*", Const(4, INT), half)
    True
    """
    found = linear_with_terms(expr)
    return expr if found is None else from_linear(*found)


def extreme(name: str, candidates: Iterable[Expr]) -> Expr:
    """Return the "min" or "max" of expressions; of those that differ by a constant only one is compared."""
    best: dict[object, tuple[int, Expr]] = {}
    for expr in _flattened(name, candidates):
        form = linear(expr)
        variables: object = expr if form is None else frozenset((n, c) for n, c in form.items() if n)
        constant = (form or {}).get("", 0)
        known = best.get(variables)
        if known is None or (constant < known[0] if name == "min" else constant > known[0]):
            best[variables] = constant, expr
    return functools.reduce(lambda a, b: operate(name, a, b), (expr for _, expr in best.values()))


def _flattened(name: str, exprs: Iterable[Expr]) -> Iterator[Expr]:
    for expr in exprs:
        yield from operands(name, expr)


def moves_one_way(bound: Expr, var: str) -> bool:
    """Whether a bound never falls, or never rises, as a variable grows.

    >>> i, n = Var("i", INT), Size("x", 0)
    >>> moves_one_way(operate("max", i, n), "i"), moves_one_way(operate("max", i, n - i), "i")
    (True, False)
    """
    return any(_moves(bound, var, way) for way in (1, -1))


def _moves(bound: Expr, var: str, way: int) -> bool:
    if isinstance(bound, Op) and is_clamp(bound):
        return all(_moves(e, var, way) for e in bound.args)
    form = linear(bound)
    return form is not None and way * form.get(var, 0) >= 0


def conjunction(tests: Sequence[Expr]) -> Expr:
    """Return the condition that all of some tests hold, one after another; the reverse of ``operands``.

    >>> i, n = Var("i", INT), Size("x", 0)
    >>> operands("and", conjunction((i < n, i >= 0))) == [i < n, i >= 0]
    True
    """
    return functools.reduce(lambda a, b: Op("and", (a, b), BOOL), tests)


def guarded(tests: Sequence[Expr], *body: Stmt, orelse: tuple[Stmt, ...] = ()) -> tuple[Stmt, ...]:
    """Return statements under the condition that all tests hold, as they are if there are no tests."""
    return (If(conjunction(tests), body, orelse, body[0].line),) if tests else body


def operands(name: str, expr: Expr) -> list[Expr]:
    """Return the operands of a "min", "max" or "and" of any number, or the expression itself.

    >>> i, n = Var("i", INT), Size("x", 0)
    >>> operands("min", Op("min", (Op("min", (i, n), INT), i), INT)) == [i, n, i]
    True
    """
    if isinstance(expr, Op) and expr.name == name:
        return [part for argument in expr.args for part in operands(name, argument)]
    return [expr]
