"""The C of a kernel in one file or in two, and which operands a register tile packs."""
# ruff: noqa: F821 - the language's words are not names of this module

import functools
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.loops.emit.c import program as printed
from polyop.loops.emit.printer import c_file
from polyop.loops.emit.printer import notes as notes_of
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa


def products(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    d = output_tensor((b.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(b.shape[0]):
                c[i, j] += a[i, k] * b[k, j]
    for i in range(b.shape[0]):
        for j in range(b.shape[0]):
            d[i, j] = 0.0
            for k in range(b.shape[1]):
                d[i, j] += b[i, k] * b[j, k]
    return c, d


def taps(x, d):
    w = output_tensor((d.shape[0], x.shape[1], x.shape[0] - d.shape[1] + 1), x.dtype)
    for o in range(d.shape[0]):
        for c in range(x.shape[1]):
            for p in range(w.shape[2]):
                total = 0.0
                for i in range(d.shape[1]):
                    total += d[o, i] * x[i + p, c]
                w[o, c, p] = total
    return w


def turned(x, w):
    y = output_tensor((w.shape[1], x.shape[1]), x.dtype)
    for o in range(w.shape[1]):
        for c in range(x.shape[1]):
            total = 0.0
            for p in range(x.shape[0]):
                total += x[p, c] * w[p, o]
            y[o, c] = total
    return y


def scheduled(function):
    return schedule(parse(function, [("float32", 2), ("float32", 2)], {}))


def files(function, *, long):
    """Return the whole text and its files, if more than ``long`` characters are divided in two."""
    whole = c_file(scheduled(function), isa.available()[0], "loop_f")
    before, printed.PART_SIZE = printed.PART_SIZE, long
    try:
        return whole, whole.files()
    finally:
        printed.PART_SIZE = before


def test_a_short_kernel_is_one_file():
    whole, texts = files(products, long=10**9)
    assert texts == [whole.text()]


def test_one_loop_of_threads_is_apart_from_checks_that_are_long():
    whole, texts = files(turned, long=0)
    assert len(whole.parts) == 1
    assert ["polyop_misfit(" in text for text in texts] == [True, False]
    assert ["int thread) {" in text for text in texts] == [False, True]
    rest = len(whole.rest)
    assert files(turned, long=4 * rest + 4)[1] == [whole.text()]


def test_each_function_is_in_one_of_two_files():
    whole, texts = files(products, long=0)
    assert len(texts) == 2
    bodies = [re.findall(r"^void (part\d+)\(.*\) \{", text, re.MULTILINE) for text in texts]
    assert sorted(name for names in bodies for name in names) == [f"part{k}" for k in range(len(whole.parts))]
    assert all(bodies)
    assert ["int loop_f(" in text for text in texts] == [True, False]


def test_two_files_are_one_library_that_exports_the_kernel_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(printed, "PART_SIZE", 0)
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))
    op = polyop.Custom(products, func_type="hybrid")
    a, b = np.random.default_rng(0).normal(size=(2, 37, 37))
    c, d = op(a, b)
    np.testing.assert_allclose(c, a @ b)
    np.testing.assert_allclose(d, b @ b.T)
    (library,) = tmp_path.rglob("*.so")
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    names = [row.split()[-1] for row in text.stdout.splitlines()]
    assert [name for name in names if name.startswith("loop_")] == ["loop_products"]
    assert not [name for name in names if "part" in name]


@pytest.mark.parametrize(("function", "packed"), [(taps, False), (turned, True)])
def test_a_window_of_rows_is_read_where_it_is(function, packed):
    program = scheduled(function)
    notes = [note for note in notes_of(program, isa.available()[0]) if "tiled in registers" in note.text]
    assert [("packed" in note.text) for note in notes] == [packed]
    assert ("_panel" in source_of(program, isa.available()[0], "f")) is packed


def across(x, w):
    y = output_tensor((x.shape[1], w.shape[1]), x.dtype)
    for o in range(w.shape[1]):
        for c in range(x.shape[1]):
            total = 0.0
            for p in range(x.shape[0]):
                total += x[p, c] * w[p, o]
            y[c, o] = total
    return y


def test_strided_stores_that_a_tile_makes_once_are_calls():
    source = source_of(scheduled(across), isa.available()[0], "f")
    assert "scatter_n_f32" in source
    assert not re.search(r"scatter_f32", source)


def rows_with_rows(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            for k in range(b.shape[1]):
                c[i, j] += a[i, k] * b[j, k]
    return c


def rows_backwards(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            for k in range(b.shape[1]):
                c[i, j] += a[i, k] * b[j, b.shape[1] - 1 - k]
    return c


@pytest.mark.parametrize(("function", "turned"), [(rows_with_rows, True), (rows_backwards, False)])
def test_rows_are_transposed_into_a_panel(function, turned):
    source = source_of(scheduled(function), isa.available()[0], "f")
    assert ("polyop_transpose_f32" in source) is turned
    assert ("b0__panel" in source) is True


CASES = [
    (f, t) for f in (rows_with_rows, rows_backwards, across, taps) for t in ("float32", "float64", "int32")
]


@pytest.fixture(scope="session")
def compiled(batch):
    """Return a function from a case to its operator; all are compiled once."""
    kernels = [parse(f, [(t, 2), (t, 2)], {}) for f, t in CASES]
    path = batch.build(batch.text(kernels, isa.available()[0]))

    @functools.cache
    def of(case):
        rows = [(case[1], ["n", "m"], "")] * 2
        return batch.bound(case[0], rows, {}, path, CASES.index(case))

    return of


@pytest.mark.slow(1)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1]}")
@pytest.mark.parametrize(
    "size", [(0, 3, 4), (1, 1, 1), (7, 5, 3), (6, 64, 16), (13, 70, 33), (5, 129, 1)], ids=str
)
def test_tiles_of_any_size(case, size, compiled):
    n, m, k = size
    random = np.random.default_rng(size)
    shapes = {rows_with_rows: ((n, k), (m, k)), rows_backwards: ((n, k), (m, k))}
    shapes |= {across: ((k, n), (k, m)), taps: ((k + 2, m), (n, k))}
    a, b = (random.integers(-4, 5, shape).astype(case[1]) for shape in shapes[case[0]])
    expected = {
        rows_with_rows: lambda: a @ b.T,
        rows_backwards: lambda: a @ b[:, ::-1].T,
        across: lambda: a.T @ b,
        taps: lambda: np.stack([b @ a[p : p + k] for p in range(3)], axis=2),
    }
    (result,) = compiled(case)(a, b)
    np.testing.assert_array_equal(result, expected[case[0]]())


CLANG = """
import sys, numpy as np, polyop, warnings
warnings.simplefilter("error")
sys.path.insert(0, {folder!r})
from rows import halved
x = np.arange(1001.0)
try:
    np.testing.assert_array_equal(polyop.Custom(halved, func_type="hybrid")(x), x / 2)
except polyop.FallbackWarning as warning:
    print(warning)
"""
HALVED = """
def halved(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] / 2
    return y
"""


@pytest.mark.skipif(shutil.which("clang") is None, reason="not run: clang is not installed")
@pytest.mark.parametrize("name", isa.available())
def test_clang_gets_the_flags_of_the_instruction_set(name, tmp_path):
    (tmp_path / "rows.py").write_text(HALVED)
    registers = {"avx512": "%zmm", "avx2": "%ymm"}.get(name, "")
    done = _by_clang(tmp_path, name, "clang -Werror")
    assert not done, done
    [library] = (tmp_path / "cache").rglob("*.so")
    code = subprocess.run(["objdump", "-d", str(library)], check=True, capture_output=True, text=True).stdout
    assert registers in code


@pytest.mark.skipif(shutil.which("clang") is None, reason="not run: clang is not installed")
@pytest.mark.skipif(len(isa.family()) == 1, reason="not run: this processor family has one instruction set")
def test_clang_gives_a_warning_for_a_portable_library(tmp_path):
    (tmp_path / "rows.py").write_text(HALVED)
    assert "clang makes all parts of a portable library" in _by_clang(tmp_path, isa.PORTABLE, "clang")


def _by_clang(folder, name, compiler):
    settings = {"CC": compiler, "POLYOP_LOOPS_ISA": name, "POLYOP_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", CLANG.format(folder=str(folder))]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
