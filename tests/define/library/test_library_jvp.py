"""``load_library(..., jvp=...)``: forward-mode rules of operators of C++ libraries, beside finite differences."""

import pathlib

import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, GradientError, SchemaError

pytestmark = pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")  # of vmap
SOURCES = pathlib.Path(__file__).parents[2] / "sources"
OWN = pathlib.Path(__file__).parents[3] / "examples" / "11_operator_library" / "ops.cpp"
RENAMED = {"myops": "myops_jvp"}

x = np.array([0.5, -1.25, 2.0])
v = np.array([1.0, 0.5, -2.0])


PYTORCHS = {
    "cubed": lambda x, out, tangents: 3 * x * x * tangents[0],
    "torchlib_cubed::slope": lambda x, out, tangents: 6 * x * tangents[0],
    "muladd": lambda a, b, c, out, tangents: zero_or(tangents[0], b) + zero_or(tangents[1], a),
}


def zero_or(tangent, factor):
    return 0 if tangent is None else tangent * factor


def total(a, b, out, tangents):
    return zero_or(tangents[0], 1) + zero_or(tangents[1], 1)


def softened(x, width, out, tangents):
    return width * tangents[0] / (width + abs(x)) ** 2


@pytest.fixture(scope="session")
def pytorchs():
    """A library with an operator that has a gradient in C++, and two that have none."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    return polyop.load_library(SOURCES / "torch_cubed.cpp", jvp=PYTORCHS)


@pytest.fixture(scope="session")
def own():
    return polyop.load_library(OWN, namespaces=RENAMED, jvp={"my_op": total, "soften": softened})


CALLS = {  # the library, a function of one tensor
    "muladd": ("pytorchs", lambda library: lambda x: library.muladd(x, x, 0.5)),
    "muladd by keyword": ("pytorchs", lambda library: lambda x: library.muladd(x, b=x * 2, c=0.5)),
    "cubed": ("pytorchs", lambda library: library.cubed),
    "slope": ("pytorchs", lambda library: library.slope),
    "my_op": ("own", lambda library: lambda x: library.my_op(x, x * 3)),
    "soften": ("own", lambda library: lambda x: library.soften(x, width=0.75)),
}


@pytest.fixture(params=CALLS)
def f(request):
    library, make = CALLS[request.param]
    return make(request.getfixturevalue(library))


def differences(f):
    """Return the tangent of f at x along v, by finite differences."""
    step = 1e-6
    return (f(x + step * v) - f(x - step * v)) / (2 * step)


@pytest.mark.slow(3)
def test_in_pytorch(f, torch):
    expected = differences(f)
    t, u = torch.tensor(x), torch.tensor(v)
    out, tangent = torch.func.jvp(f, (t,), (u,))
    np.testing.assert_allclose(out, f(x))
    np.testing.assert_allclose(tangent, expected, rtol=1e-6)
    np.testing.assert_allclose(torch.func.jacfwd(f)(t) @ u, expected, rtol=1e-6)
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(f(forward_ad.make_dual(t, u)))
    np.testing.assert_allclose(dual.tangent, expected, rtol=1e-6)
    rows = torch.vmap(lambda t, u: torch.func.jvp(f, (t,), (u,))[1])(t.reshape(3, 1), u.reshape(3, 1))
    np.testing.assert_allclose(rows.flatten(), expected, rtol=1e-6)
    step = torch.compile(lambda t, u: torch.func.jvp(f, (t,), (u,)), fullgraph=True, backend="aot_eager")
    np.testing.assert_allclose(step(t, u)[1], expected, rtol=1e-6)


@pytest.mark.slow(3)
def test_in_jax(f):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.enable_x64(True):
        out, tangent = jax.jit(lambda x, v: jax.jvp(f, (x,), (v,)))(x, v)
        np.testing.assert_allclose(out, f(x))
        np.testing.assert_allclose(tangent, differences(f), rtol=1e-6)
        np.testing.assert_allclose(jax.jacfwd(f)(x) @ v, differences(f), rtol=1e-6)


def test_gradients_stay_those_of_the_library(pytorchs, own, torch):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    for f, slope in ((pytorchs.cubed, 3 * x * x), (lambda x: own.my_op(x, x), np.full(3, 2.0))):
        t = torch.tensor(x, requires_grad=True)
        f(t).sum().backward()
        np.testing.assert_allclose(t.grad, slope)
        with jax.enable_x64(True):
            np.testing.assert_allclose(jax.grad(lambda x, f=f: f(x).sum())(x), slope)


def test_reverse_over_forward_and_forward_over_forward(pytorchs, torch):
    t, u = torch.tensor(x), torch.tensor(v)

    def along(t):
        return torch.func.jvp(lambda t: pytorchs.muladd(t, t, 0.5), (t,), (u,))[1]

    np.testing.assert_allclose(torch.func.grad(lambda t: along(t).sum())(t), 2 * v)
    np.testing.assert_allclose(torch.func.jvp(along, (t,), (u,))[1], 2 * v * v)


def test_forward_over_reverse_of_a_recorded_gradient(own, torch):
    """The tangents of what Forward saves are those of its gradient, not of the rule."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    hessian = torch.func.jacfwd(torch.func.jacrev(lambda t: own.my_op(t, t).sum()))(torch.tensor(x))
    np.testing.assert_array_equal(hessian, np.zeros((3, 3)))
    np.testing.assert_array_equal(jax.hessian(lambda t: own.my_op(t, t).sum())(x), np.zeros((3, 3)))


def test_without_a_rule_it_is_an_error_and_not_a_zero(torch):
    with torch.library._scoped_library("torchlib_no_jvp", "DEF") as library:
        library.define("doubled(Tensor a) -> Tensor")
        library.impl("doubled", lambda a: torch.from_numpy(2 * a.detach().numpy()), "CPU")
        library.define("largest(Tensor a) -> Tensor")
        library.impl("largest", lambda a: torch.from_numpy(a.detach().numpy().argmax(keepdims=True)), "CPU")
        t = torch.tensor(x)
        rule = r'torchlib_no_jvp::doubled: has no forward-mode rule\n(.*\n)?.*jvp=\{"doubled": rule\}'
        with pytest.raises(GradientError, match=rule):
            torch.func.jvp(polyop.aten("torchlib_no_jvp::doubled"), (t,), (t,))
        with pytest.raises(GradientError, match="has no gradient: its author registers none in PyTorch"):
            polyop.aten("torchlib_no_jvp::doubled").vjp(x)[1](x)  # the kernel of the error is no gradient
        index, _ = torch.func.jvp(polyop.aten("torchlib_no_jvp::largest"), (t,), (t,))
        assert index.tolist() == [2]


def test_rules_that_do_not_fit(pytorchs, own, torch):
    with pytest.raises(
        ArgumentValueError, match=r"jvp: must name its operators, but got minus\n.*\n.*muladd"
    ):
        polyop.load_library(pytorchs.path, jvp={"minus": total})
    with pytest.raises(ArgumentValueError, match=r"ops.*\.so: jvp: must name its operators, but got minus"):
        polyop.load_library(OWN, namespaces=RENAMED, jvp={"minus": total})
    with pytest.raises(ArgumentTypeError, match=r"torchlib_cubed::muladd: jvp must be a function"):
        polyop.load_library(pytorchs.path, jvp={"muladd": 3})
    with pytest.raises(Exception, match=r"muladd: jvp .*lambda"):
        polyop.load_library(pytorchs.path, jvp={"muladd": lambda a, b: a})
    t = torch.tensor(x)
    polyop.load_library(OWN, namespaces=RENAMED, jvp={"soften": lambda x, width, out, tangents: x[:1]})
    polyop.load_library(pytorchs.path, jvp={"muladd": lambda a, b, c, out, tangents: a[:1]})
    try:
        rule = r"muladd: tangent of output 0: must have the output's shape \(3,\), but got \(1,\)"
        with pytest.raises(GradientError, match=rule):
            torch.func.jvp(lambda t: pytorchs.muladd(t, t, 0.5), (t,), (t,))
    finally:
        polyop.load_library(OWN, namespaces=RENAMED, jvp={"soften": softened})
        polyop.load_library(pytorchs.path, jvp=PYTORCHS)


def test_an_operator_that_writes_has_none(tmp_path):
    source = tmp_path / "writes.cpp"
    source.write_text("""
#include <polyop/library.h>
POLYOP_LIBRARY(writes_jvp, m) { m.def("f(Tensor(a!) x) -> ()", +[](polyop::Tensor& x) {}); }
""")
    with pytest.raises(
        SchemaError, match="writes_jvp::f: has an argument that is written in place, so it can"
    ):
        polyop.load_library(source, jvp={"f": lambda x, out, tangents: None})
