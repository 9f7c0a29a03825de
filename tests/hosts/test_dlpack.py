"""Arrays that speak DLPack and are of no framework: what is read, written, returned and refused."""

import pathlib
import runpy
import sys
import types

import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.call.host import host_of
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, HostError, UnsupportedError

X = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)


class Plain:
    """An array with DLPack alone, over an array of NumPy, that says it is on ``device``."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = np.asarray(array), device

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device


class Named(Plain):
    """Such an array whose library has a ``from_dlpack``."""

    def __array_namespace__(self):
        return types.SimpleNamespace(from_dlpack=lambda other: Named(np.from_dlpack(other)))


class Other(Named):
    """One of another library."""


Plain.__module__ = Named.__module__ = "some_library.arrays"
Other.__module__ = "another_library.arrays"

square = polyop.operator("dlpack::square(Tensor x) -> Tensor", lambda x: x * x, infer="x")
add = polyop.operator("dlpack::add(Tensor x, Tensor y) -> Tensor", lambda x, y: x + y, infer="x")


def _scale(x, by):
    x *= by


scale_ = polyop.operator("dlpack::scale_(Tensor(a!) x, float by) -> Tensor(a!)", _scale)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "dense": lambda x: x.copy(),
    "transposed": lambda x: x.copy().T,
    "reversed": lambda x: x.copy()[::-1, ::-1],
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "empty": lambda x: x[:0].copy(),
    "scalar": lambda x: np.array(x[0, 0]),
    "read-only": read_only,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_result_is_of_the_same_kind(layout):
    array = LAYOUTS[layout](X)
    result = square(Named(array))
    assert type(result) is Named
    np.testing.assert_array_equal(result.array, array * array)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "read-only"])
def test_an_argument_is_written_in_its_own_memory(layout):
    array = LAYOUTS[layout](X)
    before, x = array.copy(), Plain(array)
    assert scale_(x, 2.0) is x  # and nothing new is returned, so no from_dlpack is needed
    np.testing.assert_array_equal(array, 2 * before)


def test_a_loop_kernel_takes_them():
    @polyop.kernel
    def shifted(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the language
        for i in range(x.shape[0]):
            y[i] = x[i] + 1.0
        return y

    np.testing.assert_array_equal(shifted(Named(np.arange(3.0))).array, [1, 2, 3])


REFUSED = [  # the call, its error, words of it
    (lambda: square(Plain(X)), HostError, "some_library.arrays.Plain has no from_dlpack that makes them"),
    (
        lambda: square(Named(X, (2, 1))),
        ArgumentTypeError,
        "argument x: array: must be on the CPU, but got an array on CUDA:1\n  copy it to the CPU first",
    ),
    (lambda: square(Named(X, (99, 0))), ArgumentTypeError, "an array on device type 99:0"),
    (
        lambda: square(Named(X.astype(">f4"))),
        ArgumentTypeError,
        "must be one that NumPy can view through DLPack, but got some_library.arrays.Named (DLPack only supports native",
    ),
    (
        lambda: scale_(Named(read_only(X)), 2.0),
        ArgumentValueError,
        "argument x: is written in place, but got a read-only array",
    ),
    (lambda: add(Named(X), X), HostError, "y is a tensor of numpy, and x one of some_library"),
    (
        lambda: add(Named(X), Other(X)),
        HostError,
        "y is a tensor of another_library, and x one of some_library",
    ),
    (
        lambda: square.vjp(Named(X)),
        UnsupportedError,
        "has no vjp on arrays of some_library, which have no gradients",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[row[2][:40] for row in REFUSED])
def test_what_is_refused(call, error, message):
    with pytest.raises(error) as problem:
        call()
    assert message in str(problem.value)
    assert "dlpack::" in str(problem.value)


def test_explain_shows_the_library_once_it_was_used():
    square(Named(X))
    assert "some_library present; through DLPack and NumPy, on the CPU, without gradients" in explain(square)


def test_arrays_of_a_known_framework_keep_their_host():
    torch = pytest.importorskip("torch", reason="not run: torch is not installed")

    class Sub(torch.Tensor):
        """A subclass that is defined outside of PyTorch."""

    assert host_of(torch.ones(2).as_subclass(Sub)).name == "torch"
    assert host_of(X).name == "numpy"


def test_the_code_of_the_page_runs():
    pytest.importorskip("array_api_strict", reason="not run: array-api-strict is not installed")
    runpy.run_path(str(pathlib.Path(__file__).with_name("dlpack_page.py")))


def test_tensors_of_tensorflow():
    tf = sys.modules.get("tensorflow") or pytest.importorskip(
        "tensorflow", reason="not run: tensorflow is not installed"
    )
    result = square(tf.constant(X))
    assert isinstance(result, tf.Tensor)
    np.testing.assert_array_equal(result.numpy(), X * X)
    with pytest.raises(ArgumentValueError, match="a read-only array"):
        scale_(tf.constant(X), 2.0)


@pytest.mark.parametrize("device", [3, 11, 13])  # CUDA's and ROCm's host memory, CUDA's managed memory
def test_memory_that_a_gpu_shares_with_the_cpu_is_taken(device):
    operator = polyop.operator(f"dlpack::shared_{device}(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
    np.testing.assert_array_equal(operator(Named(X, (device, 0))).array, 2 * X)
