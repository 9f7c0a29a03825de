# ruff: noqa: F821 - kernels, whose words are no names here
"""A NamedTuple or a dataclass of attributes: its fields in the schema, and records in calls of every host."""

import dataclasses
import inspect
import pickle
from typing import Literal, NamedTuple

import numpy as np
import pytest

import polyop
from polyop.call.explain import arguments_of
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, PolyopError
from polyop.testing import check


class Window(NamedTuple):
    stride: int = 1
    padding: int = 0
    border: Literal["zeros", "ones"] = "zeros"


@dataclasses.dataclass(frozen=True)
class Scale:
    factor: float
    square: bool = False


WIDE = Window(3)


def place(i, k, window):
    return i * window.stride + k - window.padding


def border(p, value):
    return value if p.border == "ones" else 0


@polyop.kernel
def conv(x, w, p: Window):
    y = output_tensor(((x.shape[0] + 2 * p.padding - w.shape[0]) // p.stride + 1,), x.dtype)
    for i in range(y.shape[0]):
        y[i] = 0
        for k in range(w.shape[0]):
            j = place(i, k, p)
            y[i] += (x[j] if j >= 0 and j < x.shape[0] else border(p=p, value=1)) * w[k]
    return y


@polyop.kernel
def scaled(x, scale: "Scale", shift: int = 1, p: Window = WIDE):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (x[i] * x[i] if scale.square else x[i]) * scale.factor + shift + p.stride
    return y


X, W = np.arange(10.0), np.array([1.0, 2.0, 3.0])
WINDOWS = (Window(), Window(2), Window(2, 1), Window(3, 2, "ones"))


def by_numpy(x, w, p):
    padded = np.pad(x, p.padding, constant_values=float(p.border == "ones"))
    return np.convolve(padded, w[::-1], "valid")[:: p.stride]


def test_the_schema_has_the_fields():
    attributes = 'int p_stride=1, int p_padding=0, str p_border="zeros"'
    assert str(conv.schema) == f"{conv.name}(Tensor x, Tensor w, {attributes}) -> Tensor"
    texts = f"float scale_factor, bool scale_square=False, int shift=1, {attributes.replace('=1', '=3')}"
    assert str(scaled.schema) == f"{scaled.name}(Tensor x, {texts}) -> Tensor"
    assert list(inspect.signature(conv).parameters) == ["x", "w", "p"]


@pytest.mark.slow(1)
@pytest.mark.parametrize("p", WINDOWS)
def test_a_call_takes_the_record_or_its_fields(p):
    expected = by_numpy(X, W, p)
    for result in (
        conv(X, W, p),
        conv(X, W, p=p),
        conv(X, W, *p),
        conv.python(X, W, p),
        conv.vjp(X, W, p)[0],
    ):
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(conv(X, W, p_stride=p.stride), by_numpy(X, W, Window(p.stride)))


def test_a_record_that_is_left_out_has_its_defaults():
    np.testing.assert_array_equal(conv(X, W), by_numpy(X, W, Window()))
    np.testing.assert_array_equal(conv.python(X, W), by_numpy(X, W, Window()))
    for call in (scaled, scaled.python):
        np.testing.assert_array_equal(call(X, Scale(2.0)), X * 2 + 4)
        np.testing.assert_array_equal(call(X, Scale(0.5, True), 2, Window(5)), X * X * 0.5 + 7)
        np.testing.assert_array_equal(call(X, p=Window(1), scale=Scale(3.0)), X * 3 + 2)
    with pytest.raises(PolyopError, match="scale_factor"):
        scaled(X)


def test_under_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, w, p = torch.tensor(X, requires_grad=True), torch.tensor(W), Window(2, 1)
    result = conv(x, w, p)
    np.testing.assert_array_equal(result.detach(), by_numpy(X, W, p))
    result.sum().backward()
    np.testing.assert_array_equal(x.grad, [2, 4, 2, 4, 2, 4, 2, 4, 2, 3])
    compiled = torch.compile(
        lambda x, p, s: conv(scaled(x, s), w, p) + conv(x, w, p=p), fullgraph=True, backend="eager"
    )
    expected = by_numpy(X * 2 + 4, W, p) + by_numpy(X, W, p)
    np.testing.assert_array_equal(compiled(torch.tensor(X), p, Scale(2.0)), expected)


def test_under_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x, w, p = jax.numpy.asarray(X), jax.numpy.asarray(W), Window(2, 1)
    jitted = jax.jit(conv, static_argnums=2)
    np.testing.assert_array_equal(jitted(x, w, p), by_numpy(X, W, p).astype(x.dtype))
    gradient = jax.grad(lambda x: conv(x, w, p=p).sum())(x)
    np.testing.assert_array_equal(gradient, [2, 4, 2, 4, 2, 4, 2, 4, 2, 3])
    batched = jax.vmap(lambda x: conv(x, w, p))(jax.numpy.stack([x, x]))
    np.testing.assert_array_equal(batched[1], jitted(x, w, p))


def test_the_tools_take_records():
    specs = (polyop.Spec((10,), polyop.dtype("float64")), polyop.Spec((3,), polyop.dtype("float64")))
    assert arguments_of(conv, specs, {"p": Window(2)}) == (*specs, 2, 0, "zeros")
    assert conv.source(X, W, p=Window(2)) == conv.source(X, W, p_stride=2)
    assert check(conv, X, W, 2, 1, "ones", hosts=["numpy"]).ok
    assert pickle.loads(pickle.dumps(conv)) is conv


def test_a_call_without_records_is_one_native_call():
    calls = []

    class Counting(type(conv)):
        def _slow(self, *args, **kwargs):
            calls.append(args)
            return super()._slow(*args, **kwargs)

    counted = Counting(conv.python, "records_test::counted")
    for _ in range(3):
        counted(X, W, 2)
    assert len(calls) == 1  # the first call binds


NARROW, TWO, FIVE = Window(3, 2), Window(2), Window(5, 3)


@dataclasses.dataclass
class Layer:
    window: Window = NARROW
    scale: Scale = dataclasses.field(default_factory=lambda: Scale(0.5))
    shift: int = 4


PAIR, PLAIN = (WIDE, 2.0), Layer()


def weighed(p: Window, v, w=1.0, q: Window = WIDE):
    return v * p.stride * w + q.padding + q.stride


def of_two(p: Window, v, q: "Window", p_stride=10.0):
    """Its own names are those of the attributes that a kernel has."""
    t = v * p.stride
    p_padding = t + q.stride
    return t + p_padding * p.padding + q.padding + p_stride


def of_layer(layer: Layer, v, w: Window = WIDE):
    inner, scale = layer.window, layer.scale
    return weighed(inner, v, w=w.stride) * scale.factor + layer.shift * layer.scale.square


def of_pair(pair, v):
    p, k = pair
    return weighed(pair[0], v) * pair[1] + weighed(p, v) * k


def of_module(v):
    a, b = (WIDE.stride, WIDE[1])
    return v * WIDE.stride + WIDE[0] * a + b


def one_record(x, p: Window = TWO):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = weighed(p, x[i], x[i] * 2) + weighed(w=3.0, v=x[i], p=p) + weighed(p, v=x[i], q=p)
    return y


def two_records(x, p: Window = TWO, r: Window = FIVE):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = of_two(p, x[i], r) + of_two(r, x[i], q=p, p_stride=x[i]) + of_two(q=r, v=1, p=r)
    return y


def records_inside(x, p: Layer = PLAIN):
    y = output_tensor(x.shape, x.dtype)
    w = p.window
    for i in range(x.shape[0]):
        y[i] = (
            of_layer(p, x[i]) + weighed(p.window, x[i]) + of_layer(p, x[i], w) + w.stride * p.window.padding
        )
    return y


def records_in_tuples(x, p: Window = TWO):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = of_pair((p, x[i]), x[i]) + of_pair((WIDE, 2.0), 1.0) + of_pair(PAIR, x[i])
    return y


def records_of_the_module(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = weighed(WIDE, x[i]) + of_layer(LAYER, x[i], PAIR[0]) + WIDE.stride + of_module(x[i])
    return y


LAYER = Layer(Window(7, 1), Scale(2.0, True), 3)
HELPED = (  # a kernel whose helpers get records, and records for it
    (one_record, (Window(4, 3),)),
    (two_records, (Window(4, 3), Window(6, 1))),
    (records_inside, (LAYER,)),
    (records_in_tuples, (Window(4, 3),)),
    (records_of_the_module, ()),
)


@pytest.mark.parametrize(("function", "records"), HELPED)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_a_helper_gets_records_as_in_python(function, records, dtype):
    f = polyop.kernel(function, name=f"helped::{function.__name__}")
    x = X[:5].astype(dtype)
    for given in (records, records[:1], ()):
        np.testing.assert_array_equal(f(x, *given), f.python(x, *given))


def test_a_record_inside_has_attributes_of_its_own():
    f = polyop.kernel(records_inside, name="helped::inside")
    names = "int p_window_stride=3, int p_window_padding=2, str p_window_border"
    assert f"{names}" in str(f.schema)
    changed = dataclasses.replace(Layer(), window=Window(9, 2))
    np.testing.assert_array_equal(f(X, p_window_stride=9), f.python(X, changed))
    np.testing.assert_array_equal(f.python(X, p_window_stride=9), f.python(X, changed))


def of_factory(window):
    def helper(v, p: Window = window):
        return v * p.stride + window.padding

    def kernel(x, r: Window = window):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = helper(x[i]) + helper(x[i], r) + weighed(window, x[i], r.stride)
        return y

    return polyop.kernel(kernel, name=f"helped::of_{window.stride}")


def test_records_of_the_function_around_a_kernel():
    for window in WINDOWS[1:]:
        f = of_factory(window)
        np.testing.assert_array_equal(f(X), f.python(X))
        np.testing.assert_array_equal(f(X, Window(8)), f.python(X, Window(8)))


class Wrong(NamedTuple):
    taps: list


def assigned(x, p: Window):
    y = output_tensor(x.shape, x.dtype)
    p.stride = 2
    return y


def replaced(x, p: Window):
    y = output_tensor(x.shape, x.dtype)
    p = 2  # noqa: F841
    return y


def misspelt(x, p: Window):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * p.strid
    return y


def whole(x, p: Window):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * p
    return y


def twice(x, p: Window):
    y = output_tensor(x.shape, x.dtype)
    p_stride = 2
    for i in range(x.shape[0]):
        y[i] = x[i] * p_stride
    return y


def of_a_list(x, p: Wrong):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


def number_for_record(x, p: Window):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = weighed(x[i], p, 1.0)
    return y


def record_for_number(x, p: Window):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = weighed(p, p)
    return y


def other_record(x, p: Window):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = of_layer(p, x[i])
    return y


REFUSED = (
    (number_for_record, PolyopError, r"p of the helper weighed must be a Window, but got x\[i\]"),
    (record_for_number, ArgumentTypeError, "p is a Window, which is no value of a kernel"),
    (other_record, ArgumentValueError, "Window has no field window, but got p.window"),
    (assigned, ArgumentValueError, r"the field p.stride cannot be assigned(.|\n)*p.stride = 2"),
    (replaced, ArgumentValueError, r"p is a Window, and cannot be assigned"),
    (
        misspelt,
        ArgumentValueError,
        r"Window has no field strid, but got p.strid(.|\n)*did you mean p.stride\?",
    ),
    (whole, ArgumentTypeError, r"p is a Window, which is no value of a kernel(.|\n)*write p.stride"),
    (twice, ArgumentValueError, r"a field of p is the attribute p_stride, a name that the kernel has too"),
    (
        of_a_list,
        ArgumentTypeError,
        r"the field taps of Wrong must be int, float, bool or str, or such a record",
    ),
)


@pytest.mark.parametrize(("function", "kind", "rule"), REFUSED)
def test_what_is_refused(function, kind, rule):
    with pytest.raises(kind, match=rule):
        polyop.kernel(function)(X)


def test_a_call_with_something_else():
    with pytest.raises(ArgumentTypeError, match=r"p must be a Window, but got 3(.|\n)*p_stride=\.\.\."):
        conv(X, W, p=3)
    with pytest.raises(ArgumentTypeError, match="p_stride: must be int"):
        conv(X, W, Scale(1.0))


class Inner(NamedTuple):
    b_c: int = 1


class Outer(NamedTuple):
    c: int = 100


def clashing(x, p: Inner, p_b: Outer):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + p.b_c + p_b.c
    return y


def without_record(x, w: Window = None):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * w.stride
    return y


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (
            clashing,
            ArgumentValueError,
            "a field of p_b is the attribute p_b_c, a name that the kernel has too",
        ),
        (without_record, ArgumentTypeError, "the default of w must be a Window, but got None"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(function, error, words):
    with pytest.raises(error, match=words):
        polyop.kernel(function, name=f"records::{function.__name__}")(np.ones(3))
