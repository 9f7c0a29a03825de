"""``dims=``: one line gives the shapes, the checks and ``vmap``, in every host."""

import itertools
import pathlib
import warnings

import jax
import numpy as np
import pytest
import torch
from jax import export

import polyop
from polyop.call.explain import explain
from polyop.core.errors import FallbackWarning, InferError, SchemaError

HOSTS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jax.numpy.asarray}


@pytest.fixture(params=HOSTS)
def tensor(request):
    return HOSTS[request.param]


def linear(x, w):
    return x @ w


NUMBERS = itertools.count()


def define(name, signature, function, dims, **more):
    """Return an operator with a new name."""
    return polyop.operator(f"dims_tests::{name}{next(NUMBERS)}{signature}", function, dims=dims, **more)


@pytest.fixture(scope="session")
def multiply():
    signature = "(Tensor x, Tensor w) -> Tensor"
    return define("multiply", signature, linear, "b i, i o -> b o", parallel="b o", sum="i")


def test_shapes_follow_from_the_entries(tensor, multiply):
    x, w = np.ones((2, 3), np.float32), np.full((3, 4), 2.0, np.float32)
    np.testing.assert_array_equal(np.asarray(multiply(tensor(x), tensor(w))), np.full((2, 4), 6.0))


@pytest.mark.parametrize(
    ("x", "w", "message"),
    [
        ((2, 3), (4, 5), "dimension i is 4 in argument w and 3 in argument x"),
        ((2, 3), (3,), "argument w has 1 dimension (3,), but its entry 'i o' has 2"),
    ],
)
def test_sizes_that_differ_are_an_error_in_every_host(tensor, multiply, x, w, message):
    with pytest.raises(InferError) as excinfo:
        multiply(tensor(np.ones(x, np.float32)), tensor(np.ones(w, np.float32)))
    assert message in str(excinfo.value)
    assert 'dims="b i, i o -> b o"' in str(excinfo.value)
    assert f"defined at {__file__}:" in str(excinfo.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"parallel": "b"}, "parallel= is about dimensions, and the operator has no dims="),
        ({"dims": "n -> n", "batch": "elementwise"}, 'batch="elementwise" repeats what dims= says'),
        ({"dims": "n -> n", "infer": lambda x: x}, "infer= gives the dtype of the output alone"),
        ({"dims": "n -> m"}, "has the size 'm', which no argument gives"),
        ({"dims": "n -> n", "parallel": "k"}, "'k'"),
    ],
)
def test_what_contradicts_is_refused_at_the_definition(more, message):
    with pytest.raises((SchemaError, InferError)) as excinfo:
        polyop.operator("dims_tests::refused(Tensor x) -> Tensor", lambda x: x, **more)
    assert message in str(excinfo.value)


def test_sizes_of_attributes_and_dtypes(tensor):
    repeat = define(
        "repeat",
        "(Tensor x, int times) -> Tensor",
        lambda x, times: np.tile(x.astype("float16"), times),
        "n -> n*times",
        infer="float16",
    )
    y = repeat(tensor(np.arange(3, dtype=np.float32)), 2)
    assert np.asarray(y).dtype == np.float16
    np.testing.assert_array_equal(np.asarray(y), [0, 1, 2, 0, 1, 2])


def calls_of(function):
    """Return a function that counts its calls, and the list of them."""
    calls = []

    def counting(*arguments):
        calls.append(tuple(np.shape(a) for a in arguments if isinstance(a, np.ndarray)))
        return function(*arguments)

    return counting, calls


def doubled(x):
    return x * 2


def product(q, k):
    return q @ k.T


MAPS = {
    "torch": lambda function, dims: torch.func.vmap(function, in_dims=dims),
    "jax": lambda function, dims: jax.vmap(function, in_axes=dims),
}


@pytest.mark.parametrize("host", MAPS)
@pytest.mark.parametrize(
    ("dims", "claims", "function", "shapes", "in_dims", "called"),
    [
        ("... n -> ... n", {}, doubled, [(4, 3)], (0,), [(4, 3)]),
        ("... n -> ... n", {}, doubled, [(3, 4)], (1,), [(4, 3)]),
        ("n -> n", {"parallel": "n"}, doubled, [(4, 3)], (0,), [(12,)]),
        ("b i, i o -> b o", {"parallel": "b"}, linear, [(4, 2, 3), (3, 5)], (0, None), [(8, 3), (3, 5)]),
        ("b i, i o -> b o", {"parallel": "b o"}, linear, [(2, 3), (3, 5, 4)], (None, 2), [(2, 3), (3, 20)]),
        ("b d, c d -> b c", {"parallel": "b c"}, product, [(2, 3), (5, 4, 3)], (None, 1), [(2, 3), (20, 3)]),
        (
            "b i, b -> b",
            {"parallel": "b"},
            lambda x, w: x.sum(1) * w,
            [(4, 2, 3), (2,)],
            (0, None),
            [(8, 3), (8,)],
        ),
    ],
)
def test_vmap_is_one_call(host, dims, claims, function, shapes, in_dims, called):
    counting, calls = calls_of(function)
    signature = f"({', '.join(f'Tensor x{k}' for k in range(len(shapes)))}) -> Tensor"
    op = define("mapped", signature, counting, dims, **claims)
    arrays = [np.random.default_rng(k).random(shape, np.float32) for k, shape in enumerate(shapes)]
    y = MAPS[host](op, in_dims)(*map(HOSTS[host], arrays))
    assert calls == [tuple(called)]
    moved = [a if d is None else np.moveaxis(a, d, 0) for a, d in zip(arrays, in_dims, strict=True)]
    samples = [
        function(*(a if d is None else a[k] for a, d in zip(moved, in_dims, strict=True))) for k in range(4)
    ]
    np.testing.assert_allclose(np.asarray(y), np.stack(samples), rtol=1e-6)


@pytest.mark.parametrize("host", MAPS)
def test_vmap_is_one_call_beside_a_list_without_samples(host):
    counting, calls = calls_of(lambda x, weights: x * sum(weights))
    op = define(
        "weighted", "(Tensor x, Tensor[] weights) -> Tensor", counting, "b n, n* -> b n", parallel="b"
    )
    x, w = np.ones((4, 2, 3), np.float32), np.ones(3, np.float32)
    to = HOSTS[host]
    y = MAPS[host](lambda x: op(x, [to(w), to(w)]), 0)(to(x))
    np.testing.assert_array_equal(np.asarray(y), 2 * x)
    assert len(calls) == 1


@pytest.mark.parametrize("host", MAPS)
def test_vmap_of_a_whole_dimension_is_a_loop_that_says_so(host):
    running = define("running", "(Tensor x) -> Tensor", lambda x: np.cumsum(x, dtype=x.dtype), "n -> n")
    x = np.ones((4, 3), np.float32)
    with pytest.warns(FallbackWarning, match="vmap runs one call per sample"):
        y = MAPS[host](running, (0,))(HOSTS[host](x))
    np.testing.assert_array_equal(np.asarray(y), np.cumsum(x, 1))


def test_torch_compiles_once_for_all_sizes(multiply):
    torch.compiler.reset()
    compiled = torch.compile(multiply, dynamic=True, fullgraph=True, backend="eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for b, i, o in [(2, 3, 4), (5, 6, 7), (8, 3, 9)]:
            x, w = torch.rand(b, i), torch.rand(i, o)
            torch.testing.assert_close(compiled(x, w), x @ w)


def test_jax_exports_symbolic_sizes(multiply):
    b, i, o = export.symbolic_shape("b, i, o")
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((b, i), (i, o))]
    exported = export.export(jax.jit(multiply), disabled_checks=polyop.jax_export_checks())(*shapes)
    assert [str(size) for size in exported.out_avals[0].shape] == ["b", "o"]


def test_explain_shows_dimensions_and_what_is_whole(multiply):
    text = explain(multiply)
    assert 'dimensions  dims="b i, i o -> b o", parallel="b o", sum="i"' in text
    assert "derived: one call where '...' or a parallel dimension" in text
    running = define("cumulative", "(Tensor x) -> Tensor", np.cumsum, "n -> n")
    assert "whole       n: nothing is claimed of slices along them" in explain(running)
    like = polyop.operator("dims_tests::like(Tensor x) -> Tensor", lambda x: x, infer="x")
    assert "dimensions  output like x; nothing else is claimed" in explain(like)


def test_no_warning_where_one_call_is_enough(multiply):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        torch.func.vmap(multiply, in_dims=(0, None))(torch.rand(2, 3, 4), torch.rand(4, 5))


TRANSFORMS = {
    "nested": (lambda m, f: m.vmap(m.vmap(f, (0, None)), (0, None)), lambda x, w: x @ w),
    "out_dims": (
        lambda m, f: m.vmap(m.vmap(f, (0, None)), (0, None), 2),
        lambda x, w: np.moveaxis(x @ w, 0, 2),
    ),
    "of the gradient": (
        lambda m, f: m.vmap(m.vmap(m.grad(lambda x, w: f(x, w).sum()), (0, None)), (0, None)),
        lambda x, w: np.broadcast_to(w.sum(1), x.shape),
    ),
    "the gradient of": (
        lambda m, f: m.grad(lambda x, w: m.vmap(m.vmap(f, (0, None)), (0, None))(x, w).sum()),
        lambda x, w: np.broadcast_to(w.sum(1), x.shape),
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("host", MAPS)
def test_transforms_of_vmap_need_one_call(host, name):
    transform, expected = TRANSFORMS[name]
    counting, calls = calls_of(linear)
    op = define(
        "transformed",
        "(Tensor x, Tensor w) -> Tensor",
        counting,
        "b i, i o -> b o",
        parallel="b o",
        gradient=lambda x, w, out, dout: (dout @ w.T, x.T @ dout),
    )
    x, w = np.random.default_rng(0).random((2, 3, 4, 5), np.float32), np.ones((5, 6), np.float32)
    y = transform({"torch": torch.func, "jax": jax}[host], op)(HOSTS[host](x), HOSTS[host](w))
    np.testing.assert_allclose(np.asarray(y), expected(x, w), rtol=1e-6)
    assert calls == [((24, 5), (5, 6))]


ADD = f"{pathlib.Path(__file__).parents[1] / 'sources' / 'add.cc'}:CustomAdd"


def test_a_library_that_infers_too_has_to_agree(tensor):
    """add.cc has InferShape, the shape of the first input, and InferType."""
    x = tensor(np.ones((2, 3), np.float32))
    same = define("same", "(Tensor x, Tensor y) -> Tensor", ADD, "..., ... -> ...")
    np.testing.assert_array_equal(np.asarray(same(x, x)), np.full((2, 3), 2))
    with pytest.raises(InferError, match=r"dimensions \.\.\. are"):
        same(x, x[:1])
    other = define("other", "(Tensor x, Tensor y) -> Tensor", ADD, "m n, m n -> m n+1")
    message = r"dims= gives output 0 the shape \(2, 4\), and CustomAddInferShape \(2, 3\)"
    with pytest.raises(InferError, match=message):
        other(x, x)


COMPANIONS = """
#include <cstdint>
#include <vector>
#include "custom_aot_extra.h"
enum TypeId : int {};
extern "C" std::vector<int64_t> narrowInferShape(int *ndims, int64_t **shapes, AotExtra *) {
  return {shapes[0][0]};
}
extern "C" TypeId narrowInferType(std::vector<TypeId>, AotExtra *) { return TypeId(42);  /* float16 */ }
extern "C" int narrow(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  for (int64_t i = 0; i < shapes[1][0]; ++i) static_cast<uint16_t *>(params[1])[i] = 0x3c00;  // 1.0
  return 0;
}
"""


@pytest.fixture(scope="session")
def narrow(tmp_path_factory):
    """Return a kernel whose library gives the first size as the output's shape, and float16."""
    file = tmp_path_factory.mktemp("companions") / "narrow.cc"
    file.write_text(COMPANIONS)
    return polyop.source(file, function="narrow")


def test_infer_type_gives_the_dtype_beside_dims(tensor, narrow):
    x = tensor(np.zeros((2, 3), np.float32))
    signature = "(Tensor x) -> Tensor"
    y = np.asarray(define("narrow", signature, narrow, "n m -> n", parallel="n")(x))
    np.testing.assert_array_equal(y, np.ones(2, np.float16), strict=True)
    other = define("narrow", signature, narrow, "n m -> n", infer="int16")
    assert np.asarray(other(x)).dtype == np.int16


@polyop.kernel
def column_sums(x):
    y = output_tensor((x.shape[1],), x.dtype)  # noqa: F821 - a word of loop kernels
    for j in range(x.shape[1]):
        y[j] = 0.0
        for i in range(x.shape[0]):
            y[j] += x[i, j]
    return y


def test_dims_that_contradict_the_loops_name_both_lines():
    op = polyop.operator("dims_test::wrong_sums(Tensor x) -> Tensor", column_sums, dims="i j -> i")
    with pytest.raises(InferError) as excinfo:
        op(np.ones((2, 3), np.float32))
    text = str(excinfo.value)
    assert 'dims_test::wrong_sums: dims="i j -> i" contradicts the kernel: loop kernel column_sums' in text
    assert "says float32[2] of output 0, and the kernel writes float32[3]" in text
    assert text.count("defined at") == 2
    assert text.count("test_dims.py:") == 2
