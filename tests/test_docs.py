"""The code in the documents is the code of files that the tests run.

``<!-- from examples/01_first/main.py [define] -->`` before a code block names the file, and
the region between ``[define]`` and ``[/define]`` in it; ``make golden`` copies it again.

``<!-- output of python add_a_pass.py -->`` before a block: what that command prints in examples/internals.
``<!-- passes -->`` before a table: the passes of the loop compiler.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap

import pytest

from polyop.loops.derive.pipelines import PIPELINES
from polyop.loops.pipeline import PIPELINE

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"(<!-- from (?P<file>\S+?)(?: \[(?P<region>\w+)\])? -->\n```[^\n]*\n)(?P<code>.*?)(```)", re.S
)
OUTPUT = re.compile(r"(<!-- output of (?P<command>[^\n]+) -->\n```[^\n]*\n)(?P<text>.*?)(```)", re.S)
PASSES = re.compile(r"(<!-- passes(?: of (?P<form>\w+))? -->\n)(?P<text>.*?)(<!-- /passes -->)", re.S)
VARIABLE = re.compile(r"""["'](POLYOP_[A-Z_]+)["']""")
FENCED = re.compile(r"```.*?```", re.S)
STEP = re.compile(r"\]\((\.\./\.\./[^)#]+)\) ((?:`[\w.:]+`(?:, )?)+)")
INTERNALS = sorted((ROOT / "examples" / "internals").glob("*.py"))


def text_of(file, region):
    text = (ROOT / file).read_text()
    if region:
        match = re.search(rf"^[^\n]*\[{region}\][^\n]*\n(.*?)^[^\n]*\[/{region}\]", text, re.S | re.M)
        assert match, f"{file} has no region [{region}]"
        text = match[1]
    return re.sub(r"  # noqa: \w+", "", textwrap.dedent(text).rstrip() + "\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_is_included_from_files(page, request):
    text = page.read_text()
    if request.config.getoption("--update-golden"):
        text = BLOCK.sub(lambda m: m[1] + text_of(m["file"], m["region"]) + m[5], text)
        page.write_text(text)
    for match in BLOCK.finditer(text):
        assert match["code"] == text_of(match["file"], match["region"]), f"{page.name}: run 'make golden'"


def printed(command):
    """Return what a command prints in examples/internals; VARIABLE=value may come before it."""
    words, variables = shlex.split(command), {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    start = {"python": [sys.executable], "polyop": [sys.executable, "-m", "polyop"]}[words[0]]
    done = subprocess.run(
        [*start, *words[1:]],
        cwd=ROOT / "examples" / "internals",
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return (done.stdout + done.stderr if "POLYOP_PRINT_AFTER" in variables else done.stdout).strip(
        "\n"
    ) + "\n"


def rows_of_passes(form):
    """Return the table of a derived form's passes; of the compiler's, without a form."""
    rows = ["| number | pass | why | can be skipped |", "| --- | --- | --- | --- |"]
    for number, one in enumerate(PIPELINES[form] if form else PIPELINE, 1):
        rows.append(f"| {number} | `{one.name}` | {one.why} | {'no' if one.needed else 'yes'} |")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "<!-- output of" in page.read_text()], ids=lambda page: page.stem
)
def test_output_is_what_the_command_prints(page, request):
    text = page.read_text()
    if request.config.getoption("--update-golden"):
        text = OUTPUT.sub(lambda m: m[1] + printed(m["command"]) + m[4], text)
        page.write_text(text)
    for match in OUTPUT.finditer(text):
        assert match["text"] == printed(match["command"]), f"{page.name}: run 'make golden'"


def test_the_tables_of_passes_are_those_of_the_compiler(request):
    page = ROOT / "docs" / "internals" / "passes.md"
    text = page.read_text()
    if request.config.getoption("--update-golden"):
        text = PASSES.sub(lambda m: m[1] + rows_of_passes(m["form"]) + m[4], text)
        page.write_text(text)
    tables = list(PASSES.finditer(text))
    assert [table["form"] for table in tables] == [None, *PIPELINES]
    for table in tables:
        assert table["text"] == rows_of_passes(table["form"]), "run 'make golden'"


@pytest.mark.parametrize("path", INTERNALS, ids=lambda path: path.stem)
def test_the_examples_of_the_internals_run(path):
    assert printed(f"python {path.name}")


def test_the_first_pages_include_code():
    assert all(
        BLOCK.search((ROOT / name).read_text())
        for name in ("README.md", "docs/start/getting-started.md", "docs/guides/aot-kernels.md")
    )


def anchors(page):
    """The fragments of a page's headings, as GitHub forms them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    others = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    for page in (*PAGES, *others, *(ROOT / "examples").rglob("*.md")):
        prose = FENCED.sub("", page.read_text())
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose):
            linked = page.parent / target if target else page
            assert linked.exists(), f"{page.name}: {target}"
            known = not anchor or linked.suffix != ".md" or anchor in anchors(linked)
            assert known, f"{page.name}: {target}#{anchor}"


def test_the_walk_through_mindspore_and_ascend_names_what_its_files_have():
    """A step is a link to a file, then functions or classes of it: a class's method as ``Class.method``."""
    page = ROOT / "docs" / "internals" / "mindspore-and-ascend.md"
    steps = STEP.findall(page.read_text())
    assert len(steps) > 50
    for target, names in steps:
        text = (page.parent / target).read_text()
        for name in re.findall(r"\w+", names):
            defined = rf"\b(def|class) {name}\b" if target.endswith(".py") else rf"\b{name}\b"
            assert re.search(defined, text), f"{target}: {name}"


def test_every_environment_variable_is_documented():
    """Files that read the environment name variables as texts; each is a row of the page, and no others are."""
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    files = (path for folder in ("src", "csrc", "include") for path in (ROOT / folder).rglob("*.*"))
    texts = (path.read_text() for path in files if path.suffix in (".py", ".cc", ".h"))
    read = {name for text in texts if re.search(r"environ|getenv", text) for name in VARIABLE.findall(text)}
    assert read == set(re.findall(r"^\| `(POLYOP_\w+)` \|", page, re.M))
