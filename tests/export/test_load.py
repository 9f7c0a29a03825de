"""``polyop.load_library`` makes operators of an exported library, for every host."""

import importlib
import itertools
import re
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.binary.export_manifest import MARK, read
from polyop.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GradientError,
    KernelError,
    LibraryError,
    SchemaError,
)
from polyop.define.library.exported_rules import ExportedInfer
from polyop.export import export

from . import exported_operators

X = np.arange(6, dtype=np.float32).reshape(2, 3)
numbers = itertools.count()


@pytest.fixture(scope="session")
def loaded(path):
    return polyop.load_library(path, namespaces={"exported": "loaded"})


def test_names_schemas_documents_and_dims(loaded):
    assert [one.name for one in loaded] == [
        "loaded::scale",
        "loaded::scale_backward",
        "loaded::add",
        "loaded::shift",
        "loaded::shift_backward",
        "loaded::both",
        "loaded::both_backward",
        "loaded::fill_",
    ]
    for name in ("scale", "add", "shift", "both", "fill_"):
        original, again = getattr(exported_operators, name), getattr(loaded, name)
        assert again.schema.signature == original.schema.signature
        assert again.operator.doc.strip() == (original.operator.doc or "").strip()
    assert loaded.add.operator.dims.text == exported_operators.add.operator.dims.text
    assert loaded.scale.operator.doc == "Squares, times a factor."


def arguments(kind):
    if kind == "numpy":
        return np.asarray
    if kind == "torch":
        return pytest.importorskip("torch").from_numpy
    return pytest.importorskip("jax.numpy").asarray


CALLS = {
    "scale": lambda ops, x: ops.scale(x, 3.0),
    "default": lambda ops, x: ops.scale(x),
    "add": lambda ops, x: ops.add(x, x, repeat=[1, 2], by=2.0),
    "shift": lambda ops, x: ops.shift(x, 2),
    "both": lambda ops, x: ops.both(x, x),
}


@pytest.mark.parametrize("host", ["numpy", "torch", "jax"])
def test_values_are_those_of_the_original(host, loaded):
    tensor = arguments(host)(X)
    for name, call in CALLS.items():
        result, expected = call(loaded, tensor), call(exported_operators, X)
        pairs = zip(result, expected, strict=True) if name == "both" else [(result, expected)]
        for seen, wanted in pairs:
            assert type(seen) is type(tensor)
            assert np.asarray(seen).dtype == wanted.dtype
            np.testing.assert_array_equal(np.asarray(seen), wanted)


GRADIENTS = {
    "scale": (lambda op, x: op(x, 3.0), 6 * X),
    "shift": (lambda op, x: op(x, 2), 2 * X),
    "both": (lambda op, x: op(x, x)[0], 2 * X),
}


def gradient_of(host, function):
    """Return the gradient of the sum of the function's result at X."""
    if host == "torch":
        import torch

        x = torch.from_numpy(X).requires_grad_()
        function(x).sum().backward()
        return x.grad.numpy()
    import jax

    return np.asarray(jax.jit(jax.grad(lambda x: function(x).sum()))(X))


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("host", ["torch", "jax"])
def test_gradients(host, name, loaded):
    call, expected = GRADIENTS[name]
    np.testing.assert_array_equal(gradient_of(host, lambda x: call(loaded[f"loaded::{name}"], x)), expected)


def test_gradients_of_numpy(loaded):
    _, pull = loaded.scale.vjp(X, 3.0)
    np.testing.assert_array_equal(pull(X)[0], 6 * X * X)
    _, pull = loaded.both.vjp(X, X + 1)
    ones = np.ones(2, np.float32)
    for seen, wanted in zip(pull((ones, None)), (X + 1, X), strict=True):
        np.testing.assert_array_equal(seen, wanted)


def test_symbolic_shapes_and_transforms_of_torch(loaded):
    torch = pytest.importorskip("torch")
    counter = importlib.import_module("torch._dynamo.testing").CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(
        lambda x: loaded.shift(loaded.scale(x, 3.0), 2), backend=counter, fullgraph=True, dynamic=True
    )
    for rows in (3, 5, 7):
        x = torch.rand(rows, 4)
        torch.testing.assert_close(compiled(x), loaded.shift(3 * x**2, 2))
    assert counter.frame_count == 1, "one compile serves all sizes"
    x = torch.rand(4, 2, 3)
    with pytest.warns(polyop.FallbackWarning, match="vmap runs one call per sample"):
        batched = torch.vmap(lambda x: loaded.scale(x, 3.0))(x)
    torch.testing.assert_close(batched, 3 * x**2)
    with pytest.raises(GradientError, match="forward mode needs jvp="):
        torch.func.jvp(lambda x: loaded.scale(x, 3.0), (x[0],), (torch.ones(2, 3),))
    torch.testing.assert_close(torch.vmap(lambda x: loaded.add(x, x))(x), 2 * x)


def test_transforms_of_jax(loaded):
    jax = pytest.importorskip("jax")
    batch = np.stack([X, X + 1])
    with pytest.warns(polyop.FallbackWarning, match="vmap runs one call per sample"):
        result = jax.jit(jax.vmap(lambda x: loaded.shift(x, 2)))(batch)
    np.testing.assert_array_equal(result, jax.vmap(lambda x: exported_operators.shift(x, 2))(batch))
    exported = jax.export.export(
        jax.jit(lambda x: loaded.scale(x, 3.0)), disabled_checks=polyop.jax_export_checks()
    )(jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 3"), np.float32))
    np.testing.assert_array_equal(exported.call(X), 3 * X**2)


def test_written_arguments_and_fixed_attributes(loaded):
    x = X.copy()
    loaded.fill_(x)
    assert np.isinf(x).all()


def test_an_operator_without_an_exported_gradient_says_so(loaded):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X).requires_grad_()
    words = "loaded::add: has no gradient in this library: its author gives it in Python"
    with pytest.raises(GradientError, match=words):
        loaded.add(x, x).sum().backward()
    with pytest.raises(GradientError, match="loaded::scale_backward"):
        (gradient,) = torch.autograd.grad(loaded.scale(x).sum(), x, create_graph=True)
        gradient.sum().backward()


def test_the_same_library_is_the_same_object(path, loaded, tmp_path):
    copy = tmp_path / "libcopied.so"
    copy.write_bytes(path.read_bytes())
    for one in (path, copy):
        assert polyop.load_library(one, namespaces={"exported": "loaded"}) is loaded
    second = polyop.load_library(path, namespaces={"exported": f"loaded_{next(numbers)}"})
    assert second is not loaded
    np.testing.assert_array_equal(second.scale(X), loaded.scale(X))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, SchemaError, "exported::scale.*the name is taken by the operator defined at"),
        ({"namespaces": {"other": "x"}}, LibraryError, "has no such namespace, but got other"),
        (
            {"namespaces": {"exported": "loaded"}, "dims": {"scale": "n -> n"}},
            ArgumentValueError,
            "takes no dims=",
        ),
        ({"cflags": "-O3"}, ArgumentValueError, "takes no cflags="),
    ],
)
def test_options_that_do_not_fit(path, loaded, options, error, words):
    del loaded
    with pytest.raises(error, match=f"(?s){words}"):
        polyop.load_library(path, **options)


@pytest.mark.slow
def test_another_library_with_the_namespace(loaded, tmp_path):
    del loaded
    other = tmp_path / "libother.so"
    export([exported_operators.add], other)
    with pytest.raises(SchemaError, match="the namespace is taken by the library at") as caught:
        polyop.load_library(other, namespaces={"exported": "loaded"})
    assert "load it under another name: namespaces=" in str(caught.value)


def test_only_allowed_folders(path, monkeypatch, tmp_path):
    monkeypatch.setenv("POLYOP_LIBRARY_PATHS", str(tmp_path))
    with pytest.raises(ArgumentTypeError, match="POLYOP_LIBRARY_PATHS"):
        polyop.load_library(path, namespaces={"exported": f"loaded_{next(numbers)}"})


def changed(path, folder, old, new):
    """Return a copy of the library whose manifest has another text of the same length."""
    data = path.read_bytes()
    start = data.rindex(MARK.encode())
    assert old in data[start:], old
    copy = folder / "libdamaged.so"
    copy.write_bytes(data[:start] + data[start:].replace(old, new.ljust(len(old)), 1))
    return copy


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'{"format"', b'["format"', "its manifest is damaged: "),
        (b'"format": 2', b'"format": 9', "has a manifest of format 9, and this polyop knows"),
        (b'"operators"', b'"operatorz"', "its operators are missing"),
        (b'"schema": "', b'"schema": 1,"', "damaged"),
        (b'"c": "exported_add"', b'"c": "exported_bad"', "polyop_exported_exported_bad"),
        (b'"backward": "exported::scale_backward"', b'"backward": "exported::add"', "is no gradient of"),
        (b'["size", 0, 1]', b'["size", 9, 1]', "a size must be a number or of a known form"),
        (b'["size", 0, 1]', b'["size", 0, 7]', "a size must be a number or of a known form"),
        (b'"dimensions": 2', b'"dimensions": []', "damaged"),
    ],
)
def test_a_damaged_manifest(path, tmp_path, old, new, words):
    copy = changed(path, tmp_path, old, new)
    with pytest.raises((LibraryError, SchemaError)) as caught:
        polyop.load_library(copy, namespaces={"exported": f"loaded_{next(numbers)}"})
    assert words in str(caught.value), caught.value
    inspected = subprocess.run(
        [sys.executable, "-m", "polyop", "inspect", str(copy)], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in inspected.stderr


def test_a_manifest_with_wrong_shapes_cannot_harm_memory(path, tmp_path):
    copy = changed(path, tmp_path, b'["size", 0, 1]', b"1")
    library = polyop.load_library(copy, namespaces={"exported": f"loaded_{next(numbers)}"})
    with pytest.raises(KernelError, match=re.escape("must be float32[2, 3], not float32[2, 1]")):
        library.scale(X)


def test_the_manifest_is_in_the_file_alone(path):
    rows = {row["name"]: row for row in read(path)["operators"]}
    assert rows["exported::add"]["infer"] == [None]
    assert rows["exported::scale"]["outputs"][0] == [
        {"dtype": "float32", "shape": [["size", 0, 0], ["size", 0, 1]]}
    ]
    assert rows["exported::fill_"]["fixed"] == {"value": {"float": "inf"}}
    assert ExportedInfer.repeatable


CONNECTED = """
import sys
import torch
import polyop
if "first" in sys.argv: torch.ops.load_library(sys.argv[1])
library = polyop.load_library(sys.argv[1])
op = torch.ops.exported.scale
assert torch._C._dispatch_has_kernel_for_dispatch_key("exported::scale", "CPU"), "the library's own kernel"
x = torch.rand(3, 4, requires_grad=True)
for call in (op, library.scale):
    (gradient,) = torch.autograd.grad(call(x, 3.0).sum(), x)
    torch.testing.assert_close(gradient, 6 * x)
import torch._dynamo.testing
counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
compiled = torch.compile(lambda x: op(x, 3.0) + library.scale(x), backend=counter, fullgraph=True, dynamic=True)
for rows in (3, 5, 7):
    x = torch.rand(rows, 4, requires_grad=True)
    y = compiled(x)
    torch.testing.assert_close(y, 5 * x**2)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 10 * x)
assert counter.frame_count == 1
torch.testing.assert_close(torch.vmap(op)(torch.ones(2, 3, 4)), torch.full((2, 3, 4), 2.0))
y = torch.zeros(2, 3)
library.fill_(y)
assert torch.isinf(y).all()
torch.library.opcheck(op.default, (torch.rand(2, 3, requires_grad=True), 0.5))
print("connected")
"""


@pytest.mark.slow(1)
@pytest.mark.parametrize("order", ["first", "second"])
def test_operators_that_the_library_registers_in_pytorch(path, order):
    pytest.importorskip("torch")
    command = [sys.executable, "-c", CONNECTED, str(path), order]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout == "connected\n", done.stderr
