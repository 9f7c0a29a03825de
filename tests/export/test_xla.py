"""A JAX process without polyop calls the handlers of an exported library; polyop calls them too."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

import exported_by_hand
import polyop
from polyop.core.dtypes import DTYPES
from polyop.export.surfaces import xla

numbers = itertools.count()


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    return exported_by_hand.build(xla, tmp_path_factory.mktemp("exported"))


CALLS = """
import sys
sys.modules["polyop"] = None  # cannot be imported
import ctypes, jax, jax.numpy as jnp, numpy as np

library = ctypes.CDLL(sys.argv[1])
for name in ("scale", "weigh"):
    handler = jax.ffi.pycapsule(getattr(library, name + "_xla"))
    jax.ffi.register_ffi_target(name, handler, platform="cpu")

x = jnp.arange(6.0).reshape(2, 3)
like_x, one_int = jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((), np.int32)

def scale(x, *, results=like_x, **attributes):
    return jax.ffi.ffi_call("scale", results)(x, **attributes)

def weigh(*arrays, **attributes):
    return jax.ffi.ffi_call("weigh", (like_x, one_int))(*arrays, **attributes)

np.testing.assert_array_equal(jax.jit(lambda x: scale(x, factor=3.0) + 1)(x), 3 * x + 1)
np.testing.assert_array_equal(scale(x), 2 * x)  # the default
for factor in (np.float32(3), np.float64(3), 3, np.uint8(3), np.int16(3)):
    np.testing.assert_array_equal(scale(x, factor=factor), 3 * x)
for dtype in ("int8", "uint16", "int32", "uint32", "int64", "uint64"):
    weights = np.array([1, 2], dtype)
    y, bytes = jax.jit(lambda x: weigh(x, weights=weights, mode="abc", negate=True))(x)
    np.testing.assert_array_equal(y, -3 * x)
    assert bytes == 3
y, bytes = weigh(x, x)  # with the optional input
np.testing.assert_array_equal(y, x)
assert bytes == len("plain")

for words, call in {
    "the factor must not be 0": lambda: scale(x, factor=0.0),
    "no attribute called factr; the schema is toy::scale(Tensor x, ": lambda: scale(x, factr=1.0),
    "the attribute factor must be a float, not a text": lambda: scale(x, factor="two"),
    "the attribute factor must be a float, not a dictionary": lambda: scale(x, factor={"a": 1}),
    "weights must be a list of ints, not a number": lambda: weigh(x, weights=2),
    "weights must be a list of ints, not a float": lambda: weigh(x, weights=np.array([2.5])),
    "weights must be a list of ints, not a number of type uint64": lambda: weigh(
        x, weights=np.array([2**63], np.uint64)
    ),
    "takes 1 or 2 arrays, not 3": lambda: weigh(x, x, x),
    "no kernel of this library takes x int32[2, 3]": lambda: scale(x.astype(np.int32)),
    "the output out must be float32[2, 3], not int32[]": lambda: scale(x, results=one_int),
    "its number of results is 1, not 2": lambda: scale(x, results=(like_x, like_x)),
}.items():
    try:
        jax.block_until_ready(call())
    except jax.errors.JaxRuntimeError as problem:
        assert "INTERNAL: toy::" in str(problem) and words in str(problem), problem
    else:
        raise AssertionError(words)
print("called")
"""


@pytest.mark.slow
def test_calls_and_errors_without_polyop(path):
    pytest.importorskip("jax", reason="JAX is not installed")
    command = [sys.executable, "-c", CALLS, str(path)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=240)
    assert ran.stdout == "called\n", ran.stderr


def test_polyop_calls_a_handler(path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    scale = polyop.operator(
        f"exported_xla{next(numbers)}::scale(Tensor x, float factor=2.0) -> Tensor",
        polyop.xla_ffi(f"{path}:scale_xla"),
        infer="x",
    )
    np.testing.assert_array_equal(scale(x, 2.5), 2.5 * x)
    with pytest.raises(polyop.PolyopError, match=r"toy::scale: .*\(the factor must not be 0\)"):
        scale(x, 0.0)


@pytest.mark.parametrize("dtype", [row.numpy for row in DTYPES if row.xla >= 0], ids=str)
def test_every_dtype_is_the_same_on_both_sides(path, dtype):
    handler = polyop.xla_ffi(f"{path}:copy_xla")
    copy = polyop.operator(f"exported_xla{next(numbers)}::copy(Tensor x) -> Tensor", handler, infer="x")
    x = np.arange(2, 6).astype(dtype)
    assert copy(x).tobytes() == x.tobytes()


def test_only_the_handlers_are_exported(path):
    assert exported_by_hand.exported(path) == {"scale_xla", "weigh_xla", "copy_xla"}


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("(Tensor(a!) x, Tensor y) -> ()", "it writes the argument x"),
        ("(Tensor x) -> ()", "it returns no array"),
        ("(Tensor x, float[][] rows) -> Tensor", "the attribute rows is a list of lists"),
        ("(Tensor x, complex z) -> Tensor", "the attribute z has the type complex"),
        ("(Tensor x, str[] names) -> Tensor", "the attribute names is a list, and not one of numbers"),
    ],
)
def test_an_operator_that_xla_cannot_call(signature, words):
    operator = exported_by_hand.operator(f"toy::f{signature}")
    assert words in xla.refused(operator)
    assert "f_xla" not in xla.source([operator])
