"""tools/mutants: each line of its list has its place in the source, and programs of tests see a mutant's text."""

import ast
import doctest
import json
import os
import pathlib
import subprocess
import sys

import pytest

import mutants_tool

SOURCE = pathlib.Path(__file__).parents[1] / "src" / "polyop"


@pytest.fixture(scope="module")
def tool():
    with mutants_tool.modules() as modules:
        yield modules


def test_the_examples_in_docstrings(tool):
    for module in tool.values():
        assert doctest.testmod(module).failed == 0


def test_each_mutant_has_its_place(tool):
    mutants = tool["listing"].mutants()
    assert len(mutants) >= 300
    assert len({one.name for one in mutants}) == len(mutants)
    lost = [one for one in mutants if not tool["draw"].is_there(one)]
    assert not lost, "others take their places with: python tools/mutants/draw.py --mend"


def test_a_line_is_read_as_it_was_written(tool):
    lines = [line for line in tool["listing"].LIST.read_text().splitlines() if not line.startswith("#")]
    assert lines == [tool["listing"].to_line(tool["listing"].from_line(line)) for line in lines]


def test_each_bug_of_the_past_can_be_put_back(tool):
    bugs = tool["listing"].past()
    assert len(bugs) >= 15
    for bug in bugs:
        assert bug.changes, bug.name
        texts = tool["places"].mutated_texts(bug.changes, SOURCE)
        for text in texts.values():
            ast.parse(text)
        for change in bug.changes:
            with pytest.raises(LookupError):  # it has one place
                tool["places"].place_of(change._replace(occurrence=2), (SOURCE / change.file).read_text())


def test_a_fragment_is_found_by_function_and_occurrence(tool):
    text = "def f(x):\n    return x + 1\n\n\nclass C:\n    def f(x):\n        if x:\n            y = 1\n        y = 1\n"
    change = tool["places"].Change("a.py", "y = 1", "y = 2", "C.f", 2)
    assert tool["places"].mutated(change, text) == text[: text.rindex("1")] + "2\n"
    moved = "import os\n\n" + text
    assert tool["places"].place_of(change, moved).first == tool["places"].place_of(change, text).first + 2
    with pytest.raises(LookupError, match="C.f has 2 times: y = 1"):
        tool["places"].place_of(change._replace(occurrence=3), text)


EXAMPLE = '''"""A module."""
TABLE = ("a", "b", "c")


def f(x: int, y: int = 3) -> bool:
    """Compare."""
    log.info("3")
    check(x)
    if x < y and y:
        raise ValueError("x")
    return x + y == 2
'''
CHANGES = {
    ("TABLE", "row", 'TABLE = ("b", "c")'),
    ("TABLE", "row", 'TABLE = ("a", "b", )'),
    ("TABLE", "constant", 'TABLE = ("a", "b_", "c")'),
    ("f", "constant", "def f(x: int, y: int = 4) -> bool:"),
    ("f", "call", "pass"),
    ("f", "comparison", "if x <= y and y:"),
    ("f", "and_or", "if x < y or y:"),
    ("f", "negated", "if not (x < y and y):"),
    ("f", "return", "return None"),
    ("f", "return", "return x"),
    ("f", "arithmetic", "return x - y == 2"),
    ("f", "comparison", "return x + y != 2"),
}


def test_what_is_mutated(tool):
    found = {(site.scope, site.kind, site.after) for site in tool["sites"].sites_of(EXAMPLE)}
    assert found >= CHANGES
    texts = " ".join(after for _, _, after in found)
    assert "4" in texts
    assert not any(word in texts for word in ("Module", "Compare", "log", "raise"))


def test_a_child_process_gets_the_mutated_text(tool, tmp_path):
    file = SOURCE / "core" / "log.py"
    text = file.read_text() + "\nMUTATED = True\n"
    plan = tmp_path / "mutant.json"
    plan.write_text(json.dumps({"texts": {os.path.realpath(file): text}, "digest": "0123456789ab"}))
    program = (
        "from polyop.core import log\nfrom polyop.loops.library.library import compiler_digest\n"
        "print(getattr(log, 'MUTATED', False), compiler_digest()[-12:])"
    )
    environment = {**os.environ, "PYTHONPATH": str(mutants_tool.TOOL / "hook")}
    seen = [
        subprocess.run(
            [sys.executable, "-c", program], env=environment | own, capture_output=True, text=True, check=True
        ).stdout.split()
        for own in ({"POLYOP_MUTANT": str(plan)}, {})
    ]
    assert seen[0] == ["True", "0123456789ab"]
    assert seen[1][0] == "False"
    assert seen[1][1] != "0123456789ab"


def test_a_comparison_names_the_lost_kill(tool):
    def rows(**results):
        return {
            name: {"name": name, "result": result, "by": f"tests/{name}"} for name, result in results.items()
        }

    before = rows(a="killed", b="timeout", c="survived", d="killed")
    after = rows(a="survived", b="killed", c="killed")
    assert tool["report"].compared(before, after) == [
        "3 mutants in both runs: 1 are no longer killed, 1 are killed now",
        "lost  a: survived, killed by tests/a",
        "won   c: survived, killed by tests/c",
        "1 only before",
    ]


def test_the_table_of_rooms(tool):
    rows = [
        {"room": "core", "kind": "row", "result": "killed"},
        {"room": "core", "kind": "row", "result": "not covered"},
        {"room": "core", "kind": "past", "result": "timeout"},
    ]
    lines = tool["report"].table(rows)
    assert [line[0] for line in lines] == ["core", "all rooms", "past bugs"]
    assert lines[0][1:7] == ["2", "1", "0", "0", "1", "50%"]
    assert lines[2][1:4] == ["1", "1", "1"]
