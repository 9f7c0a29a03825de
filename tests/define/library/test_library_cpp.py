"""Operator libraries in C++: POLYOP_LIBRARY, its keys, gradients, dispatcher, and what is checked at load."""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.build import build
from polyop.core.errors import (
    ArgumentTypeError,
    BuildError,
    FallbackWarning,
    GradientError,
    InferError,
    KernelError,
    LibraryError,
    NoKernelError,
    SchemaError,
)
from polyop.define.library.library import Library
from polyop.define.library.load import load_library

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
FILES = [SOURCES / "library_ops.cpp", SOURCES / "library_more.cpp"]

x = np.array([[1.0, -2.0, 3.0]], np.float32)


@pytest.fixture(scope="session")
def lib():
    return load_library(FILES)


@pytest.mark.slow
def test_operators_of_both_files_and_namespaces(lib):
    assert str(lib.add.schema) == "libops::add(Tensor self, Tensor other) -> Tensor"
    assert lib["libmore::sum_of"] is lib.sum_of
    assert "libops::later" in repr(lib)
    assert "later" in dir(lib)
    assert load_library(FILES) is lib
    with pytest.raises(AttributeError, match=r"no operator nothing in .*\.so; there are libops::add, "):
        lib.nothing
    with pytest.raises(KeyError, match="has no operator libops::nothing"):
        lib["libops::nothing"]


def test_values_of_every_type(lib):
    np.testing.assert_array_equal(lib.add(x, 2 * x), 3 * x)
    np.testing.assert_array_equal(lib.scale(x), 2 * x)
    np.testing.assert_array_equal(lib.scale(x, 3.0, mode="square", negate=True), -3 * x * x)
    one, two = lib.tile(x, [1, 2], bias=x, factor=4)
    np.testing.assert_array_equal(one, 5 * x)
    np.testing.assert_array_equal(two, np.concatenate([5 * x, 5 * x]))
    np.testing.assert_array_equal(lib.tile(x, (1,), factor=0.5)[0], x / 2)
    np.testing.assert_array_equal(lib.total([x, x, 2 * x], start=3), 4 * x + 3)
    first, second = lib.add_backward(x)
    np.testing.assert_array_equal([first, second], [x, x])
    np.testing.assert_array_equal(lib.count_to(3), [1, 2, 3])
    np.testing.assert_array_equal(lib.full(x, (1, 2)), [[1, 1]])
    out = lib.full(x, [2, 1], 2.5, np.float64, note="negative")
    np.testing.assert_array_equal(out, [[-2.5], [-2.5]])
    assert out.dtype == np.float64


def test_a_written_argument_is_returned(lib, torch):
    y = np.zeros(3, np.float32)
    assert lib.fill_(y, 2.5) is y
    assert (y == 2.5).all()
    columns = np.zeros((3, 2), np.float32)
    lib.fill_(columns[:, 0], 1.0)  # made dense, and copied back
    np.testing.assert_array_equal(columns, [[1, 0]] * 3)
    y.flags.writeable = False
    with pytest.raises(polyop.PolyopError, match="is written in place.*read-only"):
        lib.fill_(y, 1.0)
    t = torch.zeros(3)
    before = t._version
    assert lib.fill_(t, 2.5) is t
    assert (t == 2.5).all()
    assert t._version > before


def test_kernels_get_dense_tensors_unless_they_request_strides(lib):
    m = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(lib.add(m.T, m.T), 2 * m.T)
    np.testing.assert_array_equal(lib.total([m.T, m.T]), 2 * m.T)
    np.testing.assert_array_equal(lib.strides(m.T, True), [1, 3])


def test_calls_of_other_operators(lib):
    np.testing.assert_array_equal(lib.thrice(x), 3 * x)  # in the library
    np.testing.assert_array_equal(lib.sum_of(x, x), 2 * x)  # of another file's


def test_gradients_on_numpy(lib):
    _, pull = lib.add.vjp(x, x)
    left, right = pull(3 * x)
    np.testing.assert_array_equal([left, right], [3 * x, 3 * x])
    _, pull = lib.scale.vjp(x, 3.0, mode="square", negate=True)
    np.testing.assert_allclose(pull(np.ones_like(x))[0], -6 * x)
    _, pull = lib.thrice.vjp(x)  # through the operators that it calls
    np.testing.assert_array_equal(pull(x)[0], 3 * x)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_in_torch(lib, torch, compiled):
    def f(t):
        return lib.scale(torch.ops.libops.add(t, t), 3.0, mode="square").sum()  # 3 (2 t)^2

    t = torch.tensor(x, requires_grad=True)
    step = torch.compile(f, fullgraph=True, backend="aot_eager") if compiled else f
    step(t).backward()
    np.testing.assert_allclose(t.grad, 24 * x)


def test_torch_registrations_pass_opcheck(lib, torch):
    t = torch.tensor(x, requires_grad=True)
    torch.library.opcheck(torch.ops.libops.add.default, (t, t))
    torch.library.opcheck(torch.ops.libops.tile.default, (torch.tensor(x), [1, 2]))


def test_a_second_derivative_is_refused_by_name(lib, torch):
    t = torch.tensor(x, requires_grad=True)
    (first,) = torch.autograd.grad((lib.add(t, t) ** 2).sum(), t, create_graph=True)
    with pytest.raises(GradientError, match="it runs libops::add_backward, a kernel of its own"):
        first.sum().backward()


def test_vmap(lib, torch):
    t = torch.tensor(np.stack([x, 2 * x]), requires_grad=True)
    with pytest.warns(FallbackWarning, match="libops::add: vmap runs one call per sample"):
        np.testing.assert_array_equal(torch.vmap(lib.add)(t, t).detach(), 2 * t.detach())
    with pytest.warns(FallbackWarning, match="libops::half: vmap runs one call per sample"):
        np.testing.assert_array_equal(torch.vmap(lib.half)(t.detach()), t.detach() / 2)


def test_jax(lib):
    jax = pytest.importorskip("jax", reason="JAX is not installed")

    def f(a):
        return lib.scale(lib.add(a, a), 3.0, mode="square").sum()

    a = jax.numpy.asarray(x)
    np.testing.assert_allclose(jax.jit(f)(a), 12 * (x * x).sum())
    np.testing.assert_allclose(jax.grad(f)(a), 24 * x)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(a), 24 * x)
    np.testing.assert_allclose(jax.jit(lib.total)([a, a]), 2 * x)


def test_shapes_come_from_meta_or_from_the_cpu_function(lib, torch):
    meta = torch.empty(4, 5, device="meta")
    assert lib.add(meta, meta).shape == (
        4,
        5,
    )  # its CPU function reads data, so the Meta function gives the shape
    assert lib.scale(meta).shape == (4, 5)  # has no Meta function
    rule = "its CPU function reads data.*register a Meta function, or wrap the loop"
    with pytest.raises(InferError, match="(?s)" + rule):
        lib.reads_data.operator.infer([polyop.Spec((2,), polyop.dtype("float32"), "cpu")])


def test_an_operator_without_its_device_names_the_keys(lib):
    rule = r"(?s)libops::cuda_only.*no implementation for CPU is registered; there are: Meta \(.*CUDA \("
    with pytest.raises(NoKernelError, match=rule):
        lib.cuda_only(x)
    with pytest.raises(NoKernelError, match="no implementation for CPU is registered; there are: none"):
        lib.schema_only(x)


def test_no_autograd_function_is_an_error(lib, torch):
    with pytest.raises(GradientError, match="libops::half: has no gradient rule"):
        lib.half(torch.tensor(x, requires_grad=True)).sum().backward()


def test_an_exception_of_a_function(lib):
    with pytest.raises(
        KernelError, match="libops::raises: the C\\+\\+ function failed: nothing is good enough"
    ):
        lib.raises(x)
    with pytest.raises(KernelError, match="no mode cubic"):
        lib.scale(x, mode="cubic")


def test_npu_keys_run_in_rehearsal(lib, monkeypatch):
    monkeypatch.delenv("POLYOP_ASCEND", raising=False)
    with pytest.raises(NoKernelError, match="PrivateUse1.*; POLYOP_ASCEND=rehearse runs the one"):
        lib.npu_only(x)
    monkeypatch.setenv("POLYOP_ASCEND", "rehearse")
    monkeypatch.setattr("polyop.providers.aclnn.rehearsal._warned", False)
    with pytest.warns(FallbackWarning, match="what is meant for Ascend runs on the CPU"):
        np.testing.assert_array_equal(lib.npu_only(x), 2 * x)


HEADER = "#include <polyop/library.h>\nusing polyop::Tensor;\nTensor same(const Tensor& x) { return x; }\n"

BAD = [
    (
        "types",
        (
            'POLYOP_LIBRARY(bad, m) { m.def("f(Tensor x, float alpha) -> Tensor"); }\n'
            "Tensor f(const Tensor& x, int64_t) { return x; }\n"
            'POLYOP_LIBRARY_IMPL(bad, CPU, m) { m.impl("f", &f); }\n'
        ),
        LibraryError,
        (
            r"(?s)bad::f: the schema and the C\+\+ function for CPU disagree: argument alpha is float in the schema, "
            r"and int in C\+\+.*schema: f\(Tensor x, float alpha\) -> Tensor  \(.*types.cpp:4\)"
            r".*C\+\+:    Tensor\(const Tensor&, int64_t\)  \(.*types.cpp:6\)"
        ),
    ),
    (
        "count",
        (
            'POLYOP_LIBRARY(bad, m) { m.def("f(Tensor x, Tensor y) -> Tensor"); }\n'
            'POLYOP_LIBRARY_IMPL(bad, Meta, m) { m.impl("f", &same); }\n'
        ),
        LibraryError,
        "for Meta disagree: the schema has 2 arguments, and the C\\+\\+ function 1",
    ),
    (
        "result",
        (
            'POLYOP_LIBRARY(bad, m) { m.def("f(Tensor x) -> (Tensor, Tensor)"); }\n'
            'POLYOP_LIBRARY_IMPL(bad, AutogradCPU, m) { m.impl("f", &same); }\n'
        ),
        LibraryError,
        r"the result is \(Tensor, Tensor\) in the schema, and Tensor in C\+\+",
    ),
    (
        "key",
        (
            'POLYOP_LIBRARY(bad, m) { m.def("f(Tensor x) -> Tensor"); }\n'
            'POLYOP_LIBRARY_IMPL(bad, GPU, m) { m.impl("f", &same); }\n'
        ),
        LibraryError,
        r"(?s)bad::f: the key GPU is unknown.*key.cpp:5.*keys: CPU, CUDA, PrivateUse1, Meta, AutogradCPU",
    ),
    (
        "no_schema",
        (
            'POLYOP_LIBRARY(bad, m) { m.def("f(Tensor x) -> Tensor"); }\n'
            'POLYOP_LIBRARY_IMPL(bad, CPU, m) { m.impl("g", &same); }\n'
        ),
        LibraryError,
        (
            r"(?s)bad::g: a function is registered for CPU, but there is no schema of that name.*no_schema.cpp:5"
            r".*schemas: bad::f"
        ),
    ),
    (
        "twice",
        (
            'POLYOP_LIBRARY(bad, m) { m.def("f(Tensor x) -> Tensor"); }\n'
            'POLYOP_LIBRARY_IMPL(bad, CPU, m) {\n  m.impl("f", &same);\n  m.impl("f", &same);\n}\n'
        ),
        LibraryError,
        r"(?s)bad::f for CPU: the function is given twice, first at .*twice.cpp:6.*twice.cpp:7",
    ),
    (
        "schemas",
        'POLYOP_LIBRARY(bad, m) {\n  m.def("f(Tensor x) -> Tensor");\n  m.def("f(Tensor y) -> Tensor");\n}\n',
        SchemaError,
        r"(?s)bad::f: the schema is given twice, first at .*schemas.cpp:5.*schemas.cpp:6",
    ),
    (
        "grammar",
        'POLYOP_LIBRARY(bad, m) {\n  m.def("f(Tensr x) -> Tensor");\n}\n',
        SchemaError,
        "(?s)bad::f: .*Tensr.*grammar.cpp:5",
    ),
    (
        "namespace",
        'POLYOP_LIBRARY_IMPL(bad, CPU, m) { m.impl("f", &same); }\n',
        LibraryError,
        "(?s)no POLYOP_LIBRARY defines the namespace bad.*namespace.cpp:4.*namespaces: none",
    ),
]


def test_the_compiler_names_the_types_that_can_be_bound(tmp_path):
    file = tmp_path / "unknown.cpp"
    file.write_text(
        HEADER + 'POLYOP_LIBRARY(bad, m) { m.def("f(Tensor x) -> Tensor"); }\n'
        "Tensor f(const Tensor& x, const float*) { return x; }\n"
        'POLYOP_LIBRARY_IMPL(bad, CPU, m) { m.impl("f", &f); }\n'
    )
    with pytest.raises(BuildError, match="cannot bind a function with this type. Use tensors, optional"):
        load_library(file, debug=True)


@pytest.mark.slow(1)
@pytest.mark.parametrize(("name", "text", "error", "message"), BAD, ids=[row[0] for row in BAD])
def test_contradictions_are_refused_at_load(tmp_path, name, text, error, message):
    file = tmp_path / f"{name}.cpp"
    file.write_text(HEADER + text)
    with pytest.raises(error, match=message):
        load_library(file, debug=True)


def test_a_namespace_of_two_files(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.cpp").write_text(
            f'#include <polyop/library.h>\nPOLYOP_LIBRARY(bad, m) {{ m.def("{name}(Tensor x) -> Tensor"); }}\n'
        )
    rule = r"(?s)library bad: the namespace is taken by the POLYOP_LIBRARY at .*one.cpp:2.*two.cpp:2"
    with pytest.raises(LibraryError, match=rule):
        load_library([tmp_path / "one.cpp", tmp_path / "two.cpp"], debug=True)


VERSIONED = (
    "#include <polyop/library.h>\n"
    "using polyop::Tensor;\n"
    'POLYOP_LIBRARY(versioned, m) { m.def("f(Tensor x) -> Tensor"); m.def("g(Tensor x) -> Tensor"); }\n'
    "namespace {\n"
    "Tensor f(const Tensor& x) {\n"
    "  Tensor out = polyop::empty_like(x);\n"
    '  polyop::launch("f", {x}, {out}, [&] { out.data_ptr<float>()[0] = NUMBER; });\n'
    "  return out;\n"
    "}\n"
    "Tensor g(const Tensor& x) {\n"
    '  return polyop::Dispatcher::singleton().findSchemaOrThrow(CALLEE, "").typed<decltype(g)>().call(x);\n'
    "}\n"
    "}\n"
    'POLYOP_LIBRARY_IMPL(versioned, CPU, m) { m.impl("f", &f); m.impl("g", &g); }\n'
)


@pytest.mark.slow
def test_two_versions_live_under_two_names(tmp_path, lib):
    one = np.zeros(1, np.float32)
    for name, number, callee in (
        ("v1", 1, "versioned::f"),
        ("v2", 2, "libops::half"),
        ("v3", 3, "no::where"),
    ):
        text = VERSIONED.replace("NUMBER", str(number)).replace("CALLEE", f'"{callee}"')
        (tmp_path / f"{name}.cpp").write_text(text)
    first = load_library(tmp_path / "v1.cpp", debug=True)
    message = (
        r"(?s)library versioned: the namespace is taken by the library at .*v1.cpp:3.*v2.cpp:3.*namespaces="
    )
    with pytest.raises(SchemaError, match=message):
        load_library(tmp_path / "v2.cpp", debug=True)
    with pytest.raises(SchemaError, match="the namespace is taken by the library at .*v1.cpp:3"):
        Library("versioned")
    second = load_library(tmp_path / "v2.cpp", debug=True, namespaces={"versioned": "versioned_2"})
    third = load_library(tmp_path / "v3.cpp", debug=True, namespaces={"versioned": "versioned_3"})
    assert [library.f(one)[0] for library in (first, second, third)] == [1, 2, 3]
    assert first.g(one)[0] == 1  # its own
    assert second.g(np.full(1, 8, np.float32))[0] == 4  # of the other library
    with pytest.raises(KernelError, match="no library that is loaded defines the operator no::where"):
        third.g(one)
    with pytest.raises(LibraryError, match="has no such namespace, but got other.*\n.*namespaces: versioned"):
        load_library(tmp_path / "v1.cpp", debug=True, namespaces={"other": "more"})


@pytest.mark.slow
def test_a_library_that_was_built_again(tmp_path):
    file = tmp_path / "again.cpp"
    text = VERSIONED.replace("versioned", "rebuilt").replace("CALLEE", '"rebuilt::f"')
    file.write_text(text.replace("NUMBER", "1"))
    old = load_library(file, debug=True)
    file.write_text(text.replace("NUMBER", "2"))
    new = load_library(file, debug=True)
    one = np.zeros(1, np.float32)
    assert (old.f(one)[0], new.f(one)[0]) == (1, 2)
    assert new.f.name == "rebuilt::f"


def test_another_contract_is_refused(tmp_path):
    code = (
        "#include <polyop/module_abi.h>\n"
        'static const polyop_module_table table = {7, 0, "library", 0, 0, 0};\n'
        "const polyop_module_table* polyop_library(const polyop_module_functions* f) { (void)f; return &table; }\n"
    )
    path = build(code=code, language="c", output=tmp_path / "old.so")
    with pytest.raises(LibraryError, match="must be built against version 1 .* contract, but got version 7"):
        load_library(path)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(LibraryError, match="(?s)is no operator library.*write POLYOP_LIBRARY"):
        load_library(build(code="int one(void) { return 1; }", language="c", output=tmp_path / "one.so"))
    for name in ("ext", "_C"):  # PYBIND11_MODULE(_C, m) in a file of another name
        code = f"void *PyInit_{name}(void) {{ return 0; }}"
        module = build(code=code, language="c", output=tmp_path / "ext.so")
        with pytest.raises(
            LibraryError, match="(?s)ext.so: is a Python module.*register them beside it: TORCH_LIBRARY"
        ):
            load_library(module)
    with pytest.raises(ArgumentTypeError, match="takes one library, or only sources"):
        load_library(["a.so", "b.so"])
    with pytest.raises(ArgumentTypeError, match="takes a path, or a list of sources"):
        load_library([])


def test_one_file_serves_a_process_without_polyops_sources(tmp_path, lib):
    path = shutil.copy(lib.path, tmp_path / "custom_ops_lib.so")
    assert load_library(path) is lib  # the same library, wherever it lies
    script = (
        "import sys, numpy as np\nfrom polyop.define.library.load import load_library\n"
        f"lib = load_library({str(path)!r})\nprint(lib.thrice(np.ones(2)))\n"
        "assert 'torch' not in sys.modules and 'jax' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[3. 3.]", done.stderr


@pytest.mark.slow
def test_a_module_and_a_library_in_one_file(tmp_path):
    file = tmp_path / "both.cpp"
    file.write_text(
        '#include "ms_extension.h"\n'
        + HEADER
        + 'POLYOP_LIBRARY(both, m) { m.def("f(Tensor x) -> Tensor"); }\n'
        "Tensor negated(const Tensor& x) {\n  Tensor out = polyop::empty_like(x);\n"
        '  polyop::launch_aclnn("aclnnNeg", x, out);\n  return out;\n}\n'
        'POLYOP_LIBRARY_IMPL(both, CPU, m) { m.impl("f", &negated); }\n'
        'PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("called", &negated); }\n'
    )
    module = polyop.CustomOpBuilder("both_bound", [str(file)]).load()
    np.testing.assert_array_equal(module.called(x), -x)
    np.testing.assert_array_equal(load_library(module.path).f(x), -x)
