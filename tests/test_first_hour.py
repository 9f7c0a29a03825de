"""The first hour in a notebook: the cells of the README, then the mistakes of a beginner, each with its words.

``golden/first_hour.txt`` has each mistake and what the notebook shows of its error.
"""

import importlib
import os
import pathlib
import re
import subprocess
import sys
import traceback

import numpy as np
import pytest

import polyop

torch = pytest.importorskip("torch", reason="not run: the README's cells need PyTorch")
pytest.importorskip("jax", reason="not run: the README's cells need JAX")
pytest.importorskip("IPython", reason="not run: the tools of docs/requirements.txt are not installed")

PACKAGE = pathlib.Path(polyop.__file__).parent
README = pathlib.Path(__file__).parents[1] / "README.md"
PRINTED = re.compile(r"print\(.*\)  # (.*)")
BEFORE = """
import pandas, scipy.sparse, torch
import jax.numpy as jnp
from jax.experimental import sparse

plain = polyop.operator("hour::plain(Tensor x) -> Tensor", lambda x: x * x, infer="x")
pair = polyop.operator("hour::pair(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y, batch="elementwise")

def define(schema, kernel=lambda x: x, **options):
    return polyop.operator(schema, kernel, **(options or {"infer": "x"}))

@polyop.kernel
def twice(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
    return y
"""
LOOP = """
@polyop.kernel
def wrong(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = {}
    return {}

wrong(np.ones(3, np.float32))
"""
BARE = """
@polyop.kernel
def bare(x):
    {}
    for i in range(x.shape[0]):
        {}[i] = 2 * x[i]
    {}

bare(np.ones(3, np.float32))
"""
MISTAKES = [
    "leaky(np.ones(2))",
    "leaky(torch.ones(2, dtype=torch.float64))",
    "jax.jit(leaky)(jnp.arange(3))",
    "leaky([1.0, 2.0])",
    "leaky(3.0)",
    "leaky(range(3))",
    "leaky(memoryview(b'abcd'))",
    "leaky(x for x in (1.0, 2.0))",
    "leaky('x.npy')",
    "leaky(None)",
    "leaky(pandas.Series([1.0, 2.0]))",
    "leaky(pandas.DataFrame({'a': [1.0]}))",
    "leaky(np.array([1, 'a'], object))",
    "leaky(np.array(['1', '2']))",
    "leaky(np.array(['2026-01-01'], 'datetime64[D]'))",
    "leaky(np.zeros(2, [('a', np.float32)]))",
    "leaky(np.ma.masked_array([1.0, 2.0], [True, False]))",
    "leaky(scipy.sparse.eye(2, format='csr'))",
    "leaky(torch.eye(2).to_sparse())",
    "leaky(sparse.BCOO.fromdense(jnp.eye(2)))",
    "leaky(x, slop=0.5)",
    "leaky(x, 'steep')",
    "leaky(x, 0.5, 3)",
    "pair(x)",
    "pair(x, torch.ones(2, 2))",
    "pair(torch.ones(2), jnp.ones(2))",
    "pair('text', x)",
    "twice(x, x)",
    "pair(x, np.ones(3, np.float32))",
    "twice(x)",
    "twice(np.float32(1))",
    "twice(np.array(1.0))",
    LOOP.format("scale * x[i]", "y"),
    LOOP.format("np.empty(x[i])", "y"),
    LOOP.format("2 * x[i]", "i"),
    LOOP.format("abs(x[i], 2)", "y"),
    BARE.format("n = x.shape[0]", "y", "return y"),
    BARE.format("y = x", "y", "return y"),
    BARE.format("n = x.shape[0]", "x", "pass"),
    "plain(torch.ones(2, requires_grad=True)).sum().backward()",
    "jax.grad(lambda x: plain(x).sum())(jnp.ones(2))",
    "torch.compile(leaky, backend='eager', fullgraph=True)(torch.ones(2, dtype=torch.float64))",
    "define('hour::a(Tensor x) -> Tensor', dtype=['float32'])",
    "define('hour::a(Tensor x) -> Tensor', dtypes=['flaot32'], infer='x')",
    "define('hour::a(Tenser x) -> Tensor')",
    "define('hour::a(Tensor x) -> Tensor', batch='elementwize')",
    "define('hour::a(Tensor x) -> Tensor', infer='X')",
    "define('a(Tensor x) -> Tensor')",
    "define('hour::part(Tensor x) -> Tensor', lambda x: x[x > 0], dims='n -> k<=n', parallel='n')",
    "define('hour::pieces(Tensor x) -> Tensor[]', lambda x: [x, x], infer=lambda x: [x, x])(x)",
    "define('hour::nothing(Tensor x) -> Tensor', lambda x: None)(x)",
    "define('hour::rows(Tensor x) -> Tensor', lambda x: x[0])(x)",
]


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a cell of a notebook; return what it prints, and its error."""
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.delenv("POLYOP_TRACEBACK", raising=False)
    importlib.reload(
        importlib.import_module("polyop.hosts.jax")
    )  # other tests may have imported it while all frames were shown
    shell = InteractiveShell.instance()
    shell.run_line_magic("colors", "nocolor")

    def run_cell(cell):
        done = shell.run_cell(cell.strip("\n"), store_history=True)
        return capsys.readouterr().out, done.error_in_exec or done.error_before_exec

    try:
        yield run_cell
    finally:
        torch._dynamo.reset()  # it holds on to names of the cells
        InteractiveShell.clear_instance()


@pytest.mark.slow(1)
def test_the_first_hour(run, golden):
    cells = re.findall(
        r"<!-- from \S+ \[\w+\] -->\n```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL
    )
    for cell in cells:
        printed, problem = run(cell)
        assert problem is None, (cell, problem)
        for result in PRINTED.findall(cell):
            wanted, squeezed = (re.sub(r"\s+", "", text) for text in (result, printed))
            assert wanted in squeezed or not result.startswith(("[", "tensor")), (result, printed)
    assert run(BEFORE)[1] is None
    page = []
    for cell in MISTAKES:
        printed, problem = run(cell)
        assert problem is not None, (cell, printed)
        words = f"{type(problem).__name__}: {problem}"
        frames = printed.split(words)[0]
        assert str(PACKAGE) not in frames or "torch.compile" in cell, frames
        assert "site-packages" in frames or len(frames.splitlines()) <= 9, (
            frames
        )  # the cell, and a function in it
        page.append("\n".join([">>> " + cell.strip("\n").replace("\n", "\n... "), words]))
    golden("first_hour.txt", "\n\n".join(page) + "\n")


PROGRAM = """
import numpy as np, polyop

def kernel(x):
    return np.ones(x.shape)[7]

def refused(op, x):
    op(x)

op = polyop.operator("hour::{name}(Tensor x) -> Tensor", kernel, infer="x")
refused(op, {argument})
"""


@pytest.mark.parametrize(
    ("name", "argument", "shown"),
    [
        ("words", "'text'", ["<module>", "refused"]),  # an error of polyop
        ("index", "np.ones(2)", ["<module>", "refused", "kernel"]),  # an error of the author's kernel
    ],
)
@pytest.mark.parametrize("full", [False, True])
def test_a_program_shows_its_own_frames(tmp_path, name, argument, shown, full):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(name=name, argument=argument))
    environment = {**os.environ, "POLYOP_TRACEBACK": "full" if full else ""}
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=False, env=environment
    )
    frames = re.findall(r'^  File "(.*)", line \d+, in (.*)$', done.stderr, re.M)
    assert [function for file, function in frames if file == str(path)] == shown
    assert any("_slow" in frame for frame in frames) == full
    assert full or len(frames) == len(shown), done.stderr


def names_of(problem):
    return [frame.name for frame in traceback.extract_tb(problem.__traceback__)]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="not run: Python 3.10 shows all frames")
def test_frames_of_the_author_s_own_errors_stay(monkeypatch):
    """What NumPy raised below an author's kernel, and what the author had caught before the call."""
    monkeypatch.delenv("POLYOP_TRACEBACK", raising=False)

    def inverse(x):
        return np.linalg.inv(x * 0)

    op = polyop.operator("hour::inverse(Tensor x) -> Tensor", inverse, infer="x")
    with pytest.raises(np.linalg.LinAlgError) as raised:
        op(np.ones((2, 2)))
    assert names_of(raised.value)[1:3] == ["inverse", "inv"]
    with pytest.raises(polyop.PolyopError) as raised:
        try:
            np.linalg.inv(np.zeros((2, 2)))
        except np.linalg.LinAlgError:
            op("text")
    assert len(names_of(raised.value)) == 1
    assert names_of(raised.value.__context__)[1] == "inv"
