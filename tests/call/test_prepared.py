# ruff: noqa: F821 - kernels, whose words are no names here
"""Prepared calls: how many are remembered, which go first, and which attributes tell two of them apart."""

import math

import numpy as np
import pytest

import polyop
from in_threads import in_threads
from polyop.core.infer import reads_number
from polyop.kernels.source import source

MOST = 8192  # csrc/lru_table.h


def prepares(op, monkeypatch):
    """Return a list that grows by the arguments of each call of an operator that Python prepares."""
    seen, prepare = [], type(op)._prepare

    def counted(self, arguments, rows=()):
        seen.append(arguments)
        return prepare(self, arguments, rows)

    monkeypatch.setattr(type(op), "_prepare", counted)
    return seen


def twice(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    return y


def axpy(x, a: float, b: float = 0.5, n: int = 1):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * a + b + n
    return y


def test_a_thousand_shapes_are_prepared_once_each(monkeypatch):
    op = polyop.kernel(name="prepared::shapes")(twice)
    arrays = [np.arange(float(size)) for size in range(1, 1001)]
    seen = prepares(op, monkeypatch)
    for _ in range(3):
        for x in arrays:
            assert np.array_equal(op(x), 2 * x)
    assert len(seen) == op.prepared() == 1000


@pytest.mark.slow
def test_the_least_recently_used_ones_go_first(monkeypatch):
    op = polyop.kernel(name="prepared::many")(twice)
    often = np.ones(3, np.float32)
    op(often)
    for size in range(MOST + 500):
        op(np.empty(size))
        op(often)
    seen = prepares(op, monkeypatch)
    assert op.prepared() == MOST
    for size in (MOST + 499, 600, MOST + 400):
        op(np.empty(size))
    assert not seen
    assert np.array_equal(op(np.ones(7)), np.full(7, 2.0)) and len(seen) == 1  # one of the first
    op.forget()
    assert op.prepared() == 0 and np.array_equal(op(often), 2 * often) and op.prepared() == 1


NUMBERS = [0.5, 1, -0.0, math.inf, math.nan, 1e300, 5e-324, 2**40, 2**60, np.float64(0.25), np.int8(3)]


def test_the_value_of_a_number_that_the_loops_read_is_no_part_of_the_key():
    op = polyop.kernel(name="prepared::axpy")(axpy)
    x = np.arange(4.0)
    for a in NUMBERS:
        for n in (1, -3, 2**42, np.int64(5), 70):
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(op(x, a, 0.5, n), op.python(x, float(a), 0.5, int(n)))
    assert op.prepared() == 2  # 2**60 is a part of the key: proofs do not hold for such numbers


def test_wrong_values_stay_errors():
    op = polyop.kernel(name="prepared::wrong")(axpy)
    x = np.arange(4.0)
    op(x, 1.5)
    for bad, words in (("1", "argument a: must be float"), (None, "argument a: must be float")):
        with pytest.raises(TypeError, match=words):
            op(x, bad)
    with pytest.raises(TypeError, match="argument n: must be int"):
        op(x, 1.5, 0.5, 2.5)
    assert np.array_equal(op(x, True), x + 1.5)


def sized(x, n: int):
    y = output_tensor((n,), x.dtype)
    for i in range(n):
        y[i] = x[i % x.shape[0]]
    return y


def strided(x, step: int):
    y = output_tensor((x.shape[0] // step,), x.dtype)
    for i in range(y.shape[0]):
        y[i] = x[i * step]
    return y


def windows(x, width: int, scale: float):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0
        for j in range(width):
            if i + j < x.shape[0]:
                y[i] = y[i] + x[i + j] * scale
    return y


def temporary(x, n: int):
    t = allocate((n,), x.dtype)
    y = output_tensor(x.shape, x.dtype)
    for i in range(n):
        t[i] = x[0] + i
    for i in range(x.shape[0]):
        y[i] = t[i % n]
    return y


X = np.arange(100.0)
DECIDING = {
    "a size": (sized, [(n,) for n in (1, 50, 3, 200, 70, 0)], lambda n: np.resize(X, n)),
    "a stride": (strided, [(n,) for n in (1, 2, 7, 80, 3, 99)], lambda n: X[: 100 // n * n : n]),
    "a window": (
        windows,
        [(w, s) for w in (1, 3, 80, 2) for s in (1.0, 0.5, 3)],
        lambda w, s: np.array([X[i : i + w].sum() * s for i in range(100)]),
    ),
    "a temporary": (temporary, [(n,) for n in (1, 5, 300, 7)], lambda n: np.arange(100) % n * 1.0),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", DECIDING)
def test_a_number_that_decides_a_size_or_the_code_is_a_part_of_the_key(name):
    function, rows, expected = DECIDING[name]
    op = polyop.kernel(name=f"prepared::{function.__name__}")(function)
    for _ in range(2):
        for row in rows:
            np.testing.assert_allclose(op(X, *row), expected(*row), err_msg=str(row))


def test_a_number_that_dims_names_decides_the_shape():
    def repeated(x, n: int):
        y = output_tensor((x.shape[0], n), x.dtype)
        for i in range(x.shape[0]):
            for j in range(n):
                y[i, j] = x[i]
        return y

    op = polyop.kernel(name="prepared::repeated")(repeated)
    for n in (2, 100, 3):
        assert np.array_equal(op(np.arange(3.0), n), np.repeat(np.arange(3.0), n).reshape(3, n))


INIT = """
#include "polyop/abi.h"
#include <stdlib.h>
int scaleInit(int* ndims, int64_t** shapes, const char** dtypes, void* extra) {
  struct polyop_extra* self = (struct polyop_extra*)extra;
  double* kept = (double*)malloc(sizeof(double));
  if (polyop_get_float(extra, "a", kept)) return 1;
  self->functions->set_kernel_data(self, kept, free);
  return 0;
}
int scale(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream, void* extra) {
  struct polyop_extra* self = (struct polyop_extra*)extra;
  double* kept = (double*)self->functions->kernel_data(self);
  for (int64_t i = 0; i < shapes[0][0]; ++i) ((double*)params[1])[i] = ((double*)params[0])[i] * *kept;
  return 0;
}
"""


INFERS = {
    "dims": ({"dims": "n -> n"}, False),
    "dims_with_it": ({"dims": "n -> n k"}, True),
    "tensor": ({"infer": "x"}, False),
    "function": ({"infer": lambda x, k: polyop.Spec((x.shape[0],), x.dtype)}, True),
}


@pytest.mark.parametrize("name", INFERS)
def test_which_infer_rules_may_read_a_number(name):
    options, decides = INFERS[name]
    op = polyop.operator(f"prepared::rule_{name}(Tensor x, int k) -> Tensor", lambda x, k: x, **options)
    assert reads_number(op.operator.infer, "k", op.operator.kernels[0]) == decides


def test_what_init_has_read_is_a_part_of_the_key_and_few_of_its_data_are_kept():
    kernel = source(code=INIT, language="c", function="scale")
    op = polyop.operator("prepared::scale(Tensor x, float a) -> Tensor", kernel, infer="x")
    x = np.arange(4.0)
    for _ in range(2):
        for a in range(300):
            assert np.array_equal(op(x, a / 8), x * (a / 8))
    assert op.prepared() == MOST // 64


def test_gradients_with_numbers_that_change():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    op = polyop.kernel(name="prepared::squares")(squares)
    x = torch.arange(1.0, 5.0, dtype=torch.float64, requires_grad=True)
    values = [(0.5, 3), (2, 70), (-1.25, -4), (2.0, 1), (1e-3, 100)]
    calls = [(a, n, op(x, a, n)) for a, n in values * 2]
    for a, n, y in calls:  # backward after all forwards: each has its own numbers
        (gradient,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(gradient, 2 * a * x.detach() * n, rtol=1e-12, atol=0)
    assert op.prepared() == 1


def squares(x, a: float, n: int):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * a * n
    return y


def test_second_gradients_and_absent_ones_have_the_numbers_of_their_call():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    op = polyop.kernel(name="prepared::cubes")(cubes)
    x = torch.arange(1.0, 4.0, dtype=torch.float64, requires_grad=True)
    for a in (1.0, 2.0, 3.5, 2.0):
        y, z = op(x, a)
        (once,) = torch.autograd.grad(y.sum(), x, create_graph=True, retain_graph=True)
        (again,) = torch.autograd.grad(once.sum(), x)
        (other,) = torch.autograd.grad(z.sum(), x)
        torch.testing.assert_close(once.detach(), 3 * a * x.detach() ** 2)
        torch.testing.assert_close(again, 6 * a * x.detach())
        torch.testing.assert_close(other, torch.full_like(other, a))


def cubes(x, a: float):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * x[i] * a
        z[i] = x[i] * a
    return y, z


def test_threads_with_numbers_of_their_own():
    op = polyop.kernel(name="prepared::threads")(axpy)

    def work(number):
        x = np.full(2000, float(number))
        for step in range(500):
            y = op(x[: 1 + step % 7 * 100], step, number, number)
            assert (y == number * step + 2 * number).all()

    in_threads(work)
    assert op.prepared() == 7


def test_a_new_definition_forgets_what_its_numbers_decided():
    import dataclasses

    op = polyop.kernel(name="prepared::updated")(sized)
    assert op(X, 3).shape == (3,) and op(X, 4).shape == (4,)
    op.update(dataclasses.replace(op.operator))
    assert op(X, 5).shape == (5,) and op(X, 6).shape == (6,)
