"""Loop kernels and their gradients on PyOpenCL's arrays, compared with NumPy's."""

import shutil

import numpy as np
import pytest

import polyop
from in_threads import in_threads
from polyop.core.errors import ArgumentValueError, BuildError, CacheError, KernelError
from polyop.loops.library.make import prelude

cl = pytest.importorskip("pyopencl")
cl_array = pytest.importorskip("pyopencl.array")

from polyop.hosts.pyopencl import loop_programs, programs  # noqa: E402 - it imports pyopencl


@polyop.kernel
def rows(x, w, a: float = 2.0):
    y = np.zeros(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * w[j]
        for j in range(x.shape[1]):
            y[i, j] = a * s * x[i, j]
    return y


@polyop.kernel
def add_row(x, row):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += row[j]
    return x


@polyop.kernel
def taken(x, index):
    y = np.zeros(index.shape, x.dtype)
    for i in range(index.shape[0]):
        y[i] = x[index[i]]
    return y


def arrays(queue, *shapes):
    rng = np.random.default_rng(0)
    return [cl_array.to_device(queue, rng.standard_normal(shape).astype(np.float32)) for shape in shapes]


def test_values_and_gradients_are_those_of_numpy(queue):
    x, w = arrays(queue, (5, 7), 7)
    y, pull = rows.vjp(x[::-1], w, 0.5)
    expected, pull_numpy = rows.vjp(x.get()[::-1].copy(), w.get(), 0.5)
    np.testing.assert_allclose(y.get(), expected, rtol=1e-5)
    for found, other in zip(pull(y)[:2], pull_numpy(expected)[:2], strict=True):
        np.testing.assert_allclose(found.get(), other, rtol=1e-4, atol=1e-5)


def test_other_values_of_an_attribute(queue):
    x, w = arrays(queue, (2, 3), 3)
    for a in (1.0, 3.0):
        np.testing.assert_allclose(rows(x, w, a).get(), rows(x.get(), w.get(), a), rtol=1e-5)


def test_what_is_written_in_place(queue):
    x, row = arrays(queue, (4, 6), 3)
    expected = x.get()
    expected[:, ::2] += row.get()
    view = x[:, ::2]
    assert add_row(view, row) is view
    np.testing.assert_allclose(x.get(), expected, rtol=1e-6)


def test_no_elements(queue):
    assert rows(*arrays(queue, (0, 3), 3)).shape == (0, 3)
    (x,) = arrays(queue, (4, 0))
    assert add_row(x, arrays(queue, 0)[0]) is x


def test_an_index_outside_is_an_error_with_the_line(queue):
    (x,) = arrays(queue, 3)
    with pytest.raises(KernelError, match=r"index 5 .* 3(.|\n)*test_loops.py"):
        taken(x, cl_array.to_device(queue, np.array([0, 5], np.int64)))


def test_explain_names_the_kernel_of_the_device(queue):
    from polyop.call.explain import explain

    (x,) = arrays(queue, (2, 3))
    host = polyop.call.host.host_of(x)
    text = explain(rows, (host.spec(x), host.spec(x[0])))
    assert "  kernel      loop kernel rows for opencl\n" in text
    assert "  pyopencl    present; on the queue of the arrays" in text


@polyop.kernel
def backwards(x, y):
    for i in range(x.shape[0]):
        x[i] += y[y.shape[0] - 1 - i]
    return x


def test_parts_of_one_buffer_are_known(context):
    queue = cl.CommandQueue(context)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 8192)
    whole = cl_array.Array(queue, (2048,), np.float32, data=buffer)
    part = cl_array.Array(queue, (1024,), np.float32, data=buffer[4096:8192])
    with pytest.raises(KernelError, match="must not share memory with y"):
        backwards(whole[1024:], part)
    whole.fill(1)
    backwards(whole[:1024], part)
    assert whole.get().tolist() == [2] * 1024 + [1] * 1024


@polyop.kernel
def two(x, y):
    for i in range(x.shape[0]):
        x[i] += 1
        y[i] += 10
    return x, y


def test_two_views_that_are_written_do_not_share_memory(queue):
    x = cl_array.zeros(queue, 8, np.float32)
    two(x[::2], x[1::2])
    assert x.get().tolist() == [1, 10] * 4
    with pytest.raises(ArgumentValueError, match="it must not share memory with y"):
        two(x[::2], x[::2])


@polyop.kernel
def words(half, numbers, NAN):
    local = np.zeros(half.shape, half.dtype)
    for constant in range(half.shape[0]):
        local[constant] = half[constant] + numbers[constant] * NAN[constant]
    return local


def test_words_of_opencl_are_names(queue):
    x, y, z = arrays(queue, 5, 5, 5)
    np.testing.assert_allclose(words(x, y, z).get(), (x + y * z).get(), rtol=1e-6)


def test_a_device_without_float64_compiles_what_has_none(context):
    """The headers that each kernel of loops has before it."""
    text = "#undef cl_khr_fp64\n" + prelude()
    cl.Program(context, text + "__kernel void f(__global f32* x) { x[0] = pl_exp_f32(x[0]); }").build()
    with pytest.raises(cl.RuntimeError):
        cl.Program(context, text + "__kernel void f(__global f64* x) { x[0] = 1; }").build()


def test_what_the_driver_makes_of_a_loop_kernel_is_in_the_build_cache(new_context, monkeypatch):
    def refused(*_):
        raise BuildError("programs", "are compiled once")

    for _ in range(2):  # a library asks again for each context
        x, row = arrays(cl.CommandQueue(new_context()), (3, 4), 4)
        expected = x.get() + row.get()
        np.testing.assert_array_equal(add_row(x, row).get(), expected)
        monkeypatch.setattr(programs, "from_text", refused)


def test_what_the_driver_says_of_a_loop_kernel_is_told(new_context, monkeypatch):
    def refused(context, device, text, options, label):
        raise BuildError(label, "cannot be compiled for this device:\n1:2: error: " + "no " * 3000)

    (x,) = arrays(cl.CommandQueue(new_context()), 5)
    monkeypatch.setattr(loop_programs, "built", refused)
    words = r"test_loops.py: loop kernel taken: cannot be compiled for this device:\n1:2: error: no no"
    with pytest.raises(KernelError, match=words) as raised:
        taken(x, cl_array.to_device(x.queue, np.array([1, 2])))
    assert str(raised.value).count("no ") < 1400  # a library has room for 4000 bytes


def test_a_ctrl_c_while_the_driver_compiles_reaches_the_caller(new_context, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    x, row = arrays(cl.CommandQueue(new_context()), (3, 4), 4)
    with monkeypatch.context() as patch:
        patch.setattr(loop_programs, "built", stopped)
        with pytest.raises(KeyboardInterrupt):
            add_row(x, row)
    expected = x.get() + row.get()
    np.testing.assert_array_equal(add_row(x, row).get(), expected)


def test_a_library_that_was_built_again_gets_its_programs_too(context, monkeypatch, tmp_path):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    x, row = arrays(cl.CommandQueue(context), (3, 4), 4)
    for number in range(2):
        again = polyop.kernel(name=f"opencl_tests::again{number}")(add_row.__wrapped__)
        expected = x.get() + row.get()
        np.testing.assert_array_equal(again(x, row).get(), expected)
        shutil.rmtree(tmp_path / "cache")


def test_a_cache_that_cannot_be_written_is_no_error(new_context, monkeypatch):
    def no_cache(*_, **__):
        raise CacheError("build cache", "must be a folder that can be written")

    monkeypatch.setattr(programs, "_binary", no_cache)
    x, row = arrays(cl.CommandQueue(new_context()), (3, 4), 4)
    expected = x.get() + row.get()
    np.testing.assert_array_equal(add_row(x, row).get(), expected)


def test_threads_that_come_first_to_a_device_wait_for_one_another(new_context):
    queues = [cl.CommandQueue(new_context()) for _ in range(3)]
    given = np.ones((5, 7), np.float32), np.ones(7, np.float32)
    expected = rows(*given)

    def call(number):
        result = rows(*(cl_array.to_device(queues[number % 3], one) for one in given))
        np.testing.assert_allclose(result.get(), expected, rtol=1e-6)

    in_threads(call)
