# ruff: noqa: F821 - the words of the loop language are no names of Python
"""``@polyop.kernel`` is the operator: schema, hosts, names, redefinition and what it refuses."""

import inspect
import itertools
import linecache

import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.testing import check

X = np.arange(6, dtype=np.float32)


def copied(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


@polyop.kernel
def powered(x, alpha: float = 2.0, times: "int" = 1, negative=False):
    """Return alpha * x**2, several times."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0.0
        for _ in range(times):
            y[i] += alpha * x[i] * x[i]
        if negative:
            y[i] = -y[i]
    return y


@polyop.kernel
def sum_and_product(x, y, scale: float):
    s = output_tensor(x.shape, x.dtype)
    p = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s[i] = scale * (x[i] + y[i])
        p[i] = x[i] * y[i]
    return s, p


@polyop.kernel
def incremented(x, by=1):
    for i in range(x.shape[0]):
        x[i] = x[i] + by
    return x


@polyop.kernel(name="test_kernel_names::renamed")
def another_name(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 3 * x[i]
    return y


SCHEMAS = [
    (powered, "powered(Tensor x, float alpha=2.0, int times=1, bool negative=False) -> Tensor"),
    (sum_and_product, "sum_and_product(Tensor x, Tensor y, float scale) -> (Tensor, Tensor)"),
    (incremented, "incremented(Tensor(a!) x, int by=1) -> Tensor(a!)"),
]


@pytest.mark.parametrize(("kernel", "schema"), SCHEMAS, ids=[kernel.__name__ for kernel, _ in SCHEMAS])
def test_the_schema_follows_from_the_function(kernel, schema):
    assert str(kernel.schema) == f"{__name__.replace('.', '_')}::{schema}"


def test_numpy_runs_compiled_and_python_is_the_definition():
    assert powered(X).tolist() == powered.python(X).tolist() == (2 * X * X).tolist()
    assert powered(X, 3, times=2, negative=True).tolist() == (-6 * X * X).tolist()
    assert powered.prepared() >= 1  # by the native core
    for compiled, python in zip(sum_and_product(X, X, 2.0), sum_and_product.python(X, X, 2.0), strict=True):
        assert compiled.tolist() == python.tolist()
    x = X.copy()
    assert incremented(x) is x and x.tolist() == (X + 1).tolist()
    with pytest.raises(polyop.PolyopError, match="sum_and_product.*scale"):
        sum_and_product(X, X)


def test_what_it_keeps_of_the_function():
    assert powered.__name__ == "powered" and powered.__module__ == __name__
    assert powered.__doc__ == "Return alpha * x**2, several times."
    assert list(inspect.signature(powered).parameters) == ["x", "alpha", "times", "negative"]
    assert powered.__wrapped__ is powered.python.__wrapped__ and powered.compile_attrs == {}
    assert isinstance(powered, polyop.BoundOperator)
    unused = polyop.kernel(copied, compile_attrs={"precise": True})
    assert repr(unused) == f"<polyop operator {unused.name}(x)>" and "operator" not in vars(unused)
    assert unused.compile_attrs == {"precise": True}
    assert unused(X).tolist() == X.tolist()
    assert repr(unused).startswith(f"<polyop operator {unused.schema}>\n  gradient derived;")
    assert "loop_" in unused.source(X)
    assert check(powered, X, hosts=["numpy"]).ok


def test_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    t = torch.tensor(X, requires_grad=True)
    y = powered(t, 3.0)
    y.sum().backward()
    assert y.tolist() == (3 * X * X).tolist() and t.grad.tolist() == (6 * X).tolist()
    batch = torch.tensor(X.reshape(2, 3))
    assert torch.vmap(powered)(batch).tolist() == (2 * batch * batch).tolist()
    assert torch.func.grad(lambda t: powered(t).sum())(t.detach()).tolist() == (4 * X).tolist()
    name = powered.schema.namespace
    assert getattr(torch.ops, name).powered(t.detach()).tolist() == (2 * X * X).tolist()


@pytest.mark.slow(1)
@pytest.mark.parametrize("used_before", [False, True])
def test_torch_compile(used_before):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    kernel = polyop.kernel(copied)
    if used_before:
        kernel(X)
    torch._dynamo.reset()
    for program in (kernel, lambda t: kernel(t) + 0):
        t = torch.tensor(X, requires_grad=True)
        y = torch.compile(program, fullgraph=True, backend="aot_eager")(t)
        y.sum().backward()
        assert y.tolist() == X.tolist() and t.grad.tolist() == [1] * 6


def test_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = jax.numpy.asarray(X)
    for call in (powered, jax.jit(powered)):
        assert call(x).tolist() == (2 * X * X).tolist()
    assert jax.grad(lambda x: powered(x).sum())(x).tolist() == (4 * X).tolist()
    assert jax.jit(jax.vmap(powered))(x.reshape(2, 3)).tolist() == (2 * X * X).reshape(2, 3).tolist()


def test_mindspore():
    mindspore = pytest.importorskip("mindspore", reason="MindSpore is not installed")
    y = powered(mindspore.Tensor(X))
    assert y.asnumpy().tolist() == (2 * X * X).tolist()


def test_the_name():
    assert another_name.name == "test_kernel_names::renamed"
    assert another_name(X).tolist() == (3 * X).tolist() and another_name.schema.name == "renamed"


NAMES = [("__main__", "main::f"), ("__mp_main__", "main::f"), ("a.b_c", "a_b_c::f"), ("custom", "custom_::f")]
NAMES += [("a.__init__", "a_init::f"), ("2d", "op_2d::f"), ("ärger", "rger::f")]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_the_name_follows_from_the_module(module, name):
    def f(x):
        return x

    f.__module__ = module
    assert polyop.kernel(f).name == name


BAD_NAMES = [
    (3, "'name' of @kernel must be a str, but got int"),
    ("scale", "must be a namespace and a name, but got 'scale'\n  as in name="),
    ("a b::scale", "must be a namespace and a name"),
    ("aten::scale", "the namespace 'aten' is reserved"),
]


@pytest.mark.parametrize(("name", "message"), BAD_NAMES)
def test_names_that_are_refused(name, message):
    with pytest.raises(polyop.PolyopError, match=message):
        polyop.kernel(copied, name=name)


def no_type(x, alpha):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * alpha
    return y


def other_type(x, alpha: "Color"):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * alpha
    return y


def test_a_complex_attribute_is_refused_with_the_way_out():
    def turned(x, by: complex):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * by
        return y

    with pytest.raises(polyop.PolyopError, match=r"pass its two parts as floats, .*: complex\(re, im\)"):
        polyop.kernel(turned)(X, 1j)


@pytest.mark.parametrize(
    ("function", "seen"),
    [(no_type, "but got no annotation and no default"), (other_type, "but got the annotation 'Color'")],
)
def test_an_attribute_without_a_type_is_refused_when_the_operator_is_used(function, seen):
    kernel = polyop.kernel(function)
    for use in (lambda: kernel(X, 2.0), lambda: kernel.schema, lambda: kernel(X, 2.0)):
        with pytest.raises(polyop.PolyopError) as excinfo:
            use()
        text = str(excinfo.value)
        assert "the parameter alpha is never indexed, so it is an attribute" in text and seen in text
        assert f"defined at {__file__}:" in text and "write alpha: float, or alpha=1.0" in text
    assert kernel.python(X, 2.0).tolist() == (2 * X).tolist()
    op = polyop.operator(
        f"test_kernel_operator_typed::{function.__name__}(Tensor x, float alpha) -> Tensor", kernel
    )
    assert op(X, 2.0).tolist() == (2 * X).tolist()


def scaled_with(parameter, use):
    """Return a loop kernel with a second parameter, as text, and how it uses it."""
    names, file = {"polyop": polyop}, f"<signature {parameter} {use}>"
    text = f"""
def scaled(x, {parameter}):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * {use}
    return y
"""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)
    return polyop.kernel(names["scaled"])


BAD_DEFAULTS = [
    ("a: int = 1.5", "a", "the default of the attribute a must be of its type, int, but got 1.5"),
    ("a: bool = 1", "a", "must be of its type, bool, but got 1"),
    ("a='sum'", "a", "a is a string, which is no value of a kernel"),
    ("a=None", "a", "a may be None, and this line also runs without it"),
    ("a=float('inf')", "a", "the default of the attribute a must be finite.*, but got inf"),
    ("a=1.0", "a[i]", "the parameter a is used as a tensor.*, but got a=1.0"),
    ("a: float", "a[i]", "the parameter a is used as a tensor.*, but got a: float"),
    ("a=None", "a[i]", "a may be None, and this line also runs without it"),
]


@pytest.mark.parametrize(("parameter", "use", "message"), BAD_DEFAULTS)
def test_types_and_defaults_that_the_loops_contradict(parameter, use, message):
    with pytest.raises(polyop.PolyopError, match=message):
        scaled_with(parameter, use)(X)


def test_an_int_is_the_default_of_a_float():
    assert str(scaled_with("a: 'float' = 2", "a").schema).endswith("(Tensor x, float a=2.0) -> Tensor")


def test_tensors_come_before_attributes():
    def late(x, alpha: float, y):
        z = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            z[i] = alpha * x[i] + y[i]
        return z

    kernel = polyop.kernel(late)
    with pytest.raises(
        polyop.PolyopError, match="but got the attribute alpha before the tensor y"
    ) as excinfo:
        kernel(X, 2.0, X)
    assert "move alpha behind y" in str(excinfo.value)


CELL = """
@polyop.kernel{options}
def scaled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = {factor} * x[i]
    return y
"""
_cells = itertools.count()


def run_cell(names, factor, options=""):
    """Return the kernel of a notebook's cell."""
    return run_text(names, CELL.format(factor=factor, options=options))["scaled"]


def run_text(names, text):
    """Run a notebook's cell as IPython does: in the names of the module, with a file of its own."""
    file = f"<cell {next(_cells)} of test_kernel_operator>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return names


def on_numpy():
    return X, lambda f: f


def on_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.tensor(X), lambda f: f


def in_torch_compile():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch._dynamo.reset()
    return torch.tensor(X), lambda f: torch.compile(f, fullgraph=True, backend="aot_eager")


def in_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    return jax.numpy.asarray(X), jax.jit


@pytest.mark.slow(2)
@pytest.mark.parametrize("host", [on_numpy, on_torch, in_torch_compile, in_jax])
@pytest.mark.parametrize("options", ["", '(name="kernel_cells::{}")'])
def test_a_cell_that_is_run_again_replaces_the_kernel(host, options):
    x, compiled = host()
    module = f"cells_{host.__name__}"
    names = {"polyop": polyop, "__name__": module}
    kernels = []
    for factor in (2, 2, 3):
        kernels.append(run_cell(names, factor, options.format(host.__name__)))
        program = compiled(lambda x: names["scaled"](x))
        assert program(x).tolist() == names["scaled"](x).tolist() == (factor * X).tolist()
    name = f"kernel_cells::{host.__name__}" if options else f"{module}::scaled"
    assert kernels[-1].schema.qualified_name == name
    for kernel, factor in zip(kernels, (2, 2, 3), strict=True):
        assert kernel(x).tolist() == compiled(kernel)(x).tolist() == (factor * X).tolist()


@pytest.mark.parametrize("host", [on_numpy, on_torch])
def test_more_tensors_written_in_place_than_letters(host):
    x, _ = host()
    tensors = [f"x{k}" for k in range(28)]
    lines = [f"        {name}[i] = {name}[i] + {k}" for k, name in enumerate(tensors)]
    text = "\n".join([
        "@polyop.kernel", f"def many({', '.join(tensors)}):", "    for i in range(x0.shape[0]):", *lines,
        f"    return {', '.join(tensors)}", ""
    ])  # fmt: skip
    many = run_text({"polyop": polyop, "__name__": f"cells_many_{host.__name__}"}, text)["many"]
    aliases = [argument.type.alias for argument in many.schema.arguments]
    assert len(set(aliases)) == 28 and all(alias.endswith("!") for alias in aliases)
    assert [many.schema.alias_of(k) for k in range(28)] == list(range(28))
    values = [x + 0 for _ in tensors]
    written = many(*values)
    for k, (value, result) in enumerate(zip(values, written, strict=True)):
        assert result is value and value.tolist() == (X + k).tolist()
    if host is on_torch:
        assert [a.alias_info.is_write for a in many.torch._schema.arguments] == [True] * 28


def test_the_last_definition_has_the_name_whichever_is_called_first():
    names = {"polyop": polyop, "__name__": "cells_in_order"}
    first, last = (run_cell(names, factor) for factor in (2, 3))
    assert first(X).tolist() == (2 * X).tolist() and first.name == "cells_in_order::scaled_2"
    assert last(X).tolist() == (3 * X).tolist() and last.name == "cells_in_order::scaled"


@pytest.mark.parametrize("first_used", [True, False])
def test_two_modules_that_derive_one_name(first_used):
    """As a.b and a_b do: one of them gets a number, with a warning that shows both."""
    first = run_cell({"polyop": polyop, "__name__": f"cells.derive{first_used}"}, 2)
    if first_used:
        first(X)
    last = run_cell({"polyop": polyop, "__name__": f"cells_derive{first_used}"}, 3)
    named, numbered, factor = (first, last, 3) if first_used else (last, first, 2)
    name = f"cells_derive{first_used}::scaled"
    with pytest.warns(UserWarning, match="chooses a name") as caught:
        assert numbered(X).tolist() == numbered(X).tolist() == (factor * X).tolist()
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith(f"{name}: the module {named.defined_in} has an operator {name}, defined at <cell")
    assert f"so the one of the module {numbered.defined_in}, defined at <cell" in text
    assert f"is called {name}_2; @polyop.kernel(name=" in text and text.count("<cell") == 2
    assert named(X).tolist() == ((5 - factor) * X).tolist()
    assert (named.name, numbered.name) == (name, f"{name}_2")
    assert f"\n  name        the module {named.defined_in} has" in explain(numbered)
    assert "\n  name  " not in explain(named)


def test_two_modules_cannot_choose_one_name():
    first, second = ({"polyop": polyop, "__name__": f"cells_of_module_{k}"} for k in (1, 2))
    options = '(name="kernel_cells::taken")'
    kept = run_cell(first, 2, options)
    for _ in ("reserved", "registered"):
        with pytest.raises(polyop.PolyopError) as excinfo:
            run_cell(second, 3, options)
        text = str(excinfo.value)
        assert "kernel_cells::taken: the name is taken by the operator defined at <cell" in text
        assert text.count("<cell") == 2 and "choose another name" in text
        with pytest.raises(polyop.PolyopError, match="the name is taken by the operator defined at <cell"):
            polyop.operator("kernel_cells::taken(Tensor x) -> Tensor", lambda x: x, infer="x")
        assert kept(X).tolist() == (2 * X).tolist()


def test_an_operator_of_the_same_name_keeps_it():
    names = {"polyop": polyop, "__name__": "cells_with_operator"}
    kernel = run_cell(names, 2)
    op = polyop.operator("cells_with_operator::scaled(Tensor x) -> Tensor", kernel)
    with pytest.warns(UserWarning, match="cells_with_operator::scaled, defined at .*test_kernel_operator.py"):
        assert kernel(X).tolist() == op(X).tolist() == (2 * X).tolist()
    assert op.name == "cells_with_operator::scaled" and kernel.name == "cells_with_operator::scaled_2"


def test_threads_that_call_it_first():
    import concurrent.futures

    names = {"polyop": polyop, "__name__": "cells_of_threads"}
    kernel = run_cell(names, 2)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: kernel(X), range(32)))
    assert all(result.tolist() == (2 * X).tolist() for result in results)


def test_a_first_use_that_fails_leaves_it_unbound():
    kept = polyop.kernel(name="kernel_failed::f")(copied)
    refused = polyop.kernel(name="kernel_failed::f__backward")(copied)
    assert kept.schema
    for _ in range(2):
        with pytest.raises(polyop.PolyopError, match="the name belongs to what polyop derives"):
            refused.schema
