"""Eager PyTorch calls beside the same kernel as a C++ operator."""

from kernels import LARGE_STRIDED, leaky, loop_leaky, loop_leaky_rows, need_torch, scaled, torch_leaky
from measure import Row, Timed, beside

OPERATOR = "C++ TORCH_LIBRARY operator with an Autograd kernel"
FUNCTION = "C++ torch::autograd::Function"
BOTH_WAYS = "f(x).backward(g)"


def training_rows() -> list[Row]:
    """Return rows of each direction alone, where a gradient is wanted."""
    torch = need_torch()

    class Trivial(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # noqa: ARG004
            return x.clone()

        @staticmethod
        def backward(ctx, grad):  # noqa: ARG004
            return grad

    leaf = torch.randn(4, requires_grad=True)
    aten = torch.nn.functional.leaky_relu

    def forward(f: object) -> Timed:
        return Timed("f(x)", {"f": f, "x": leaf})

    def backward(f: object) -> Timed:
        return Timed("y.backward(g, retain_graph=True)", {"y": f(leaf), "g": torch.ones(4)})

    rows = []
    for kind, f in (("C", leaky()), ("loop", loop_leaky())):
        beside_trivial, beside_aten = (
            beside(forward(f), forward(Trivial.apply)),
            beside(backward(f), backward(aten)),
        )
        rows.append(
            Row(
                f"torch forward of a {kind} kernel, gradient wanted",
                "a trivial autograd.Function",
                1.2,
                beside_trivial,
            )
        )
        rows.append(Row(f"torch backward of a {kind} kernel", "ATen's leaky_relu", 1.1, beside_aten))
    return rows


def rows() -> list[Row]:
    torch = need_torch()
    peer, ours = torch_leaky(), leaky()
    x, large = torch.randn(4), torch.randn(1000)
    assert torch.equal(ours(x), peer(x))

    def call(f: object, x: object, statement: str = "f(x)") -> Timed:
        return Timed(statement, {"f": f, "x": x, "g": torch.ones(4)})

    leaf = torch.randn(4, requires_grad=True)
    every_other, wide = torch.randn(8)[::2], torch.ones(1000, 2000)
    return [
        *training_rows(),
        Row("torch call, no gradient, 4 elements", OPERATOR, 0.5, beside(call(ours, x), call(peer, x))),
        Row("the same through torch.ops", OPERATOR, 2.0, beside(call(ours.torch, x), call(peer, x))),
        Row(
            "torch forward + backward, 4 elements",
            FUNCTION,
            1.2,
            beside(call(ours, leaf, BOTH_WAYS), call(peer, leaf, BOTH_WAYS)),
        ),
        Row(
            "forward + backward through torch.ops",
            FUNCTION,
            1.6,
            beside(call(ours.torch, leaf, BOTH_WAYS), call(peer, leaf, BOTH_WAYS)),
        ),
        Row("torch call, 1000 elements", OPERATOR, None, beside(call(ours, large), call(peer, large))),
        Row(
            "torch call, one float attribute",
            f"{OPERATOR}, none",
            None,
            beside(call(scaled(), x, "f(x, 0.5)"), call(peer, x)),
        ),
        *[
            Row(
                f"torch call of a {kind} kernel, not contiguous",
                OPERATOR,
                1.5,
                beside(call(f, every_other), call(peer, every_other)),
            )
            for kind, f in (("C", ours), ("loop", loop_leaky()))
        ],
        *[
            Row(
                f"torch call of a {kind} kernel, {layout}, a million elements",
                OPERATOR,
                1.5,
                beside(call(f, part(wide)), call(peer, part(wide))),
            )
            for layout, part in LARGE_STRIDED.items()
            for kind, f in (("C", ours), ("loop", loop_leaky_rows()))
        ],
    ]
