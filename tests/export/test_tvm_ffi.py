"""An exported library is called through tvm-ffi: from its package without polyop, and from polyop."""

import ctypes
import importlib.util
import subprocess
import sys

import pytest

import exported_by_hand
from polyop.export.surfaces import tvm_ffi


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    return exported_by_hand.build(tvm_ffi, tmp_path_factory.mktemp("exported"))


@pytest.fixture(autouse=True)
def _package():
    if importlib.util.find_spec("tvm_ffi") is None:
        pytest.skip("not run: apache-tvm-ffi is not installed")


WITHOUT_POLYOP = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])  # loaded before tvm-ffi, by another way to call it
sys.modules["polyop"] = None  # cannot be imported
import numpy as np, tvm_ffi

library = tvm_ffi.load_module(sys.argv[1])
tensor = tvm_ffi.from_dlpack
x = np.arange(6, dtype=np.float32).reshape(2, 3)
y, bytes = np.empty_like(x), np.empty((), np.int32)
library.scale(tensor(x), 2.0, tensor(y))
np.testing.assert_array_equal(y, 2 * x)
library.scale(tensor(x), 3, tensor(y))  # an int for a float
np.testing.assert_array_equal(y, 3 * x)
for weights in (tvm_ffi.Shape((1, 2)), tvm_ffi.convert([1, 2]), (1, 2)):
    for mode in ("short", "longer than seven bytes"):
        library.weigh(tensor(x), None, weights, mode, True, tensor(y), tensor(bytes))
        np.testing.assert_array_equal(y, -3 * x)
        assert bytes == len(mode)
library.weigh(tensor(x), tensor(x), [], "", False, tensor(y), tensor(bytes))
np.testing.assert_array_equal(y, x)
library.add_(tensor(y), tensor(x))
np.testing.assert_array_equal(y, 2 * x)

for words, arguments in {
    "the factor must not be 0": (tensor(x), 0.0, tensor(y)),
    "takes 3 arguments (x, factor, out), not 2": (tensor(x), tensor(y)),
    "the attribute factor must be a float, not a text": (tensor(x), "two", tensor(y)),
    "the attribute factor must be a float, not None": (tensor(x), None, tensor(y)),
    "the output out must be float32[2, 3], not float32[1, 3]": (tensor(x), 1.0, tensor(y[:1])),
    "the tensor x must be dense": (tensor(x.T), 1.0, tensor(y)),
    "no kernel of this library takes x float64[2, 3]": (tensor(x.astype("float64")), 1.0, tensor(y)),
    "the argument x must be a tensor, not an int": (1, 1.0, tensor(y)),
}.items():
    try:
        library.scale(*arguments)
    except ValueError as problem:
        assert str(problem).startswith("toy::scale: ") and words in str(problem), problem
    else:
        raise AssertionError(words)
print("called")
"""


FROM_POLYOP = """
import sys
import numpy as np, polyop
from polyop.core.dtypes import DTYPES

path = sys.argv[1]
x = np.arange(6, dtype=np.float32).reshape(2, 3)
scale = polyop.operator("mine::scale(Tensor x, float factor=2.0) -> Tensor", f"{path}:scale", infer="x")
np.testing.assert_array_equal(scale(x.T, 2.5), 2.5 * x.T)
add = polyop.operator("mine::add_(Tensor(a!) x, Tensor y) -> ()", f"{path}:add_")
y = x.copy()
add(y, x)
np.testing.assert_array_equal(y, 2 * x)
copy = polyop.operator("mine::copy(Tensor x) -> Tensor", f"{path}:copy", infer="x")
for dtype in DTYPES:
    x = np.arange(2, 6).astype(dtype.numpy)
    assert copy(x).tobytes() == x.tobytes()
    words = "(the factor must not be 0)" if dtype.name == "float32" else f"takes x {dtype.name}[4]"
    try:
        scale(x, 0.0)
    except polyop.PolyopError as problem:
        assert "toy::scale: " in str(problem) and words in str(problem), problem
    else:
        raise AssertionError(dtype)
print("called")
"""


@pytest.mark.slow(1)
@pytest.mark.parametrize("program", [WITHOUT_POLYOP, FROM_POLYOP], ids=["without polyop", "from polyop"])
def test_calls_and_errors(path, program):
    # In its own process: tvm-ffi reads the symbols of the loaded libraries once, at the first error.
    command = [sys.executable, "-c", program, str(path)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ran.stdout == "called\n", ran.stderr


def test_it_loads_without_tvm_ffi_and_fails_without_a_text(path):
    program = f"import ctypes, os; library = ctypes.CDLL({str(path)!r}, mode=os.RTLD_NOW)\n"
    program += "print(library.__tvm_ffi_scale(None, None, 0, None))"
    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == "-1\n", ran.stderr


def test_only_the_functions_are_exported(path):
    names = {f"__tvm_ffi_{name}" for name in ("scale", "weigh", "add_", "copy")}
    assert exported_by_hand.exported(path) == names
    assert all(hasattr(ctypes.CDLL(str(path)), name) for name in names)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("int[][] pairs", "the attribute pairs is a list of lists"),
        ("complex z", "the attribute z has the type complex"),
    ],
)
def test_an_operator_that_tvm_ffi_cannot_call(argument, words):
    operator = exported_by_hand.operator(f"toy::f(Tensor x, {argument}) -> Tensor")
    assert tvm_ffi.refused(operator) == words
    assert "__tvm_ffi_f" not in tvm_ffi.source([operator])
