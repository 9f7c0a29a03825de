"""Programs with gradients, programs around an operator, and kinds of kernel that polyop does not run."""

import numpy as np

from .native import PAIR, add, sum_difference
from .python import ONE, square, twice
from .rows import SQUARE, X, Y, program

GRADIENTS = "bprop"
AROUND = "Cell, jit, vmap, dynamic shapes"
KINDS = "other kinds"


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
