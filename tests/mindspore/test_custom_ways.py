"""Programs with custom operators in four ways: this package's two modes, and real MindSpore's two with our Custom."""

import collections
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest

import polyop
from mindspore_custom.rows import World
from mindspore_custom.ways import ROWS, outcome, table
from polyop.core.errors import PolyopError

REAL = importlib.util.find_spec("mindspore") is not None
SUPPORT = pathlib.Path(__file__).parents[1] / "support" / "mindspore_custom"
FOREIGN = ("torch._dynamo", "fake tensors")  # words of PyTorch's compiler
# PyTorch's own, of its tracing of an autograd.Function; and what the batch of an operator without a rule says
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*vmap runs one call per sample"),
    pytest.mark.filterwarnings("ignore:.*cannot read the gradient rule"),
]
by_name = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    if REAL:
        import mindspore as ms
    else:
        import polyop.mindspore as ms

    kernels = SUPPORT / "kernels.cc"
    library = polyop.build.build([kernels], output=tmp_path_factory.mktemp("custom") / "kernels.so")
    return World(ms, polyop.Custom if REAL else ms.ops.Custom, str(kernels), str(library))


def check(world, row, graph, jit=None):
    if not row.fails(f"{world.ms.__name__} {'graph' if graph else 'pynative'}"):
        assert outcome(world, row, graph, jit) == ""
        return
    with pytest.raises(Exception, match=row.error) as caught:
        outcome(world, row, graph, jit)
    text = str(caught.value)
    # what a Python kernel raises goes through; MindSpore's graphs put it and our errors of a run into their own
    allowed = (PolyopError, KeyError, RuntimeError) if REAL and graph else (PolyopError, KeyError)
    assert isinstance(caught.value, allowed), f"{type(caught.value)}: {text}"
    assert re.search(row.error, text[:800]), text
    assert not [words for words in FOREIGN if words in text], text


@by_name
def test_pynative(world, row):
    check(world, row, graph=False)


@pytest.mark.slow(6, more=240)
@by_name
def test_graph(world, row):
    jit = (
        None if REAL else lambda net: world.ms.jit(net, backend="aot_eager")
    )  # tracing, without compiling C++
    check(world, row, True, jit)


@pytest.mark.slow(more=76)
@pytest.mark.skipif(REAL, reason="the same as test_graph")
@by_name
def test_graph_mode(world, row):
    """With C++ compiled by PyTorch."""
    check(world, row, graph=True)


@pytest.mark.slow(more=2)
@pytest.mark.skipif(not REAL, reason="MindSpore is not installed")
def test_what_mindspore_accepts_is_accepted(tmp_path, capsys):
    found, start = collections.defaultdict(dict), 0
    while start < len(ROWS):
        command = [sys.executable, str(SUPPORT / "own.py"), str(tmp_path), str(start)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        assert lines, done.stderr[-3000:]
        for number, mode, text in lines:
            found[number][mode] = text
        start = lines[-1][0] + 1
    measured = {row.name: _accepted(found[i]) for i, row in enumerate(ROWS) if row.own is not None}
    with capsys.disabled():
        for i, row in enumerate(ROWS):
            print(f"{row.name}: {found[i]}")
    assert measured == {row.name: row.own for row in ROWS if row.own is not None}
    for row in ROWS:
        for mode in ("pynative", "graph") if row.own == "both" else (row.own,) if row.own else ():
            assert not row.fails(f"mindspore {mode}"), row.name
            assert not row.fails(f"polyop.mindspore {mode}"), row.name


def _accepted(modes):
    accepting = [mode for mode, text in modes.items() if text == ""]
    return "both" if len(accepting) == 2 else "".join(accepting)


PAGE = pathlib.Path(__file__).parents[2] / "docs" / "hosts" / "mindspore.md"
TABLE = re.compile(r"(<!-- forms of Custom -->\n)(.*?)(<!-- /forms of Custom -->)", re.S)


def test_the_page_has_the_table(request):
    assert len(ROWS) >= 60
    assert len({row.name for row in ROWS}) == len(ROWS)
    text = PAGE.read_text()
    if request.config.getoption("--update-golden"):
        text = TABLE.sub(lambda m: m[1] + table() + m[3], text)
        PAGE.write_text(text)
    assert [m[2] for m in TABLE.finditer(text)] == [table()]
