"""Budgets that keep the code readable: files, functions, comments, leftovers."""

import ast
import pathlib
import re
import statistics
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PYTHON = sorted((ROOT / "src").rglob("*.py"))
NATIVE = sorted([*(ROOT / "csrc").rglob("*.[ch]*"), *(ROOT / "include").rglob("*.h")])
PAGE = r"(?<![\w./])docs/\w"
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def lines(path):
    return path.read_text().count("\n")


def test_files_are_short():
    long = [f"{p.relative_to(ROOT)}: {lines(p)}" for p in (*PYTHON, *NATIVE, *TESTS) if lines(p) > 500]
    assert not long, long
    assert statistics.median(map(lines, PYTHON)) <= 150
    assert statistics.median(map(lines, NATIVE)) <= 150


def functions(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def test_functions_are_short():
    long = [
        f"{p.relative_to(ROOT)}:{f.lineno} {f.name}"
        for p in PYTHON
        for f in functions(p)
        if f.end_lineno - f.lineno + 1 > 60
    ]
    assert not long, long


@pytest.mark.slow
def test_arguments_are_typed():
    untyped = []
    for path in PYTHON:
        for function in functions(path):
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            bare = [a.arg for a in arguments if a.annotation is None and a.arg not in ("self", "cls")]
            untyped += [
                f"{path.relative_to(ROOT)}:{function.lineno} {function.name}({name})" for name in bare
            ]
    assert not untyped, untyped


@pytest.mark.slow
def test_public_things_have_docstrings():
    bare = []
    for path in PYTHON:
        tree = ast.parse(path.read_text())
        nodes = [
            tree,
            *(
                n
                for n in tree.body
                if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not n.name.startswith("_")
            ),
        ]
        bare += [
            f"{path.relative_to(ROOT)}: {getattr(n, 'name', 'module')}"
            for n in nodes
            if not ast.get_docstring(n)
        ]
    assert not bare, bare


def test_no_text_of_the_package_names_a_page_of_the_repository():
    """An installed package has no such folder: docstrings, errors and hints say it themselves."""
    cited = []
    for path in [*(ROOT / "src").rglob("*"), *(ROOT / "include").rglob("*")]:
        if path.suffix in (".py", ".in", ".j2", ".js", ".h", ".hpp"):
            numbered = enumerate(path.read_text().splitlines(), 1)
            cited += [f"{path.relative_to(ROOT)}:{k}" for k, line in numbered if re.search(PAGE, line)]
    assert not cited, cited


def test_no_leftovers():
    marks = ("TO" + "DO", "FIX" + "ME", "X" + "XX")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    leftovers = [
        f"{name}: {w}"
        for name in tracked
        if name.endswith((".py", ".cc", ".h", ".md")) and (ROOT / name).exists()
        for w in marks
        if w in (ROOT / name).read_text()
    ]
    assert not leftovers, leftovers


def test_the_root_is_small():
    visible = [
        p.name for p in ROOT.iterdir() if not p.name.startswith(".") and p.name not in ("build", "dist")
    ]
    assert len(visible) <= 16, sorted(visible)
