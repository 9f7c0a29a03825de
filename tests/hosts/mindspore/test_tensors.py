"""MindSpore's tensors: every dtype and layout; pending, written, uninitialised and empty ones."""

import gc
import sys
import weakref

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, mint
from mindspore.common.initializer import One, initializer

import polyop

SOURCE = """
#include <stdint.h>
#include <string.h>
static int64_t count(int ndim, int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
  return n;
}
int Twice(int n, void **p, int *nd, int64_t **s, const char **d, void *stream, void *extra) {
  const float *x = (const float *)p[0];
  float *y = (float *)p[1];
  if (strcmp(d[0], "float32")) return 7;
  for (int64_t i = 0; i < count(nd[0], s[0]); ++i) y[i] = 2 * x[i];
  return 0;
}
int Negate_(int n, void **p, int *nd, int64_t **s, const char **d, void *stream, void *extra) {
  float *x = (float *)p[0];
  for (int64_t i = 0; i < count(nd[0], s[0]); ++i) x[i] = -x[i];
  return 0;
}
"""

DTYPES = [
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "bfloat16", "complex64", "complex128",
]  # fmt: skip

SWAPPED = polyop.operator("ms_tensors::swapped(Tensor x) -> Tensor", lambda x: x[::-1].copy(), infer="x")


@pytest.fixture(scope="session")
def twice(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "twice.c"
    path.write_text(SOURCE)
    return polyop.operator(
        "ms_tensors::twice(Tensor x) -> Tensor", polyop.source(path, function="Twice"), infer="x"
    ), polyop.operator("ms_tensors::negate_(Tensor(a!) x) -> ()", polyop.source(path, function="Negate_"))


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name, mode):
    @mode
    def call(x):
        return SWAPPED(x)

    dtype = getattr(ms, name)
    x = Tensor(np.array([1, 0, 3]), dtype=dtype)
    out = call(x)
    assert out.dtype == dtype
    assert out.astype(ms.complex128 if "complex" in name else ms.float64).asnumpy().tolist() == (
        [1, 0, 1] if name == "bool_" else [3, 0, 1]
    )


def test_views_are_read_where_they_are(twice):
    op, _ = twice
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = Tensor(data)
    views = [
        (x[1], data[1]),
        (x[1:3], data[1:3]),
        (x[:, ::2], data[:, ::2]),
        (x.T, data.T),
        (x[3, 2:5], data[3, 2:5]),
        (mint.broadcast_to(x[:1], (3, 6)), np.broadcast_to(data[:1], (3, 6))),
        (x.reshape(2, 12).swapaxes(0, 1), data.reshape(2, 12).swapaxes(0, 1)),
    ]
    for view, expected in views:
        np.testing.assert_array_equal(op(view).asnumpy(), 2 * expected)


def test_only_the_elements_of_a_view_are_written(twice):
    _, negate_ = twice
    data = np.arange(1, 25, dtype=np.float32).reshape(4, 6)
    for index in [(1,), (slice(1, 3),), (slice(None), slice(None, None, 2)), (slice(None), 4)]:
        x = Tensor(data.copy())
        expected = data.copy()
        expected[index] *= -1
        assert negate_(x[index]) is None
        np.testing.assert_array_equal(x.asnumpy(), expected)


def test_pending_work_is_waited_for(twice):
    op, _ = twice
    for _ in range(20):
        x = Tensor(np.full((300, 300), 1 / 300, np.float32))
        y = x
        for _ in range(6):
            y = mint.matmul(y, x)
        np.testing.assert_allclose(op(y).asnumpy(), 2 * x.asnumpy(), rtol=1e-4)


def test_earlier_readers_of_a_tensor_see_the_old_value(twice):
    _, negate_ = twice
    for _ in range(20):
        x = Tensor(np.ones((1000, 1000), np.float32))
        kept = x + 1
        kept = kept + x
        negate_(x)
        after = x + 1
        assert kept.asnumpy().min() == kept.asnumpy().max() == 3
        assert after.asnumpy().min() == after.asnumpy().max() == 0


def test_without_dimensions_and_without_elements(twice, mode):
    op, _ = twice

    @mode
    def call(x):
        return op(x)

    out = call(Tensor(np.float32(2.5)))
    assert out.shape == () and out.asnumpy() == 5
    if mode is not ms.jit:  # MindSpore's own graphs refuse a tensor without elements
        assert call(Tensor(np.zeros((0, 3), np.float32))).shape == (0, 3)


def test_parameters_and_tensors_with_an_initializer(twice):
    op, _ = twice
    assert op(Parameter(Tensor([1.0, 2.0], ms.float32), name="p")).asnumpy().tolist() == [2, 4]
    assert op(Parameter(initializer("ones", [2], ms.float32), name="q")).asnumpy().tolist() == [2, 2]
    assert op(Tensor(shape=(2,), dtype=ms.float32, init=One())).asnumpy().tolist() == [2, 2]


@pytest.mark.parametrize("kind", [Tensor, Parameter])
def test_a_repeated_call_enters_no_python_function(twice, kind):
    op, _ = twice
    x = kind(Tensor([1.0, 2.0], ms.float32))
    op(x)
    entered = []
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_name) if event == "call" else None)
    try:
        out = op(x)
    finally:
        sys.setprofile(None)
    assert entered == [] and out.asnumpy().tolist() == [2, 4]


def test_an_output_outlives_everything_it_came_from(twice):
    op, _ = twice
    x = Tensor(np.arange(1000, dtype=np.float32))
    outputs = [op(x) for _ in range(50)]
    del x
    gc.collect()
    for out in outputs:
        np.testing.assert_array_equal(mint.add(out, 0).asnumpy(), 2 * np.arange(1000))
    first = op(outputs[0])
    dropped = weakref.ref(first)
    del first
    assert dropped() is None


def test_outputs_are_mindspore_s_in_every_way(twice):
    op, _ = twice
    out = op(Tensor([1.0, 2.0], ms.float32))
    assert type(out) is Tensor
    out[0] = 3
    out.copy_(out + Tensor([0.0, 1.0], ms.float32))
    assert out.asnumpy().tolist() == [3, 5]
    assert out[1:].asnumpy().tolist() == [5]
    assert op(out).asnumpy().tolist() == [6, 10]


def test_a_kernel_s_code_and_words(twice, mode):
    op, _ = twice

    @mode
    def call(x):
        return op(x)

    with pytest.raises(RuntimeError, match="the kernel returned 7; any value other than 0 is its author's"):
        call(Tensor([1, 2], ms.int32)).asnumpy()
