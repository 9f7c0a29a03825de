"""Operators that the host tests share, each compiled once per session."""

import pytest

import polyop


@pytest.fixture(scope="session")
def kernels():
    """Return a function from a name in tests/sources/kernels.c to its kernel."""
    import pathlib

    path = pathlib.Path(__file__).parents[1] / "sources" / "kernels.c"
    return lambda name: polyop.source(path, function=name)


@pytest.fixture(scope="session")
def cube(kernels):
    """a * x ** 3 in float64, differentiable to any order, elementwise under vmap."""
    return polyop.operator(
        "host_tests::cube(Tensor x, float a=1.0) -> Tensor",
        kernels("cube"),
        infer="x",
        gradient=lambda x, a, out, dout: (3 * a * x**2 * dout, None),
        batch="elementwise",
    )


@pytest.fixture(scope="session")
def square(kernels):
    """x ** 2 in float32; its gradient is another operator, which has none itself."""
    grad = polyop.operator(
        "host_tests::square_grad(Tensor x, Tensor out, Tensor dout) -> Tensor",
        kernels("square_grad"),
        infer="x",
    )
    return polyop.operator(
        "host_tests::square(Tensor x) -> Tensor",
        kernels("square"),
        infer="x",
        gradient=lambda x, out, dout: (grad(x, out, dout),),
    )


@pytest.fixture(scope="session")
def plain(kernels):
    """x ** 2 in float32, without a gradient."""
    return polyop.operator("host_tests::plain(Tensor x) -> Tensor", kernels("square"), infer="x")


@pytest.fixture(scope="session")
def scale_(kernels):
    """x *= a in place, float32."""
    return polyop.operator("host_tests::scale_(Tensor(a!) x, float a) -> ()", kernels("scale_in_place"))
