"""``torch.vmap`` of operators that other packages registered without a batching rule: one call for each sample."""

import pathlib
import warnings

import numpy as np
import pytest

import polyop
from polyop import FallbackWarning

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
jax = pytest.importorskip("jax", reason="JAX is not installed")

t = torch.arange(6.0).reshape(3, 2)


@pytest.fixture
def library(capfd):
    with torch.library._scoped_library("vmapped", "DEF") as defined:
        yield defined
    assert "performance drop" not in capfd.readouterr().err


def define(library, schema, function):
    library.define(schema)
    name = schema.partition("(")[0]
    library.impl(name, function, "CPU")
    return polyop.aten(f"vmapped::{name}")


def test_the_way_out_is_said_once(library, not_warned_yet):
    doubled = define(library, "doubled(Tensor x) -> Tensor", lambda x: x * 2)
    said = r'vmapped::doubled: vmap runs one call per sample; torch\.library\.register_vmap\("vmapped::doubled", '
    with pytest.warns(FallbackWarning, match=said):
        torch.testing.assert_close(torch.vmap(doubled)(t), 2 * t)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(torch.vmap(doubled, 1, 1)(t), 2 * t)
        np.testing.assert_array_equal(jax.vmap(doubled)(t.numpy()), 2 * t)


def test_a_rule_that_its_author_registers_later(library):
    tripled = define(library, "tripled(Tensor x) -> Tensor", lambda x: x * 3)
    torch.testing.assert_close(tripled(t), 3 * t)
    shapes = []

    def rule(info, in_dims, x):
        shapes.append(tuple(x.shape))
        return tripled(x), in_dims[0]

    torch.library.register_vmap("vmapped::tripled", rule, lib=library)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(torch.vmap(tripled)(t), 3 * t)
    assert shapes == [(3, 2)]


@pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")
def test_an_operator_that_is_registered_again(capfd):
    for factor in (2, 3):
        with torch.library._scoped_library("vmapped_again", "DEF") as defined:
            defined.define("times(Tensor x) -> Tensor")
            defined.impl("times", lambda x, factor=factor: x * factor, "CPU")
            times = polyop.aten("vmapped_again::times")
            torch.testing.assert_close(torch.vmap(times)(t), factor * t)
    assert "performance drop" not in capfd.readouterr().err


@pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")
@pytest.mark.parametrize("count", [3, 0])
def test_what_is_written_and_returned_is_the_argument(library, count):
    add = define(
        library,
        "add_(Tensor(a!) x, Tensor y) -> (Tensor(a!), Tensor)",
        lambda x, y: (x.add_(y), y * 2),
    )

    def sample(x, y):
        returned, doubled = add(x, y)
        assert returned is x
        returned.mul_(10)
        return doubled

    x = t[:count].clone()
    doubled = torch.vmap(sample, (0, None))(x, torch.ones(2))
    torch.testing.assert_close(x, (t[:count] + 1) * 10)
    torch.testing.assert_close(doubled, 2 * torch.ones(count, 2))


def test_an_operator_that_writes_has_another_way_out(library, not_warned_yet):
    fill = define(library, "fill_(Tensor(a!) x) -> ()", lambda x: (x.fill_(7), None)[1])
    x = t.clone()
    with pytest.warns(FallbackWarning, match=r"writes an argument; one that returns a new tensor"):
        torch.vmap(lambda x: (fill(x), x)[1])(x)
    torch.testing.assert_close(x, torch.full_like(t, 7))


@pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")
def test_lists_and_undefined_results(library):
    many = define(library, "many(Tensor[] xs, Tensor? y) -> Tensor[]", lambda xs, y: [x * 2 for x in xs])
    for rows in (t, t[:0]):
        first, second = torch.vmap(lambda x: many([x, x + 1], None))(rows)
        torch.testing.assert_close((first, second), (2 * rows, 2 * rows + 2))
    perhaps = define(library, "perhaps(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, None))
    seen = []
    torch.testing.assert_close(torch.vmap(lambda x: (seen.append(perhaps(x)[1]), perhaps(x)[0])[1])(t), 2 * t)
    assert seen == [None]


@pytest.mark.slow
def test_the_operators_of_a_library_get_their_rules_together(capfd, not_warned_yet):
    """The gradient of one calls another, which no program calls by polyop's object."""
    source = pathlib.Path(__file__).parents[1] / "sources" / "torch_cubed.cpp"
    library = polyop.load_library(source)
    x = t.clone().requires_grad_()
    with pytest.warns(FallbackWarning, match=r"torchlib_cubed::cubed: .*; give dims= where it is loaded"):
        torch.vmap(library.cubed)(x).sum().backward()
    with pytest.warns(FallbackWarning, match=r"torchlib_cubed::slope: "):
        torch.testing.assert_close(torch.vmap(torch.ops.torchlib_cubed.slope)(t), 3 * t**2)
    torch.testing.assert_close(x.grad, 3 * t**2)
    slopes = jax.vmap(jax.grad(lambda row: library.cubed(row).sum()))(t.numpy())
    np.testing.assert_array_equal(slopes, 3 * t**2)
    assert "performance drop" not in capfd.readouterr().err
