"""The code in the documents is the code of files that the tests run.

``<!-- from examples/01_first/main.py [define] -->`` before a code block names the file, and
the region between ``[define]`` and ``[/define]`` in it; ``make golden`` copies it again.
"""

import pathlib
import re
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"(<!-- from (?P<file>\S+?)(?: \[(?P<region>\w+)\])? -->\n```[^\n]*\n)(?P<code>.*?)(```)", re.S
)


def wanted(file, region):
    text = (ROOT / file).read_text()
    if region:
        found = re.search(rf"^[^\n]*\[{region}\][^\n]*\n(.*?)^[^\n]*\[/{region}\]", text, re.S | re.M)
        assert found, f"{file} has no region [{region}]"
        text = found[1]
    return re.sub(r"  # noqa: \w+", "", textwrap.dedent(text).rstrip() + "\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_is_included_from_files(page, request):
    text = page.read_text()
    if request.config.getoption("--update-golden"):
        text = BLOCK.sub(lambda m: m[1] + wanted(m["file"], m["region"]) + m[5], text)
        page.write_text(text)
    for match in BLOCK.finditer(text):
        assert match["code"] == wanted(match["file"], match["region"]), f"{page.name}: run 'make golden'"


def test_the_first_pages_include_code():
    assert all(
        BLOCK.search((ROOT / name).read_text())
        for name in ("README.md", "docs/start/getting-started.md", "docs/guides/aot-kernels.md")
    )


def test_links_lead_somewhere():
    others = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(ROOT / "examples").rglob("*.md")]
    for page in (*PAGES, *others):
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
