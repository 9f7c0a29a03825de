"""What polyop runs for PyTorch in eager mode within a compiled function is not traced itself."""

import pathlib

import numpy as np
import pytest

import polyop

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

ADD = pathlib.Path(__file__).parents[1] / "sources" / "add.cc"
BINARY = ("C function", "C function, torch.ops", "by name")


def twice(x):
    y = np.empty_like(x)
    np.copyto(y, x, casting="unsafe")  # PyTorch's compiler would take the arrays for tensors
    y *= 2
    return y


def looped(a):
    c = output_tensor(a.shape, a.dtype)  # noqa: F821 - the loop language's
    for i in range(a.shape[0]):
        c[i] = a[i] * 2.0
    return c


python = polyop.operator(
    "untraced::twice(Tensor x) -> Tensor",
    twice,
    infer="x",
    gradient=lambda x, out, dout: (python(dout),),
    batch="elementwise",
)


@pytest.fixture(scope="session")
def calls():
    """The ways in which C++ comes back to Python: each returns twice its argument."""
    native = polyop.operator(
        "untraced::add(Tensor x, Tensor y) -> Tensor",
        f"{ADD}:CustomAdd",
        infer="x",
        gradient=lambda x, y, out, dout: (dout, dout),
    )
    summed = polyop.Custom(
        "aclnnAdd", lambda x, y: x, lambda x, y: x, "aot", bprop=lambda x, y, out, dout: (dout, dout)
    )
    return {
        "Python function": python,
        "Python function, torch.ops": python.torch,
        "Python function, vmap": torch.vmap(python),
        "C function": native,
        "C function, torch.ops": native.torch,
        "loops": polyop.Custom(looped, func_type="hybrid"),
        "by name": summed,
    }


def run(call, count, x):
    """Run a call eagerly within a compiled function; return its value, and how many frames were traced."""

    @torch.compiler.disable(recursive=False)
    def eager(x):
        return call(*[x] * count)

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    out = torch.compile(lambda x: eager(x) + 1, backend="eager")(x)
    return out, torch._dynamo.utils.counters["frames"]["total"]


@pytest.mark.slow(1)
@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf"
)  # PyTorch's, of its own
@pytest.mark.parametrize("gradient", [False, True], ids=["values", "gradient"])
@pytest.mark.parametrize("name", [
    "Python function", "Python function, torch.ops", "Python function, vmap", "C function", "C function, torch.ops",
    "loops", "by name",
])  # fmt: skip
def test_nothing_behind_an_eager_call_is_traced(calls, name, gradient):
    count = 2 if name in BINARY else 1
    x = torch.ones(4, requires_grad=gradient)
    peer = torch.vmap(torch.neg) if "vmap" in name else torch.add if name in BINARY else torch.neg
    _, own = run(peer, count, x)  # the compiled function's, and those of torch.vmap
    out, total = run(calls[name], count, x)
    assert out.tolist() == [3.0] * 4
    if gradient:
        out.sum().backward()
        assert x.grad.tolist() == [2.0] * 4
    assert total == own
