"""Remove ``stop_gradient`` and ``with_gradient``: only derivatives read these marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.grammar import (
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    rewrite,
    statements,
    walk,
)
from ..program import Program
from .dead_statements import without_unwanted


def strip_gradient_marks(program: Program) -> Program:
    """Return the program without ``stop_gradient`` and ``with_gradient``: only derivatives read them."""
    return program.with_(kernel=without_marks(program.kernel))


def without_marks(kernel: Kernel) -> Kernel:
    """Return the kernel that computes the same values without the marks: each is its first argument.

    ``y[i] += with_gradient(0.0, ...)`` goes, and with it what only slopes read.
    """
    names = {e.name for s in statements(kernel.body) for e in walk(s) if isinstance(e, Op)}
    if "with_gradient" not in names:
        return replace(kernel, body=_plain(kernel.body)) if "stop_gradient" in names else kernel
    body = without_unwanted(_plain(kernel.body), kernel.outputs)
    stored = {s.buffer for s in statements(body) if isinstance(s, Store)}
    stored |= {e.buffer for s in statements(body) for e in walk(s) if isinstance(e, Load)}
    buffers = {n: b for n, b in kernel.buffers.items() if b.role != "local" or n in stored}
    return replace(kernel, body=body, buffers=buffers)


def _plain(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for node in body:
        match node:
            case For():
                inner = _plain(node.body)
                found += [rewrite(replace(node, body=inner), _value)] if inner else []
            case If():
                then, other = _plain(node.body), _plain(node.orelse)
                found += [rewrite(replace(node, body=then, orelse=other), _value)] if then or other else []
            case Store(op="+", value=value) | Assign(op="+", value=value) if _adds_nothing(value):
                continue
            case _:
                found.append(rewrite(node, _value))
    return tuple(found)


def _value(expr: Expr) -> Expr:
    marked = isinstance(expr, Op) and expr.name in ("stop_gradient", "with_gradient")
    return expr.args[0] if marked and isinstance(expr, Op) else expr


def _adds_nothing(value: Expr) -> bool:
    """Whether a value is a zero with a gradient."""
    while isinstance(value, Op) and value.name == "cast":
        value = value.args[0]
    if not isinstance(value, Op) or value.name != "with_gradient":
        return False
    first = value.args[0]
    return isinstance(first, Const) and first.value == 0
