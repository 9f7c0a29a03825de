"""The table of corresponding functions: every expression against PyTorch, with numbers."""

import contextlib
import importlib
import importlib.util
import math
import re

import ml_dtypes  # noqa: F401 - NumPy knows bfloat16 by its name then
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corresponding_cases import CASES, INDICES, LOSE_NAN, RANDOM  # noqa: E402
from polyop.networks import corresponding  # noqa: E402
from polyop.networks.corresponding_expression import TensorArgument, names  # noqa: E402
from polyop.networks.traced import bound, of_run  # noqa: E402

HERE = {
    "jax": importlib.util.find_spec("jax") is not None,
    "numpy": np.__version__ >= "2",
    "mindspore": importlib.util.find_spec("mindspore") is not None,
}
MODULES = {
    "jax": {"jax": "jax", "jnp": "jax.numpy"},
    "numpy": {"np": "numpy", "scipy": "scipy"},
    "mindspore": {"ms": "mindspore", "ops": "mindspore.ops"},
}


def overload(name):
    base, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), rest or "default")


def given(name, args, keywords):
    """Return the arguments by name, once as a trace knows them and once with their tensors."""
    schema = overload(name)._schema
    return bound(schema, args, keywords, of_run), bound(schema, args, keywords, lambda value: value)


def array(value, target):
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().numpy()
        if target == "numpy":
            return value
        return (
            importlib.import_module("jax.numpy").asarray(value)
            if target == "jax"
            else importlib.import_module("mindspore").Tensor(value)
        )
    if isinstance(value, (list, tuple)):
        return [array(one, target) for one in value]
    return value


def arrays(result):
    if isinstance(result, (list, tuple)):
        return [one for part in result for one in arrays(part)]
    if isinstance(result, torch.Tensor):
        if result.dtype == torch.bfloat16:
            return [result.float().numpy().astype("bfloat16")]
        return [result.detach().resolve_conj().numpy()]
    return [result.asnumpy() if hasattr(result, "asnumpy") else np.asarray(result)]


def value_of(expression, tensors, target):
    modules = {name: importlib.import_module(module) for name, module in MODULES[target].items()}
    importlib.import_module("scipy.special")
    scope = {**modules, "math": math, **{name: array(value, target) for name, value in tensors.items()}}
    return eval(expression, scope)


def check(name, args, keywords, target):
    """Compare one call with PyTorch; return whether there is a counterpart."""
    traced, tensors = given(name, args, keywords)
    found = corresponding.answer(name, traced, target)
    if found.expression is None:
        return False
    read = names(found.expression)
    if "key" in read and "key" not in tensors and target == "jax":
        tensors["key"] = importlib.import_module("jax").random.key(0)
    tensors = {key: value for key, value in tensors.items() if key in read}
    expected = arrays(overload(name)(*args, **keywords))
    with contextlib.ExitStack() as stack:
        if target == "jax":
            stack.enter_context(importlib.import_module("jax").enable_x64(True))
        got = arrays(value_of(found.expression, tensors, target))
    assert len(got) == len(expected), found.expression
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.shape == theirs.shape, found.expression
        if target == "mindspore" or name in INDICES:  # it has 32 bits for some integers
            assert {ours.dtype.kind, theirs.dtype.kind} <= {"i", "u"} or ours.dtype == theirs.dtype
        else:
            assert ours.dtype == theirs.dtype, (found.expression, ours.dtype, theirs.dtype)
        if name in RANDOM:
            continue
        if ours.dtype.name == "bfloat16":
            assert np.array_equal(ours, theirs)
            continue
        lost = np.isnan(theirs) if target == "mindspore" and name in LOSE_NAN else False
        np.testing.assert_allclose(
            np.where(lost, theirs, ours), theirs, rtol=2e-5, atol=2e-5, err_msg=found.expression
        )
    return True


def names_with(target):
    """Return the operators that have an expression for a framework, none if that is not installed."""
    rows = corresponding.table().items() if HERE[target] else ()
    return [name for name, row in rows if target in row.functions and "::" not in name]


@pytest.mark.parametrize("name", names_with("numpy"))
def test_an_expression_of_numpy_gives_the_values_of_pytorch(name):
    assert sum(check(name, *one, "numpy") for one in CASES[name]) > 0


@pytest.mark.slow(30)
@pytest.mark.parametrize("name", names_with("jax"))
def test_an_expression_of_jax_gives_the_values_of_pytorch(name):
    assert sum(check(name, *one, "jax") for one in CASES[name]) > 0


def weighted_sum(results, real, ones):
    """Return one number that depends on all results, each element with another weight; None of no numbers."""
    results = results if isinstance(results, (list, tuple)) else [results]
    parts = [
        part for one in results for part in ((one.real, one.imag) if "complex" in str(one.dtype) else (one,))
    ]
    rows = [
        (part, np.cos(np.arange(math.prod(part.shape))).reshape(part.shape) + 2)
        for part in parts
        if real(part)
    ]
    return sum((part * ones(weights).astype(part.dtype)).sum() for part, weights in rows) if rows else None


class Weights:
    """Weights of PyTorch's results, with the method of arrays that they need."""

    def __init__(self, values):
        self.values = torch.tensor(values)

    def astype(self, dtype):
        return self.values.to(dtype)


def gradients_of_pytorch(name, args, keywords, moving):
    """Return the gradients of the weighted sum of the results by the tensors that PyTorch differentiates by."""
    leaves = {key: value.detach().clone().requires_grad_() for key, value in moving.items()}
    names_of = [argument.name for argument in overload(name)._schema.arguments]
    words = dict(zip(names_of, args, strict=False)) | keywords
    words |= {key if key in names_of else "self": value for key, value in leaves.items()}
    try:
        total = weighted_sum(overload(name)(**words), lambda one: one.requires_grad, Weights)
        found = [] if total is None else torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    except RuntimeError:  # by one of them it does not
        alone = [{key: value} for key, value in moving.items()] if len(moving) > 1 else []
        return {k: v for one in alone for k, v in gradients_of_pytorch(name, args, keywords, one).items()}
    return {key: one.numpy(force=True) for key, one in zip(leaves, found, strict=False) if one is not None}


def gradients_of_jax(expression, tensors, moving):
    """Return the same of a compiled program; without ``moving`` only compile it."""
    jax = importlib.import_module("jax")
    known = {
        key: value
        for key, value in tensors.items()
        if not any(map(torch.is_tensor, value if isinstance(value, list) else [value]))
    }

    def total(moving, others):
        results = value_of(expression, {**known, **moving, **others}, "jax")
        real = weighted_sum(
            results, lambda one: jax.numpy.issubdtype(one.dtype, jax.numpy.floating), np.asarray
        )
        return real if moving else results

    arrays = {key: array(value, "jax") for key, value in tensors.items() if key not in known}
    fixed = {key: value for key, value in arrays.items() if key not in moving}
    found = {key: arrays[key] for key in moving}
    return jax.jit(jax.grad(total) if moving else total)(found, fixed)


@pytest.mark.slow(10)
@pytest.mark.parametrize("name", names_with("jax"))
def test_gradients_in_a_program_that_jax_compiles_are_those_of_pytorch(name):
    """Where they are not, the row says so: its note has the word ``gradient``, or ``jax.jit``.

    Such a note is true of one of the calls.
    """
    note, wrong = corresponding.row_of(name).differs.get("jax", ""), []
    for args, keywords in CASES[name] if name not in RANDOM else ():
        traced, tensors = given(name, args, keywords)
        found = corresponding.answer(name, traced, "jax")
        if found.expression is None:
            continue
        tensors = {key: value for key, value in tensors.items() if key in names(found.expression)}
        moving = {
            key: one for key, one in tensors.items() if torch.is_tensor(one) and one.is_floating_point()
        }
        if any(torch.isnan(one).any() for one in moving.values()):
            continue  # what the gradient is there nobody says
        expected = gradients_of_pytorch(name, args, keywords, moving) if moving else {}
        with importlib.import_module("jax").enable_x64(True):
            try:
                got = gradients_of_jax(found.expression, tensors, expected)
            except Exception as problem:
                wrong.append((found.expression, problem))
                continue
        for key, one in expected.items():
            if not np.allclose(np.where(np.isnan(one), one, got[key]), one, 2e-4, 2e-5, equal_nan=True):
                wrong.append((found.expression, key, got[key], one))
    assert bool(wrong) == ("jax.jit" in note or "gradient" in note), (note, wrong)


@pytest.mark.slow(50)
@pytest.mark.parametrize("name", names_with("mindspore"))
def test_an_expression_of_mindspore_gives_the_values_of_pytorch(name):
    assert sum(check(name, *one, "mindspore") for one in CASES[name]) > 0


def rows_with_functions():
    return [
        (name, target, function)
        for name, row in corresponding.table().items()
        if "::" not in name
        for target, function in row.functions.items()
    ]


def test_every_argument_of_pytorch_is_read_or_refused():
    """Else a call with it would get a counterpart that ignores it."""
    ignored = []
    for name, target, function in rows_with_functions():
        read = names(function.expression).union(*map(names, function.unless))
        read |= {*corresponding.IGNORED, *corresponding.row_of(name).unread}
        arguments = {{"self": "x"}.get(one.name, one.name) for one in overload(name)._schema.arguments}
        ignored += [(name, target, argument) for argument in arguments - read]
    assert ignored == []


def calls_by_expression():
    """Yield, for each expression, its framework, its conditions, and the calls of all operators that have it."""
    grouped = {}
    for name, target, function in rows_with_functions():
        grouped.setdefault((target, function.expression), (function, []))[1].append(name)
    for (target, _), (function, found) in grouped.items():
        yield target, function, [(name, *given(name, *one)) for name in found for one in CASES[name]]


def test_every_condition_refuses_one_of_the_calls():
    never = []
    for target, function, calls in calls_by_expression():
        reasons = {corresponding.answer(name, traced, target).reason for name, traced, _ in calls}
        never += [
            (calls[0][0], target, reason) for reason in function.unless.values() if reason not in reasons
        ]
    assert never == []


def test_calls_give_each_argument_another_value_than_its_default():
    """Else an expression could have the default written in."""
    never = []
    for _, _, calls in calls_by_expression():
        seen = {}
        for name, traced, _ in calls:
            plain, _ = given(name, (), {})
            for argument in overload(name)._schema.arguments:
                key = {"self": "x"}.get(argument.name, argument.name)
                if argument.has_default_value() and key not in corresponding.IGNORED:
                    seen[key] = seen.get(key, False) or traced[key] != plain[key]
        never += [(calls[0][0], key) for key, other in seen.items() if not other]
    assert never == []


def test_every_row_is_an_operator_with_calls():
    for name in corresponding.table():
        if "::" not in name:
            assert overload(name) and name in CASES
    assert set(CASES) <= set(corresponding.table())


def test_rows_say_where_nan_is_lost():
    for name in LOSE_NAN:
        assert "NaN" in corresponding.row_of(name).differs["mindspore"]


def test_an_operator_in_place_has_the_row_of_the_other():
    sizes = {"x": TensorArgument((2,), "float32"), "other": 2.0, "alpha": 1}
    assert corresponding.answer("add_.Scalar", sizes, "jax") == corresponding.answer(
        "add.Scalar", sizes, "jax"
    )
    assert corresponding.answer("no_such_operator_", sizes, "jax").reason == corresponding.NO_ROW


def test_a_note_is_about_the_framework_that_it_is_shown_for():
    others = {
        "jax": r"mindspore|numpy\b|\bnp\.|xp\.",
        "mindspore": r"jax|flax|numpy|\bnp\.|xp\.",
        "numpy": r"jax|flax|mindspore|xp\.",
    }
    wrong = [
        (row.name, target, note)
        for row in corresponding.table().values()
        for target, note in row.differs.items()
        if target in row.functions and re.search(others[target], note, re.IGNORECASE)
    ]
    assert wrong == []


def test_the_text_of_a_call_is_short():
    """Constants are computed, an index is written as one, and no name of a part that was decided is left."""
    x = TensorArgument((2, 3, 4), "float32")

    def line(name, target, **arguments):
        return corresponding.answer(name, {"x": x, **arguments}, target).expression

    assert line("slice.Tensor", "jax", dim=-1, start=0, end=2, step=1) == "x[:, :, :2]"
    assert line("select.int", "numpy", dim=1, index=-1) == "x[:, -1]"
    assert (
        line("flatten.using_ints", "jax", start_dim=-2, end_dim=-1)
        == "x.reshape(x.shape[:1] + (-1,) + x.shape[3:])"
    )
    assert line("expand", "numpy", size=[-1, 5, 4]) == "np.broadcast_to(x, (x.shape[-3], 5, 4))"
    assert line("rand", "mindspore", size=[2, 3], dtype=None) == "ops.rand(2, 3, dtype=ms.float32)"
    assert line("cumsum", "jax", dim=1, dtype=None) == "jnp.cumsum(x, axis=1, dtype=None)"
