"""Function pointers of numba, ctypes, cffi and scipy as kernels: one C function, or one of numba, each way."""

import ctypes
import gc
import importlib
import pathlib
import runpy
import subprocess
import sys
import weakref

import numpy as np
import pytest

import polyop
from polyop.call.pickled import digest
from polyop.core.errors import ArgumentTypeError, ArgumentValueError
from polyop.kernels.function_pointer import FunctionPointerKernel

SOURCE = pathlib.Path(__file__).parents[1] / "sources" / "kernels.c"
X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
CDEF = "int (*)(int, void **, int *, int64_t **, const char **, void *, void *)"
VOID_PP, INT_P = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int)
ARGTYPES = [
    ctypes.c_int,
    VOID_PP,
    INT_P,
    ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)),
    ctypes.POINTER(ctypes.c_char_p),
    ctypes.c_void_p,
    ctypes.c_void_p,
]
SIGNATURE = "int (int, void **, int *, int64_t **, char const **, void *, void *)"


def need(*names):
    """Import the packages of a row, or skip with the reason."""
    return [pytest.importorskip(name, reason=f"not run: {name} is not installed") for name in names]


def symbol():
    """The C function that squares, as a symbol of ctypes without types."""
    return ctypes.CDLL(polyop.source(SOURCE, function="square").file).square


def typed(argtypes=ARGTYPES, restype=ctypes.c_int):
    function = symbol()
    function.argtypes, function.restype = argtypes, restype
    return function


def prototype():
    return ctypes.CFUNCTYPE(ctypes.c_int, *ARGTYPES)(ctypes.cast(symbol(), ctypes.c_void_p).value)


def of_cffi(text=CDEF):
    (cffi,) = need("cffi")
    return cffi.FFI().cast(text, ctypes.cast(symbol(), ctypes.c_void_p).value)


def of_scipy(function, **options):
    need("scipy")
    return importlib.import_module("scipy").LowLevelCallable(function, **options)


def capsule(name=SIGNATURE):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = name.encode()
    NAMES.append(name)  # a capsule does not copy its name
    return new(ctypes.cast(symbol(), ctypes.c_void_p).value, name, None)


NAMES = []


def square(nparam, params, ndims, shapes, dtypes, stream, extra):
    count = 1
    for i in range(ndims[0]):
        count *= shapes[0][i]
    for i in range(count):
        params[1][i] = params[0][i] * params[0][i]
    return 0


def nothing(nparam, params, ndims, shapes, dtypes, stream, extra):
    return 0


def of_numba(function=square, **other):
    numba, _ = need("numba", "scipy")
    t, p = numba.types, numba.types.CPointer
    kinds = {
        "nparam": t.int32,
        "params": p(p(t.float32)),
        "ndims": p(t.int32),
        "shapes": p(p(t.int64)),
        "dtypes": p(t.voidptr),
        "stream": t.voidptr,
        "extra": t.voidptr,
    }
    result = getattr(t, other.pop("result", "int32"))
    kinds.update({name: getattr(t, kind) for name, kind in other.items()})
    return numba.cfunc(result(*kinds.values()))(function)


FORMS = {  # how a function pointer comes -> its value, and how the kernel is named
    "numba": (of_numba, "numba.cfunc square"),
    "numba-ctypes": (lambda: of_numba().ctypes, "ctypes "),
    "ctypes-symbol": (symbol, "ctypes square"),
    "ctypes-typed": (typed, "ctypes square"),
    "ctypes-prototype": (prototype, "ctypes square"),
    "cffi": (of_cffi, "cffi square"),
    "scipy-ctypes": (lambda: of_scipy(typed()), "LowLevelCallable square"),
    "scipy-cffi": (lambda: of_scipy(of_cffi()), "LowLevelCallable square"),
    "scipy-numba": (lambda: of_scipy(of_numba().ctypes), "LowLevelCallable "),
    "scipy-capsule": (lambda: of_scipy(capsule(), signature=SIGNATURE), "LowLevelCallable square"),
    "capsule": (capsule, "PyCapsule square"),
}
COUNT = iter(range(1000))


def operator(kernel, **options):
    options = {"dtypes": ["float32"], "batch": "elementwise"} | options
    return polyop.operator(f"pointers::square{next(COUNT)}(Tensor x) -> Tensor", kernel, **options)


def differentiable(kernel):
    return operator(kernel, gradient=lambda x, out, dout: (2 * x * dout,))


@pytest.mark.slow(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_function_pointer_is_a_native_kernel(form):
    value, label = FORMS[form]
    op = operator(value())
    (kernel,) = op.operator.kernels
    assert isinstance(kernel, FunctionPointerKernel)
    assert kernel.native
    assert str(kernel).startswith(label)
    gc.collect()  # the value was the only reference to what owns the code
    np.testing.assert_array_equal(op(X), X * X)
    np.testing.assert_array_equal(op(X.T), (X * X).T)
    with pytest.raises(polyop.core.errors.NoKernelError, match="takes float32, not float64"):
        op(X.astype(np.float64))


@pytest.mark.slow(2)
@pytest.mark.parametrize("form", ["numba", "ctypes-prototype", "cffi"])
def test_the_owner_of_the_code_outlives_the_operator(form):
    value = FORMS[form][0]()
    kept = weakref.ref(value)
    op = operator(value)
    del value, op
    gc.collect()
    assert kept() is not None


DROPPED = """
import gc, sys, ctypes, numpy as np, polyop
library, form = sys.argv[1:]
x = np.arange(4, dtype=np.float32)
if form == "cffi":
    import cffi
    ffi = cffi.FFI()
    ffi.cdef("int square(int, void **, int *, int64_t **, const char **, void *, void *);")
    lib = ffi.dlopen(library)
    op = polyop.operator("dropped::square(Tensor x) -> Tensor", lib.square, infer="x")
    del ffi, lib
else:
    from _ctypes import dlclose
    lib = ctypes.CDLL(library)
    address = ctypes.cast(lib.Twice, ctypes.c_void_p).value
    op = polyop.operator("dropped::twice(Tensor x) -> Tensor", polyop.xla_ffi(address), infer="x")
    dlclose(lib._handle)
for _ in range(3):
    gc.collect()
print(op(x).tolist())
"""


@pytest.mark.parametrize(("form", "result"), [("cffi", [0, 1, 4, 9]), ("xla_ffi", [0, 2, 4, 6])])
def test_the_library_of_the_code_stays_open(form, result, tmp_path):
    need("cffi")
    handler = SOURCE.parents[1] / "support" / "xla_handlers" / "plain.c"
    built = (
        polyop.source(SOURCE, function="square")
        if form == "cffi"
        else polyop.source(handler, function="Twice")
    )
    library = tmp_path / "mine.so"
    library.write_bytes(pathlib.Path(built.file).read_bytes())
    command = [sys.executable, "-c", DROPPED, str(library), form]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert [int(float(n)) for n in done.stdout.strip(" []\n").split(",")] == result


@pytest.mark.parametrize("form", ["numba", "cffi", "scipy-ctypes"])
def test_in_pytorch(form):
    torch = pytest.importorskip("torch", reason="not run: torch is not installed")
    op = differentiable(FORMS[form][0]())
    x = torch.tensor(X, requires_grad=True)
    op(x).sum().backward()
    np.testing.assert_array_equal(x.grad, 2 * X)
    compiled = torch.compile(lambda t: op(t) + 1, fullgraph=True, backend="aot_eager")
    np.testing.assert_array_equal(compiled(torch.tensor(X)), X * X + 1)
    np.testing.assert_array_equal(torch.vmap(op)(torch.tensor(X)), X * X)


@pytest.mark.parametrize("form", ["numba", "cffi", "scipy-ctypes"])
def test_in_jax(form):
    jax = pytest.importorskip("jax", reason="not run: jax is not installed")
    op = differentiable(FORMS[form][0]())
    text = jax.jit(op).lower(X).as_text()
    assert "callback" not in text
    np.testing.assert_array_equal(jax.jit(op)(X), X * X)
    np.testing.assert_array_equal(jax.grad(lambda x: op(x).sum())(X), 2 * X)


def changed(position, kind):
    return [*ARGTYPES[:position], kind, *ARGTYPES[position + 1 :]]


REFUSED = [  # the value, the words of the error
    (
        lambda: of_numba(nothing, ndims="intp"),
        "numba.cfunc nothing: parameter ndims: must be int *, but got int64",
    ),
    (
        lambda: of_numba(nothing, result="float64"),
        "must return int, where 0 is success, but got double",
    ),
    (lambda: typed(changed(0, ctypes.c_int64)), "parameter nparam: must be int, but got int64"),
    (lambda: typed(changed(1, INT_P)), "parameter params: must be void **, but got int32*"),
    (
        lambda: typed(changed(3, ctypes.POINTER(INT_P))),
        "parameter shapes: must be int64_t **, but got int32**",
    ),
    (lambda: typed(changed(4, ctypes.c_char_p)), "parameter dtypes: must be const char **, but got char*"),
    (lambda: typed(ARGTYPES[:6]), "ctypes square: must have 7 parameters, but got 6"),
    (lambda: typed(None, ctypes.c_double), "must return int, where 0 is success, but got double"),
    (lambda: typed(None, None), "must return int, where 0 is success, but got void"),
    (lambda: typed(restype=None), "must return int, where 0 is success, but got void"),
    (
        lambda: of_cffi(CDEF.replace("int *", "long *")),
        "cffi square: parameter ndims: must be int *, but got int64*",
    ),
    (lambda: of_cffi("double (*)(double)"), "must have 7 parameters, but got 1"),
    (
        lambda: of_scipy(typed(changed(5, ctypes.c_int))),
        "LowLevelCallable square: parameter stream: must be void *, but got int32",
    ),
    (
        lambda: of_scipy(typed(), user_data=ctypes.c_void_p(8)),
        "LowLevelCallable: has user data, which a kernel does not get",
    ),
    (lambda: capsule("dltensor"), "PyCapsule: must have the signature of its C function as its name"),
    (lambda: ctypes.pythonapi.Py_IsInitialized, "ctypes function of PyDLL: needs Python's lock"),
]


@pytest.mark.parametrize(("value", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_a_known_signature_is_checked(value, message):
    given = value()
    with pytest.raises(ArgumentTypeError) as problem:
        operator(given)
    assert message in str(problem.value)
    assert f"defined at {__file__}" in str(problem.value)


TYPED = {  # the type of params: what the kernel takes, None for all
    ctypes.c_float: "float32",
    ctypes.c_double: "float64",
    ctypes.c_int64: "int64",
    ctypes.c_bool: "bool",
    ctypes.c_uint8: None,
    ctypes.c_void_p: None,
}


@pytest.mark.parametrize(
    ("kind", "taken"), TYPED.items(), ids=lambda value: getattr(value, "__name__", value)
)
def test_the_type_of_the_pointers_restricts_the_dtypes(kind, taken):
    kernel_type = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.POINTER(kind)), *[ctypes.c_void_p] * 5
    )
    op = polyop.operator(f"typed::{kind.__name__}(Tensor x) -> Tensor", kernel_type(lambda *_: 0), infer="x")
    for name in ("float32", "float64", "int64", "bool"):
        if taken in (None, name):
            assert op(np.ones(3, name)).dtype == name
        else:
            with pytest.raises(polyop.PolyopError, match=f"takes {taken}, not {name}"):
                op(np.ones(3, name))
    if taken is not None:
        with pytest.raises(
            ArgumentTypeError, match=f"takes {taken}, so dtypes= must name no other, but got int8"
        ):
            polyop.operator(
                "typed::other(Tensor x) -> Tensor", kernel_type(lambda *_: 0), infer="x", dtypes=["int8"]
            )


def test_a_null_pointer_is_refused():
    with pytest.raises(ArgumentValueError, match="must point to a function, but got a null pointer"):
        operator(ctypes.CFUNCTYPE(ctypes.c_int, *ARGTYPES)())


def test_a_jitted_function_of_numba_stays_a_python_kernel():
    (numba,) = need("numba")
    op = operator(numba.njit(lambda x: x * x))
    assert str(op.operator.kernels[0]).startswith("pyfunc")
    np.testing.assert_array_equal(op(X), X * X)


def test_a_function_of_a_compiled_module_of_cffi(tmp_path):
    (cffi,) = need("cffi")
    ffi = cffi.FFI()
    ffi.cdef(f"{CDEF.replace('(*)', 'five', 1)};")
    body = "{ ((float *)b[1])[0] = 5; return 0; }"
    parameters = "int a, void **b, int *c, int64_t **d, const char **e, void *f, void *g"
    ffi.set_source("polyop_five", f"static int five({parameters}) {body}")
    ffi.compile(tmpdir=str(tmp_path))
    sys.path.insert(0, str(tmp_path))
    try:
        module = importlib.import_module("polyop_five")
    finally:
        sys.path.remove(str(tmp_path))
    for value in (module.lib.five, module.ffi.addressof(module.lib, "five")):
        np.testing.assert_array_equal(operator(value)(np.zeros(1, np.float32)), [5])


PROGRAM = """
import ctypes, sys
sys.path[:0] = [{folder!r}]
import test_function_pointer as t
from polyop.call.pickled import digest
for form in sys.argv[1:]:
    print(digest(t.named(form).operator))
"""


def named(form):
    return polyop.operator(
        f"pointers::{form.replace('-', '_')}(Tensor x) -> Tensor", FORMS[form][0](), infer="x"
    )


def test_the_digest_is_the_same_in_every_process_where_the_code_is_known():
    need("numba", "scipy", "cffi")
    known, unknown = ("numba", "ctypes-symbol", "cffi"), ("numba-ctypes",)
    program = PROGRAM.format(folder=str(pathlib.Path(__file__).parent))
    command = [sys.executable, "-c", program, *known, *unknown]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    elsewhere = result.stdout.split()
    here = [digest(named(form).operator) for form in (*known, *unknown)]
    assert elsewhere[:3] == here[:3]
    assert elsewhere[3] != here[3]


FACTOR = 2.0


def scaled(nparam, params, ndims, shapes, dtypes, stream, extra):
    params[1][0] = params[0][0] * FACTOR
    return 0


def test_a_number_that_numba_reads_is_part_of_the_digest(monkeypatch):
    need("numba")
    contents = []
    for factor in (2.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        op = operator(of_numba(scaled))
        assert op(np.ones(1, np.float32)) == [factor]
        contents.append(list(op.operator.kernels[0].content()))
    assert contents[0] != contents[1]


def test_the_code_of_the_page_runs():
    need("numba")
    runpy.run_path(str(pathlib.Path(__file__).with_name("page.py")))
