"""Print a typed kernel in the language of loop kernels: this shows what polyop derived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .grammar import Assign, Const, Expr, For, If, Kernel, Load, Op, OpenEnd, Size, Stmt, Store, Var
from .stops import stop_flags

BINDS: Mapping[str, int] = {
    "or": 1, "and": 2, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10,
}  # fmt: skip
"""Precedence of the operators, as in Python."""
UNARY, ATOM = 11, 20
_SPECIAL = {"inf": "math.inf", "-inf": "-math.inf", "nan": "math.nan"}


def shown(kernel: Kernel) -> str:
    """Return the kernel as a Python function, without parameters that it does not use.

    Casts between dtypes are written as calls, ``float32(x)``; loops run upwards by one.
    """
    inputs = [n for n in kernel.parameters if n not in kernel.buffers or kernel.buffers[n].role != "output"]
    parameters = [n for n in inputs if n not in kernel.buffers or not kernel.buffers[n].absent]
    lines = [f"def {kernel.name}({', '.join(parameters)}):"]
    for buffer in kernel.buffers.values():
        if buffer.role in ("output", "local"):
            word = "output_tensor" if buffer.role == "output" else "allocate"
            shape = ", ".join(expression(e) for e in buffer.shape) + "," * (len(buffer.shape) == 1)
            lines.append(f"    {buffer.name} = {word}(({shape}), {buffer.dtype})")
    lines += _block(kernel.body, 1)
    lines.append(f"    return {', '.join(kernel.outputs)}")
    return "\n".join(lines) + "\n"


def statement(node: Stmt) -> str:
    """Return the first line of a statement as Python text."""
    return next(_block((node,), 0))


def _block(body: Sequence[Stmt], depth: int) -> Iterator[str]:
    space = "    " * depth
    if not body:
        yield f"{space}pass"
    for node in body:
        match node:
            case For(hi=OpenEnd()):
                flags = [f"not {_inside(flag, 3)}" for flag in stop_flags(node)]
                yield f"{space}while {' and '.join(flags) or True}:"
                yield from _block(node.body, depth + 1)
            case For():
                yield f"{space}for {node.var} in range({_range(node)}):"
                yield from _block(node.body, depth + 1)
            case If():
                yield f"{space}if {expression(node.condition)}:"
                yield from _block(node.body, depth + 1)
                if node.orelse:
                    yield f"{space}else:"
                    yield from _block(node.orelse, depth + 1)
            case Store() if node.op in ("max", "min"):
                place = _element(node.buffer, node.index)
                yield f"{space}{place} = {node.op}({place}, {expression(node.value)})"
            case Store():
                yield f"{space}{_element(node.buffer, node.index)} {node.op}= {expression(node.value)}"
            case Assign() if node.op in ("max", "min"):
                yield f"{space}{node.name} = {node.op}({node.name}, {expression(node.value)})"
            case Assign():
                yield f"{space}{node.name} {node.op}= {expression(node.value)}"


def _range(loop: For) -> str:
    hi = expression(loop.hi)
    return hi if isinstance(loop.lo, Const) and loop.lo.value == 0 else f"{expression(loop.lo)}, {hi}"


def _element(buffer: str, index: Sequence[Expr]) -> str:
    return f"{buffer}[{', '.join(expression(i) for i in index)}]"


def expression(expr: Expr) -> str:
    """Return an expression as Python text with the fewest parentheses."""
    return _text(expr)[0]


def _text(expr: Expr) -> tuple[str, int]:
    match expr:
        case Const(value=value):
            negative = not isinstance(value, bool) and value < 0
            return _SPECIAL.get(repr(value), repr(value)), UNARY if negative else ATOM
        case Var(name=name):
            return name, ATOM
        case Size(buffer=buffer, axis=axis):
            return f"{buffer}.shape[{axis}]", ATOM
        case Load(buffer=buffer, index=index):
            return _element(buffer, index), ATOM
        case Op(name="cast", args=(inner,)):
            return f"{expr.type.dtype}({expression(inner)})", ATOM
        case Op(name="select", args=(condition, then, otherwise)):
            return f"{_inside(then, 1)} if {_inside(condition, 1)} else {expression(otherwise)}", 0
        case Op(name="neg" | "not" as name, args=(inner,)):
            return (f"-{_inside(inner, UNARY)}", UNARY) if name == "neg" else (f"not {_inside(inner, 3)}", 3)
        case Op(name=name, args=(left, right)) if name in BINDS:
            level = BINDS[name]
            return f"{_inside(left, level)} {name} {_inside(right, level + 1)}", level
        case OpenEnd(name=name):
            return f"the end of the while {name}", ATOM
    return f"{expr.name}({', '.join(expression(a) for a in expr.args)})", ATOM


def _inside(expr: Expr, level: int) -> str:
    text, own = _text(expr)
    return text if own >= level else f"({text})"
