"""Arrays that speak DLPack and are of no framework: what is read, written, returned and refused."""

import pathlib
import runpy
import sys
import types

import numpy as np
import pytest

import polyop
from polyop.call import host as host_module
from polyop.call.explain import explain
from polyop.call.host import array_namespace, host_of, hosts, register
from polyop.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GradientError,
    HostError,
    UnsupportedError,
)

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
        "argument x: must be on the CPU, but got an array on CUDA:1",
    ),
    (lambda: square(Named(X, (99, 0))), ArgumentTypeError, "an array on device type 99:0"),
    (
        lambda: square(Named(X.astype(">f4"))),
        ArgumentTypeError,
        "must be an array that NumPy can read through DLPack, but got a some_library.arrays.Named: DLPack only supports native",
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
        "has no vjp on arrays of some_library, which polyop does not differentiate",
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


LIBRARIES = {  # by library: what makes an array of NumPy's, the dtypes that it lacks, and the gradient of a sum
    "mlx.core": (
        lambda mx, x: mx.array(x, dtype=getattr(mx, "bool_" if x.dtype == bool else x.dtype.name)),
        {"complex128"},
        lambda mx, f, x: mx.grad(lambda x: f(x).sum())(x),
    ),
    "tensorflow": (lambda tf, x: tf.constant(x), set(), lambda tf, f, x: gradient_of_tensorflow(tf, f, x)),
}
DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128"


def gradient_of_tensorflow(tf, function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = function(x)
    return tape.gradient(result, x)


@pytest.fixture(params=list(LIBRARIES))
def library(request):
    """A real library, what makes its arrays, the dtypes that it lacks, its gradient."""
    module = pytest.importorskip(request.param, reason=f"not run: {request.param} is not installed")
    return module, *LIBRARIES[request.param]


def test_arrays_of_a_real_library(library):
    module, make, lacking, _ = library
    copied = polyop.operator("dlpack::copied(Tensor x) -> Tensor", lambda x: x.copy(), infer="x")
    for name in set(DTYPES.split()) - lacking:
        for array in (X, X[:0], X[0, 0], X.T):
            x = make(module, np.asarray(array).astype(name))
            result = copied(x)
            assert type(result) is type(x) and result.dtype == x.dtype
            np.testing.assert_array_equal(np.from_dlpack(result), np.asarray(array).astype(name))
    x = make(module, X)
    np.testing.assert_array_equal(np.from_dlpack(square(x)), X * X)
    np.testing.assert_allclose(np.asarray(array_namespace(x).sum(x)), X.sum(), rtol=1e-6)


def test_what_is_refused_on_arrays_of_a_real_library(library):
    module, make, lacking, gradient = library
    x = make(module, X)
    with pytest.raises(ArgumentValueError, match="a read-only array"):
        scale_(x, 2.0)
    with pytest.raises(GradientError, match="dlpack::square: has no gradient on arrays of"):
        gradient(module, square, x)
    for name in lacking:
        other = polyop.operator(
            f"dlpack::to_{name}(Tensor x) -> Tensor",
            lambda x: x.astype(name),  # noqa: B023 - called in this round
            infer=lambda x: polyop.Spec(x.shape, name),  # noqa: B023
        )
        with pytest.raises(HostError, match=f"the output is {name}, of which mlx makes no array"):
            other(x)


def test_a_library_whose_module_cannot_be_imported_has_no_functions():
    with pytest.raises(
        HostError, match="some_library: has functions for its arrays only if its module can be"
    ):
        array_namespace(Named(X))


def test_a_host_that_is_registered_replaces_the_one_of_the_protocol():
    class Late(Plain):
        """An array of a library that gets a host later."""

    Late.__module__ = "late_library"
    sys.modules["late_library"] = types.ModuleType("late_library")
    first = host_of(Late(X))
    assert (first.name, type(first).__name__) == ("late_library", "DlpackHost")

    class Own:
        name = "late_library"

        def owns(self, value):
            return isinstance(value, Late)

        def start(self):
            pass

        def state(self, bound):
            return "present"

    try:
        register("late_library", Own)
        assert type(host_of(Late(X))) is Own
        assert [type(host) for host in hosts() if host.name == "late_library"] == [Own]
    finally:
        host_module._rows.pop("late_library", None)
        host_module._loaded.pop("late_library", None)
        host_module._frameworks.cache_clear()
        del sys.modules["late_library"]


@pytest.mark.parametrize("device", [3, 11, 13])  # CUDA's and ROCm's host memory, CUDA's managed memory
def test_memory_that_a_gpu_shares_with_the_cpu_is_taken(device):
    operator = polyop.operator(f"dlpack::shared_{device}(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
    np.testing.assert_array_equal(operator(Named(X, (device, 0))).array, 2 * X)
