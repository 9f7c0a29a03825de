# ruff: noqa: F821
"""Work counted from loops, and the roofs of the machine."""

import numpy as np
import pytest

import polyop
from polyop.bench.roofline import Roofs, cache_sizes, measure_roofs
from polyop.bench.timing import measure
from polyop.bench.work import work_of, work_of_gradient
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec
from polyop.loops.analysis.work import Work


def spec(*shape, kind="float32"):
    return Spec(shape, dtype(kind))


@polyop.kernel(name="measuring::axpy")
def axpy(x, y):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        out[i] = 2.0 * x[i] + y[i]
    return out


@polyop.kernel(name="measuring::product")
def product(a, b):
    out = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total
    return out


@polyop.kernel(name="measuring::triangle")
def triangle(a, x):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for k in range(i + 1):
            total += a[i, k] * x[k]
        out[i] = total
    return out


@polyop.kernel(name="measuring::gather")
def gather(x, index):
    out = output_tensor(index.shape, x.dtype)
    for i in range(index.shape[0]):
        out[i] = x[index[i]]
    return out


@polyop.kernel(name="measuring::clipped")
def clipped(x):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            out[i] = x[i] * x[i] + 1.0
        else:
            out[i] = 0.0
    return out


@polyop.kernel(name="measuring::rows_of_data")
def rows_of_data(start, x):
    out = output_tensor((start.shape[0] - 1,), x.dtype)
    for i in range(start.shape[0] - 1):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += x[k]
        out[i] = total
    return out


n, m, k = 24, 10, 7
EXPECTED = [
    (axpy, [spec(1000)] * 2, Work(2000.0, 8000.0, 4000.0)),
    (axpy, [spec(1000, kind="float64")] * 2, Work(2000.0, 16000.0, 8000.0, "float64")),
    (product, [spec(n, k), spec(k, m)], Work(2.0 * n * m * k, 4.0 * (n * k + k * m), 4.0 * n * m)),
    # each row k is read up to the diagonal
    (triangle, [spec(n, n), spec(n)], Work(n * (n + 1.0), 4.0 * (n * (n + 1) / 2 + n), 4.0 * n)),
    # few elements of a long tensor
    (gather, [spec(10**6), spec(n, kind="int64")], Work(0.0, n * 12.0, n * 4.0, exact=False)),
    (clipped, [spec(n)], Work(2.0 * n, 4.0 * n, 4.0 * n, exact=False)),
    # how many numbers a row has is not known: all of x
    (rows_of_data, [spec(5, kind="int64"), spec(100)], Work(None, 40.0 + 400.0, 16.0, exact=False)),
]


@pytest.mark.parametrize(("operator", "specs", "expected"), EXPECTED)
def test_work_is_counted_by_hand(operator, specs, expected):
    assert work_of(operator, specs) == expected


def test_the_gradient_of_a_product_has_twice_its_operations():
    specs = [spec(n, k), spec(k, m)]
    work = work_of_gradient(product, specs)
    assert work.flops == 2 * work_of(product, specs).flops
    assert work.bytes_written == work_of(product, specs).bytes_read


def test_another_kernel_has_bytes_alone():
    double = polyop.operator("measuring::double(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
    assert work_of(double, [spec(3, 4)]) == Work(None, 48.0, 48.0)
    assert work_of_gradient(double, [spec(3, 4)]) is None


def test_roofs_are_above_what_kernels_reach():
    """The figures are of the right size: other work on the machine changes them by a few times, units by more."""
    roofs = measure_roofs()
    assert measure_roofs() is roofs
    assert roofs.bandwidth["l1"] > roofs.bandwidth["dram"] > 1e8
    assert roofs.flops["float32"] > 0.5 * roofs.flops["float64"] > 1e8
    a = np.ones((192, 192), np.float32)
    timing = measure([("product", lambda: product(a, a))], rounds=5, slice_s=0.005)
    reached = work_of(product, [spec(192, 192)] * 2).flops / timing["product"].low
    assert reached < 10 * roofs.flops["float32"]


def test_the_level_and_the_limit_follow_from_sizes():
    roofs = Roofs({"l1": 100.0, "l2": 50.0, "dram": 10.0}, {"float32": 200.0}, {"l1": 64, "l2": 640}, "x", 1)
    assert [roofs.level_of(size) for size in (64, 65, 641)] == ["l1", "l2", "dram"]
    assert roofs.limit(Work(1000.0, 60.0, 0.0)) == "float32 operations"
    assert roofs.seconds(Work(1000.0, 1000.0, 0.0)) == 100.0
    assert roofs.limit(Work(None, 1000.0, 0.0)) == "dram bandwidth"
    assert roofs.attainable(1.0, "l2", "float32") == 50.0
    assert cache_sizes()["l1"] < cache_sizes()["l2"] < cache_sizes()["l3"]
