"""Library: operators defined in Python, in any order."""

import subprocess
import sys
import types

import numpy as np
import pytest

import polyop
from polyop.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GradientError,
    InferError,
    NoKernelError,
    SchemaError,
)
from polyop.define.library.library import Library

x = np.array([1.0, 2.0])


def test_any_order_and_decorators():
    lib = Library("pylib_order")

    @lib.gradient("cube")
    def gradient(x, out, dout):
        return (3 * x * x * dout,)

    lib.batch("cube", "elementwise")

    @lib.fake("pylib_order::cube")
    def fake(x):
        return x

    @lib.impl("cube", device="cpu")
    def cube(x):
        return x**3

    lib.define("cube(Tensor x) -> Tensor")
    np.testing.assert_array_equal(lib.cube(x), [1, 8])
    np.testing.assert_array_equal(lib.cube.vjp(x)[1](x)[0], [3, 24])
    np.testing.assert_array_equal(cube(x), [1, 8])  # decorators give the function back
    assert [str(one.schema) for one in lib] == ["pylib_order::cube(Tensor x) -> Tensor"]
    assert lib["cube"] is lib.cube
    assert repr(lib) == "<polyop library pylib_order: cube>"
    assert "cube" in dir(lib)


def test_every_host(torch):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    lib = Library("pylib_hosts")

    @lib.define("scaled(Tensor x, *, float alpha=2.0) -> Tensor")
    def scaled(x, alpha):
        return alpha * x

    lib.fake("scaled", "x")
    lib.gradient("scaled", lambda x, alpha, out, dout: (alpha * dout, None))
    lib.jvp("scaled", lambda x, alpha, out, tangents: alpha * tangents[0])
    lib.batch("scaled", "elementwise")
    assert len(lib.complete()) == 1
    np.testing.assert_array_equal(lib.scaled(x, alpha=3.0), 3 * x)

    t = torch.tensor(x, requires_grad=True)
    step = torch.compile(
        lambda t: torch.ops.pylib_hosts.scaled(t, alpha=3.0).sum(), fullgraph=True, backend="aot_eager"
    )
    step(t).backward()
    np.testing.assert_array_equal(t.grad, [3, 3])
    np.testing.assert_array_equal(
        torch.func.vmap(lib.scaled)(torch.tensor(np.stack([x, 2 * x]))), [2 * x, 4 * x]
    )
    torch.library.opcheck(lib.scaled.torch, (t,), {"alpha": 3.0})

    a = jax.numpy.asarray(x, np.float32)
    np.testing.assert_array_equal(jax.jit(lib.scaled)(a), 2 * x)
    np.testing.assert_array_equal(jax.grad(lambda a: lib.scaled(a, alpha=3.0).sum())(a), [3, 3])
    np.testing.assert_array_equal(jax.jvp(lib.scaled, (a,), (a,))[1], 2 * x)


def test_kernels_of_other_kinds():
    lib = Library("pylib_kinds")

    @polyop.kernel
    def doubled(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - of the loop language
        for i in range(x.shape[0]):
            y[i] = x[i] * 2
        return y

    lib.define("loop(Tensor x) -> Tensor")
    lib.impl("loop", doubled)  # knows its outputs: no fake
    np.testing.assert_array_equal(lib.loop(x), 2 * x)
    code = (
        "int f(int n, void** p, int* d, long** s, const char** t, void* q, void* e) "
        "{ *(double*)p[1] = *(double*)p[0] + 1; return 0; }"
    )
    lib.define("native(Tensor x) -> Tensor")
    lib.impl("native", polyop.source(code=code, function="f", language="c", dtypes=["float64"]))
    lib.fake("native", "x")
    np.testing.assert_array_equal(lib.native(np.array([1.0])), [2])


def test_what_comes_later_changes_the_operator(torch):
    lib = Library("pylib_later")
    lib.define("f(Tensor x) -> Tensor")(lambda x: x * x)
    lib.fake("f", "x")
    t = torch.tensor(x, requires_grad=True)
    with pytest.raises(GradientError, match="pylib_later::f: has no gradient rule"):
        lib.f(t).sum().backward()
    with pytest.raises(ArgumentTypeError, match="gradient is called with"):
        lib.gradient("f", lambda x: x)  # and is not kept
    lib.gradient("f", lambda x, out, dout: (2 * x * dout,))
    lib.f(t).sum().backward()
    np.testing.assert_array_equal(t.grad, 2 * x)
    torch.ops.pylib_later.f(t).sum().backward()
    np.testing.assert_array_equal(t.grad, 4 * x)


def test_a_kernel_alone_needs_its_schema():
    lib = Library("pylib_noschema")
    lib.impl("f", lambda x: x)
    rule = rf"(?s)pylib_noschema::f: has a kernel for cpu, but no schema.*{__file__}:\d+.*write define\(\"f\("
    with pytest.raises(SchemaError, match=rule):
        lib.f
    with pytest.raises(SchemaError, match="has a kernel for cpu, but no schema"):
        lib.complete()


def test_a_schema_alone_cannot_be_called():
    lib = Library("pylib_nokernel")
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(
        InferError, match=r"(?s)pylib_nokernel::f: the shape and dtype .* write fake\(\"f\", \.\.\.\)"
    ):
        lib.f
    lib.fake("f", "x")
    with pytest.raises(
        NoKernelError, match=r"none is registered, for any device: impl\(\"f\", kernel, device"
    ):
        lib.f(x)
    lib.impl("f", lambda x: -x)
    np.testing.assert_array_equal(lib.f(x), -x)


def test_another_device():
    lib = Library("pylib_device")
    lib.define("f(Tensor x) -> Tensor")
    lib.fake("f", "x")
    with pytest.raises(
        ArgumentValueError, match="the device must be one of cpu, cuda, opencl, but got 'npu'"
    ):
        lib.impl("f", lambda x: x, device="npu")
    lib.impl("f", lambda x: x, device="cuda")
    with pytest.raises(ArgumentValueError, match="the kernel is registered for cuda, but runs on cpu"):
        lib.f


@pytest.mark.parametrize(
    ("part", "register"),
    [
        ("the schema", lambda lib: lib.define("f(Tensor y) -> Tensor")),
        ("a kernel for cpu", lambda lib: lib.impl("f", lambda x: x)),
        ("a fake rule", lambda lib: lib.fake("f", "x")),
    ],
    ids=["schema", "kernel", "fake"],
)
def test_a_part_is_registered_once(request, part, register):
    lib = Library(f"pylib_once_{request.node.callspec.id}")
    lib.define("f(Tensor x) -> Tensor")(lambda x: x)
    lib.fake("f", "x")
    message = rf"(?s){lib.namespace}::f: {part} is given twice, first at {__file__}:\d+"
    with pytest.raises(SchemaError, match=message):
        register(lib)


def test_rules_of_a_wrong_form():
    lib = Library("pylib_rules")
    lib.define("f(Tensor x) -> Tensor")(lambda x: x)
    lib.fake("f", "x")
    lib.gradient("f", lambda x: x)
    with pytest.raises(ArgumentTypeError, match=r"gradient is called with \(x, out, dout\)"):
        lib.f


@pytest.fixture(scope="session")
def grammar():
    return Library("pylib_grammar")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("f(Tensr x) -> Tensor", "Tensr"),
        ("other::f(Tensor x) -> Tensor", "other::f: is not in the namespace pylib_grammar"),
        ("f(Generator g) -> Tensor", "argument g is of type Generator, which cannot be passed to a kernel"),
    ],
)
def test_schemas_that_are_refused(grammar, schema, message):
    with pytest.raises(SchemaError, match=message):
        grammar.define(schema)


def two_libraries_of_one_namespace():
    Library("pylib_taken")
    Library("pylib_taken")


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (
            two_libraries_of_one_namespace,
            SchemaError,
            rf"(?s)library pylib_taken: the namespace is taken by the library at {__file__}:\d+.*{__file__}:\d+",
        ),
        (lambda: Library("a b"), SchemaError, "the namespace must be an identifier, but got 'a b'"),
        (
            lambda: Library("aten").define("f(Tensor x) -> Tensor"),
            SchemaError,
            "the namespace 'aten' is reserved",
        ),
        (
            lambda: Library("pylib_attribute").f,
            AttributeError,
            "no operator f in library pylib_attribute; there are none",
        ),
        (lambda: Library("pylib_index")["f"], KeyError, "library pylib_index has no operator f"),
        (
            lambda: Library("pylib_names").fake(3, "x"),
            ArgumentTypeError,
            "an operator's name must be text, but got 3",
        ),
    ],
    ids=["taken", "no identifier", "reserved", "attribute", "index", "no text"],
)
def test_wrong_names_are_refused(use, error, message):
    with pytest.raises(error, match=message):
        use()


def test_a_cell_that_is_run_again():
    script = """
cell = '''
from polyop.define.library.library import Library
lib = Library("cell")
lib.define("f(Tensor x) -> Tensor")(lambda x: x * NUMBER)
lib.fake("f", "x")
'''
import numpy as np
space = {}
for number in (2, 3):
    exec(compile(cell.replace("NUMBER", str(number)), f"<cell {number}>", "exec"), space)
    print(space["lib"].f(np.ones(1)), space["lib"].f.name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "[2.] cell::f\n[3.] cell::f\n", done.stderr


def test_a_triton_kernel_is_refused_where_it_is_given(monkeypatch):
    """By what is known of Triton: the class of its launchers, which is that of a stand-in here."""
    jit = types.ModuleType("triton.runtime.jit")
    jit.KernelInterface = type("KernelInterface", (), {"__call__": lambda self: None})
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", jit)
    kernel, lib = jit.KernelInterface(), Library("pylib_triton")
    words = " takes no function of @triton.jit, because it has no grid=, but got .*\n.*\n"
    hint = "  polyop.operator takes it, with grid= and constants="
    with pytest.raises(ArgumentTypeError, match=f"pylib_triton::f: Library.impl{words}{hint}"):
        lib.impl("f", kernel, "cuda")
    for func_type in ("pyfunc", "hybrid", "aot"):
        with pytest.raises(ArgumentTypeError, match=f"Custom{words}{hint}"):
            polyop.Custom(kernel, lambda x: x, lambda x: x, func_type)
