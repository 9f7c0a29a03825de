"""XLA FFI handlers as kernels, called from NumPy and PyTorch: values, attributes, scratch, errors, refusals."""

import ctypes
import dataclasses
import functools
import gc
import itertools
import pathlib
import re

import numpy as np
import pytest

import polyop
from polyop.call.pickled import digest

FOLDER = pathlib.Path(__file__).parents[1] / "support" / "xla_handlers"
TYPES = {  # of the attributes of handlers in handlers.cc
    "RmsNorm": {"eps": "float32"},
    "Attributes": {"i32": "int32", "u8": "uint8", "f32": "float32", "floats": "float32"},
}
X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
NUMBERS = itertools.count()


@functools.cache
def handler(name):
    jaxlib = pytest.importorskip("jaxlib", reason="the headers of XLA's FFI come with jaxlib")
    headers = pathlib.Path(jaxlib.__file__).parent / "include"
    built = polyop.source(FOLDER / "handlers.cc", function=name, include_paths=[headers], flags=["-O0"])
    return polyop.xla_ffi(built, types=TYPES.get(name))


def plain(*flags):
    return polyop.source(FOLDER / "plain.c", function="Twice", flags=flags)


def define(kernel, schema="(Tensor x) -> Tensor", infer="x", **options):
    return polyop.operator(f"xla_ffi::f{next(NUMBERS)}{schema}", kernel, infer=infer, **options)


def rms(x, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def test_a_handler_on_numpy_and_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    norm = define(
        handler("RmsNorm"), "(Tensor x, float eps=1e-6) -> Tensor", dims="... n -> ... n", infer=None
    )
    np.testing.assert_allclose(norm(X, 0.5), rms(X, 0.5), rtol=1e-6)
    t = torch.tensor(X)
    np.testing.assert_allclose(norm(t, eps=0.5), rms(X, 0.5), rtol=1e-6)
    compiled = torch.compile(lambda t: norm(t, 0.5) + 1, fullgraph=True, backend="aot_eager")
    np.testing.assert_allclose(compiled(t), rms(X, 0.5) + 1, rtol=1e-6)
    np.testing.assert_allclose(torch.vmap(lambda row: norm(row, 0.5))(t), rms(X, 0.5), rtol=1e-6)


def test_a_gradient_rule():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    twice = define(polyop.xla_ffi(plain()), gradient=lambda x, out, dout: (twice(dout),))
    t = torch.tensor(X, requires_grad=True)
    twice(t).sum().backward()
    np.testing.assert_array_equal(t.grad, np.full_like(X, 2))
    _, pull = twice.vjp(X)
    np.testing.assert_array_equal(pull(X)[0], 2 * X)


def test_several_results():
    def infer(x):
        return polyop.Spec(x.shape[:-1], "float32"), polyop.Spec(x.shape[:-1], "int32")

    value, place = define(handler("Largest"), "(Tensor x) -> (Tensor, Tensor)", infer)(X)
    np.testing.assert_array_equal(value, X.max(-1))
    np.testing.assert_array_equal(place, X.argmax(-1))
    assert place.dtype == np.int32


ATTRIBUTES = "(Tensor x, int i64, int i32, int u8, float f32, float f64, bool flag, str text, int[] ints, float[] floats)"
VALUES = (-(2**40), -7, 200, 1.5, 0.1, True, "seven..", [5, 6], [0.25, 2])


@pytest.mark.slow
def test_attributes_of_every_type():
    show = define(handler("Attributes"), f"{ATTRIBUTES} -> Tensor", lambda *_: polyop.Spec((11,), "float64"))
    np.testing.assert_array_equal(show(X, *VALUES), [*VALUES[:5], 1, 7, 5, 6, 0.25, 2])
    assert show(X, *VALUES[:7], [], [1.0])[7] == 1.0  # an empty list has the type that the schema gives it


def test_a_fixed_attribute_is_what_numpy_says_it_is():
    text = "(Tensor x, int i64, int i32, float f32, float f64, bool flag, str text, int[] ints, float[] floats) -> Tensor"
    kernel = handler("Attributes")
    show = define(kernel, text, lambda *_: polyop.Spec((11,), "float64"), attributes={"u8": np.uint8(200)})
    np.testing.assert_array_equal(show(X, *VALUES[:2], *VALUES[3:]), [*VALUES[:5], 1, 7, 5, 6, 0.25, 2])


@pytest.mark.parametrize(
    ("place", "value", "kind"), [(2, 300, "uint8"), (1, 2**31, "int32"), (3, 1e300, "float32")]
)
def test_an_attribute_that_its_type_cannot_hold(place, value, kind):
    show = define(handler("Attributes"), f"{ATTRIBUTES} -> Tensor", lambda *_: polyop.Spec((11,), "float64"))
    values = [value if i == place else v for i, v in enumerate(VALUES)]
    with pytest.raises(polyop.PolyopError, match=re.escape(f"of type {kind}, but got {value}")):
        show(X, *values)


def test_a_type_of_no_attribute_is_an_error():
    twice = define(polyop.xla_ffi(plain(), types={"epss": "float32"}), "(Tensor x, float eps=0) -> Tensor")
    with pytest.raises(polyop.PolyopError, match="types= names epss, no attribute .* but got eps"):
        twice(X)


def test_scratch_and_tasks():
    np.testing.assert_array_equal(define(handler("Reversed"))(X), X.ravel()[::-1].reshape(X.shape))
    np.testing.assert_array_equal(define(handler("Doubled"))(X), 2 * X)


def test_lists_and_absent_tensors_are_further_arguments():
    def infer(xs, y):
        return xs[0]

    total = define(handler("Sum"), "(Tensor[] xs, Tensor? y=None) -> Tensor", infer)
    np.testing.assert_array_equal(total([X, X]), 2 * X)
    np.testing.assert_array_equal(total([X], X + 1), 2 * X + 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Square", "INVALID_ARGUMENT: x must be square, it has 2 rows"),
        ("Throws", "thrown inside"),
        ("Largest", "Wrong number of results: expected 2 but got 1"),
        ("WantsStream", "polyop does not serve XLA_FFI_Stream_Get on the CPU"),
        ("WantsRun", "polyop does not serve XLA_FFI_RunId_Get"),
        ("IsAsynchronous", "polyop does not serve XLA_FFI_Future_Create"),
        ("WantsState", "polyop does not serve XLA_FFI_State_Get"),
        ("WantsUserData", "polyop does not serve XLA_FFI_ExecutionContext_Get"),
    ],
)
def test_an_error_has_the_text_of_the_handler(name, message):
    with pytest.raises(polyop.PolyopError, match=message) as caught:
        define(handler(name))(X)
    assert "handlers.cc" in str(caught.value) or name in str(caught.value)


def test_a_source_is_compiled_with_the_headers_of_jaxlib(tmp_path):
    pytest.importorskip("jaxlib", reason="the headers of XLA's FFI come with jaxlib")
    asserted = '_Static_assert(XLA_FFI_ArgType_BUFFER == 1, "");'
    text = f'#include "xla/ffi/api/c_api.h"\n{asserted}\n#include "{FOLDER / "plain.c"}"\n'
    (tmp_path / "handler.c").write_text(text)
    np.testing.assert_array_equal(define(polyop.xla_ffi(f"{tmp_path / 'handler.c'}:Twice"))(X), 2 * X)


def test_the_library_alone_is_enough(tmp_path):
    built = pathlib.Path(plain().file)
    (tmp_path / "plain.so").write_bytes(built.read_bytes())
    np.testing.assert_array_equal(define(polyop.xla_ffi(f"{tmp_path / 'plain.so'}:Twice"))(X), 2 * X)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-DMINOR=4"], "version 0.1 to 0.3 of XLA's FFI, but got 0.4"),
        (["-DMINOR=0"], "version 0.1 to 0.3 of XLA's FFI, but got 0.0"),
        (["-DMAJOR=1"], "version 0.1 to 0.3 of XLA's FFI, but got 1.3"),
        (["-DSILENT"], "but got no answer\n.*is it an XLA FFI handler?"),
        (["-DSTATE=7"], "makes a state, and polyop does not serve XLA_FFI_State_Set"),
    ],
)
def test_a_handler_that_cannot_be_called(flags, message):
    with pytest.raises(polyop.PolyopError, match=message):
        polyop.xla_ffi(plain(*flags))


def test_an_older_handler_is_called():
    np.testing.assert_array_equal(define(polyop.xla_ffi(plain("-DMINOR=1")))(X), 2 * X)


def test_addresses_capsules_and_bundles():
    address = plain().address
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    named = new(address, b"xla._CUSTOM_CALL_TARGET", None)
    for given in (address, named, new(address, None, None), {"execute": named}):
        kernel = polyop.xla_ffi(given)
        assert str(kernel).endswith(":Twice (XLA FFI)")
        np.testing.assert_array_equal(define(kernel)(X), 2 * X)
        assert list(kernel.content()) == list(polyop.xla_ffi(plain()).content())
    with pytest.raises(TypeError, match="a capsule of an XLA FFI handler, but got one of b'dltensor'"):
        polyop.xla_ffi(new(address, b"dltensor", None))
    with pytest.raises(TypeError, match=r"'lib.so:Handler'.* but got 1.5 \(float\)"):
        polyop.xla_ffi(1.5)
    with pytest.raises(NotImplementedError, match="the stage execute alone.* but got instantiate"):
        polyop.xla_ffi({"instantiate": named, "execute": named})


def test_the_owner_of_an_address_is_kept_and_pythonapi_is_left_alone():
    destroyed = []
    destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(destroyed.append)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_int
    kernel = polyop.xla_ffi(new(plain().address, None, ctypes.cast(destructor, ctypes.c_void_p)))
    gc.collect()
    assert (destroyed, ctypes.pythonapi.PyCapsule_GetName.restype) == ([], ctypes.c_int)
    np.testing.assert_array_equal(define(kernel)(X), 2 * X)
    _PINNED.append(destructor)  # the capsule calls it when Python ends


_PINNED = []


def test_two_values_of_an_array_are_two_digests():
    pairs = ([0.1234567890123, 0.1234567890456], [np.arange(3000.0), np.arange(3000.0)])
    pairs[1][1][1500] = 7
    for pair in pairs:
        kernel = polyop.xla_ffi(plain())
        ops = [define(kernel, attributes={"w": np.array(w, ndmin=1)}).operator for w in pair]
        first, second = (digest(dataclasses.replace(ops[0], attributes=op.attributes)) for op in ops)
        assert first != second


def test_an_operator_that_writes_is_refused():
    with pytest.raises(polyop.PolyopError, match=r"writes an argument, and .*Twice.* as separate memory"):
        define(polyop.xla_ffi(plain()), "(Tensor(a!) x) -> ()", infer=None)


def test_lapack_of_jaxlib_factors_matrices():
    lapack = pytest.importorskip("jaxlib.cpu._lapack", reason="jaxlib is not installed")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    lapack.initialize()
    registered = lapack.registrations()
    kernels = [
        polyop.xla_ffi(registered[f"lapack_{letter}potrf_ffi"], dtypes=[dtype])
        for letter, dtype in (("s", "float32"), ("d", "float64"))
    ]

    def infer(x):
        return x, polyop.Spec(x.shape[:-2], "int32")

    # LAPACK's matrices are column-major, so its upper triangle is the lower one here
    upper = {"uplo": np.uint8(ord("U"))}
    potrf = define(kernels, "(Tensor x) -> (Tensor, Tensor)", infer, attributes=upper)
    x = np.random.default_rng(0).normal(size=(3, 4, 4))
    x = x @ x.swapaxes(-1, -2) + np.eye(4)
    factor, info = potrf(x)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(x))
    np.testing.assert_array_equal(info, 0)
    factor, _ = potrf(torch.tensor(x, dtype=torch.float32))
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(x), rtol=1e-4, atol=1e-5)
    assert potrf(-x)[1].min() > 0  # not positive definite

    def infer_lu(x):
        return x, polyop.Spec(x.shape[:1], "int32"), polyop.Spec((), "int32")

    lu, pivots, info = define(
        polyop.xla_ffi(registered["lapack_dgetrf_ffi"]), "(Tensor x) -> (Tensor, Tensor, Tensor)", infer_lu
    )(x[0])
    lower, upper = np.tril(lu.T, -1) + np.eye(4), np.triu(lu.T)
    permuted = x[0].T.copy()
    for row, pivot in enumerate(pivots - 1):
        permuted[[row, pivot]] = permuted[[pivot, row]]
    np.testing.assert_allclose(lower @ upper, permuted)
    assert info == 0


def test_explain_and_check_know_handlers():
    from polyop.call.explain import explain
    from polyop.testing import check

    twice = define(
        polyop.xla_ffi(plain()), batch="elementwise", dtypes=["float32"], reference=lambda x: 2 * x
    )
    assert "plain.c:Twice (XLA FFI)" in explain(twice)
    report = check(twice, X)
    assert report.ok, str(report)
