"""Unroll-and-jam: several rows are added to a vector of sums, which is loaded once for all of them.

Each element is added to in the order of the rows, so the result is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..analysis.cost import HEAVY
from ..analysis.strides import depends
from ..ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    names_of,
    statements,
    unused,
    walk,
)
from ..ir.plan import Jammed
from ..ir.rewriter import substitute
from ..ir.uses import loads_of
from ..program import Program

ROWS = 8
"""Rows at once: as many streams as a processor's prefetcher follows beside the stores."""
ROWS_READ_AGAIN = 2
"""Rows at once if they are read a second time: a cache has to hold them until then."""


def unroll_and_jam(program: Program) -> Program:
    """Return the program with bodies for several iterations of loops of threads that add rows to sums."""
    plan = program.plan
    taken = names_of(program.kernel)
    found: dict[str, Jammed] = {}
    for node in statements(program.kernel.body):
        if isinstance(node, For) and node.var in plan.threads and _adds_rows(node, program):
            found[node.var] = _jammed(node, program, taken)
    own = {s.var for one in found.values() for s in one.body if isinstance(s, For)}
    return program.with_(plan=replace(plan, jammed=found, vector=plan.vector | own))


def _adds_rows(node: For, program: Program) -> bool:
    """Whether a loop only adds rows to sums, each of its loops inside by vectors."""
    plan = program.plan
    inner = [s for s in node.body if isinstance(s, For)]
    inside = [s for s in statements(node.body) if not isinstance(s, For)]
    stores = [s for s in inside if isinstance(s, Store)]
    if len(plan.threads_loops(node)) > 1 or node.var in (*plan.vector, *plan.columns.values()) or not stores:
        return False
    if not all(isinstance(s, Assign) or s in inner for s in node.body):
        return False
    if not all(isinstance(s, (Assign, Store)) for s in inside):
        return False
    if not all(loop.var in plan.vector and _is_fixed(loop, node) for loop in inner):
        return False
    written = {s.buffer for s in stores}
    if len(written) < len(stores):
        return False  # a row's second addition would come after the next row's first
    if not all(_adds(s, node, program) for s in stores):
        return False
    if not all(_is_light(s, written, program) for s in inside):
        return False
    first = {s.name: s for s in reversed(inside) if isinstance(s, Assign)}
    private = {name for name, _ in plan.private.get(node.var, ())}
    return not any(s.op or name in private for name, s in first.items())  # else it outlives an iteration


def _jammed(node: For, program: Program, taken: set[str]) -> Jammed:
    inside = [s for s in statements(node.body) if not isinstance(s, For)]
    rows = ROWS if len(inside) == 1 else ROWS_READ_AGAIN
    own = [s.name for s in {s.name: s for s in inside if isinstance(s, Assign)}.values()]
    names = [{n: unused(n, taken) if row else n for n in own} for row in range(rows)]
    loops = {s.var: unused(s.var, taken) for s in node.body if isinstance(s, For)}
    return Jammed(rows, _joined(node.body, node.var, names, loops, program))


def _is_fixed(loop: For, around: For) -> bool:
    plain = not any(isinstance(s, For) for s in loop.body)
    return plain and not any(depends(e, frozenset({around.var})) for e in (loop.lo, loop.hi))


def _adds(store: Store, node: For, program: Program) -> bool:
    kind = program.kernel.buffers[store.buffer].dtype
    fixed = not any(depends(e, frozenset({node.var})) for e in store.index)
    return store.op == "+" and kind in ("float32", "float64") and fixed and not program.bounds.axes(store)


def _is_light(node: Stmt, written: set[str], program: Program) -> bool:
    loads = loads_of(node)
    slow = any(isinstance(e, Op) and (e.name in HEAVY or e.name == "select") for e in walk(node))
    # a load that is inside only under its condition would be one without, for another row
    return not slow and all(program.bounds.is_plain(e) and e.buffer not in written for e in loads)


def _joined(
    body: tuple[Stmt, ...],
    var: str,
    names: list[dict[str, str]],
    loops: Mapping[str, str],
    program: Program,
) -> tuple[Stmt, ...]:
    """Return a body with each statement once for each row, or with a store of all rows' sum.

    ``names`` are those of each row's scalars, ``loops`` those of the loops inside, whose roles are their own.
    """
    result: list[Stmt] = []
    for node in body:
        match node:
            case For():
                inner = _joined(node.body, var, names, loops, program)
                own_var = Var(loops[node.var], INT)
                result.append(substitute(replace(node, var=own_var.name, body=inner), {node.var: own_var}))
            case Assign(name=name, value=value):
                result += [
                    replace(node, name=own[name], value=_of_row(value, var, row, own))
                    for row, own in enumerate(names)
                ]
            case Store(buffer=buffer, index=index, value=value, line=line):
                kind = Type(program.kernel.buffers[buffer].dtype)
                total: Expr = Load(buffer, index, kind, line)
                for row, own in enumerate(names):
                    total = Op("+", (total, _of_row(value, var, row, own)), kind)
                result.append(replace(node, value=total, op=""))
    return tuple(result)


def _of_row(value: Expr, var: str, row: int, own: Mapping[str, str]) -> Expr:
    here = Op("+", (Var(var, INT), Const(row, INT)), INT)
    kinds = {e.name: e.type for e in walk(value) if isinstance(e, Var)}
    scalars: dict[str, Expr] = {n: Var(own[n], kind) for n, kind in kinds.items() if n in own}
    result: Expr = substitute(value, {var: here, **scalars})
    return result
