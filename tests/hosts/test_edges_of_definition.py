"""Regressions at the edges of defining and registering operators."""

import enum
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import polyop

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
X = np.arange(3, dtype=np.float32)


def test_a_rule_that_reads_a_name_defined_later_is_asked_each_time():
    names = {"polyop": polyop}
    exec("op = polyop.Custom(lambda x: np.zeros(N, np.float32), lambda s: [N], lambda d: d, 'pyfunc')", names)
    names.update(N=2, np=np)
    assert names["op"](X).shape == (2,)
    names["N"] = 5
    assert names["op"](X).shape == (5,)


def test_threads_register_an_operator_once():
    for _ in range(10):
        op = polyop.Custom(lambda x: x + 1, lambda x: x, lambda x: x, "pyfunc")
        with ThreadPoolExecutor(4) as pool:
            assert {v.tolist()[0] for v in pool.map(op, [torch.zeros(2)] * 8)} == {1.0}


def test_a_failed_first_call_leaves_a_custom_usable(kernels):
    op = polyop.Custom(f"{kernels('square').path}:square", [3], "float32", "aot", lambda x, y, out, d: (d, d))
    with pytest.raises(TypeError, match=r"bprop is called with \(x0, out, dout\)"):
        op(X)
    with pytest.raises(TypeError, match="bprop is called with"):
        op(X)


def test_a_pyfunc_with_constant_shape_knows_its_arguments():
    op = polyop.Custom(lambda x, y: x + y, [3], "float32", "pyfunc")
    with pytest.raises(TypeError, match="needs argument 'x1'"):
        op(X)
    assert op(X, X).tolist() == [0, 2, 4]


def test_lists_as_arguments_of_a_custom_compile():
    op = polyop.Custom(
        lambda xs, k: xs[0] * np.float32(sum(k)), lambda xs, k: xs[0], lambda xs, k: xs[0], "pyfunc"
    )
    x = torch.ones(2)
    f = torch.compile(lambda t: op([t, t], [0.5, 1.5]), fullgraph=True, backend="aot_eager")
    assert f(x).tolist() == op([x, x], [0.5, 1.5]).tolist() == [2, 2]


@pytest.mark.parametrize("schema", ["(Tensor(a!)[] xs) -> ()", "(Tensor(a!)? x) -> ()"])
def test_python_kernels_write_lists_and_optionals(schema):
    def add_one(value):
        for array in value if isinstance(value, (list, tuple)) else [value]:
            np.add(array, 1, out=array)

    op = polyop.operator(f"definition::write{len(schema)}{schema}", add_one)
    for make in (lambda: X.copy(), lambda: torch.tensor(X), lambda: torch.tensor(np.stack([X, X])).t()[:, 0]):
        value = make()
        op([value]) if "[]" in schema else op(value)
        assert value.tolist() == [1, 2, 3]


def test_text_attributes_of_other_types():
    class Mode(str, enum.Enum):
        UP = "up"

    op = polyop.operator(
        "definition::mode(Tensor x, str mode) -> Tensor", lambda x, mode: x + (mode == "up"), infer="x"
    )
    for x in (X, torch.tensor(X)):
        assert op(x, Mode.UP).tolist() == op(x, np.str_("up")).tolist() == [1, 2, 3]


@pytest.mark.parametrize("make", [np.asarray, torch.tensor], ids=["numpy", "torch"])
def test_vjp_checks_gradients_on_every_host(make):
    wrong = polyop.operator("definition::wrong_" + make.__name__ + "(Tensor x) -> (Tensor, Tensor)", lambda x: (x, x * 2), infer="x", gradient=lambda x, out, d: (d[0][:1],))  # fmt: skip
    _, pull = wrong.vjp(make(X))
    with pytest.raises(
        RuntimeError, match=r"gradient of x: must have the input's shape \(3,\), but got \(1,\)"
    ):
        pull((make(X), make(X)))
    with pytest.raises(ValueError, match="vjp needs 2 output gradients, but got 1"):
        pull((make(X),))


@pytest.mark.slow
def test_a_schema_that_pytorch_refuses_hurts_nobody_else():
    program = """
import polyop
ok = polyop.operator("definition::ok(Tensor x) -> Tensor", lambda x: x + 1, infer="x")
taken = polyop.operator("mkl::_mkl_linear(Tensor x) -> Tensor", lambda x: x, infer="x")
import torch
print(ok(torch.zeros(1)).item())
try:
    taken(torch.zeros(1))
except ValueError as problem:
    print("PyTorch does not take this schema" in str(problem))
late = polyop.operator("mkldnn::_linear_pointwise(Tensor x) -> Tensor", lambda x: x, infer="x")
for _ in range(2):
    try:
        late(torch.zeros(1))
    except ValueError as problem:
        print("PyTorch does not take this schema: Tried to register an operator" in str(problem))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1.0", "True", "True", "True"], done.stdout + done.stderr[-2000:]


def test_what_pytorch_refuses_within_a_registration_leaves_nothing(monkeypatch):
    def refuse(*_, **__):
        raise NotImplementedError("register_fake of operators on Sundays")

    with monkeypatch.context() as patch:
        patch.setattr(torch.library, "register_fake", refuse)
        op = polyop.operator("definition::half(Tensor x) -> Tensor", lambda x: x + 1, infer="x")
        assert op(X).tolist() == [1, 2, 3]
        assert not hasattr(torch.ops.definition, "half")
        with pytest.raises(ValueError, match="PyTorch does not take this schema: register_fake of operators"):
            op(torch.tensor(X))
    assert op(torch.tensor(X)).tolist() == torch.ops.definition.half(torch.tensor(X)).tolist() == [1, 2, 3]


def test_autocast_must_be_a_dtype():
    with pytest.raises(TypeError, match="must be one of bool"):
        polyop.operator("definition::cast(Tensor x) -> Tensor", lambda x: x, infer="x", autocast="bf17")


def test_the_infer_rule_of_a_python_kernel_is_asked_once_per_call():
    asked = []
    op = polyop.operator(
        "definition::asked(Tensor x) -> Tensor", lambda x: x, infer=lambda x: asked.append(1) or x
    )
    op(X)
    assert len(asked) == 1


def test_an_argument_called_self_can_be_passed_by_name(kernels):
    op = polyop.operator(
        "definition::of_self(Tensor self) -> Tensor",
        kernels("square"),
        infer="self",
        gradient=lambda self, out, dout: (2 * self * dout,),
    )
    assert op(self=X).tolist() == op(self=torch.tensor(X)).tolist() == [0, 1, 4]
    out, pull = op.vjp(self=X)
    assert out.tolist() == [0, 1, 4] and pull(X)[0].tolist() == [0, 2, 8]
    traced = torch.compile(lambda x: op(self=x), fullgraph=True, backend="aot_eager")
    assert traced(torch.tensor(X)).tolist() == [0, 1, 4]
