"""tools/mutants: which tests run for a mutant, in which order, and what becomes of it."""

import sys

import pytest

import mutants_tool


@pytest.fixture(scope="module")
def tool():
    with mutants_tool.modules() as modules:
        yield modules


MEASURED = {  # seconds, the lines of MODULE that it runs, and what the report has beside
    "tests/test_a.py::test_far": (0.1, {4}, ""),
    "tests/test_a.py::test_through": (0.2, {4, 5}, ""),
    "tests/core/test_log.py::test_one[a::b]": (0.3, {4, 5, 6}, ""),
    "tests/core/test_other.py::test_of_the_room": (1, set(), ""),
    "tests/core/test_log.py::test_slow": (99, {4, 5, 6}, ""),
    "tests/core/test_log.py::test_fails": (0, {4, 5, 6}, "<failure />"),
}
MODULE = """TABLE = (1, 2, 3)

def f(x):
    if x > 1:
        x += 1
        return x in TABLE

def g(x):
    return x
"""


@pytest.fixture
def measured(tool, tmp_path):
    """Give the tests of a small tree that was measured."""
    file = tmp_path / "src" / "polyop" / "core" / "log.py"
    file.parent.mkdir(parents=True)
    file.write_text(MODULE)
    data, report = tool["covering"].CoverageData(str(tmp_path / "coverage.db")), ""
    for test, (seconds, lines, bad) in MEASURED.items():
        path = tmp_path / test.partition("::")[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        data.set_context(f"{test}|run")
        data.add_lines({str(file): lines})
        group, name = tool["durations"].key_of(test)
        report += f'<testcase classname="{group}" name="{name}" time="{seconds}">{bad}</testcase>'
    data.write()
    (tmp_path / "tests.xml").write_text(f"<testsuite>{report}</testsuite>")
    return tool["covering"].Tests(tmp_path, tmp_path / "coverage.db", tmp_path / "tests.xml")


FAR, THROUGH, NEAREST, ROOM, *_ = MEASURED


@pytest.mark.parametrize(
    ("before", "scope", "covering", "others"),
    [
        ("x += 1", "f", [NEAREST, THROUGH], [FAR, ROOM]),
        ("if x > 1:", "f", [NEAREST, FAR, THROUGH], [ROOM]),
        ("TABLE = (1, 2, 3)", "TABLE", [NEAREST], [THROUGH, FAR, ROOM]),
        ("return x", "g", [], [NEAREST, FAR, THROUGH, ROOM]),
    ],
)
def test_tests_that_cover_a_line_come_first(tool, measured, before, scope, covering, others):
    change = tool["places"].Change("core/log.py", before, "pass", scope)
    chosen = measured.chosen(tool["listing"].Mutant("a", "call", (change,)))
    assert chosen.tests[: chosen.covering] == covering
    assert sorted(chosen.tests[chosen.covering :]) == sorted(others)


def test_a_test_kills_a_mutant(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it takes a second to load them
    monkeypatch.setattr(tool["trial"], "PYTEST", tool["trial"].PYTEST[:-1])  # without hypothesis
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --doctest-modules\n")
    small = '"""Small.\n\n>>> SIZE > 0\nTrue\n"""\nSIZE = 1\n'  # pytest collects it, for its doctest
    (tmp_path / "small.py").write_text(small)
    tests = "import small\n" + "".join(
        f"def test_{name}(): assert {text}\n"
        for name, text in (("a", "0"), ("b", "small.SIZE"), ("c", "small.SIZE < 2"))
    )
    (tmp_path / "test_small.py").write_text(tests)
    chosen = ["small.py::small", *(f"test_small.py::test_{name}" for name in "bca")]  # the last does not run
    place = tool["trial"].Place(tmp_path, tmp_path / "no-cache", tmp_path / "work")
    row = tool["trial"].tried({str(tmp_path / "small.py"): small.replace("1", "2")}, chosen, place)
    expected = {"ran": 3, "result": "killed", "by": "test_small.py::test_c", "why": "AssertionError"}
    assert {name: row[name] for name in expected} == expected
