"""Add a provider, which finds the operators of another library by name: NumPy's ufuncs of two arguments."""

import numpy as np

from polyop.call import registry
from polyop.call.bound import BoundOperator
from polyop.call.host import array_namespace
from polyop.call.operator import Operator
from polyop.core import locks
from polyop.core.errors import ArgumentValueError
from polyop.core.infer import FromSpecs
from polyop.core.origin import caller
from polyop.core.parse import parse
from polyop.core.spec import Spec
from polyop.kernels.python import PythonKernel


# [table]
def hypot_gradient(x, y, out, dout):
    return dout * x / out, dout * y / out


def logaddexp_gradient(x, y, out, dout):
    xp = array_namespace(out)  # NumPy's functions, or those of the calling framework
    return dout * xp.exp(x - out), dout * xp.exp(y - out)


ROWS = {"hypot": hypot_gradient, "logaddexp": logaddexp_gradient, "copysign": None}
# [/table]


# [find]
def ufunc(name):
    """Return NumPy's function ``name`` as an operator of every host; the same object each time."""
    if name not in ROWS:
        raise ArgumentValueError("ufunc", f"must be one of {', '.join(ROWS)}", repr(name))
    with locks.define:
        bound = registry.named(f"ufunc::{name}")
        return bound if bound is not None else make_operator(name)


def make_operator(name):
    schema = parse(f"ufunc::{name}(Tensor x, Tensor y) -> Tensor")
    kernel = PythonKernel(getattr(np, name))
    rule = FromSpecs(outputs, schema)
    value = Operator(schema, rule, (kernel,), gradient=ROWS[name], doc=f"numpy.{name}", origin=caller())
    return BoundOperator(value)


def outputs(x, y):
    return Spec(np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype.numpy, y.dtype.numpy).name)


# [/find]

# [numpy]
x, y = np.array([3.0, 5.0]), np.array([4.0, 12.0])
hypot = ufunc("hypot")
print(hypot(x, y))
_, pull = hypot.vjp(x, y)
print(pull(np.ones(2)))
# [/numpy]
np.testing.assert_array_equal(hypot(x, y), [5.0, 13.0])
np.testing.assert_array_equal(pull(np.ones(2))[0], [0.6, 5 / 13])
assert ufunc("hypot") is hypot

try:
    import torch
except ImportError:
    pass
else:
    # [torch]
    t = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    ufunc("logaddexp")(t, torch.zeros(2, dtype=torch.float64)).sum().backward()
    assert torch.allclose(t.grad, torch.sigmoid(t))
    # [/torch]
