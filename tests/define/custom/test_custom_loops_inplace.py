"""Loop kernels that return an input: it is written in place on every host, and the schema says so."""

import numpy as np
import pytest

import polyop
from polyop import Custom

# ruff: noqa: F821 - the words of the language


def increment(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0
    return x


def both(x, y):
    s = output_tensor((), x.dtype)
    s[()] = 0.0
    for i in range(x.shape[0]):
        s[()] = s[()] + x[i]
        y[i] = y[i] + x[i]
    return s, y


def test_the_schema_says_what_is_written():
    assert str(Custom(increment, func_type="hybrid").schema).endswith("(Tensor(a!) x) -> Tensor(a!)")
    assert str(Custom(both, func_type="akg").schema).endswith(
        "(Tensor x, Tensor(a!) y) -> (Tensor, Tensor(a!))"
    )


def test_numpy_arrays_of_any_layout():
    op = Custom(increment, func_type="hybrid")
    x = np.zeros(3, np.float32)
    assert op(x) is x
    assert x.tolist() == [1, 1, 1]
    whole = np.zeros(6)
    op(whole[::-2])
    assert whole.tolist() == [0, 1, 0, 1, 0, 1]
    x.flags.writeable = False
    with pytest.raises(polyop.PolyopError, match="is written in place, but got a read-only array"):
        op(x)
    assert x.tolist() == [1, 1, 1]


def test_a_new_output_beside_one_in_place():
    op = Custom(both, func_type="hybrid")
    x, y = np.arange(4.0), np.ones(4)
    total, again = op(x, y)
    assert float(total) == 6
    assert again is y
    assert y.tolist() == [1, 2, 3, 4]
    assert x.tolist() == [0, 1, 2, 3]


def test_rules_may_speak_of_all_outputs():
    shapes, dtypes = (lambda x, y: ([], y)), (lambda x, y: (x, y))
    for rules in ((shapes, dtypes), (shapes, None), (None, dtypes)):
        total, _ = Custom(both, *rules, "akg")(np.arange(4.0), np.ones(4))
        assert float(total) == 6
    wrong = Custom(both, lambda x, y: ([], [7]), dtypes, "akg")
    message = (
        r"output 1 is the input y, written in place, whose shape is \(4,\), but got \(7,\) from out_shape"
    )
    with pytest.raises(polyop.PolyopError, match=message):
        wrong(np.arange(4.0), np.ones(4))


def test_pytorch_counts_the_write():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    op = Custom(increment, func_type="hybrid")
    x = torch.zeros(3)
    assert op(x) is x
    assert x.tolist() == [1, 1, 1]
    assert x._version == 1
    whole = torch.zeros(6)
    op(whole[::2])
    assert whole.tolist() == [1, 0, 1, 0, 1, 0]


def test_pytorch_refuses_when_a_gradient_is_wanted():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    op = Custom(increment, func_type="hybrid")
    leaf = torch.zeros(3, requires_grad=True)
    for tensor in (leaf, leaf * 1):
        with pytest.raises(
            polyop.PolyopError, match="writes an argument in place, and such an operator has no"
        ):
            op(tensor)
    with torch.no_grad():
        op(leaf)
    assert leaf.tolist() == [1, 1, 1]


def test_compiled_whole_by_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    op = Custom(increment, func_type="hybrid")
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(x):
        y = x * 2
        op(y)
        op(x)
        return y

    x = torch.ones(3)
    assert step(x).tolist() == [3, 3, 3]
    assert x.tolist() == [2, 2, 2]


def test_check_finds_the_declared_write():
    from polyop.testing import check

    op = Custom(increment, func_type="hybrid")
    report = check(op, np.arange(4, dtype=np.float32), reference=polyop.kernel(increment).python)
    status = {result.check: result.status for result in report.results}
    assert status["declared writes"] == status["values, reference"] == "passed"
