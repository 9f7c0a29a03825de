"""What an operator does while ``torch.compile`` traces: it learns its inputs, and its errors are its own."""

import gc
import pathlib
import weakref

import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentTypeError, GradientError, InferError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

# PyTorch's own, of its tracing of an autograd.Function and of a gradient that is not a leaf's
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*should not be instantiated:DeprecationWarning", "ignore:The .grad attribute of a Tensor"
)
ADD = pathlib.Path(__file__).parents[1] / "sources" / "add.cc"


def add(**options):
    return polyop.Custom(
        f"{ADD}:CustomAdd", out_shape=(2, 3), out_dtype=np.float32, func_type="aot", **options
    )


def compiled(function, whole=True):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=whole, backend="aot_eager")


def test_an_operator_that_first_hears_of_its_inputs_from_a_tracer():
    x = torch.ones(2, 3, requires_grad=True)
    op = add(bprop=lambda x, y, out, dout: (dout, 2 * dout))
    out = compiled(lambda x, y: op(x, y) + 1)(x, x)
    out.sum().backward()
    assert out.tolist() == [[3.0] * 3] * 2 and x.grad.tolist() == [[3.0] * 3] * 2
    assert op(x.detach(), x.detach()).tolist() == [[2.0] * 3] * 2
    program = torch.export.export(Call(add()), (x.detach(), x.detach()), strict=True)
    assert program.module()(x, x).tolist() == [[2.0] * 3] * 2


class Call(torch.nn.Module):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, x, y):
        return self.op(x, y)


def operator(name, **options):
    return polyop.operator(f"compiling::{name}", lambda x, k=1: x, **{"infer": "x", **options})


def failing(x):
    raise ZeroDivisionError(x)


ERRORS = {  # a call, and the error's class and first words
    "type": (lambda op, x: op(x, "s"), ArgumentTypeError, "compiling::typed: argument k: must be int, but got "),
    "count": (lambda op, x: op(x, 1, 2), ArgumentTypeError, "compiling::typed: takes 2 positional arguments"),
    "name": (lambda op, x: op(x, size=2), ArgumentTypeError, "compiling::typed: has no argument 'size'"),
    "missing": (lambda op, x: op(k=2), ArgumentTypeError, "compiling::typed: needs argument 'x'"),
    "infer": (lambda op, x: op(x), InferError, "compiling::shapeless: infer: the function raised ZeroDivisionError"),
    "gradient": (lambda op, x: op(x), GradientError, "compiling::constant: has no gradient rule"),
    "rule": (lambda op, x: op(x), GradientError, "compiling::odd: the gradient rule must return a tuple of 1"),
}  # fmt: skip


@pytest.fixture(scope="session")
def operators():
    typed = operator("typed(Tensor x, int k=1) -> Tensor")
    return {
        **dict.fromkeys(("type", "count", "name", "missing"), typed),
        "infer": operator("shapeless(Tensor x) -> Tensor", infer=failing),
        "gradient": operator("constant(Tensor x) -> Tensor"),
        "rule": operator("odd(Tensor x) -> Tensor", gradient=lambda x, out, dout: dout),
    }


@pytest.mark.slow(3)
@pytest.mark.parametrize("whole", [True, False], ids=["fullgraph", "graph breaks"])
@pytest.mark.parametrize("name", ERRORS)
def test_errors_in_tracing_are_those_of_eager_calls(operators, name, whole):
    call, kind, words = ERRORS[name]
    op, x = operators[name], torch.ones(2, requires_grad=name in ("gradient", "rule"))
    with pytest.raises(kind) as eager:
        call(op, x).sum().backward()
    with pytest.raises(kind) as traced:
        compiled(lambda x: call(op, x) + 1, whole)(x).sum().backward()
    for problem in (eager, traced):
        assert str(problem.value).startswith(words)
        assert type(problem.value).__name__ == kind.__name__


@pytest.mark.slow
def test_many_operators_are_compiled_each_for_itself():
    torch._dynamo.reset()
    counter = pytest.importorskip("torch._dynamo.testing").CompileCounter()
    operators = [
        polyop.operator(
            f"compiled_many::f{k}(Tensor x, float a=0.5) -> Tensor", lambda x, a, k=k: x * k + a, infer="x"
        )
        for k in range(20)
    ]
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        for k, op in enumerate(operators):
            run = torch.compile(op, backend=counter, fullgraph=True)
            assert run.__name__ == f"f{k}"
            for size in (3, 4, 5):
                assert run(torch.ones(size), 2.0).tolist() == [k + 2.0] * size
        frames = counter.frame_count
        for op in operators:  # another torch.compile of the same operator finds what was compiled
            torch.compile(op, backend=counter, fullgraph=True)(torch.ones(3), 2.0)
    assert frames == counter.frame_count == 40  # one more for each, whose size is a symbol


def test_what_is_compiled_keeps_no_operator_and_has_its_gradient():
    op = add(bprop=lambda x, y, out, dout: (dout, 2 * dout))
    x = torch.ones(2, 3, requires_grad=True)
    compiled(op)(x, x).sum().backward()
    assert x.grad.tolist() == [[3.0] * 3] * 2
    assert torch.compiler.disable(op)(x, x).tolist() == [[2.0] * 3] * 2
    other = add()
    assert other._torchdynamo_orig_callable.__code__ is other._torchdynamo_orig_callable.__code__
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None


NEGATIVE = {
    "infer": ({"infer": lambda x, k: polyop.Spec((x.shape[0] - k,), x.dtype)}, "at least 0, but got -2"),
    "dims": ({"infer": None, "dims": "n -> n-5"}, "the size n-5 is -2, for n=3"),
}


@pytest.mark.parametrize("rule", NEGATIVE)
@pytest.mark.parametrize("dynamic", [True, False])
def test_a_negative_size_is_an_error_in_the_words_of_the_rule(dynamic, rule):
    options, words = NEGATIVE[rule]
    op = polyop.operator(
        f"compiling::shorter_{rule}_{dynamic}(Tensor x, int k=5) -> Tensor",
        lambda x, k: x[: len(x) - k],
        **options,
    )
    torch._dynamo.reset()
    run = torch.compile(op, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    with pytest.raises(InferError, match=words):
        run(torch.ones(3))
    assert run(torch.ones(7)).shape == (2,)


def test_a_tracer_does_not_walk_through_all_modules():
    op = add()
    x = torch.ones(2, 3)
    op(x, x)  # the host is present
    torch._dynamo.reset()
    traced = torch._dynamo.explain(lambda x, y: op(x, y) + 1)(x, x)
    assert traced.graph_break_count == 0 and traced.out_guards
    # an import in another thread, or by the tracer, would end the compilation: the dictionary changed its size
    assert [guard.name for guard in traced.out_guards if "modules" in guard.name] == []
