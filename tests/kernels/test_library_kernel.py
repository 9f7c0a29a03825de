"""Kernels of a library that go wrong, one way each: the error names the kernel, the rule and the file."""

import shutil

import numpy as np
import pytest

import polyop
from polyop import _core

X = np.ones((2, 2), np.float32)


@pytest.fixture(scope="session")
def faults():
    import pathlib

    path = pathlib.Path(__file__).parents[1] / "sources" / "faults.cc"

    def make(name, infer="x", schema="(Tensor x, float scale=1.0) -> Tensor"):
        return polyop.operator(
            f"faults::{name}_{len(operators)}{schema}", polyop.source(path, function=name), infer=infer
        )

    operators = []
    return lambda *args, **kwargs: operators.append(make(*args, **kwargs)) or operators[-1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Throws", "the kernel threw a C\\+\\+ exception: the matrix is singular"),
        ("ThrowsAnInt", "threw a C\\+\\+ exception that is no std::exception"),
        (
            "InitThrows",
            "InitThrowsInit: threw a C\\+\\+ exception: there is no attribute called no_such_attribute!",
        ),
        ("InitFails", "InitFailsInit: failed with code 1: three dimensions are too many"),
        ("WrongAttribute", "the attribute scale is not a string!"),
    ],
)
def test_kernels_and_inits(faults, name, message):
    with pytest.raises(RuntimeError, match=message) as excinfo:
        faults(name)(X)
    assert "defined at" in str(excinfo.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ShapeThrows", "ShapeThrowsInferShape: failed: only vectors"),
        ("ShapeNegative", "gave an unknown size for inputs whose sizes are known"),
        ("ShapeOfTwo", "returned a list of shapes, where the operator has one output"),
        ("TypeUnknown", "returned a TypeId that is no dtype of a tensor"),
        ("Throws", "ThrowsInferShape: is missing, and no out_shape was given"),
    ],
)
def test_inference(faults, name, message, sources):
    shape = (2, 2) if name == "TypeUnknown" else None
    kind = None if name == "TypeUnknown" else "float32"
    with pytest.raises(ValueError, match=message):
        polyop.Custom(f"{sources / 'faults.cc'}:{name}", shape, kind, "aot")(X)


def test_one_shape_where_several_are_declared(sources):
    op = polyop.Custom(f"{sources / 'add.cc'}:CustomAdd", None, ("float32", "float32"), "aot")
    with pytest.raises(ValueError, match="returned one shape, where the operator has several outputs"):
        op(X, X)


def test_a_failing_call_leaves_the_next_one_alone(faults, kernels_c):
    bad = faults("Throws")
    for _ in range(3):
        with pytest.raises(RuntimeError, match="singular"):
            bad(X)
    good = polyop.operator(
        "faults::good(Tensor x) -> Tensor", polyop.source(kernels_c, function="square"), infer="x"
    )
    assert (good(X) == 1).all()


@pytest.fixture
def kernels_c(sources):
    return sources / "kernels.c"


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        (":f", TypeError, "file_name:func_name|empty"),
        ("nowhere/lib.so:f", RuntimeError, "couldn't find the AOT binary file|no such file|does not exist"),
        ("nowhere/code.cc:f", RuntimeError, "code.cc"),
    ],
)
def test_references_that_lead_nowhere(reference, error, message):
    with pytest.raises(error, match=message):
        polyop.operator("faults::nowhere(Tensor x) -> Tensor", reference, infer="x")


def test_a_missing_function_lists_what_there_is(kernels_c):
    with pytest.raises(RuntimeError, match="squar") as excinfo:
        polyop.source(kernels_c, function="sqare")
    assert "square" in str(excinfo.value)


@pytest.mark.parametrize("name", ["abs", "isatty"])
def test_a_function_of_a_library_that_this_one_needs_is_not_taken(kernels_c, name):
    path = polyop.source(kernels_c, function="square").path
    with pytest.raises(polyop.PolyopError, match=f"does not offer the function '{name}'") as problem:
        polyop.prebuilt(path, name)
    assert "libc.so.6, which this library needs, has a function of that name" in str(problem.value)


def test_a_text_file_and_a_truncated_library(tmp_path, kernels_c):
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(RuntimeError, match="text"):
        polyop.prebuilt(text, "f")
    whole = polyop.source(kernels_c, function="square").path
    cut = tmp_path / "cut.so"
    cut.write_bytes(whole.read_bytes()[:1000])
    with pytest.raises(RuntimeError, match="cut.so"):
        polyop.prebuilt(cut, "square")


def test_kernel_data_is_destroyed_once_with_the_operator(tmp_path, capfd):
    code = """
    #include <cstdio>
    #include "custom_aot_extra.h"
    struct Data : AotKernelData { ~Data() override { std::printf("gone\\n"); std::fflush(stdout); } };
    extern "C" int KeepInit(int *, int64_t **, const char **, AotExtra *extra) { extra->SetKernelData(new Data()); return 0; }
    extern "C" int Keep(int, void **, int *, int64_t **, const char **, void *, void *extra) {
      return static_cast<AotExtra *>(extra)->KernelData() == nullptr;
    }
    """
    kernel = polyop.source(code=code, function="Keep")
    spec = polyop.Spec((2,), polyop.dtype("float32"))
    launch = kernel.launch((spec,), (spec,), {})
    assert kernel.launch((spec,), (spec,), {}) is launch  # Init ran once
    del launch
    kernel._launches.clear()
    assert capfd.readouterr().out == "gone\n"


def test_attributes_of_every_type(tmp_path):
    code = """
    #include "custom_aot_extra.h"
    extern "C" int ReadInit(int *, int64_t **, const char **, AotExtra *e) {
      bool ok = e->Attr<bool>("flag") && e->Attr<int64_t>("number") == -7 && e->Attr<float>("ratio") == 0.5f;
      ok = ok && e->Attr<std::string>("text") == "\\xc3\\xa4 b" && e->Attr<std::vector<int64_t>>("ints") == std::vector<int64_t>{1, 2};
      ok = ok && e->Attr<std::vector<float>>("floats") == std::vector<float>{1.5f, 2};
      ok = ok && e->Attr<std::vector<std::vector<int64_t>>>("rows") == std::vector<std::vector<int64_t>>{{1}, {}, {2, 3}};
      ok = ok && e->Attr<std::vector<std::vector<float>>>("grid")[1][0] == 2.5f && e->Attr<std::vector<std::string>>("names")[1] == "b";
      ok = ok && e->Attr<std::vector<int64_t>>("none").empty() && !e->HasAttr("absent");
      return ok ? 0 : e->Fail("an attribute was read wrongly");
    }
    extern "C" int Read(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }
    """
    kernel = polyop.source(code=code, function="Read")
    values = {
        "flag": True,
        "number": -7,
        "ratio": 0.5,
        "text": "ä b",
        "ints": [1, 2],
        "floats": [1.5, 2],
        "rows": [[1], [], [2, 3]],
        "grid": [[1], [2.5]],
        "names": ["a", "b"],
        "none": [],
    }
    spec = polyop.Spec((2,), polyop.dtype("float32"))
    assert isinstance(kernel.launch((spec,), (spec,), values), _core.Launch)
    with pytest.raises(RuntimeError, match="an attribute cannot be passed"):
        kernel.launch((spec,), (spec,), {"odd": object()})


def test_the_kernels_of_a_rebuilt_source_do_not_collide(tmp_path):
    path = tmp_path / "value.c"
    template = '#include "polyop/abi.h"\nint f(int n, void **p, int *d, int64_t **s, const char **t, void *a, void *b) {{ ((float *)p[1])[0] = {}; return 0; }}\n'
    path.write_text(template.format("n * 0 + (d && s && t && !a && b) * 1"))
    first = polyop.Custom(f"{path}:f", lambda x: [1], lambda x: x, "aot")
    path.write_text(template.format("n * 0 + (d && s && t && !a && b) * 2"))
    second = polyop.Custom(f"{path}:f", lambda x: [1], lambda x: x, "aot")
    assert (first(X)[0], second(X)[0], first(X)[0]) == (1, 2, 1)


@pytest.mark.slow
def test_cuda_source_compiles(sources, tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("not run: nvcc is not installed")
    kernel = polyop.source(sources / "square.cu", function="Square")
    op = polyop.operator("faults::cuda(Tensor x) -> Tensor", kernel, infer="x")
    with pytest.raises(TypeError, match="square.cu:Square: runs on cuda, and the tensors are on cpu"):
        op(X)
    assert polyop.prebuilt(kernel.path, "Square").device == "cuda"
