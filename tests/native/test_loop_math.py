"""Vector types and functions of polyop/loops: every type and every target that this machine runs, beside NumPy."""

import ctypes
import math
import pathlib
import re
import shutil
import subprocess

import ml_dtypes
import numpy as np
import pytest

from polyop.loops.targets.table import TARGETS

HERE = pathlib.Path(__file__).parent
INCLUDE = HERE.parents[1] / "include"
FLAGS = ["-O3", "-std=gnu11", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
UNFUSED = ("-ffp-contract=off", "-DPOLYOP_UNFUSED")
STRICT = [*FLAGS, "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
CPU = pathlib.Path("/proc/cpuinfo")
VECTOR_BYTES = {"baseline": 16, "avx2": 32, "avx512": 64}
DTYPES = {
    "i8": "i1",
    "i16": "i2",
    "i32": "i4",
    "i64": "i8",
    "u8": "u1",
    "u16": "u2",
    "u32": "u4",
    "u64": "u8",
}
DTYPES |= {"f32": "f4", "f64": "f8"}
TYPES = [(e, w) for w in (1, 2, 4, 8) for e, d in DTYPES.items() if np.dtype(d).itemsize <= w]
OPS = "copy copy_n gather gather_n scatter scatter_n gatherx gatherx_n bcast iota max min sel bool from_bool"
OPS = {name: code for code, name in enumerate([*OPS.split(), "floordiv", "mod", "reduce"])}


def _compiled(source, target, out, *more):
    present = CPU.read_text() if CPU.exists() else ""
    if not all(re.search(rf"\b{flag}\b", present) for flag in TARGETS[target].features):
        pytest.skip(f"not run: this processor has no {target}")
    text = [f'#pragma GCC target("{pragma}")' for pragma in TARGETS[target].pragmas]  # as in a kernel
    whole = out.with_suffix(".c")
    whole.write_text("\n".join([*text, f'#include "{HERE / source}"\n']))
    command = [shutil.which("gcc") or "cc", *STRICT, *more, "-o", str(out), str(whole), "-lm"]
    subprocess.run(command, check=True)
    return out


@pytest.fixture(scope="session", params=VECTOR_BYTES)
def lanes(request, tmp_path_factory):
    """Return the library of loop_lanes.c for one target."""
    out = tmp_path_factory.mktemp("lanes") / "lanes.so"
    library = ctypes.CDLL(str(_compiled("loop_lanes.c", request.param, out, "-shared", "-fPIC")))
    assert library.vector_bytes() == VECTOR_BYTES[request.param]
    library.fenced.restype = ctypes.c_void_p
    return library


def _pointer(array):
    return ctypes.c_void_p(array.ctypes.data if isinstance(array, np.ndarray) else array)


def _values(rng, dtype, n):
    if dtype.kind == "f":
        return rng.normal(0, 3, n).astype(dtype)
    low = np.iinfo(dtype)
    return rng.integers(low.min, low.max, n, dtype, endpoint=True)


class Vectors:
    """One vector type of a library. A call returns the array that the C function wrote."""

    def __init__(self, library, element, width):
        self.library, self.dtype, self.lanes = (
            library,
            np.dtype(DTYPES[element]),
            library.vector_bytes() // width,
        )
        self.function = getattr(library, f"run_{element}v{width}")

    def __call__(self, op, a, b=None, *, out=None, n=0, stride=1, idx=None):
        out = np.full(self.lanes, 77, self.dtype) if out is None else out
        b, idx = (a if b is None else b), (np.zeros(1, np.int64) if idx is None else idx)
        arguments = [
            _pointer(a),
            _pointer(b),
            _pointer(out),
            ctypes.c_long(n),
            ctypes.c_long(stride),
            _pointer(idx),
        ]
        self.any = self.function(OPS[op], *arguments)
        return out


@pytest.fixture(params=TYPES, ids=lambda t: f"{t[0]}v{t[1]}")
def vectors(request, lanes):
    return Vectors(lanes, *request.param)


@pytest.mark.slow
def test_memory(vectors):
    rng, count = np.random.default_rng(1), vectors.lanes
    x = _values(rng, vectors.dtype, 7 * count)
    idx = rng.integers(0, x.size, count)
    assert np.array_equal(vectors("copy", x), x[:count])
    assert np.array_equal(vectors("bcast", x), np.repeat(x[:1], count))
    assert np.array_equal(vectors("iota", x), np.arange(count))
    assert np.array_equal(vectors("gather", x, stride=3), x[: 3 * count : 3])
    assert np.array_equal(vectors("gather", x[-1:], stride=-2), x[: -2 * count - 1 : -2][:count])
    assert np.array_equal(vectors("gatherx", x, idx=idx), x[idx])
    spread = vectors("scatter", x, stride=3, out=np.zeros(3 * count, vectors.dtype))
    assert np.array_equal(spread[::3], x[:count]) and not spread.reshape(-1, 3)[:, 1:].any()


@pytest.mark.slow
def test_first_lanes_only(vectors):
    rng, count = np.random.default_rng(2), vectors.lanes
    x, idx = _values(rng, vectors.dtype, 3 * count), rng.integers(0, 3 * count, count)
    for n in [-5, *range(count + 1), count + 3, 1 << 40]:
        some = min(max(n, 0), count)
        kept = np.arange(count) < some
        assert np.array_equal(vectors("copy_n", x, n=n), np.where(kept, x[:count], 77).astype(vectors.dtype))
        assert np.array_equal(vectors("gather_n", x, n=n, stride=3), np.where(kept, x[::3], 0))
        assert np.array_equal(vectors("gatherx_n", x, n=n, idx=idx), np.where(kept, x[idx], 0))
        spread = vectors("scatter_n", x, n=n, stride=2, out=np.full(2 * count, 9, vectors.dtype))
        assert np.array_equal(spread[::2], np.where(kept, x[:count], 9)) and (spread[1::2] == 9).all()


@pytest.mark.slow(1)
def test_nothing_beyond_the_lanes_is_touched(vectors):
    for n in range(vectors.lanes):
        size = n * vectors.dtype.itemsize
        source, target = vectors.library.fenced(size), vectors.library.fenced(size)
        ctypes.memset(source, 0x33, size)
        vectors("copy_n", source, out=target, n=n)
        assert ctypes.string_at(target, size) == b"\x33" * size
        vectors.library.unfence(ctypes.c_void_p(source))
        vectors.library.unfence(ctypes.c_void_p(target))


@pytest.mark.slow(3)
def test_selection(vectors):
    rng, count = np.random.default_rng(3), vectors.lanes
    for _ in range(20):
        x, y = _values(rng, vectors.dtype, count), _values(rng, vectors.dtype, count)
        x[rng.random(count) < 0.3] = y[0]
        if vectors.dtype.kind == "f":
            x[rng.random(count) < 0.2] = np.nan
            y[rng.random(count) < 0.2] = np.nan
        less = x < y
        assert np.array_equal(vectors("max", x, y), np.maximum(x, y), equal_nan=vectors.dtype.kind == "f")
        assert np.array_equal(vectors("min", x, y), np.minimum(x, y), equal_nan=vectors.dtype.kind == "f")
        assert vectors.any == less.any()
        for op in ("sel", "from_bool"):
            assert vectors(op, x, y).tobytes() == np.where(less, x, y).tobytes()
        assert np.array_equal(vectors("bool", x, y, out=np.zeros(count, np.uint8)), less)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_reductions_fold_halves(vectors):
    rng = np.random.default_rng(4)
    for _ in range(10):
        x = _values(rng, vectors.dtype, vectors.lanes)
        expected = []
        for fold in (np.add, np.multiply, np.maximum, np.minimum):
            y = x
            while y.size > 1:
                y = fold(y[: y.size // 2], y[y.size // 2 :])
            expected.append(y[0])
        assert np.array_equal(vectors("reduce", x, out=np.zeros(64, vectors.dtype))[:4], expected)


def _operands(rng, dtype, n):
    x, y = _values(rng, dtype, n), _values(rng, dtype, n)
    if dtype.kind == "f":
        ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 5, -5, 0.1, -0.1, 1e30, 2.5, -2.5], dtype)
    else:
        ends = np.array(
            [0, 1, 2, 3, 7, np.iinfo(dtype).min, np.iinfo(dtype).max, np.iinfo(dtype).max - 1], dtype
        )
        ends = np.concatenate([ends, -ends]) if dtype.kind == "i" else ends
        y[::2] = rng.integers(0, 5, y[::2].size)
    pairs = np.array([(a, b) for a in ends for b in ends], dtype)
    x, y = np.concatenate([x, pairs[:, 0]]), np.concatenate([y, pairs[:, 1]])
    return x[: x.size // 64 * 64].copy(), y[: x.size // 64 * 64].copy()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value", "ignore:overflow encountered")
def test_floored_division(vectors):
    x, y = _operands(np.random.default_rng(5), vectors.dtype, 2000)
    nan = {"equal_nan": True} if vectors.dtype.kind == "f" else {}
    element = next(e for e, d in DTYPES.items() if np.dtype(d) == vectors.dtype)
    for code, (op, expected) in enumerate({"floordiv": x // y, "mod": x % y}.items()):
        parts = [
            vectors(op, a, b)
            for a, b in zip(x.reshape(-1, vectors.lanes), y.reshape(-1, vectors.lanes), strict=True)
        ]
        one = np.zeros_like(x)
        pointers = [_pointer(x), _pointer(y), _pointer(one)]
        getattr(vectors.library, f"scalar_{element}")(code, *pointers, ctypes.c_long(x.size))
        for result in (np.concatenate(parts), one):
            assert np.array_equal(result, expected, **nan)
            assert (
                np.array_equal(np.signbit(result), np.signbit(expected))
                or not nan
                or _same_signs(result, expected)
            )


def _same_signs(result, expected):
    number = ~np.isnan(expected)
    return np.array_equal(np.signbit(result[number]), np.signbit(expected[number]))


@pytest.mark.slow(2)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow encountered")
@pytest.mark.parametrize(("name", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_short_floats(lanes, name, dtype):
    words = np.arange(1 << 16, dtype=np.uint16)
    wide = [np.zeros(words.size, np.float32) for _ in range(3)]
    getattr(lanes, f"widen_{name}")(_pointer(words), *map(_pointer, wide), ctypes.c_long(words.size))
    expected = words.view(dtype).astype(np.float32)
    rng = np.random.default_rng(6)
    near = np.nextafter(
        np.repeat(expected, 3), np.tile(np.array([-np.inf, 0, np.inf], np.float32), words.size)
    )
    between = ((expected[1:].astype(np.float64) + expected[:-1]) / 2).astype(np.float32)
    x = np.concatenate([near, between, rng.integers(0, 1 << 32, 1 << 18, np.uint32).view(np.float32)])
    x = x[: x.size // 64 * 64].copy()
    narrow = [np.zeros(x.size, np.uint16) for _ in range(3)]
    getattr(lanes, f"narrow_{name}")(_pointer(x), *map(_pointer, narrow), ctypes.c_long(x.size))
    rounded = x.astype(dtype).view(np.uint16)
    finite = ~np.isnan(x)
    for result in wide:
        assert np.array_equal(result, expected, equal_nan=True)
        assert np.array_equal(np.signbit(result), words >> 15 == 1)
    for result in narrow:
        assert np.array_equal(result[finite], rounded[finite])
        assert np.isnan(result[~finite].view(dtype).astype(np.float32)).all()


def _stated_bounds():
    """Return the table in math.h: function -> its bounds for float and double."""
    text = (INCLUDE / "polyop/loops/math.h").read_text()
    rows = re.findall(r"^ \* +(\w+) +(\d\.\d+) +(\d\.\d+)$", text, re.MULTILINE)
    return {name: {"f32": float(single), "f64": float(double)} for name, single, double in rows}


@pytest.mark.slow
@pytest.mark.parametrize("target", VECTOR_BYTES)
@pytest.mark.parametrize("flags", [(), UNFUSED[:1], UNFUSED], ids=["", "not-fused", "fused-by-the-text"])
def test_errors_are_within_the_stated_bounds(target, flags, tmp_path):
    program = _compiled("loop_math.c", target, tmp_path / "ulps", *flags)
    _within_the_bounds([program, "400000"])


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), UNFUSED], ids=["", "fused-by-the-text"])
def test_errors_of_neon(flags, tmp_path):
    compiler, machine = map(shutil.which, ("aarch64-linux-gnu-gcc", "qemu-aarch64"))
    if compiler is None or machine is None:
        pytest.skip("not run: aarch64-linux-gnu-gcc or qemu-aarch64 is not installed")
    program = tmp_path / "ulps"
    command = [compiler, *STRICT, *flags, "-static", "-o", str(program), str(HERE / "loop_math.c"), "-lm"]
    subprocess.run(command, check=True)
    _within_the_bounds([machine, str(program), "60000"])


def _within_the_bounds(command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    bounds, names = _stated_bounds(), set()
    for line in done.stdout.splitlines():
        name, element, worst, at, differing = line.split()
        assert float(worst) <= bounds[name][element], f"{name} of {element}: {worst} ulp at {at}"
        assert int(differing) == 0, f"{name} of {element}: lanes differ from scalars"
        names.add(name)
    assert names == set(bounds) and all(
        math.isfinite(bound) for row in bounds.values() for bound in row.values()
    )


@pytest.mark.parametrize("source", ["loop_lanes.c", "loop_math.c"])
def test_compiles_for_neon(source):
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    if compiler is None:
        pytest.skip("not run: aarch64-linux-gnu-gcc is not installed")
    command = [compiler, *STRICT, "-fsyntax-only", str(HERE / source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
