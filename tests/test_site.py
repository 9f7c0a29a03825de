"""The documents as a site: built by the command of `make docs`, with its links; the halves of coming-from pages.

The site is built of a clean copy, so that it needs no file that is not the project's. The build runs the tutorials,
whose cells assert what they claim.
"""

import html.parser
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
HALVES = sorted((ROOT / "examples" / "coming_from").glob("*.py"))
NEEDED = {"torch_library": "torch", "jax_ffi": "jax", "tvm_ffi_function": "tvm_ffi", "numba_loops": "numba"}


class Links(html.parser.HTMLParser):
    """What a page links to, and what it loads."""

    def __init__(self, page):
        super().__init__()
        self.targets, self.loaded = [], []
        self.feed(page.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "a" and given.get("href"):
            self.targets.append(given["href"])
        elif tag in ("script", "img", "iframe") and given.get("src"):
            self.loaded.append(given["src"])
        elif tag == "link" and given.get("rel") == "stylesheet":
            self.loaded.append(given["href"])


def copy(folder):
    """Copy the project without what was built."""
    for name in ("docs", "examples", "src", "include", "csrc", "tests", "bench", "tools"):
        ignored = shutil.ignore_patterns("__pycache__", "__polyop__", "*.so", "*.egg-info")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.rmtree(folder / "bench" / "build", ignore_errors=True)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)


@pytest.mark.slow(more=2)
def test_the_site_of_a_clean_copy(tmp_path):
    for name in ("sphinx", "myst_nb", "furo", "sklearn"):
        pytest.importorskip(name, reason="not run: docs/requirements.txt is not installed")
    copy(tmp_path / "project")
    site = tmp_path / "site"
    command = [sys.executable, "tools/documentation/build.py", str(site), "--work", str(tmp_path / "work")]
    done = subprocess.run(command, cwd=tmp_path / "project", capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    assert (site / "searchindex.js").stat().st_size > 100_000
    pages = {page: Links(page) for page in site.rglob("*.html")}
    for page, links in pages.items():
        for target in links.targets + links.loaded:
            path, _, _ = target.partition("#")
            if path and not path.startswith(("http", "mailto:", "data:")):
                assert (page.parent / path.partition("?")[0]).exists(), f"{page.relative_to(site)}: {target}"
        assert not [one for one in links.loaded if one.startswith(("http", "//"))], page  # works offline
    sidebars = {(page.parent / target).resolve() for page in (site / "index.html", site / "docs" / "design.html")
                for target in pages[page].targets}  # fmt: skip
    for path in (*(ROOT / "docs").rglob("*.md"), *TUTORIALS):
        name = str(path.relative_to(ROOT).with_suffix(".html"))
        assert (site / name).exists(), name
        assert path.parent.name == "docs" or site / name in sidebars, f"{name} is not in a sidebar"
    captions = {page: (site / page).read_text() for page in ("index.html", "docs/design.html")}
    assert ">Guides<" in captions["index.html"]
    assert ">Internals<" not in captions["index.html"]
    assert ">Guides<" not in captions["docs/design.html"]
    assert len(TUTORIALS) == 5
    for path in TUTORIALS:
        assert "cell_output" in (site / path.relative_to(ROOT).with_suffix(".html")).read_text(), path.name


@pytest.mark.slow(more=18)
@pytest.mark.parametrize("path", HALVES, ids=lambda path: path.stem)
def test_both_halves_of_a_coming_from_page(path):
    if path.stem in NEEDED:
        pytest.importorskip(NEEDED[path.stem], reason="not run: the other library is not installed")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    whole = "both agree\n"
    assert done.stdout in (
        whole,
        *["MindSpore is not installed: its half was not run\n"] * ("mind" in path.stem),
    )
