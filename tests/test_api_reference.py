"""docs/reference/api.md: what tools/api_reference.py writes now, with every public name in it."""

import argparse
import importlib
import importlib.util
import pathlib
import re

import pytest

import polyop
from polyop.cli.main import VERBS
from polyop.core import errors

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "api.md"

for needed in ("torch", "jax", "setuptools"):
    pytest.importorskip(needed, reason=f"not run: what is on the page imports {needed}")


@pytest.fixture(scope="session")
def tool():
    spec = importlib.util.spec_from_file_location("api_reference", ROOT / "tools" / "api_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(title):
    match = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE.read_text(), re.S | re.M)
    assert match, f"docs/reference/api.md has no section {title}: run 'make golden'"
    return match[2]


def test_the_page_is_of_these_docstrings(tool, request):
    text = tool.text()
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text)
    assert text == PAGE.read_text(), "docs/reference/api.md is of other docstrings: run 'make golden'"
    assert text == tool.text()  # nothing in it depends on what was imported or run before


def test_every_public_name_of_polyop_has_a_section():
    for name in polyop.__all__:
        assert section(f"polyop.{name}").strip(), name


@pytest.mark.parametrize(
    "module",
    [
        "polyop.testing",
        "polyop.wheel",
        "polyop.graph",
        "polyop.graph.onnx",
        "polyop.graph.torchair",
        "polyop.networks.weights",
        "polyop.mindspore",
        "polyop.mindspore.nn",
        "polyop.mindspore.ops",
    ],
)
def test_every_public_name_of_the_modules_is_there(module):
    text = PAGE.read_text()
    text = re.search(rf"^## {re.escape(module)}\n(.*?)(?=^## )", text, re.S | re.M)[1]
    for name in importlib.import_module(module).__all__:
        if not name.startswith("_"):
            assert re.search(rf"^### {re.escape(module)}\.{name}$|`([\w.]+\.)?{name}`", text, re.M), name


def test_every_error_and_every_verb_is_there():
    rows = section("Errors")
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert f"| `{name}` |" in rows
    for verb in VERBS:
        assert re.search(rf"^### polyop {verb}\n", PAGE.read_text(), re.M), verb
    assert "| `-o`, `--output` | the Python file; '-' prints it |" in section("polyop graph reg-op")
    assert "`--older-than`" in section("polyop cache clear")


def test_a_section_has_signature_text_arguments_and_example():
    text = section("polyop.operator")
    assert "    schema: str,\n    kernels: Any,\n    *,\n    infer: Callable" in text
    assert "\nReturn an operator that every host present can call.\n" in text
    assert "\n- `dtypes`: the dtypes that the kernels take; inputs of others are refused." in text
    assert "```python\n>>> import numpy as np\n>>> half = operator(" in text
    assert "\nRaises `SchemaError`, `InferError`" in text
    assert "* `Library.define(" in section("polyop.Library")
    assert "``" not in re.sub("```", "", PAGE.read_text())


def test_how_docstrings_are_read(tool):
    doc = """First, with :func:`a` and ``b``.

``x``        a tensor
             of two lines
``y``, ``z`` numbers

As in::

    f(1)

Or ::

    g(1)

>>> f(2)
3

``c`` begins a sentence."""
    assert tool._prose(doc) == (
        "\nFirst, with `a` and `b`.\n"
        "\n- `x`: a tensor\n  of two lines\n- `y`, `z`: numbers\n"
        "\nAs in:\n"
        "\n```python\nf(1)\n```\n"
        "\nOr\n"
        "\n```python\ng(1)\n```\n"
        "\n```python\n>>> f(2)\n3\n```\n"
        "\n`c` begins a sentence.\n"
    )

    def short(a, /, b: int = 2, *rest: str, c: "list[int]" = (), **more): ...

    assert tool._signature("short", short) == "short(a, /, b: int = 2, *rest: str, c: list[int] = (), **more)"

    def named(a, *, flag: bool = False) -> None: ...

    assert tool._signature("named", named) == "named(a, *, flag: bool = False) -> None"


def test_how_verbs_are_read(tool):
    top = argparse.ArgumentParser()
    verbs = top.add_subparsers(metavar="VERB")
    verb = verbs.add_parser("make", help="make a thing")
    verb.add_argument("files", nargs="+", metavar="FILE", help="what of")
    verb.add_argument("--kind", choices=["a", "b"], default="a", help="the kind (default: %(default)s)")
    verb.add_argument("-q", "--quiet", action="store_true", help="a|b")
    text = "".join(tool._verbs(top, "polyop"))
    assert "```\npolyop make FILE [...] [--kind {a,b}] [--quiet]\n```\n\nMake a thing.\n" in text
    assert "| `--kind` | the kind (default: a) |\n| `-q`, `--quiet` | a\\|b |\n" in text
