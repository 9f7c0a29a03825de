"""Nested tensors: jagged ones where the operator maps over the ragged dimension, named errors for others."""

import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentTypeError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")


def unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def unit_gradient(x, out, dout):
    return ((dout - out * (out * dout).sum(-1, keepdims=True)) / (x * x).sum(-1, keepdims=True).sqrt(),)


TWICE = polyop.operator(
    "nested::twice(Tensor x) -> Tensor",
    lambda x: x * 2,
    batch="elementwise",
    gradient=lambda x, out, dout: (2 * dout,),
)
UNIT = polyop.operator(
    "nested::unit(Tensor x) -> Tensor", unit, dims="... n -> ... n", gradient=unit_gradient
)
LINEAR = polyop.operator(
    "nested::linear(Tensor x, Tensor w) -> Tensor",
    lambda x, w: x @ w,
    dims="... n, n m -> ... m",
    gradient=lambda x, w, out, dout: (dout @ w.T, torch.einsum("...n,...m->nm", x, dout)),
)
PRODUCT = polyop.operator("nested::product(Tensor x, Tensor y) -> Tensor", np.multiply, batch="elementwise")
PLAIN = polyop.operator("nested::plain(Tensor x) -> Tensor", lambda x: x, infer="x")
WHOLE = polyop.operator("nested::whole(Tensor x) -> Tensor", lambda x: x, dims="a b n -> a b n")
FILL = polyop.operator("nested::fill_(Tensor(a!) x) -> Tensor(a!)", lambda x: x.fill(1), batch="elementwise")
PARTS = [np.arange(1.0, 7.0).reshape(2, 3), np.arange(3.0, 15.0).reshape(4, 3)]


def nested(layout=None, parts=PARTS, **options):
    layout = torch.jagged if layout is None else layout
    return torch.nested.nested_tensor([torch.tensor(part) for part in parts], layout=layout, **options)


def close(result, expected):
    assert result.layout is torch.jagged
    for part, one in zip(result.unbind(), expected, strict=True):
        np.testing.assert_allclose(part.detach().numpy(), one)


CALLS = {
    "eager": lambda op, *args: op(*args),
    "torch.ops": lambda op, *args: op.torch(*args),
    "inference mode": torch.inference_mode()(lambda op, *args: op(*args)),
    "compiled": lambda op, *args: torch.compile(op, fullgraph=True, backend="aot_eager")(*args),
}


@pytest.mark.parametrize("how", CALLS)
def test_rows_of_different_lengths(how):
    w = np.arange(6.0).reshape(3, 2)
    call = CALLS[how]
    close(call(TWICE, nested()), [part * 2 for part in PARTS])
    close(call(UNIT, nested()), [unit(part) for part in PARTS])
    close(call(LINEAR, nested(), torch.tensor(w)), [part @ w for part in PARTS])


def test_the_result_has_the_rows_of_the_argument():
    x = nested()
    close(TWICE(x) + x, [part * 3 for part in PARTS])
    close(PRODUCT(x, TWICE(x)), [part * part * 2 for part in PARTS])
    close(TWICE(x.transpose(1, 2)).transpose(1, 2), [part * 2 for part in PARTS])


def test_gradients():
    x, w = nested(requires_grad=True), torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    LINEAR(UNIT(TWICE(x)), w).values().square().sum().backward()
    parts = [torch.tensor(part, requires_grad=True) for part in PARTS]
    v = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    sum((LINEAR(UNIT(TWICE(part)), v) ** 2).sum() for part in parts).backward()
    close(x.grad, [part.grad.numpy() for part in parts])
    torch.testing.assert_close(w.grad, v.grad)


def refused(op, *args):
    with pytest.raises(ArgumentTypeError) as caught:
        op(*args)
    return str(caught.value).splitlines()[0]


def test_what_is_refused():
    x = nested()
    rule = "must be no nested tensor: the operator does not map over its dimension 1"
    for op, name in ((PLAIN, "plain"), (WHOLE, "whole")):
        assert refused(op, x) == f"nested::{name}: argument x: {rule}, but got nested torch.jagged"
    assert "does not map over its dimension 2" in refused(UNIT, x.transpose(1, 2))
    assert "what is written and lists must be plain" in refused(FILL, x)
    strided = nested(torch.strided)
    assert "a nested one of the layout torch.jagged, but got nested torch.strided" in refused(TWICE, strided)
    assert "argument y: must be a nested tensor, as another argument is" in refused(
        PRODUCT, x, torch.ones(6, 3)
    )
    other = nested(parts=PARTS[::-1])
    assert "argument y: must have the offsets of the first nested tensor" in refused(PRODUCT, x, other)
