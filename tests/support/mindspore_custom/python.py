"""Programs of func_type "pyfunc" and "hybrid"."""

import json

import numpy as np

from .native import PAIR, add, sum_difference
from .rows import X, program

PYFUNC = "pyfunc"
LOOPS = "hybrid, akg"
ONE = (X,)


def square(x):
    return x * x


def twice(x):
    return (2 * x,)


# Python functions


@program(PYFUNC, PAIR, add)
def a_python_function(w):
    return w.Custom(add, lambda x, y: x, lambda x, y: x, "pyfunc")


@program(PYFUNC, PAIR, add)
def the_default_kind(w):
    return w.Custom(lambda x, y: x + y, lambda x, y: x, lambda x, y: x)


@program(PYFUNC, PAIR, sum_difference)
def a_python_function_of_two_outputs(w):
    return w.Custom(lambda x, y: (x + y, x - y), ((3,), (3,)), (w.float32, w.float32), "pyfunc")


@program(PYFUNC, PAIR, lambda x, y: (x + y,))
def a_python_function_and_a_tuple_of_one(w):
    return w.Custom(lambda x, y: x + y, ((3,),), (w.float32,), "pyfunc")


@program(PYFUNC, (np.int32(10), np.int32(5)), lambda x, y: np.int32(5), own="")
def numbers(w):
    def minus(x, y):
        assert type(x) is int
        return x - y

    return w.Custom(minus, (), w.int32, "pyfunc")


@program(PYFUNC, ONE, lambda x: np.float32(14.0), own="")
def a_number_of_a_tensor(w):
    return w.Custom(lambda x: float(x.sum()), (), w.float32, "pyfunc")


@program(PYFUNC, ONE, lambda x: x * 3)
def no_outputs(w):
    seen = []
    op = w.Custom(lambda x: seen.append(float(x.sum())), (), (), "pyfunc")

    class Net(w.nn.Cell):
        def construct(self, x):
            op(x)
            return x * 3

    return Net()


@program(PYFUNC, ONE, lambda x: x * 3)
def a_number_after_the_tensor(w):
    op = w.Custom(lambda x, k: x * np.float32(k), lambda x, k: x, lambda x, k: x, "pyfunc")

    def net(x):
        return op(x, 3)

    return net


@program(PYFUNC, ONE, lambda x: x * np.float32(1.5), own="")
def a_registered_number_after_the_tensor(w):
    info = w.information(1).attr("k", "required", "float").get_op_info()
    op = w.Custom(lambda x, k: x * np.float32(k), lambda x, k: x, lambda x, k: x, "pyfunc", reg_info=info)

    def net(x):
        return op(x, 1.5)

    return net


@program(PYFUNC, PAIR, add)
def information_by_decorator(w):
    @w.ops.custom_info_register(w.information().get_op_info())
    def decorated(x, y):
        return x + y

    return w.Custom(decorated, lambda x, y: x, lambda x, y: x, "pyfunc")


@program(PYFUNC, PAIR, add)
def information_by_decorator_as_json(w):
    @w.ops.custom_info_register(json.dumps(w.information().get_op_info()))
    def decorated(x, y):
        return x + y

    return w.Custom(decorated, (3,), w.float32, "pyfunc")


@program(PYFUNC, PAIR, add)
def information_beside_a_decorator(w):
    @w.ops.custom_info_register(w.information(target="Ascend").get_op_info())
    def decorated(x, y):
        return x + y

    return w.Custom(decorated, (3,), w.float32, "pyfunc", reg_info=w.information().get_op_info())


@program(PYFUNC, PAIR, add)
def two_operators_of_one_function(w):
    w.Custom(add, (3,), w.float32, "pyfunc", reg_info=w.information().get_op_info())
    return w.Custom(add, (3,), w.float32, "pyfunc", reg_info=w.information().get_op_info())


@program(PYFUNC, (np.array([1.5, -2], np.float16),), lambda x: x.astype(np.int64))
def another_dtype(w):
    return w.Custom(lambda x: x.astype(np.int64), lambda x: x, lambda x: w.int64, "pyfunc")


@program(PYFUNC, (np.array([1 + 2j], np.complex64),), np.conj)
def complex_numbers(w):
    return w.Custom(lambda x: np.conj(x), lambda x: x, lambda x: x, "pyfunc")


@program(PYFUNC, (), lambda: np.arange(3.0, dtype=np.float32))
def no_inputs(w):
    return w.Custom(lambda: np.arange(3, dtype=np.float32), (3,), w.float32, "pyfunc")


@program(PYFUNC, ONE, error=r"'out_dtype' must be one of \[mindspore.dtype, tuple, list, function\]", own="")
def no_dtype(w):
    return w.Custom(square, lambda x: x, None, "pyfunc")


@program(PYFUNC, ONE, error="must be float32, as the operator infers it, but got float64", own="")
def a_result_of_another_dtype(w):
    return w.Custom(lambda x: x.astype(np.float64), lambda x: x, lambda x: x, "pyfunc")


@program(
    PYFUNC,
    ONE,
    lambda x: x[:2],
    error=r"must have shape \(3,\), as the operator infers it, but got \(2,\)",
    own="",
)
def a_result_of_another_shape(w):
    return w.Custom(lambda x: x[:2], lambda x: x, lambda x: x, "pyfunc")


@program(PYFUNC, ONE, error="no such row", own="")
def a_python_function_that_raises(w):
    def fail(x):
        raise KeyError("no such row")

    return w.Custom(fail, lambda x: x, lambda x: x, "pyfunc")


# loops


@program(LOOPS, PAIR, add, gradient=lambda x, y: (np.ones(3), np.ones(3)))
def a_loop_kernel(w):
    @w.ops.kernel
    def loop_add(x, y):
        out = output_tensor(x.shape, x.dtype)  # noqa: F821 - the words of the language
        for i in range(x.shape[0]):
            out[i] = x[i] + y[i]
        return out

    return w.Custom(loop_add, func_type="hybrid")


@program(LOOPS, PAIR, add)
def a_loop_kernel_with_rules(w):
    @w.ops.kernel
    def loop_add(x, y):
        out = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            out[i] = x[i] + y[i]
        return out

    return w.Custom(loop_add, lambda x, y: x, lambda x, y: x, "hybrid")


@program(LOOPS, PAIR, sum_difference, gradient=lambda x, y: (2 + 0 * x, 0 * y), own="")
def a_loop_kernel_of_two_outputs(w):
    @w.ops.kernel
    def loop_both(x, y):
        out = output_tensor(x.shape, x.dtype)  # noqa: F821
        less = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            out[i] = x[i] + y[i]
            less[i] = x[i] - y[i]
        return out, less

    return w.Custom(loop_both, func_type="hybrid")


@program(LOOPS, ONE, lambda x: x * 2, gradient=lambda x: (0 * x + 2,), own="")
def a_loop_kernel_with_an_attribute(w):
    info = w.information(1).attr("k", "required", "float").get_op_info()

    @w.ops.kernel(reg_info=info)
    def loop_scale(x, k):
        out = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            out[i] = x[i] * k
        return out

    op = w.Custom(loop_scale, func_type="hybrid")

    def net(x):
        return op(x, 2.0)

    return net


@program(LOOPS, ONE, square, gradient=twice)
def loops_of_akg(w):
    def loop_square(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i]
        return y

    return w.Custom(loop_square, lambda x: x, lambda x: x, "akg")


@program(LOOPS, ONE, square)
def a_loop_kernel_run_as_python(w):
    @w.ops.kernel
    def loop_square(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i]
        return y

    return w.Custom(loop_square, lambda x: x, lambda x: x, "pyfunc")


@program(LOOPS, ONE, error="whole-tensor maths is not compiled: write loops into an output_tensor", own="")
def a_hybrid_function_without_loops(w):
    return w.Custom(square, lambda x: x, lambda x: x, "hybrid")
