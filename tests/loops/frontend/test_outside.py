# ruff: noqa: F821 - kernels, whose words are no names here
"""What a kernel reads from outside has the value of the definition, in all dtypes, helpers and choices."""

import gc
import math
import types
import warnings
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import polyop
from polyop.core.errors import PolyopError

SCALE, OFFSET, NAMES = 2.0, 3, ("SCALE", "OFFSET")
TAPS, ITEMS = np.array([1.0, 2.0]), [1, 2]  # see the fixture
DTYPE = np.float64
cfg = types.ModuleType("cfg")
cfg.SCALE, cfg.inner = 2.0, types.ModuleType("inner")
cfg.inner.OFFSET = 1.5


class Window(NamedTuple):
    stride: int = 1


WINDOW = Window(2)


def scaled(v):
    return v * SCALE


def scaled_twice(v, factor=SCALE):
    return scaled(v) * SCALE + factor


def of_modules(v):
    return v * cfg.SCALE + cfg.inner.OFFSET + math.pi


def of_records(p: Window, v):
    return v * p.stride + WINDOW.stride


def tapped(v):
    return v * TAPS[0] + TAPS[1]


def numbers(x, b: "Tensor | None" = None, mode: str = "a"):
    y = output_tensor(x.shape, DTYPE)
    for i in range(x.shape[0]):
        y[i] = scaled(x[i]) + scaled_twice(x[i]) * SCALE + OFFSET
        if b is not None:
            y[i] += b[i] * SCALE + scaled(b[i])
        if mode == "b":
            y[i] += OFFSET
    return y


def modules(x):
    y = output_tensor(x.shape, DTYPE)
    for i in range(x.shape[0]):
        y[i] = of_modules(x[i]) + cfg.SCALE * cfg.inner.OFFSET
    return y


def collections(x):
    y = output_tensor(x.shape, DTYPE)
    for i in range(x.shape[0]):
        y[i] = tapped(x[i]) + TAPS[1] + of_records(WINDOW, x[i]) + WINDOW.stride
        for item in ITEMS:
            y[i] += item
    return y


def replaced_helper(v):
    return v * 100


def change_numbers(patch):
    patch.setitem(globals(), "SCALE", 10.0)
    patch.setitem(globals(), "OFFSET", 7)


def change_helper(patch):
    patch.setitem(globals(), "scaled", replaced_helper)


def change_modules(patch):
    patch.setattr(cfg, "SCALE", 5.0)
    patch.setattr(cfg.inner, "OFFSET", np.float32(2.5))


def change_module_itself(patch):
    other = types.ModuleType("other")
    other.SCALE, other.inner = 9.0, cfg.inner
    patch.setitem(globals(), "cfg", other)


def change_array(patch):
    patch.setitem(globals(), "TAPS", TAPS * 2)
    TAPS.setflags(write=False)


def change_record(patch):
    patch.setitem(globals(), "WINDOW", Window(9))


def write_array(patch):
    """The author has promised that nobody does."""
    TAPS.setflags(write=True)
    TAPS[0] += 1
    TAPS.setflags(write=False)


def write_list(patch):
    ITEMS.append(3)


def change_dtype(patch):
    patch.setitem(globals(), "DTYPE", np.float32)


CHANGES = [  # a kernel, a change, words of the warnings
    (numbers, change_numbers, ("OFFSET was 3 when", "SCALE was 2.0 when", "is 10.0 now")),
    (numbers, change_helper, ("scaled was the function of line",)),
    (numbers, change_dtype, ("DTYPE was <class 'numpy.float64'>",)),
    (modules, change_modules, ("cfg.SCALE was 2.0", "is 5.0 now", "cfg.inner.OFFSET was 1.5", "is 2.5 now")),
    (modules, change_module_itself, ("cfg.SCALE was 2.0", "is 9.0 now")),
    (collections, change_array, (r"TAPS was array([1., 2.])", "is array([2., 4.]) now")),
    (collections, change_record, ("WINDOW was Window(stride=2)", "is Window(stride=9) now")),
    (collections, write_array, ("TAPS was array([1., 2.])", "is array([2., 2.]) now")),
    (collections, write_list, ("ITEMS was [1, 2]", "is [1, 2, 3] now")),
]


@pytest.fixture(autouse=True)
def of_each_test(monkeypatch):
    monkeypatch.setitem(globals(), "TAPS", TAPS.copy())
    monkeypatch.setitem(globals(), "ITEMS", [*ITEMS])
    TAPS.setflags(write=False)


def copy_of(function):
    """Return another function of the same text, as another definition."""
    copy = types.FunctionType(function.__code__, globals(), function.__name__, function.__defaults__)
    copy.__annotations__ = function.__annotations__
    return copy


@pytest.mark.parametrize(("function", "change", "words"), CHANGES)
def test_all_dtypes_and_choices_have_the_values_of_the_definition(function, change, words, monkeypatch):
    op = polyop.kernel(copy_of(function), name=f"outside::{function.__name__}_{change.__name__}")
    x = np.arange(3.0)
    b = (x * 2, "b") if function is numbers else ()
    expected, with_all = op.python(x), op.python(x, *b)
    np.testing.assert_allclose(op(x), expected)
    change(monkeypatch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for dtype in (np.float32, np.int64, np.int8, np.float64):
            np.testing.assert_allclose(op(x.astype(dtype)), expected, rtol=1e-6)
        np.testing.assert_allclose(op(x, *b), with_all)
        gradient = op.vjp(x)[1](np.ones(3))
    texts = [str(one.message) for one in caught if "when the kernel was defined" in str(one.message)]
    assert len(texts) == len(set(texts))
    assert all(any(word in text for text in texts) for word in words), texts
    assert gradient is not None
    again = polyop.kernel(copy_of(function), name=f"outside::{function.__name__}_{change.__name__}_2")
    np.testing.assert_allclose(again(x), again.python(x))


def test_a_call_of_known_sizes_warns_too_and_once(monkeypatch):
    op, other = (polyop.kernel(copy_of(modules), name=f"outside::known_{k}") for k in range(2))
    x = np.ones(2)
    op(x), other(x), other(x)
    monkeypatch.setattr(cfg, "SCALE", 2.0 * 1)  # the same number
    op(x)
    monkeypatch.setattr(cfg, "SCALE", 4.0)
    for one in (op, other):
        with pytest.warns(UserWarning, match=r"cfg.SCALE was 2.0 .* is 4.0 now.*make SCALE a parameter"):
            one(x)
        one(x)  # a warning would be an error


@pytest.mark.parametrize(("owner", "path"), [(None, "cfg.SCALE"), ("cfg", "cfg.inner.OFFSET")])
def test_another_module_of_the_name_is_another_number(owner, path, monkeypatch):
    op = polyop.kernel(copy_of(modules), name=f"outside::other_{owner}")
    x = np.ones(2)
    first = op(x)
    other = types.ModuleType("other")
    vars(other).update(vars(cfg if owner is None else cfg.inner), **{path.rpartition(".")[2]: 64.0})
    place = (globals(), "cfg") if owner is None else (vars(cfg), "inner")
    monkeypatch.setitem(*place, other)
    with pytest.warns(UserWarning, match=rf"{path} was .* and is 64.0 now"):
        assert np.array_equal(op(x), first)
    op(x)  # a warning would be an error


def test_a_changed_number_of_the_function_around():
    scale = 2.0

    def helper(v):
        return v * scale

    def kernel(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = helper(x[i]) + scale
        return y

    op = polyop.kernel(kernel, name="outside::around")
    assert op(np.ones(1)) == [4.0]
    scale = 10.0
    with pytest.warns(UserWarning, match="scale was 2.0 when the kernel was defined, and is 10.0 now"):
        assert op(np.ones(1)) == [4.0]
    assert op(np.ones(1, np.float32)) == [4.0]
    assert op.python(np.ones(1)) == [20.0]
    del scale
    assert op(np.ones(1, np.int32)) == [4]


def test_one_helper_of_two_kernels_is_read_by_each():
    space = {"SCALE": 2.0}
    helper = types.FunctionType(scaled.__code__, space, "scaled")

    def first(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = helper(x[i])
        return y

    def second(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = helper(x[i]) + 1
        return y

    one, two = (polyop.kernel(f, name=f"outside::{f.__name__}") for f in (first, second))
    assert one(np.ones(1)) == [2.0]
    space["SCALE"] = 5.0
    assert two(np.ones(1)) == [6.0]
    with pytest.warns(UserWarning, match="SCALE was 2.0"):
        assert one(np.ones(1, np.float32)) == [2.0]
    assert two(np.ones(1, np.float32)) == [6.0]


def test_a_kernel_that_was_refused_reads_again():
    space = {}
    op = polyop.kernel(
        types.FunctionType(scaled_kernel.__code__, space, "scaled_kernel"), name="outside::late"
    )
    for value in (None, "text", [1]):
        if value is not None:
            space["SCALE"] = value
        with pytest.raises(PolyopError, match="SCALE"):
            op(np.ones(1))
    space["SCALE"] = 2.0
    assert op(np.ones(1)) == [2.0]


def scaled_kernel(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * SCALE
    return y


def test_digests_are_those_of_the_definition(monkeypatch):
    op = polyop.kernel(copy_of(numbers), name="outside::digest")
    content = b"".join(op.operator.kernels[0].content())
    op(np.ones(1))
    change_numbers(monkeypatch)
    assert b"".join(op.operator.kernels[0].content()) == content
    again = polyop.kernel(copy_of(numbers), name="outside::digest_2")
    assert b"".join(again.operator.kernels[0].content()) != content


def test_what_is_read_keeps_no_kernel_alive():
    function = copy_of(numbers)
    polyop.kernel(function, name="outside::gone")(np.ones(1))
    polyop.kernel(copy_of(numbers), name="outside::gone")(np.ones(1))
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None
