"""Draw the mutants of the list with a seed, from each room as many as it has lines of code: writes list.txt.

    python tools/mutants/draw.py --count 320 --seed 2
    python tools/mutants/draw.py --mend                 others in the place of those whose lines are gone

A function or table is drawn once, so that the list reaches as many of them as it has lines.
"""

from __future__ import annotations

import argparse
import ast
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from listing import LIST, Mutant, mutants, name_of, room_of, to_line
from places import Change, mutated, mutated_texts, place_of
from sites import Site, sites_of

SOURCE = Path(__file__).resolve().parents[2] / "src" / "polyop"
LEAST = 4  # mutants of a small room
ELSEWHERE = ("hosts/mindspore/", "testing/frameworks/mindspore")  # MindSpore is in another environment
SHARES = {
    "comparison": 16, "negated": 16, "return": 14, "constant": 14,
    "arithmetic": 12, "call": 11, "row": 10, "and_or": 7,
}  # fmt: skip


def main() -> None:
    """Write the list."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--count", type=int, default=320)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--mend", action="store_true")
    options = parser.parse_args()
    rooms = files_of_rooms()
    old = mutants() if options.mend else []
    kept = [mutant for mutant in old if is_there(mutant)]
    counts = shares_of(rooms, options.count)
    if options.mend:
        counts = Counter(mutant.room for mutant in old if mutant not in kept)
    new = list(kept)
    for room, count in counts.items():
        generator = random.Random(f"{options.seed} {room}")  # noqa: S311 - no secret
        used = {(mutant.changes[0].file, mutant.changes[0].scope) for mutant in kept}
        new += drawn(rooms[room], count, generator, used)
    new.sort(key=lambda mutant: (mutant.room, mutant.changes[0].file, mutant.name))
    first = "# Drawn by tools/mutants/draw.py; the columns: listing.py\n"
    LIST.write_text(first + "".join(f"{to_line(mutant)}\n" for mutant in new))
    print(f"{len(new) - len(kept)} mutants drawn, {len(kept)} kept")


def is_there(mutant: Mutant) -> bool:
    """Whether the lines of a mutant are found."""
    try:
        return bool(mutated_texts(mutant.changes, SOURCE))
    except (LookupError, OSError):
        return False


def files_of_rooms() -> dict[str, list[Path]]:
    """Return the files of each room."""
    rooms = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        file = str(path.relative_to(SOURCE))
        if room_of(file) and not file.startswith(ELSEWHERE):
            rooms[room_of(file)].append(path)
    return dict(sorted(rooms.items()))


def shares_of(rooms: dict[str, list[Path]], count: int) -> dict[str, int]:
    """Return how many mutants each room gets, by its lines of code."""
    lines = {room: sum(lines_of_code(path.read_text()) for path in paths) for room, paths in rooms.items()}
    return {room: max(LEAST, round(count * n / sum(lines.values()))) for room, n in lines.items() if n}


def lines_of_code(text: str) -> int:
    r"""Return in how many lines a text has more than remarks, docstrings and blanks.

    >>> lines_of_code("# a remark\n\nx = (\n    1\n)\n")
    3
    """
    rows = enumerate(map(str.strip, text.splitlines()), 1)
    lines = {line for line, row in rows if row and not row.startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= {*range(node.lineno, (node.end_lineno or 0) + 1)}
    return len(lines)


def drawn(
    paths: list[Path], count: int, generator: random.Random, used: set[tuple[str, str]]
) -> Iterator[Mutant]:
    """Yield mutants of some files: first a kind is drawn by its share, then a place of that kind.

    ``used`` are the files and the scopes that have a mutant; those of the new ones are added.
    """
    sites = defaultdict(list)
    for path in paths:
        for site in sites_of(path.read_text()):
            sites[site.kind].append((path, site))
    for places in sites.values():
        generator.shuffle(places)
    while count and any(sites.values()):
        kinds = [kind for kind in SHARES if sites[kind]]
        (kind,) = generator.choices(kinds, [SHARES[kind] for kind in kinds])
        path, site = sites[kind].pop()
        where = str(path.relative_to(SOURCE)), site.scope
        if where not in used and (mutant := mutant_of(path, site)):
            used.add(where)
            count -= 1
            yield mutant


def mutant_of(path: Path, site: Site) -> Mutant | None:
    """Return the mutant of a site, None if its change is no Python, or the same Python."""
    text, file = path.read_text(), str(path.relative_to(SOURCE))
    original = ast.dump(ast.parse(text))
    for occurrence in range(1, text.count("\n") + 1):
        change = Change(file, site.before, site.after, site.scope, occurrence)
        try:
            if place_of(change, text).first == site.first:
                changed = ast.dump(ast.parse(mutated(change, text)))
                return None if changed == original else Mutant(name_of(change), site.kind, (change,))
        except (LookupError, SyntaxError):
            return None
    return None


if __name__ == "__main__":
    main()
