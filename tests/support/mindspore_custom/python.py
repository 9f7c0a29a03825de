"""Programs of func_type "pyfunc" and "hybrid", gradients, what is around an operator, and kinds that do not run."""

import json

import numpy as np

from .native import PAIR, add, sum_difference
from .rows import SQUARE, X, Y, program

PYFUNC = "pyfunc"
LOOPS = "hybrid, akg"
GRADIENTS = "bprop"
AROUND = "Cell, jit, vmap, dynamic shapes"
KINDS = "other kinds"
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


@program(PYFUNC, ONE, error="must be float32, as out_dtype says, but got float64", own="")
def a_result_of_another_dtype(w):
    return w.Custom(lambda x: x.astype(np.float64), lambda x: x, lambda x: x, "pyfunc")


@program(
    PYFUNC, ONE, lambda x: x[:2], error=r"must have shape \(3,\), as out_shape says, but got \(2,\)", own=""
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


# gradients


@program(GRADIENTS, ONE, square, gradient=twice)
def a_bprop(w):
    def bprop(x, out, dout):
        return (2 * x * dout,)

    return w.Custom(w.source("Square"), lambda x: x, lambda x: x, "aot", bprop)


@program(GRADIENTS, ONE, square, gradient=twice, own="pynative")
def a_bprop_that_is_a_lambda(w):
    return w.Custom(
        w.source("Square"),
        lambda x: x,
        lambda x: x,
        "aot",
        bprop=lambda x, out, dout: (2 * x * dout,),
    )


@program(GRADIENTS, ONE, lambda x: x**4, gradient=lambda x: (4 * x**3,))
def a_bprop_by_another_operator(w):
    grad = w.Custom(w.source("SquareGrad"), lambda x, out, dout: x, lambda x, out, dout: x, "aot")

    def bprop(x, out, dout):
        return (grad(x, out, dout),)

    op = w.Custom(w.source("Square"), lambda x: x, lambda x: x, "aot", bprop)

    def net(x):
        return op(op(x))

    return net


@program(GRADIENTS, ONE, square, gradient=twice)
def a_bprop_by_a_python_function(w):
    grad = w.Custom(lambda x, dout: 2 * x * dout, lambda x, _: x, lambda x, _: x, "pyfunc")

    def bprop(x, out, dout):
        return (grad(x, dout),)

    return w.Custom(lambda x: x * x, lambda x: x, lambda x: x, "pyfunc", bprop)


@program(GRADIENTS, ONE, square, gradient=twice, own="pynative")
def a_bprop_that_is_an_operator(w):
    def pulled(x, out, dout):
        return 2 * x * dout

    grad = w.Custom(pulled, lambda x, out, dout: (x,), lambda x, out, dout: (x,), "pyfunc")
    return w.Custom(lambda x: x * x, lambda x: x, lambda x: x, "pyfunc", bprop=grad)


@program(GRADIENTS, PAIR, sum_difference, gradient=lambda x, y: (2 + 0 * x, 0 * y))
def a_bprop_of_two_outputs(w):
    def bprop(x, y, out, dout):
        return dout[0] + dout[1], dout[0] - dout[1]

    return w.Custom(lambda x, y: (x + y, x - y), lambda x, y: (x, y), lambda x, y: (x, y), "pyfunc", bprop)


@program(GRADIENTS, ONE, lambda x: (x * x,), gradient=twice)
def a_bprop_of_a_tuple_of_one(w):
    def bprop(x, out, dout):
        return (2 * x * dout[0],)

    return w.Custom(lambda x: x * x, ((3,),), (w.float32,), "pyfunc", bprop)


@program(GRADIENTS, ONE, lambda x: x * np.float32(0.5), gradient=lambda x: (0 * x + 0.5,))
def a_bprop_with_an_attribute(w):
    info = w.information(1).attr("scale", "required", "float").get_op_info()

    def bprop(x, scale, out, dout):
        return dout * scale, 0.0

    op = w.Custom(w.source("Scale"), lambda x, _: x, lambda x, _: x, "aot", bprop, info)

    def net(x):
        return op(x, 0.5)

    return net


@program(GRADIENTS, ONE, lambda x: x * np.float32(0.5), gradient=lambda x: (0 * x + 0.5,))
def a_bprop_with_an_attribute_and_none(w):
    info = w.information(1).attr("scale", "required", "float").get_op_info()

    def bprop(x, scale, out, dout):
        return dout * scale, None

    op = w.Custom(w.source("Scale"), lambda x, _: x, lambda x, _: x, "aot", bprop, info)

    def net(x):
        return op(x, 0.5)

    return net


@program(GRADIENTS, PAIR, add, gradient=lambda x, y: (0 * x + 1, 0 * y), own="pynative")
def a_bprop_that_returns_none(w):
    def bprop(x, y, out, dout):
        return dout, None

    return w.Custom(lambda x, y: x + y, lambda x, y: x, lambda x, y: x, "pyfunc", bprop)


@program(
    GRADIENTS, (X, np.array([2, 0, 2])), lambda x, i: x[i], gradient=lambda x, i: (np.array([1, 0, 2.0]),)
)
def a_bprop_of_an_index(w):
    zeros_like = w.ops.zeros_like
    scatter = w.Custom(
        lambda x, i, dout: np.bincount(i, dout, len(x)).astype(np.float32),
        lambda x, i, dout: x,
        lambda x, i, dout: x,
        "pyfunc",
    )

    def bprop(x, index, out, dout):
        return scatter(x, index, dout), zeros_like(index)

    return w.Custom(w.source("Gather"), lambda x, i: i, lambda x, i: x, "aot", bprop)


@program(GRADIENTS, ONE, lambda x: 2 * x, gradient=lambda x: (0 * x + 2,))
def a_second_derivative(w):
    def bprop(x, out, dout):
        return (2 * x * dout,)

    op = w.Custom(lambda x: x * x, lambda x: x, lambda x: x, "pyfunc", bprop)

    def net(x):
        return op(x)

    return w.ms.grad(net)


@program(GRADIENTS, ONE, square, gradient=lambda x: (0 * x,), error="has no gradient rule", own="")
def no_bprop(w):
    return w.Custom(lambda x: x * x, lambda x: x, lambda x: x, "pyfunc")


@program(GRADIENTS, PAIR, add, gradient=lambda x, y: (x, y), error="gradient", own="")
def a_bprop_of_too_few(w):
    def bprop(x, y, out, dout):
        return (dout,)

    return w.Custom(lambda x, y: x + y, lambda x, y: x, lambda x, y: x, "pyfunc", bprop)


@program(GRADIENTS, ONE, square, gradient=twice, error="'bprop' must be of type function", own="")
def a_bprop_that_is_no_function(w):
    return w.Custom(square, lambda x: x, lambda x: x, "pyfunc", bprop=3)


# around


@program(AROUND, ONE, lambda x: x * x + 1, gradient=twice)
def in_a_cell(w):
    def bprop(x, out, dout):
        return (2 * x * dout,)

    class Net(w.nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = w.Custom(w.source("Square"), lambda x: x, lambda x: x, "aot", bprop)
            self.one = w.ms.Parameter(w.ms.Tensor(1.0, w.float32), name="one")

        def construct(self, x):
            return self.op(x) + self.one

    return Net()


@program(AROUND, ONE, square, gradient=twice)
def in_a_jit(w):
    def bprop(x, out, dout):
        return (2 * x * dout,)

    op = w.Custom(w.source("Square"), lambda x: x, lambda x: x, "aot", bprop)

    @w.ms.jit
    def net(x):
        return op(x)

    return net


@program(AROUND, (SQUARE,), square)
def in_a_vmap(w):
    op = w.Custom(w.source("Square"), lambda x: x, lambda x: x, "aot")

    def net(x):
        return op(x)

    return w.ms.vmap(net)


@program(AROUND, (SQUARE, Y), add)
def in_a_vmap_of_one_input(w):
    op = w.Custom(lambda x, y: x + y, lambda x, y: x, lambda x, y: x, "pyfunc")

    def net(x, y):
        return op(x, y)

    return w.ms.vmap(net, (0, None), 0)


@program(AROUND, (SQUARE,), lambda x: (x + 1, x - 1))
def in_a_vmap_of_two_outputs(w):
    op = w.Custom(lambda x: (x + 1, x - 1), ((3,), (3,)), (w.float32, w.float32), "pyfunc")

    def net(x):
        return op(x)

    return w.ms.vmap(net)


def dynamic(w, op, *shapes):
    """Return a cell that calls the operator, for inputs of unknown sizes."""

    class Net(w.nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = op

        def construct(self, *inputs):
            return self.op(*inputs)

    net = Net()
    net.set_inputs(*[w.ms.Tensor(shape=shape, dtype=w.float32) for shape in shapes])
    return net


@program(AROUND, (SQUARE, SQUARE), add, again=(SQUARE[:1], SQUARE[:1]), own="")
def an_unknown_size_and_cpp_rules(w):
    return dynamic(w, w.Custom(w.source("Add"), None, w.float32, "aot"), [None, 3], [None, 3])


@program(AROUND, (SQUARE, SQUARE), add, again=(SQUARE[:1], SQUARE[:1]), own="pynative")
def an_unknown_size_and_functions(w):
    op = w.Custom(w.source("Add"), lambda x, y: x, lambda x, y: x, "aot")
    return dynamic(w, op, [None, 3], [None, 3])


@program(AROUND, (SQUARE,), lambda x: x.sum(0), again=(SQUARE[:, :2],), own="")
def an_unknown_size_and_a_python_function(w):
    op = w.Custom(lambda x: x.sum(0), lambda x: x[1:], lambda x: x, "pyfunc")
    return dynamic(w, op, [2, None])


@program(AROUND, (SQUARE, SQUARE), sum_difference, again=(SQUARE[:1], SQUARE[:1]))
def unknown_sizes_of_two_outputs(w):
    op = w.Custom(
        w.source("SumDifference"), None, None, "aot", reg_info=w.information(outputs=2).get_op_info()
    )
    return dynamic(w, op, [None, None], [None, None])


@program(AROUND, (SQUARE, SQUARE), add, again=(X, Y), own="")
def an_unknown_rank(w):
    return dynamic(w, w.Custom(w.source("Add"), None, None, "aot"), None, None)


@program(AROUND, (SQUARE,), square, gradient=twice, again=(SQUARE[:1],), own="pynative")
def a_gradient_of_an_unknown_size(w):
    def bprop(x, out, dout):
        return (2 * x * dout,)

    op = w.Custom(w.source("Square"), lambda x: x, lambda x: x, "aot", bprop)
    return dynamic(w, op, [None, 3])


@program(
    AROUND,
    ONE,
    square,
    error="cannot be made while a graph is captured",
    error_in="polyop.mindspore graph",
    own="pynative",
)
def made_in_construct(w):
    class Net(w.nn.Cell):
        def construct(self, x):
            return w.Custom(square, lambda x: x, lambda x: x, "pyfunc")(x)

    return Net()


# kinds that polyop does not run


@program(KINDS, ONE, error="write an 'aot' kernel in C\\+\\+, or name an aclnn operator", own="")
def a_tbe_kernel(w):
    info = w.information(1, target="Ascend").get_op_info()
    return w.Custom(lambda x: x, lambda x: x, lambda x: x, "tbe", reg_info=info)


@program(KINDS, ONE, error="AICPU kernels run inside the Ascend device; write an 'aot' kernel", own="")
def an_aicpu_kernel(w):
    info = w.information(1, target="Ascend").get_op_info()
    return w.Custom("CumSum", lambda x: x, lambda x: x, "aicpu", reg_info=info)


@program(KINDS, ONE, error="MindSpore removed it after 2.7.0; write an 'aot' kernel", own="")
def a_julia_kernel(w):
    return w.Custom("add.jl:Add:add", lambda x: x, lambda x: x, "julia")


@program(KINDS, ONE, error="'func_type' must be one of", own="")
def a_kind_that_does_not_exist(w):
    return w.Custom(square, lambda x: x, lambda x: x, "numpy")
