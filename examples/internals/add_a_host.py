"""Add a host: operators take the arrays of Python's module ``array``."""

# ruff: noqa: ARG002, F821 - arguments of the protocol; the words of loop kernels

import array

import numpy as np

import polyop
from polyop.call import host
from polyop.call.host import load, map_tensors
from polyop.core.dtypes import dtype
from polyop.core.errors import HostError, UnsupportedError
from polyop.core.spec import Spec


# [host]
class ArrayHost:
    """Python's arrays, as tensors of one dimension."""

    name = "array"

    def start(self):
        pass  # this framework needs no notice of operators

    def state(self, bound):
        return "present, through NumPy"

    def owns(self, value):
        return isinstance(value, array.array)

    def spec(self, tensor):
        return Spec((len(tensor),), dtype(np.dtype(tensor.typecode)))

    def call(self, bound, arguments):
        numpy = load("numpy")
        arrays = map_tensors(bound.operator, arguments, view)
        return tuple(back(output) for output in numpy.call(bound, arrays))

    def vjp(self, bound, arguments):
        numpy = load("numpy")
        outputs, pull = numpy.vjp(bound, map_tensors(bound.operator, arguments, view))

        def pullback(grads):
            results = pull(tuple(None if g is None else np.asarray(g) for g in grads))
            return tuple(None if g is None else back(g) for g in results)

        return tuple(map(back, outputs)), pullback


def view(name, value, argument):
    return np.asarray(value)  # over the same memory


def back(value):
    if value.ndim != 1:
        raise UnsupportedError("array", "holds one dimension", f"{value.ndim}")
    return array.array(value.dtype.char, value.tobytes())


HOST = ArrayHost()
# [/host]

# [row]
host.register("array", lambda: HOST)
# [/row]

# [call]
square = polyop.operator(
    "hosts::square(Tensor x) -> Tensor",
    lambda x: x * x,
    infer="x",
    gradient=lambda x, out, dout: (2 * x * dout,),
)
x = array.array("d", [1.0, 2.0, 3.0])
print(square(x))
out, pull = square.vjp(x)
print(pull(array.array("d", [1.0, 1.0, 1.0])))
# [/call]
assert square(x) == array.array("d", [1.0, 4.0, 9.0])
assert pull(array.array("d", [1.0, 1.0, 1.0]))[0] == array.array("d", [2.0, 4.0, 6.0])


# [loops]
@polyop.kernel
def double(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + x[i]
    return y


print(double(x))  # machine code: the NumPy host launches it
# [/loops]
assert double(x) == array.array("d", [2.0, 4.0, 6.0])

# [mixed]
add = polyop.operator("hosts::add(Tensor x, Tensor y) -> Tensor", lambda x, y: x + y, infer="x")
try:
    add(x, np.ones(3))
except HostError as problem:
    print(str(problem).partition(" (")[0].splitlines()[0])
# [/mixed]
