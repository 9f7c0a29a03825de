"""The tensors that a gradient rule reads are kept until backward; one missed would be lost."""

import pytest

from polyop.call.uses import Uses, used_by_rule


def stored_then_loaded(x, out, d):
    a = d
    return (x * a,)  # fused into one instruction on Python 3.13


def in_a_closure(x, out, d):
    later = lambda: x * d  # noqa: E731
    return (later(),)


def everything(*args):
    return (args[0],)


def by_locals(x, out, d):
    return (locals()["x"] * d,)


def by_eval(x, out, d):
    return (eval("x") * d,)


def only_the_output(x, out, d):
    return (out * d,)


def rebound(x, out, d):
    x = d
    return (x,)


@pytest.mark.parametrize(
    ("rule", "inputs", "output"),
    [
        (lambda x, out, d: (2 * d,), False, False),
        (lambda x, out, d: (x * d,), True, False),
        (stored_then_loaded, True, False),
        (in_a_closure, True, False),
        (everything, True, True),
        (by_locals, True, True),
        (by_eval, True, True),
        (only_the_output, False, True),
        (rebound, True, False),
        (max, True, True),
        (None, False, False),
    ],
)
def test_what_a_rule_reads(rule, inputs, output):
    assert used_by_rule(rule, 1) == Uses((inputs,), output)
