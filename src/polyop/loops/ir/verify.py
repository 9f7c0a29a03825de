"""The verifier: invariants of types, names and declarations, which hold before and after each pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .grammar import (
    REDUCTIONS,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Size,
    Stmt,
    Store,
    Var,
    statements,
    walk,
)
from .operators import OPERATORS
from .stops import misplaced_exits
from .types import kind
from .uses import tensors_of


def violations(kernel: Kernel, *, unique_loops: bool = True) -> list[str]:
    """Return what is wrong with a kernel, a sentence each; an empty list means that it is valid.

    A variable is bound before it is read, and each loop variable once. An operator's arguments have its own
    type. A stored value has the dtype of its buffer. There is an integer index for each dimension. Conditions
    are bool. A ``while`` ends by its own exits (stops.py). Nothing reads an absent tensor. Without
    ``unique_loops`` two loops that are not nested may have the same name.
    """
    faults = [
        f"{buffer.name}: its shape reads {e}"
        for buffer in kernel.buffers.values()
        for size in buffer.shape
        for e in walk(size)
        if isinstance(e, Load) or (isinstance(e, Var) and e.name not in kernel.attributes)
    ]
    faults += [
        f"a demand reads {e}"
        for demand in kernel.demands
        for e in walk(demand.condition)
        if isinstance(e, Load) or (isinstance(e, Var) and e.name not in kernel.attributes)
    ]
    faults += [
        f"{name}: an absent tensor is a bool input without dimensions"
        for name, buffer in kernel.buffers.items()
        if buffer.absent and (buffer.shape, buffer.dtype, buffer.role) != ((), "bool", "input")
    ]
    faults += [
        f"{e.buffer}: it is absent, and read"
        for node in (*statements(kernel.body), *_sizes(kernel))
        for e in walk(node)
        if isinstance(e, (Load, Size)) and e.buffer in kernel.buffers and kernel.buffers[e.buffer].absent
    ]
    faults += [f"output {name} is not declared" for name in kernel.outputs if name not in kernel.buffers]
    faults += _block(kernel, kernel.body, set(kernel.attributes), set() if unique_loops else None)
    return [*faults, *misplaced_exits(kernel)]


def _sizes(kernel: Kernel) -> Iterator[Expr]:
    """Yield the sizes of what a kernel makes, and its demands."""
    for buffer in kernel.buffers.values():
        yield from buffer.shape if buffer.role != "input" else ()
    for demand in kernel.demands:
        yield demand.condition


def unowned(before: Kernel, kernel: Kernel, owners: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return what is wrong with a scheduled kernel's private buffers, a sentence each.

    ``owners`` maps each private buffer to the loops whose iterations have their own. Its memory is set up
    where such a loop begins. So every access stands inside all of these loops, in every copy that a pass
    made of them. A buffer that lost axes since ``before`` holds one iteration's elements and must be private.
    """
    faults = [
        f"{name} lost an axis and has no owner"
        for name, buffer in kernel.buffers.items()
        if name not in owners
        and name in before.buffers
        and len(buffer.shape) < len(before.buffers[name].shape)
    ]
    return faults + list(_outside(kernel.body, owners, frozenset()))


def _outside(
    body: tuple[Stmt, ...], owners: Mapping[str, tuple[str, ...]], around: frozenset[str]
) -> Iterator[str]:
    for statement in body:
        for name in _accessed(statement) & owners.keys():
            missing = [var for var in owners[name] if var not in around]
            if missing:
                loops = ", ".join(missing)
                yield f"line {statement.line}: {name} is used outside of loop {loops}, which owns it"
        if isinstance(statement, For):
            yield from _outside(statement.body, owners, around | {statement.var})
        elif isinstance(statement, If):
            yield from _outside((*statement.body, *statement.orelse), owners, around)


def _accessed(statement: Stmt) -> set[str]:
    """Return the buffers that a statement itself reads or writes; statements inside it do not count."""
    names = tensors_of(statement)
    return names | ({statement.buffer} if isinstance(statement, Store) else set())


def _block(kernel: Kernel, body: tuple[Stmt, ...], bound: set[str], loops: set[str] | None) -> Iterator[str]:
    for statement in body:
        yield from (f"line {statement.line}: {text}" for text in _statement(kernel, statement, bound))
        if isinstance(statement, For):
            if statement.var in bound or (loops is not None and statement.var in loops):
                yield f"line {statement.line}: {statement.var} is bound twice"
            if loops is not None:
                loops.add(statement.var)
            yield from _block(kernel, statement.body, {*bound, statement.var}, loops)
        elif isinstance(statement, If):
            then, otherwise = set(bound), set(bound)
            yield from _block(kernel, statement.body, then, loops)
            yield from _block(kernel, statement.orelse, otherwise, loops)
            bound |= then & otherwise
        elif isinstance(statement, Assign):
            bound.add(statement.name)


def _statement(kernel: Kernel, statement: Stmt, bound: set[str]) -> Iterator[str]:
    for expression in walk(statement):
        yield from _expression(kernel, expression, bound)
    match statement:
        case For(lo=lo, hi=hi):
            yield from (f"a bound is {e.type}" for e in (lo, hi) if e.type.dtype != "int64")
        case If(condition=condition) if condition.type.dtype != "bool":
            yield f"a condition is {condition.type}"
        case Store(buffer=name, value=value, op=op):
            if name not in kernel.buffers:
                yield f"{name} is not declared"
                return
            buffer = kernel.buffers[name]
            if value.type.dtype != buffer.dtype:
                yield f"{buffer.name} is {buffer.dtype} and its value {value.type}"
            if buffer.role == "input":
                yield f"the input {buffer.name} is written"
            if op and op not in REDUCTIONS:
                yield f"{op} is no reduction"
            yield from _index(kernel, statement)
        case Assign(name=name, op=op) if op:
            if name not in bound:
                yield f"{name} is updated before it is assigned"


def _index(kernel: Kernel, node: Load | Store) -> Iterator[str]:
    shape = kernel.buffers[node.buffer].shape
    if len(shape) != len(node.index):
        yield f"{node.buffer} has {len(shape)} dimensions and {len(node.index)} indices"
    yield from (f"an index of {node.buffer} is {i.type}" for i in node.index if i.type.dtype != "int64")


def _expression(kernel: Kernel, node: Expr, bound: set[str]) -> Iterator[str]:
    match node:
        case Var(name=name) if name not in bound:
            yield f"{name} is read before it is bound"
        case Load(buffer=name) | Size(buffer=name) if name not in kernel.buffers:
            yield f"{name} is not declared"
        case Load():
            yield from _index(kernel, node)
            if node.type.dtype != kernel.buffers[node.buffer].dtype:
                yield f"{node.buffer} is read as {node.type}"
        case Op():
            yield from _operator(node)
        case Const(value=value, type=type_) if isinstance(value, float) != (kind(type_) == "f"):
            yield f"the constant {value!r} is {type_}"


def _operator(node: Op) -> Iterator[str]:
    row = OPERATORS[node.name]
    if row.arity and len(node.args) != row.arity:
        yield f"{node.name} has {len(node.args)} arguments"
    if node.name == "cast":
        return
    values = node.args[1:] if node.name == "select" else node.args
    types = {a.type.dtype for a in values}
    if len(types) > 1 or (row.result != "bool" and types != {node.type.dtype}):
        yield f"{node.name} gives {node.type} of {', '.join(sorted(types))}"
    if row.result == "bool" and node.type.dtype != "bool":
        yield f"{node.name} gives {node.type}"
    if not all(kind(a.type) in row.kinds for a in values):
        yield f"{node.name} takes {row.kinds} and is given {', '.join(sorted(types))}"
    if node.name == "select" and node.args[0].type.dtype != "bool":
        yield f"select asks a {node.args[0].type}"
