"""The fuzzer of the whole language: it draws every construct and every word, knows its rounding, and finds bugs."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from language import draw, shrink, traced
from language.constructs import COMPLEX, EXPRESSIONS, FLOAT8, INT, REAL, STATEMENTS
from language.contractions import FORMS
from language.program import Program
from polyop.core.errors import PolyopError
from polyop.loops.frontend.language import WORDS
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.plain import plain

FUZZ = Path(__file__).with_name("fuzz_language.py")
numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 promotes Python numbers by their value; a kernel promotes as NumPy 2",
)
WITHOUT_MEANING = ("block_realize",)
"""Words that are accepted and do nothing; ``attr`` stands for both."""

FEW_VALUES = ("float8_e8m0fnu", "float4_e2m1fn")
"""Casts that few numbers survive; tests/loops/test_byte_floats.py tries all their values."""


@pytest.fixture(scope="module")
def drawn():
    """Random kernels with all constructs."""
    return [draw.program(1, number) for number in range(600)]


def test_each_construct_is_drawn(drawn):
    counts = Counter(name for program in drawn for name in program.counts)
    names = [row.construct for row in (*EXPRESSIONS, *STATEMENTS, *FORMS)]
    assert {name: counts[name] for name in names if counts[name] < 2} == {}
    assert counts["deterministic"] > 50
    for step in ("tile", "interchange", "fuse", "unroll", "parallel", "vectorize"):
        assert counts[f"schedule: {step}"] > 3, step


def test_each_word_and_each_dtype_is_drawn(drawn):
    words = Counter(word for program in drawn for word in set(re.findall(r"math\.\w+|\w+", program.text)))
    left_out = {*WITHOUT_MEANING, *FEW_VALUES}
    assert [word for word in WORDS if not words[word] and word not in left_out] == []
    dtypes = Counter(dtype for program in drawn for dtype, _ in program.tensors.values())
    assert [name for name in ("bool", *INT, *REAL, *COMPLEX, *FLOAT8) if dtypes[name] < 5] == []


@numpy_2
def test_most_kernels_are_taken_and_traced_as_plain_python_runs_them(drawn):
    results = Counter()
    for number, program in enumerate(drawn[:60]):
        function, arrays = program.function(), program.arrays(number)
        try:
            parse(function, program.types, program.attributes)
        except PolyopError:
            results["refused"] += 1
            continue
        try:
            values, _, _ = traced.run(function, arrays, program.attributes)
            expected = plain(function)(
                *(None if a is None else a.copy() for a in arrays), **program.attributes
            )
        except (traced.Undecided, IndexError, ValueError, ArithmeticError, TypeError):
            continue
        expected = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(values, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=program.text)
        results["traced"] += 1
    assert results["refused"] < 20
    assert results["traced"] > 25


@numpy_2
def test_the_bound_covers_other_orders_and_more_digits():
    def f(x):
        y = output_tensor((3,), x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            y[0] += x[i] / 3
            y[1] += x[i] * 2
        y[2] = exp(y[0])  # noqa: F821
        return y

    x = (np.arange(20) - 7).astype(np.float32)
    (values,), (bounds,), _ = traced.run(f, [x], {})
    exact = np.array([np.sum(x.astype(float) / 3), np.sum(x * 2), np.exp(np.sum(x.astype(float) / 3))])
    assert np.all(np.abs(values - exact) <= bounds)
    assert bounds[1] == 0
    assert 0 < bounds[0] < 1e-3


@numpy_2
def test_a_comparison_that_rounding_decides_is_no_value():
    def f(x):
        y = output_tensor((1,), x.dtype)  # noqa: F821
        if x[0] / 3 + x[0] / 3 + x[0] / 3 > x[0]:
            y[0] = 1
        return y

    with pytest.raises(traced.Undecided):
        traced.run(f, [np.ones(1)], {})


def test_a_failing_kernel_becomes_small():
    text = "def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    for i in range(x.shape[0]):\n"
    text += "        if x[i] > 0:\n            y[i] = exp(x[i]) + x[i] * 2\n        y[i] += 1\n    return y\n"
    program = Program(text, {"x": ("float64", ("N",))}, {}, {"N": 2}, "double")
    small = shrink.shrunk(program, lambda other: "exp" in other.text, 200)
    assert len(small.text.splitlines()) == 3, small.text
    assert "exp(" in small.text


@pytest.mark.slow
@numpy_2
@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ("results[0].reshape(-1).view(np.uint8)[:1] ^= 3", "output 0 is"),
        ("import os; os.kill(os.getpid(), 11)", "exit status -11"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGPROF)", "a hang"),
    ],
)
def test_the_fuzzer_finds_bugs(tmp_path, broken, word):
    """A wrong result, a crash and a hang are findings, each with a program."""
    folder = tmp_path / "tests" / "loops"
    folder.mkdir(parents=True)
    (folder / "fuzz_language.py").write_text(FUZZ.read_text())
    support = tmp_path / "tests" / "support"
    (support / "language").mkdir(parents=True)
    for file in (FUZZ.parents[1] / "support").iterdir():
        if file.name != "language":
            (support / file.name).symlink_to(file)
    for file in (FUZZ.parents[1] / "support" / "language").glob("*.py"):
        text = file.read_text()
        place = '        close("values", results, values, bounds)\n'
        (support / "language" / file.name).write_text(text.replace(place, f"        {broken}\n{place}"))
    command = [sys.executable, folder / "fuzz_language.py", "--seed", "2", "--count", "3", "--shrink", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "finding: seed 2, kernel" in done.stdout
    assert word in done.stdout
    assert "@polyop.kernel" in done.stdout
