# ruff: noqa: F821 - kernels, whose words are no names here
"""Optional tensors and strings: each choice is decided when the kernel is compiled."""

from typing import Literal, NamedTuple, Optional

import numpy as np
import pytest

from polyop.core.errors import ArgumentTypeError, ArgumentValueError, PolyopError, UnsupportedError
from polyop.loops.frontend.parse import outline, parse, run_static_checks
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.grammar import If, statements
from polyop.loops.ir.interpret import interpret

Mode = Literal["mean", "sum"]
X, B = np.arange(6.0).reshape(2, 3), np.array([0.5, -2.0])


def reduced(x, b: "Tensor | None" = None, mode: str = "mean"):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0.0 if b is None else b[i]
        for j in range(x.shape[1]):
            y[i] += x[i, j]
        if mode == "mean":
            y[i] /= x.shape[1]
        elif mode not in ("sum", "total"):
            y[i] = 7.0
    return y


def picked(v, w=None, mode="lo"):
    """A helper whose conditions are decided too."""
    if mode == "lo":
        return v * 2
    if w is None:
        return v
    return v + w[0]


def helped(x, b: Optional["Tensor"] = None, mode: Mode = "mean", flag: bool = True):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = picked(x[i, 0], b, mode="hi") if flag and b is not None else picked(x[i, 0])
    if mode == "mean":
        return y
    for i in range(x.shape[0]):
        while b is not None and y[i] < b[i]:
            y[i] += 1.0
        y[i] += 100.0
    return y


def empty_branches(x, b=None, mode="a"):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        if b is None or mode == "a":
            y[i] += 1.0
            continue
        if not (mode != "b" and b is not None):
            y[i] = b[i]
    return y


CALLS = [(reduced, b, (mode,)) for b in (None, B) for mode in ("mean", "sum", "total")] + [
    (helped, b, (mode, flag)) for b in (None, B) for mode in ("mean", "sum") for flag in (True, False)
]
CALLS += [(empty_branches, b, (mode,)) for b in (None, B) for mode in ("a", "b")]


@pytest.mark.parametrize(("function", "b", "attributes"), CALLS)
def test_each_choice_is_a_kernel_that_computes_what_python_does(function, b, attributes):
    names = dict(zip(outline(function).parameters[2:], attributes, strict=False))
    kernel = parse(function, [("float64", 2), None if b is None else ("float64", 1)], names)
    given = [X, np.array(False) if b is None else b]
    numbers = {name: value for name, value in names.items() if not isinstance(value, str)}
    (result,) = interpret(kernel, given, numbers)
    np.testing.assert_array_equal(result, plain(function)(X, b, *attributes))
    ifs = [one for one in statements(kernel.body) if isinstance(one, If)]
    assert function is not reduced or not ifs  # nothing is left to test at run time


def test_what_the_text_says_of_its_parameters():
    assert outline(reduced).optional == ("b",) and outline(helped).optional == ("b",)
    assert dict(outline(reduced).strings) == {"mode": ("mean", "sum", "total")}
    assert dict(outline(helped).strings) == {"mode": ("mean", "sum")}


def test_a_string_is_a_dtype():
    def cast(x, dtype="int32"):
        y = output_tensor((1,), dtype)
        y[0] = x[0]
        return y

    for dtype in ("int32", "float32"):
        assert parse(cast, [("float64", 1)], {"dtype": dtype}).buffers["y"].dtype == dtype
    with pytest.raises(PolyopError, match="int33"):
        parse(cast, [("float64", 1)], {"dtype": "int33"})


def outside(x, b=None):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * b[i]
    return y


def added(x, mode="sum"):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0] + mode if mode == "sum" else 0.0
    return y


def unlisted(x, mode: Literal["mean", "sum"]):
    y = output_tensor(x.shape, x.dtype)
    y[0] = 1.0 if mode == "men" else 0.0
    return y


class Scaling(NamedTuple):
    factor: float = 3.0
    kind: str = "whole"


def scaled(v, p: Scaling):
    return v / p.factor if p.kind == "inverse" else v * p.factor


def by_record(x, p: Scaling, n: int):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = scaled(x[i, 0], p) + n
    return y


def by_helper(x, mode: str, other: str = "none"):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = picked(x[i, 0], mode=mode) + picked(x[i, 0], mode=other)
    return y


def other_outputs(x, b=None):
    y = output_tensor(x.shape, x.dtype)
    if b is None:
        return y
    z = output_tensor(b.shape, b.dtype)
    return y, z


def number(x, n: "int | None" = None):
    y = output_tensor(x.shape, x.dtype)
    y[0] = 1.0 if n is None else 2.0
    return y


ERRORS = [
    (outside, ArgumentTypeError, r"b may be None, and this line also runs without it.*y\[i\] = x\[i\] \* b\[i\]\n.*write it below if b is not None"),
    (added, ArgumentTypeError, r'mode is a string, which is no value of a kernel.*compare it: if mode == "sum"'),
    (unlisted, ArgumentValueError, "mode is never 'men': its annotation lists 'mean', 'sum'"),
    (other_outputs, ArgumentValueError, "every choice returns the same tensors, but got y where b is None"),
    (number, UnsupportedError, "the operator 'is' is not compiled.*only a tensor may be None"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "kind", "words"), ERRORS, ids=[row[0].__name__ for row in ERRORS])
def test_what_is_refused_when_the_kernel_is_defined(function, kind, words):
    with pytest.raises(kind, match=f"(?s){words}"):
        run_static_checks(function)


CALLED = [
    (reduced, None, {"mode": "median"}, "mode is one of 'mean', 'sum', 'total', but got 'median'"),
    (reduced, None, {"mode": 3}, "the attribute mode is a string, but got 3"),
    (
        by_record,
        ...,
        {"p_factor": 3.0, "p_kind": "hole", "n": 1},
        "p_kind is one of 'whole', 'inverse', but got 'hole'",
    ),
    (by_helper, ..., {"mode": "", "other": "lo"}, "mode is one of 'lo', but got ''"),
    (helped, None, {"mode": "total"}, "mode is one of 'mean', 'sum', but got 'total'"),
]


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (by_record, {"p_factor": 3.0, "p_kind": "whole", "n": 1}),
        (by_record, {"p_factor": 3.0, "p_kind": "inverse", "n": 1}),
        (by_helper, {"mode": "lo", "other": "none"}),
        (by_helper, {"mode": "lo", "other": "lo"}),
    ],
)
def test_defaults_and_what_helpers_compare_with_are_choices(function, given):
    run_static_checks(function)
    numbers = {name: value for name, value in given.items() if not isinstance(value, str)}
    (found,) = interpret(parse(function, [("float64", 2)], given), [X], numbers)
    passed = {"p": Scaling(given["p_factor"], given["p_kind"]), "n": 1} if function is by_record else given
    np.testing.assert_array_equal(found, plain(function)(X, **passed))


@pytest.mark.parametrize(("function", "b", "attributes", "words"), CALLED)
def test_what_is_refused_when_it_is_called(function, b, attributes, words):
    with pytest.raises(PolyopError, match=words):
        parse(function, [("float64", 2), *([] if b is ... else [b])], attributes)
    with pytest.raises(ArgumentTypeError, match=r'the tensor x must not be None.*(?s:.)*x: "Tensor \| None"'):
        parse(function, [None], {})
