# ruff: noqa: F821 - kernels, whose words are no names here
"""Arrays of the module that a kernel reads: constants of the compiled code."""

import ml_dtypes
import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentTypeError, ArgumentValueError
from polyop.loops.frontend.parse import parse, run_static_checks
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.interpret import interpret


def frozen(values, dtype):
    array = np.array(values, dtype)
    array.setflags(write=False)
    return array


TAPS = frozen([0.25, 0.5, 0.25], "float32")
OFFSETS = frozen([[0, -1, 1], [2, 0, -2]], "int8")
WRITABLE, VIEW = np.ones(3), np.ones(3)[1:]
VIEW.setflags(write=False)
LARGE, EMPTY = frozen(np.ones(257), "float32"), frozen([], "float32")
FNUZ = frozen([1], ml_dtypes.float8_e5m2fnuz)


def weighted(v, k):
    """A helper that reads a table too."""
    return v * TAPS[k]


def smoothed(x):
    y = output_tensor(x.shape, x.dtype)
    n, m = OFFSETS.shape
    for i in range(1, x.shape[0] - 1):
        y[i] = dot(OFFSETS[1], TAPS[:]) + n * m
        for k in range(len(TAPS)):
            y[i] += weighted(x[i + k - 1], k) + TAPS[k] * OFFSETS[i % 2, -k]
        for v in TAPS:
            y[i] -= v
    return y


def test_tables_are_read_as_in_python():
    x = np.linspace(-1, 2, 7)
    kernel = parse(smoothed, [("float64", 1)], {})
    (result,) = interpret(kernel, [x])
    np.testing.assert_array_equal(result, plain(smoothed)(x))
    np.testing.assert_allclose(polyop.kernel(smoothed)(x), plain(smoothed)(x), rtol=1e-14)
    assert [b.dtype for n, b in kernel.buffers.items() if n.endswith("_table")] == ["float32", "int8"]
    torch = pytest.importorskip("torch", reason="the gradient is compared with differences by PyTorch")
    assert torch.autograd.gradcheck(polyop.kernel(smoothed), torch.tensor(x, requires_grad=True))


def reader(name):
    """Return a kernel that reads the table of this name, in a closure."""
    table = globals()[name]

    def kernel(x):
        y = output_tensor(x.shape, x.dtype)
        y[0] = table[0]
        return y

    return kernel


def writer(x):
    y = output_tensor(x.shape, x.dtype)
    TAPS[0] = x[0]
    return y


REFUSED = [
    (reader("WRITABLE"), ArgumentValueError, "the array table .* may change after it was read.*write table.setflags"),
    (reader("VIEW"), ArgumentValueError, "write table = table.copy"),
    (reader("LARGE"), ArgumentValueError, "at most 256 numbers.*but got table with 257.*make table a parameter"),
    (reader("EMPTY"), ArgumentValueError, "at least one, but got table with 0"),
    (reader("FNUZ"), ArgumentTypeError, "the dtype of table must be one of .*, but got float8_e5m2fnuz"),
    (writer, ArgumentValueError, "an array from outside the function cannot be written, but got TAPS"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "kind", "words"), REFUSED)
def test_what_is_refused(function, kind, words):
    with pytest.raises(kind, match=f"(?s){words}"):
        run_static_checks(function)


def rebound():
    """Return a kernel that reads a table and a number of this module, which are then bound to others."""
    scope = {"FACTORS": frozen([2, 3], "int64"), "ADDED": 5}

    def kernel(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * FACTORS[i % 2] + ADDED
        return y

    function = type(kernel)(kernel.__code__, scope, "kernel")
    function.__module__ = __name__
    return function, scope


def test_a_table_and_a_number_are_read_once_for_all_dtypes():
    function, scope = rebound()
    op = polyop.kernel(function)
    assert op(np.ones(2)).tolist() == [7, 8]
    scope["FACTORS"], scope["ADDED"] = frozen([20, 30], "int64"), 50
    with pytest.warns(UserWarning, match="when the kernel was defined") as warned:
        assert op(np.ones(2)).tolist() == [7, 8]
    assert sorted(str(one.message).split(" when ")[0] for one in warned) == [
        "loop kernel kernel: ADDED was 5",
        "loop kernel kernel: FACTORS was array([2, 3])",
    ]
    assert op(np.ones(2, np.int32)).tolist() == [7, 8]
    assert op.python(np.ones(2)).tolist() == [70, 80]  # Python looks each name up
    assert polyop.kernel(rebound_to(function, scope))(np.ones(2)).tolist() == [70, 80]


def rebound_to(function, scope):
    again = type(function)(function.__code__, scope, "kernel")
    again.__module__ = __name__
    return again


def test_operators_of_other_tables_are_other_operators():
    first, second = reader("TAPS"), reader("OFFSETS")
    contents = [b"".join(polyop.kernel(one).operator.kernels[0].content()) for one in (first, second)]
    assert contents[0] != contents[1]
