"""Graph mode: compiled by the frameworks; and in a GE graph, which is built and not run without an NPU."""

import pathlib

import custom_ops
import numpy as np
import pytest


def test_torch_compile():
    torch = pytest.importorskip("torch")

    def step(x, y):
        return custom_ops.add_custom(x * 2, y).sin()

    x, y = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    [want] = torch.autograd.grad(step(x, y).sum(), x)
    [got] = torch.autograd.grad(compiled(x, y).sum(), x)
    assert torch.allclose(compiled(x, y), (2 * x + y).sin())
    assert torch.allclose(got, want)


def test_jax_jit():
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(6.0)
    step = jax.jit(jax.grad(lambda x: custom_ops.add_custom(x * x, x).sum()))
    assert np.allclose(step(x), 2 * np.arange(6.0) + 1)


def test_ge_graph(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    from polyop import PolyopError
    from polyop.graph.torchair import rehearse, torchair

    try:
        table = torchair() if hasattr(torch, "npu") else rehearse()
    except PolyopError as problem:
        pytest.skip(f"no graph is built: {problem}")
    import custom_ops.graph

    assert custom_ops.graph.AddCustom.__name__ == "AddCustom"

    class Model(torch.nn.Module):
        def forward(self, x, y):
            return custom_ops.add_custom(x, y)

    monkeypatch.chdir(tmp_path)
    x, y = torch.rand(2, 3), torch.rand(2, 3).half()
    table.dynamo_export(x, y, model=Model(), export_path="exported", dynamic=False)
    text = pathlib.Path("exported", "dynamo.pbtxt").read_text()
    assert [line.split('"')[1] for line in text.splitlines() if line.startswith("    op: ")] == [
        "Data", "Data", "Cast", "AddCustom", "NetOutput",
    ]  # fmt: skip
