"""Print a program as Python text, with the role of each loop as a comment, as ``--print-after`` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .ir.grammar import Expr, For, Load, Store, statements
from .ir.plan import Plan, Prefetched, Tile
from .ir.printing import expression, shown
from .program import Program


def listing(program: Program) -> str:
    """Return a program as Python text; the last line names the private buffers and their owners."""
    roles = dict(_roles(program))
    lines = shown(program.kernel).splitlines()
    text = [_with_role(line, roles) for line in lines]
    private = [f"{name} (of {', '.join(loops)})" for name, loops in sorted(program.owners.items()) if loops]
    return "\n".join([*text, *([f"# private: {'; '.join(private)}"] if private else [])])


def _with_role(line: str, roles: dict[str, str]) -> str:
    words = line.split()
    role = roles.get(words[1]) if words[:1] == ["for"] else None
    return f"{line}  # {role}" if role else line


def _roles(program: Program) -> Iterable[tuple[str, str]]:
    plan = program.plan
    for node in statements(program.kernel.body):
        if not isinstance(node, For):
            continue
        var = node.var
        words = ["threads"] if var in plan.threads else []
        words += [f"shared by rows of {plan.rows[var].buffer}"] if var in plan.rows else []
        words += [f"in order, threads share loop {plan.columns[var]}"] if var in plan.columns else []
        words += ["reduction"] if var in plan.private else []
        words += ["tile"] if var in plan.tiles else []
        words += ["vector"] if var in plan.vector else []
        words += ["band of " + ", ".join(m.var for m in plan.band(var))] if plan.band(var) else []
        words += _decided(plan, var)
        if words:
            yield var, ", ".join(words)


def _decided(plan: Plan, var: str) -> Iterator[str]:
    """Yield what the passes of ``loops/vectors`` have decided for a loop, in words."""
    if var in plan.jammed:
        yield f"{plan.jammed[var].rows} iterations at once"
    if var in plan.coalesced:
        yield f"one loop with {plan.coalesced[var].inner} where sizes allow it"
    if var in plan.tiles and plan.tiles[var].whole:
        yield "runs the last vectors with the others"
    if var in plan.tiles and plan.tiles[var].blocked:
        yield f"in blocks of {plan.tiles[var].blocked}"
    if var in plan.interleaved:
        yield f"{plan.interleaved[var]} vectors at once"
    for words, accesses in _accesses(plan, var):
        if accesses:
            yield f"{words} {', '.join(map(_shown, accesses))}"


def _accesses(plan: Plan, var: str) -> Iterator[tuple[str, Sequence[Expr | Store]]]:
    tile = plan.tiles.get(var, Tile(""))
    ahead = plan.prefetched.get(var, Prefetched())
    yield "packs", [panel.load for panel in tile.panels]
    yield "packs down its columns", [panel.load for panel in tile.row_panels]
    yield "prefetches rows of", [load for _, load in tile.prefetched]
    yield "divides before it", plan.quotients.get(var, ())
    yield "checks once", plan.checked_once.get(var, ())
    yield "transposes", [access for strip in plan.transposed.get(var, ()) for access in strip.accesses]
    yield "loads once", [load for slide in plan.slides.get(var, ()) for load in slide.loads]
    yield "prefetches", ahead.streams
    yield "prefetches the next row of", (*ahead.next_rows, *ahead.selected)
    yield "streams", plan.streaming.get(var, ())


def _shown(access: Expr | Store) -> str:
    if isinstance(access, Store):
        return expression(Load(access.buffer, access.index, access.value.type))
    return expression(access)
