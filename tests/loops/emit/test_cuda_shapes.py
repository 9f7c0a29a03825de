# ruff: noqa: F821 - kernels, whose words are no names here
"""CUDA: the launches of a loop kernel, its errors, names and memory, and when the GPU's kernel is chosen."""

import functools
import shutil
import subprocess

import numpy as np
import pytest

from polyop import Custom
from polyop.build import cuda
from polyop.call.choose import choose, need
from polyop.core.dtypes import dtype
from polyop.core.errors import KernelError, NoKernelError
from polyop.core.spec import Spec
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.emit.device.program import mapped
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule

F, I = "float32", "int32"


def add(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + z[i, j]
    return y


def transposed(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j]
    return y


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = float32(0)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / total
    return y


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matmul_of_places(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j] * (i - j)
    return c


def sweeps(x, y):
    for _ in range(5):
        for i in range(1, x.shape[0] - 1):
            y[i] = x[i - 1] + x[i + 1]
        for i in range(1, x.shape[0] - 1):
            x[i] = y[i]
    return x, y


def dot(x, z):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):
        y[0] += x[i] * z[i]
    return y


def prefix(x):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]
    return y


def histogram(x, out):
    for i in range(x.shape[0]):
        out[x[i]] += 1
    return out


def weights(x, z, out):
    for i in range(x.shape[0]):
        out[x[i]] += z[i]
    return out


def declared(x, z, out):
    for i in reduce(x.shape[0]):
        out[x[i]] += z[i]
    return out


def gather(x, ix):
    y = output_tensor(ix.shape, x.dtype)
    for i in range(ix.shape[0]):
        y[i] = x[ix[i]]
    return y


def shifted(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = z[i + 1]
    return y


def named(new, delete, state):
    this = output_tensor(new.shape, new.dtype)
    for template in range(new.shape[0]):
        operator = new[template] + delete[template]
        e = operator * state[template]
        this[template] = e
    return this


def of_a_long_row(d, x, like):
    w = output_tensor((d.shape[0], x.shape[0], like.shape[0]), x.dtype)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for i in range(d.shape[1]):
                    w[o, c, p] += d[o, i] * x[c, i + p]
    return w


def wrapping(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] + x[i] - (-x[i])
    return y


SHAPES = {  # a kernel, the dtypes and dimensions of its inputs, the launches
    add: ([(F, 2), (F, 2)], "Threads"),
    transposed: ([(F, 2)], "Threads"),
    softmax: ([(F, 2)], "Rows"),
    matmul: ([(F, 2), (F, 2)], "Tiles"),
    matmul_of_places: ([(F, 2), (F, 2)], "Threads"),  # a tile has operands alone
    sweeps: ([(F, 1), (F, 1)], "Each(Threads Threads)"),
    of_a_long_row: ([(F, 2), (F, 2), (F, 1)], "Branch(Threads) Branch(Each(Tiles) Tiles)"),
    dot: ([(F, 1), (F, 1)], "Branch(Alone Sums Alone)"),
    prefix: ([(F, 1)], "Alone"),
    histogram: ([(I, 1), (I, 1)], "Threads atomic"),
    weights: ([(I, 1), (F, 1), (F, 1)], "Alone"),
    declared: ([(I, 1), (F, 1), (F, 1)], "Threads atomic"),
}


def shown(pieces):
    texts = []
    for piece in pieces:
        inner = (*getattr(piece, "pieces", ()), *getattr(piece, "orelse", ()))
        atomic = " atomic" if getattr(piece, "atomic", ()) else ""
        texts.append(type(piece).__name__ + (f"({shown(inner)})" if inner else "") + atomic)
    return " ".join(texts)


@pytest.mark.parametrize("function", SHAPES)
def test_shapes(function):
    types, expected = SHAPES[function]
    program = schedule(parse(function, types, {}))
    mapper = mapped(program.kernel, program.plan, program.bounds, program.owners, program.kinds)
    assert shown(mapper.pieces(program.kernel.body)) == expected


@pytest.fixture(scope="session")
def emulated(emulate, batch):
    """Return a function that builds one kernel; it returns the operator and the library."""

    @functools.cache
    def make(function, *types, checked=False):
        path = emulate.build(emulate.text([parse(function, types, {})], checked=checked))
        return batch.bound(function, types, {}, path, 0), path

    return make


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("function", "launches"), [(add, 1), (softmax, 1), (matmul, 1), (sweeps, 10), (dot, 4)]
)
def test_launches(function, launches, emulated, emulate):
    types = SHAPES[function][0]
    run, path = emulated(function, *types)
    before = emulate.count(path, "launches")
    run(*(np.ones((8,) * rank, kind) for kind, rank in types))
    assert emulate.count(path, "launches") - before == launches
    assert emulate.count(path, "live") == 0


def test_nothing_is_launched_for_no_elements(emulated, emulate):
    run, path = emulated(add, *SHAPES[add][0])
    before = emulate.count(path, "launches")
    (result,) = run(np.ones((0, 3), F), np.ones((0, 3), F))
    assert result.shape == (0, 3)
    assert emulate.count(path, "launches") == before


def test_many_rows_and_long_rows(emulated):
    run, _ = emulated(softmax, *SHAPES[softmax][0])
    for shape in ((1, 5000), (3, 600), (70, 513), (300, 33), (5, 1)):  # a block, or a warp, for each row
        x = np.random.default_rng(0).normal(size=shape).astype(F)
        expected = np.exp(x - x.max(1, keepdims=True))
        expected /= expected.sum(1, keepdims=True)
        np.testing.assert_allclose(run(x)[0], expected, 1e-5)


def test_tiles_beyond_one(emulated):
    run, _ = emulated(matmul, *SHAPES[matmul][0])
    for n, k, m in ((64, 16, 64), (65, 17, 63), (1, 100, 130), (129, 1, 2)):
        a, b = (np.random.default_rng(0).integers(-3, 4, s).astype(F) for s in ((n, k), (k, m)))
        np.testing.assert_array_equal(run(a, b)[0], a @ b)


def test_sums_of_many_elements(emulated):
    run, _ = emulated(dot, *SHAPES[dot][0])
    x = np.random.default_rng(0).integers(-3, 4, 300_000).astype(F)
    np.testing.assert_array_equal(run(x, x)[0], [x @ x])


def test_atomic_sums(emulated):
    run, _ = emulated(histogram, *SHAPES[histogram][0])
    x = np.random.default_rng(0).integers(0, 10, 5000).astype(I)
    np.testing.assert_array_equal(run(x, np.zeros(10, I))[0], np.bincount(x, minlength=10))


def test_an_index_outside_names_its_line(emulated, emulate):
    run, path = emulated(gather, (F, 1), (I, 1))
    x = np.arange(4, dtype=F)
    np.testing.assert_array_equal(run(x, np.array([3, -1, 0], I))[0], [3, 3, 0])
    line = gather.__code__.co_firstlineno + 3
    with pytest.raises(
        KernelError, match=rf"line {line}: index 7 is outside dimension 0 of x, which has size 4"
    ):
        run(x, np.array([1, 7], I))
    assert emulate.count(path, "live") == 0


def test_sizes_that_do_not_fit_are_refused_before_any_launch(emulated, emulate):
    run, path = emulated(shifted, (F, 1), (F, 1))
    line = shifted.__code__.co_firstlineno + 3
    with pytest.raises(
        KernelError, match=rf"line {line}: an index leaves dimension 0 of z, which has size 4"
    ):
        run(np.ones(4, F), np.ones(4, F))
    assert emulate.count(path, "launches") == 0


def test_checked_kernels_find_every_index(emulated):
    run, _ = emulated(shifted, (F, 1), (F, 1), checked=True)
    with pytest.raises(KernelError, match="index 4 is outside dimension 0 of z, which has size 4"):
        run(np.ones(4, F), np.ones(4, F))


def test_names_that_mean_something_in_cuda(emulated):
    run, _ = emulated(named, *[(F, 1)] * 3)
    np.testing.assert_array_equal(run(*(np.full(3, k, F) for k in (1, 2, 3)))[0], [9, 9, 9])


@pytest.mark.slow(2)
@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
def test_integers_wrap(kind, emulated):
    run, _ = emulated(wrapping, (kind, 1))
    x = np.array([np.iinfo(kind).max, np.iinfo(kind).min, 100, -7], kind)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(x)[0], x * x + x - (-x))


def test_the_text(golden):
    text = LoopKernel(softmax_from_text(), device="cuda").source([Spec((2, 3), dtype(F), "cuda")])
    golden("loops/softmax.cu", text)


def softmax_from_text():
    import inspect
    import linecache

    source = inspect.getsource(softmax)
    linecache.cache["<softmax>"] = (len(source), None, source.splitlines(keepends=True), "<softmax>")
    names = {}
    exec(compile(source, "<softmax>", "exec"), names)
    return names["softmax"]


# --- the emulation itself sees what is wrong

WRONG = {
    "a barrier that is missing": "part_all[threadIdx.x] = threadIdx.x; x[threadIdx.x] = part_all[63 - threadIdx.x];",
    "a barrier that some do not reach": "if (threadIdx.x < 5) __syncthreads(); x[threadIdx.x] = 63 - threadIdx.x;",
}
BODY = """
#include "polyop/loops/device.h"
struct kernel { int* x; };
__global__ void part(const kernel self) { __shared__ int part_all[64]; int* x = self.x; BODY }
int main() {
  for (int k = 0; k < 64; ++k) part_room[k] = -1;
  POLYOP_LAUNCH(part, 1, 64, 0, kernel{part_room});
  for (int k = 0; k < 64; ++k) if (part_room[k] != 63 - k) return 1;
  return 0;
}
"""


@pytest.mark.parametrize("fault", [*WRONG, "nothing"])
def test_the_emulation_sees(fault, emulate, tmp_path):
    body = WRONG.get(fault) or (
        "part_all[threadIdx.x] = threadIdx.x; __syncthreads(); x[threadIdx.x] = part_all[63 - threadIdx.x];"
    )
    source = BODY.replace("BODY", body).replace("int main", "static int part_room[64];\nint main")
    (tmp_path / "one.cu").write_text(source)
    program = tmp_path / "one"
    subprocess.run([*emulate.COMPILER, tmp_path / "one.cu", "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (fault == "nothing")
    if "some do not reach" in fault:
        assert "threads wait for others that never come" in done.stderr


# --- the choice


def test_tensors_on_a_gpu_take_the_kernel_in_cuda():
    bound = Custom(add, func_type="hybrid")
    for device, name in (("cpu", "loop kernel add"), ("cuda", "loop kernel add for cuda")):
        spec = Spec((2, 3), dtype(F), device)
        kernel = need(bound.operator, (spec, spec), (spec,))
        assert (str(kernel), kernel.device) == (name, device)


def test_an_operator_that_is_bound_to_gpus():
    here, there = Spec((2, 3), dtype(F)), Spec((2, 3), dtype(F), "cuda")
    bound = Custom(add, func_type="akg").set_device("GPU")
    assert choose(bound.operator, (here, here), (here,)).kernel.device == "cuda"
    assert choose(bound.set_device("CPU").operator, (there, there), (there,)).kernel.device == "cpu"
    with pytest.raises(
        NoKernelError, match="loop kernel add for cuda: runs on cuda, and the tensors are on npu"
    ):
        spec = Spec((2, 3), dtype(F), "npu")
        need(Custom(add, func_type="hybrid").operator, (spec, spec), (spec,))


def test_explain():
    spec = Spec((2, 3), dtype(F), "cuda")
    kernel = need(Custom(softmax, func_type="hybrid").operator, (spec,), (spec,))
    lines = kernel.explain((spec,), {})
    assert (
        lines[0]
        == "compiled for cuda, with the device's functions; sizes are symbols: one compile serves all"
    )
    assert "        loop i: on a GPU a group of threads for each iteration" in lines
    assert not any("vector lanes" in line for line in lines)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
def test_it_is_compiled_at_the_first_launch(monkeypatch):
    monkeypatch.setattr(cuda, "_USUAL", (90,))
    spec = Spec((2, 3), dtype(F), "cuda")
    kernel = LoopKernel(add).on("cuda")
    kernel.launch((spec, spec), (spec,), {})
    (library,) = kernel._libraries.values()
    assert (library.device, str(library)) == ("cuda", "loop kernel add for cuda")
    assert b"sm_90" in library.path.read_bytes() or b"nv_fatbin" in library.path.read_bytes()
