"""Calls on PyOpenCL's arrays: values, views, what is written in place, sizes, dtypes, and what is refused."""

import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GradientError,
    HostError,
    KernelError,
    NoKernelError,
)
from polyop.core.spec import Spec
from polyop.kernels.python import TensorKernel

cl = pytest.importorskip("pyopencl")
cl_array = pytest.importorskip("pyopencl.array")

VIEWS = {
    "a row": lambda x: x[3],
    "rows from the third": lambda x: x[2:],
    "every second column": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "one number": lambda x: x[2, 1],
    "no rows": lambda x: cl_array.zeros(x.queue, (0, 4), x.dtype),
}
"""Of an array with six rows of four numbers."""


@pytest.mark.parametrize("name", VIEWS)
def test_views_have_the_values_of_numpy(scaled, x, name):
    view = VIEWS[name](x)
    y = scaled(view, 3.0)
    assert (y.queue, y.context, y.shape) == (x.queue, x.context, view.shape)
    np.testing.assert_array_equal(y.get(), 3 * VIEWS[name](x).get() if "no" in name else 3 * _viewed(x, name))


def _viewed(x, name):
    return VIEWS[name](x.get())


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "no rows"])
def test_what_is_written_in_place_is_in_the_view_alone(scale_, x, name):
    expected = x.get()
    if name == "one number":
        expected[2, 1] *= 3
    else:
        VIEWS[name](expected)[...] *= 3
    assert scale_(VIEWS[name](x), 3.0) is None
    np.testing.assert_array_equal(x.get(), expected)


def test_no_elements_are_written_in_place(scale_, x):
    scale_(cl_array.zeros(x.queue, (3, 0), np.float32), 3.0)


def test_a_view_that_overlaps_itself_is_not_written(scale_, x):
    view = cl_array.as_strided(x, (6, 4), (0, 4))
    with pytest.raises(
        ArgumentValueError, match="argument x: is written in place, so no two of its elements"
    ):
        scale_(view, 3.0)


def test_elements_that_are_not_aligned_are_copied_first(scaled, queue):
    bytes_ = cl_array.to_device(queue, np.frombuffer(b"\0" + np.float32([1, 2]).tobytes(), np.uint8).copy())
    view = cl_array.Array(queue, (2,), np.float32, data=bytes_.base_data, offset=1)
    np.testing.assert_array_equal(scaled(view).get(), [2, 4])


def test_outputs_come_from_the_allocator_of_the_argument(scaled, queue):
    pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))
    x = cl_array.to_device(queue, np.ones(4, np.float32), allocator=pool)
    y = scaled(x)
    assert y.allocator is pool
    np.testing.assert_array_equal(y.get(), [2, 2, 2, 2])


def test_a_gradient_is_computed_on_the_queue(scaled, x):
    y, pull = scaled.vjp(x, 5.0)
    (dx, da) = pull(y)
    assert (da, dx.queue) == (None, x.queue)
    np.testing.assert_array_equal(dx.get(), 25 * x.get())


def test_a_gradient_of_another_shape_is_refused(scaled, x):
    with pytest.raises(GradientError, match=r"must have the output's shape \(6, 4\)"):
        scaled.vjp(x)[1](x[1:])


def test_an_absent_tensor(given, x):
    np.testing.assert_array_equal(given(x, x, a=2.0).get(), 2 * x.get())
    with pytest.raises(KernelError, match=r"opencl_tests::given: the kernel returned 1 \(no tensor\)"):
        given(x, a=2.0)


def test_arrays_of_two_contexts_are_refused(new_context, given, x):
    other = new_context()
    y = cl_array.to_device(cl.CommandQueue(other), x.get())
    rule = f"y is in the context {other.int_ptr:#x} of .*, and x in the context {x.context.int_ptr:#x} of"
    with pytest.raises(HostError, match=rule):
        given(x, y, a=1.0)


def test_host_and_device_are_not_mixed(given, x):
    with pytest.raises(HostError, match="y is a tensor of numpy, and x one of pyopencl"):
        given(x, x.get(), a=1.0)


def test_an_array_needs_a_queue(scaled, x):
    with pytest.raises(
        HostError, match=r"needs an array with a queue\n.*\n  give it one: x.with_queue\(queue\)"
    ):
        scaled(x.with_queue(None))


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "uint64", "bool", "complex64"])
def test_the_dtypes_of_numpy_have_specs(queue, kind):
    array = cl_array.Array(queue, (2, 3), np.dtype(kind))
    assert polyop.call.host.host_of(array).spec(array) == Spec((2, 3), kind, "opencl")


@pytest.mark.parametrize(("kind", "seen"), [(">f4", ">f4"), ([("a", "f4")], r"\[\('a', '<f4'\)\]")])
def test_other_dtypes_are_refused(scaled, queue, kind, seen):
    array = cl_array.Array(queue, (2,), np.dtype(kind))
    with pytest.raises(
        ArgumentTypeError, match=rf"opencl_tests::scaled: argument x: dtype: .*but got {seen}"
    ):
        scaled(array)


def test_a_dtype_that_the_kernel_lacks_is_refused(scaled, queue):
    with pytest.raises(NoKernelError, match="opencl_kernels.cc:scaled: takes float32, not float64"):
        scaled(cl_array.to_device(queue, np.zeros(2)))


def test_a_kernel_of_the_cpu_does_not_run_here(on_cpu, x):
    way = r"runs on cpu, and the tensors are on opencl\n  copy the tensors first, as in x.get\(\)"
    with pytest.raises(NoKernelError, match=way):
        on_cpu(x)
    assert (
        "  pyopencl    present; no kernel runs on OpenCL: call it on x.get()" in explain(on_cpu).splitlines()
    )


def test_a_kernel_for_opencl_does_not_run_on_the_cpu(scaled):
    way = r"runs on opencl, and the tensors are on cpu\n  copy .*, as in pyopencl.array.to_device\(queue, x\)"
    with pytest.raises(NoKernelError, match=way):
        scaled(np.ones(2, np.float32))
    assert "  pyopencl    present; on the queue of the arrays" in explain(scaled).splitlines()


def test_an_operator_that_is_bound_to_the_cpu_is_refused(x):
    op = polyop.Custom(lambda x: x + 1, lambda x: x, lambda x: x, "pyfunc").set_device("CPU")
    with pytest.raises(HostError, match="is bound to cpu, and PyOpenCL's arrays are on a device of OpenCL"):
        op(x)


def test_a_rule_computes_with_the_functions_of_pyopencl(x):
    xp = polyop.array_namespace(x)
    np.testing.assert_array_equal(xp.where(x > 3, x, 0).get(), np.where(x.get() > 3, x.get(), 0))
    np.testing.assert_allclose(xp.exp(x).get(), np.exp(x.get()), rtol=1e-6)
    with pytest.raises(AttributeError, match="PyOpenCL has no einsum: write it as an operator"):
        xp.einsum


ORDERS = {
    "Fortran's order": np.asfortranarray,
    "gaps": lambda array: np.repeat(array, 2, 1),
    "backwards": lambda array: array[::-1].copy(),
}
"""How numbers lie in memory; :func:`laid_out` makes an array of them again."""


def laid_out(queue, array, order):
    made = cl_array.to_device(queue, ORDERS[order](array))
    return {"gaps": lambda: made[:, ::2], "backwards": lambda: made[::-1]}.get(order, lambda: made)()


@pytest.mark.parametrize("order", ORDERS)
def test_a_rule_gets_arrays_of_one_order(squared, queue, order):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    dout = np.float32([[1, 2, 3], [4, 5, 6]])
    for given, gradient in ((order, None), (None, order), (order, order)):
        arrays = (
            laid_out(queue, array, one) if one else cl_array.to_device(queue, array)
            for array, one in ((x, given), (dout, gradient))
        )
        out, pull = squared.vjp(next(arrays))
        np.testing.assert_array_equal(out.get(), x * x)
        np.testing.assert_array_equal(pull(next(arrays))[0].get(), 2 * x * dout)


def test_a_rule_gets_arrays_of_one_order_where_no_queue_is_known(squared, x, context):
    dout = laid_out(cl.CommandQueue(context), x.get(), "Fortran's order").with_queue(None)
    np.testing.assert_array_equal(squared.vjp(x)[1](dout)[0].get(), 2 * x.get() ** 2)


@pytest.fixture(scope="module")
def added():
    """Add x to total in place, and return their product then: a function of PyOpenCL's own functions."""

    def function(total, x):
        total += x
        return (total * x,)

    schema = "opencl_tests::added(Tensor(a!) total, Tensor x) -> (Tensor(a!), Tensor)"
    return polyop.operator(schema, TensorKernel(function, "added"), infer="x")


@pytest.mark.parametrize("order", ORDERS)
def test_a_function_of_tensors_gets_arrays_of_one_order_and_writes_into_the_callers(added, queue, order):
    first, second = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([[1, 2, 3], [4, 5, 6]])
    total, x = laid_out(queue, first, order), cl_array.to_device(queue, second)
    written, product = added(total, x)
    assert written is total
    np.testing.assert_array_equal(polyop.call.host.host_of(total).copy(total).get(), first + second)
    np.testing.assert_array_equal(product.get(), (first + second) * second)


def test_functions_that_move_dimensions_return_the_order_of_c(x):
    xp, numbers = polyop.array_namespace(x), x.get()
    y = cl_array.to_device(x.queue, np.ascontiguousarray(numbers.T))
    np.testing.assert_array_equal((xp.matrix_transpose(x) * y).get(), numbers.T**2)
    np.testing.assert_array_equal((xp.permute_dims(x, (1, 0)) * y).get(), numbers.T**2)
    three = x.reshape(2, 3, 4)
    np.testing.assert_array_equal(xp.matrix_transpose(three).get(), three.get().swapaxes(1, 2))
    for axis in (0, 1, 2, -1):
        expected = np.stack([numbers, numbers + 1], axis)
        same = cl_array.to_device(x.queue, expected)
        np.testing.assert_array_equal((xp.stack([x, x + 1], axis) * same).get(), expected**2)


@pytest.mark.parametrize("kind", ["bool", "int8", "uint8", "int16", "uint32", "float32", "complex64"])
def test_a_sum_is_in_the_dtype_of_numpy(queue, kind):
    ones = np.ones(300, kind)
    x = cl_array.to_device(queue, ones)
    total, expected = polyop.array_namespace(x).sum(x).get(), ones.sum()
    assert (total, total.dtype) == (expected, expected.dtype)


def test_a_sum_of_comparisons_counts_them(x):
    xp = polyop.array_namespace(x)
    many = cl_array.zeros(x.queue, 300, np.float32)
    assert xp.sum(many == 0).get() == 300
    assert xp.sum(many == 0, dtype=np.float32).dtype == np.float32


INT8 = np.array([1, -2, 3], np.int8)
OTHERS = [np.array([-1, 2, -3], kind) for kind in ("int8", "int16", "float32")]


@pytest.mark.parametrize("name", ["maximum", "minimum", "where"])
@pytest.mark.parametrize("other", [*OTHERS, 0.5, 2])
def test_two_dtypes_become_the_one_of_numpy(queue, name, other):
    x = cl_array.to_device(queue, INT8)
    y = cl_array.to_device(queue, other) if isinstance(other, np.ndarray) else other
    conditions = [(x > 0, INT8 > 0)] if name == "where" else []
    mine, numpys = zip(*conditions, (x, INT8), (y, other), strict=True)
    found, expected = getattr(polyop.array_namespace(x), name)(*mine), getattr(np, name)(*numpys)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.get(), expected)


@pytest.mark.parametrize("other", OTHERS)
def test_arrays_of_two_dtypes_are_joined(queue, other):
    arrays = [cl_array.to_device(queue, array) for array in (INT8, other)]
    xp = polyop.array_namespace(arrays[0])
    for found, expected in (
        (xp.concat(arrays), np.concatenate([INT8, other])),
        (xp.stack(arrays), np.stack([INT8, other])),
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.get(), expected)


@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 widens the array")
def test_a_number_that_the_dtype_cannot_hold_is_refused(queue):
    x = cl_array.to_device(queue, INT8)
    with pytest.raises(OverflowError, match="300 out of bounds for int8"):
        polyop.array_namespace(x).where(x > 0, x, 300)


def test_sizes_that_are_numbers_of_numpy(scaled, queue):
    x = cl_array.zeros(queue, (np.int64(2), np.int32(3)), np.float32)
    assert scaled(x).shape == (2, 3)
    assert [type(size) for size in polyop.call.host.host_of(x).spec(x).shape] == [int, int]


def test_a_kernel_that_asks_for_workspaces_is_refused(context):
    code = """
    #include "polyop/abi.h"
    int fInit(int *ndims, int64_t **shapes, const char **dtypes, void *extra) {
      const size_t bytes[] = {64};
      struct polyop_extra *self = extra;
      self->functions->set_workspaces(self, bytes, 1);
      return 0;
    }
    int f(int n, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *queue, void *extra) {
      return 0;
    }
    """
    kernel = polyop.source(code=code, function="f", language="c", device="opencl")
    with pytest.raises(KernelError, match="fInit: asks for workspaces, which a kernel for OpenCL allocates"):
        kernel.launch((Spec((2,), "float32"),), (), {})
