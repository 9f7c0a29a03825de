"""Which values a call saves for its gradient, which are recomputed or taped, their limit, and `explain`."""

# ruff: noqa: F821 - the words of the language

import os
import re
import subprocess
import sys
import textwrap
import warnings

import jax
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from polyop import Custom, kernel, operator
from polyop.call.explain import explain
from polyop.core.dtypes import dtype
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, GradientError, KernelError
from polyop.core.spec import Spec


def rms_norm(x, scale):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        factor = rsqrt(squares / x.shape[1] + 1e-6)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * factor * scale[j]
    return y


def filtered(x, decay):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        state = 0.0
        for t in range(x.shape[1]):
            state = tanh(decay[t] * state + x[b, t])
            y[b, t] = state * state
    return y


def softened(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
    for i in range(x.shape[0]):
        y[i] = y[i] * y[i]
    return y


def powers(x):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor((x.shape[0],), x.dtype)
    rows = allocate((x.shape[0], 2), x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += sin(x[i, j])
        rows[i, 0] = exp(total)
        rows[i, 1] = exp(-total)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * rows[i, 0] * rows[i, 1] * rows[i, 1]
        z[i] = rows[i, 0] * total * total
    return y, z


def hybrid(function, **attrs):
    return Custom(kernel(function, compile_attrs=attrs), func_type="hybrid")


def inputs(*shapes):
    random = torch.Generator().manual_seed(0)
    return [torch.randn(s, generator=random, dtype=torch.float64).requires_grad_() for s in shapes]


def explained(op, *shapes):
    """Return what ``explain`` says about the gradient's values, as lines without their numbers."""
    text = explain(op, tuple(Spec(s, dtype("float64")) for s in shapes))
    part = text[text.index("  gradient ") : text.index("\n  forward ")]
    lines = [re.sub(r"^\d+: ", "", line.strip()) for line in part.splitlines()[1:]]
    return [line for line in lines if not line.startswith("derived_schedules=")]


def saved(op, *tensors):
    """Return the suffixes of the operators that a call runs in PyTorch if a gradient is wanted."""
    names = []

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if not str(func).startswith("aten"):
                names.append(str(func).split(".")[1].partition("__")[2])
            return func(*args, **(kwargs or {}))

    with Calls():
        op(*tensors)
    return names


FACTOR = "factor = rsqrt(squares / x.shape[1] + 1e-6)"
WRITTEN = "y[i, j] = x[i, j] * factor * scale[j]"
RECOMPUTED = [
    FACTOR,
    "squares is recomputed, in each iteration of i",
    WRITTEN,
    "factor is recomputed, in each iteration of i",
]
KEEPS = "keeps x, scale for the gradient; tapes take 0 bytes while it runs"


@pytest.mark.parametrize("tape", ["auto", "all"])
def test_explain_names_saved_temporaries(tape):
    op = hybrid(rms_norm, tape=tape)
    saved_line = "saved by the forward, not recomputed: squares (40 bytes), factor (40 bytes)"
    assert explained(op, (5, 4), (4,)) == [*RECOMPUTED, saved_line, KEEPS]
    assert saved(op, *inputs((5, 4), (4,))) == ["saving_float64_2__float64_1"]


def test_tape_none_saves_nothing():
    op = hybrid(rms_norm, tape="none")
    assert explained(op, (5, 4), (4,)) == [*RECOMPUTED, KEEPS]
    tensors = inputs((5, 4), (4,))
    assert saved(op, *tensors) == [""]
    assert torch.autograd.gradcheck(op, tensors)


def whole_rows(x):
    y = output_tensor(x.shape, x.dtype)
    sines = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            sines[i, j] = sin(x[i, j])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = sines[i, j] * sines[i, x.shape[1] - 1 - j]
    return y


@pytest.mark.slow(1)
@pytest.mark.parametrize(("tape", "names"), [("auto", [""]), ("all", ["saving_float64_2"])])
def test_all_is_more_than_auto(tape, names):
    op = hybrid(whole_rows, tape=tape)
    tensors = inputs((3, 4))
    assert saved(op, *tensors) == names
    assert ("not recomputed: sines (96 bytes)" in " ".join(explained(op, (3, 4)))) == (tape == "all")
    assert torch.autograd.gradcheck(op, tensors)
    assert torch.autograd.gradgradcheck(op, tensors)


def test_explain_names_final_values():
    expected = ["z[i] = h[i] * h[i]", "h is final: the output has it when the kernel ends"]
    assert explained(hybrid(two_results), (5,)) == [
        *expected,
        "keeps h for the gradient; tapes take 0 bytes while it runs",
    ]


def two_results(x):
    h = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        h[i] = tanh(x[i])
    for i in range(x.shape[0]):
        z[i] = h[i] * h[i]
    return h, z


def test_explain_names_taped_values_and_the_line_that_overwrites_them():
    lines = explained(hybrid(filtered), (3, 5), (5,))
    start = filtered.__code__.co_firstlineno
    why = f"and taped at this line, as line {start + 5} overwrites it"
    assert f"state is recomputed, in each iteration of b, {why}" in lines
    assert lines[-1] == "keeps x, decay for the gradient; tapes take 80 bytes while it runs"
    lines = explained(hybrid(softened), (6,))
    assert [line for line in lines if line.startswith("y is recomputed")] != []


@pytest.mark.parametrize(
    ("options", "kind", "rule", "value"),
    [
        ({"tape": "some"}, ArgumentValueError, "'tape' must be one of ['auto', 'all', 'none']", "'some'"),
        ({"tape": 3}, ArgumentValueError, "'tape' must be one of ['auto', 'all', 'none']", "3"),
        ({"tape_bytes": -1}, ArgumentValueError, "'tape_bytes' must be a number of bytes, or None", "-1"),
        ({"tape_bytes": "1M"}, ArgumentTypeError, "'tape_bytes' must be a number of bytes, or None", "'1M'"),
        ({"tape_byte": 1}, ArgumentValueError, "no such option", "did you mean 'tape_bytes'?"),
    ],
)
def test_wrong_options_are_refused(options, kind, rule, value):
    with pytest.raises(kind) as caught:
        kernel(rms_norm, compile_attrs=options)
    assert rule in str(caught.value)
    assert value in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "fits", "name"),
    [
        (80, "squares (40 bytes), factor (40 bytes)", "saving_float64_2__float64_1"),
        (79, "factor (40 bytes)", "saving_without_0__float64_2__float64_1"),
        (40, "factor (40 bytes)", "saving_without_0__float64_2__float64_1"),
        (39, "", ""),
        (0, "", ""),
    ],
)
def test_what_exceeds_the_limit_is_recomputed(limit, fits, name):
    op = hybrid(rms_norm, tape_bytes=limit)
    lines = explained(op, (5, 4), (4,))
    assert (f"saved by the forward, not recomputed: {fits}" in lines) == bool(fits)
    over_limit = [line for line in lines if line.startswith(f"recomputed, as tape_bytes is {limit}:")]
    assert "".join(over_limit).count("40 bytes") == 2 - fits.count("40 bytes")
    tensors = inputs((5, 4), (4,))
    assert saved(op, *tensors) == [name]
    assert torch.autograd.gradcheck(op, tensors)
    assert torch.autograd.gradgradcheck(op, tensors)


@pytest.mark.slow
def test_the_largest_is_omitted_first():
    op = hybrid(powers, tape="all", tape_bytes=50)
    lines = explained(op, (3, 4))
    assert "saved by the forward, not recomputed: total (24 bytes)" in lines
    assert any(line.startswith("recomputed, as tape_bytes is 50: rows (") for line in lines)
    tensors = inputs((3, 4))
    assert torch.autograd.gradcheck(op, tensors)
    assert torch.autograd.gradgradcheck(op, tensors)


def test_the_sizes_of_each_call_decide():
    op = hybrid(rms_norm, tape_bytes=48)
    assert saved(op, *inputs((3, 4), (4,))) == ["saving_float64_2__float64_1"]
    assert saved(op, *inputs((6, 4), (4,))) == ["saving_without_0__float64_2__float64_1"]
    assert saved(op, *inputs((7, 4), (4,))) == [""]
    assert saved(op, *inputs((3, 4), (4,))) == ["saving_float64_2__float64_1"]


def test_a_program_that_is_loaded_finds_the_operator_by_its_name():
    op = hybrid(rms_norm)  # in a process that has called nothing
    part = op.operator.gradient.part("saving_without_0__float64_2__float64_1")
    x, scale = (t.detach() for t in inputs((3, 4), (4,)))
    y, factor = part(x, scale)
    torch.testing.assert_close(factor, torch.rsqrt((x * x).mean(1) + 1e-6))
    torch.testing.assert_close(y, x * factor[:, None] * scale)


def test_it_is_decided_once_for_each_set_of_sizes(monkeypatch):
    from polyop.rules.loops import saving as loop_saving

    op = hybrid(rms_norm, tape_bytes=48)
    calls = []
    over_limit = loop_saving.over_limit
    monkeypatch.setattr(loop_saving, "over_limit", lambda *a: calls.append(a) or over_limit(*a))
    for rows in (3, 6, 3, 6, 3):
        op(*inputs((rows, 4), (4,))).sum().backward()
    assert len(calls) == 2


@pytest.mark.slow
def test_symbolic_sizes_save_nothing():
    op = hybrid(rms_norm, tape_bytes=10**6)
    whole = torch.compile(lambda x, g: op(x, g).sin().sum(), fullgraph=True, dynamic=True)
    for rows in (3, 5):
        one, other = inputs((rows, 4), (4,)), inputs((rows, 4), (4,))
        whole(*one).backward()
        op(*other).sin().sum().backward()
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a.grad, b.grad)


def test_jax_has_the_limit_too():
    with jax.enable_x64(True):
        op = hybrid(rms_norm, tape_bytes=40)
        free = hybrid(rms_norm)
        x, scale = jax.numpy.ones((5, 4)) * 0.5, jax.numpy.arange(4.0)
        for wrap in (lambda f: f, jax.jit):
            grads = wrap(jax.grad(lambda x, s: (op(x, s) ** 2).sum(), (0, 1)))(x, scale)
            expected = jax.grad(lambda x, s: (free(x, s) ** 2).sum(), (0, 1))(x, scale)
            for one, other in zip(grads, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


def check_error(caught, rows, limit):
    text = str(caught.value)
    assert "the gradient of filtered: state changes after this line reads it" in text
    assert f"{rows * 8} bytes, all that is taped {rows * 16}, and tape_bytes is {limit}" in text
    assert f"test_saving.py:{filtered.__code__.co_firstlineno + 5}" in text
    assert "state = tanh(decay[t] * state + x[b, t])" in text
    assert "allow more in compile_attrs" in text


def test_tapes_beyond_the_limit_are_refused_with_the_line():
    op = hybrid(filtered, tape_bytes=64)
    assert torch.autograd.gradcheck(op, inputs((3, 4), (4,)))
    lines = explained(op, (3, 5), (5,))
    assert lines[-1].endswith("tapes take 80 bytes while it runs, which is an error: tape_bytes is 64")
    loss = op(*inputs((3, 5), (5,))).sum()
    with pytest.raises(GradientError) as caught:
        loss.backward()
    check_error(caught, 5, 64)
    arrays = [x.detach().numpy() for x in inputs((3, 6), (6,))]
    with pytest.raises(GradientError) as caught:
        op.vjp(*arrays)[1](arrays[0])
    check_error(caught, 6, 64)


def test_tapes_of_a_batch_are_those_of_a_sample():
    op = hybrid(filtered, tape_bytes=64)

    def gradients(x, decay):
        return torch.func.vmap(torch.func.grad(lambda a, b: op(a, b).sum()), (0, None))(x, decay)

    x, decay = (t.detach() for t in inputs((2, 3, 4), (4,)))
    expected = [torch.func.grad(lambda a, b: op(a, b).sum())(row, decay) for row in x]
    torch.testing.assert_close(gradients(x, decay), torch.stack(expected))
    x, decay = (t.detach() for t in inputs((2, 3, 5), (5,)))
    with pytest.raises(GradientError) as caught:
        gradients(x, decay)
    check_error(caught, 5, 64)


def test_tapes_beyond_the_limit_in_jax():
    with jax.enable_x64(True):
        op = hybrid(filtered, tape_bytes=64)
        gradient = jax.grad(lambda x, d: op(x, d).sum())
        with pytest.raises(Exception, match="and tape_bytes is 64"):
            gradient(jax.numpy.ones((3, 5)), jax.numpy.ones(5))
        assert gradient(jax.numpy.ones((3, 4)), jax.numpy.ones(4)).shape == (3, 4)


def stopped(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = stop_gradient(x[i] * x[i]) * sin(x[i]) + stop_gradient(exp(x[i]))
    return y


def test_stop_gradient_is_a_constant():
    op = hybrid(stopped)
    (x,) = inputs((5,))
    torch.testing.assert_close(op(x), x * x * x.sin() + x.exp())
    (first,) = torch.autograd.grad(op(x).sum(), x, create_graph=True)
    torch.testing.assert_close(first, x * x * x.cos())
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, -x * x * x.sin())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript, in PyTorch's own forward mode
        tangent = torch.func.jvp(op, (x.detach(),), (torch.ones_like(x),))[1]
    torch.testing.assert_close(tangent, (x * x * x.cos()).detach())


def all_stopped(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = stop_gradient(x[i])
    return y


def test_stop_gradient_of_everything_is_zero():
    (x,) = inputs((3,))
    hybrid(all_stopped)(x).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


PROGRAM = """
    import numpy as np
    import polyop

    def doubled(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * 2
        return y

    op = polyop.Custom(doubled, func_type="hybrid")
"""


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("op(np.ones(3))", "doubled"),
        (
            "op.gradient.at([np.ones(3)])([np.ones(3)], [np.ones(3)], [np.ones(3)], [True])",
            "doubled__backward",
        ),
    ],
)
def test_no_compiler_and_nothing_shipped(call, name, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM) + call + "\n")
    (tmp_path / "empty").mkdir()
    environment = {
        "PATH": str(tmp_path / "empty"),
        "CC": "",
        "CXX": "",
        "POLYOP_CACHE_DIR": str(tmp_path / "c"),
    }
    process = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    rule = f"BuildError: loop kernel {name}: needs a compiler: it was not compiled ahead of time"
    assert rule in process.stderr
    assert str(path) in process.stderr
    assert "no C compiler was found (tried cc, gcc, clang)" in process.stderr


@pytest.mark.parametrize("order", [(-0.0, 0.0), (0.0, -0.0)])
def test_attributes_that_are_equal_and_not_the_same(order):
    def divided(x, by: float):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] / by
        return y

    first = "minus" if str(order[0])[0] == "-" else "plus"
    op = operator(f"test_kept::divided_{first}(Tensor x, float by) -> Tensor", kernel(divided))
    for by in order:
        x = torch.ones(2, requires_grad=True)
        op(x, by).sum().backward()
        assert x.grad.tolist() == [float("-inf" if str(by)[0] == "-" else "inf")] * 2


def test_source_without_tensors_is_that_of_the_last_call():
    """If temporaries are saved, it is the gradient of the saving form, not of the operator itself."""
    for tape in ("auto", "none"):
        op = hybrid(rms_norm, tape=tape)
        op(*inputs((3, 4), (4,))).sum().backward()
        assert ("rms_norm__saving__backward" in op.gradient.source()) == (tape == "auto")
        assert "rms_norm" in op.gradient.source()


def test_a_call_that_saves_is_the_authors_own():
    """Values, their last bits and errors are those of a call without a gradient."""

    def spread(x, w):
        y = np.zeros(x.shape, x.dtype)
        r = allocate((x.shape[0],), x.dtype)
        for i in range(x.shape[0]):
            r[i] = 0.0
            for j in range(x.shape[1]):
                r[i] += abs(x[i, j])
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                for p in range(w.shape[0]):
                    y[i, j - p] += x[i, j] * w[p] / r[i]
        return y

    op = Custom(spread, func_type="hybrid")
    x = torch.tensor([[1.0, 2, 3, 5], [1e-40, 0, 2e-40, 0]])
    for taps in (1, 3, 5):
        w = torch.arange(1.0, taps + 1)
        assert torch.equal(op(x.clone().requires_grad_(), w).detach(), op(x, w)), taps
        torch.testing.assert_close(op(x, w), torch.from_numpy(spread_by_numpy(x.numpy(), w.numpy())))
    for given in (x, x.clone().requires_grad_()):
        with pytest.raises(KernelError, match="index -5 is outside dimension 1 of y, which has size 4"):
            op(given, torch.ones(6))


def spread_by_numpy(x, w):
    y = np.zeros_like(x)
    for p, factor in enumerate(w):
        y += np.roll(x * factor / np.abs(x).sum(1, keepdims=True), -p, 1)
    return y
