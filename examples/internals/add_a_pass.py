"""Add a pass: a function from Program to Program, in a copy of the table of passes."""

# ruff: noqa: F821 - the words of loop kernels

from dataclasses import replace

import numpy as np

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Const, Op
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.rewriter import rewrite
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import PIPELINE, schedule
from polyop.loops.program import Note
from polyop.loops.runner import Pass, printer

# [pass]
POWERS = [2.0**k for k in range(-10, 11)]  # their reciprocals are exact, in float16 too


def divide_by_powers_of_two(program):
    """Replace a division by a power of two with a multiplication.

    y[i] = x[i] / 4.0    ->    y[i] = x[i] * 0.25

    The reciprocal of a power of two is exact, so every result stays the same to the last bit.
    """
    kernel = program.kernel
    body = tuple(rewrite(statement, reciprocal) for statement in kernel.body)
    if body == kernel.body:
        return program
    note = Note(0, "divisions by powers of two are multiplications", "divide_by_powers_of_two")
    return program.with_(note, kernel=replace(kernel, body=body))


def reciprocal(expr):
    match expr:
        case Op("/", (value, Const(float(number), number_type))) if number in POWERS:
            return Op("*", (value, Const(1.0 / number, number_type)), expr.type)
    return expr


# [/pass]


# [pipeline]
def with_pass(passes, added, before):
    """Return a copy of a table of passes with a further row."""
    position = [one.name for one in passes].index(before)
    return (*passes[:position], added, *passes[position:])


MINE = Pass(divide_by_powers_of_two, "A multiplication takes less time than a division.")
PASSES = with_pass(PIPELINE, MINE, before="bound_checks")
# [/pipeline]


# [kernel]
def quarter(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (x[i] + 1.0) / 4.0
    return y


kernel = parse(quarter, [("float32", 1)], {})
show = printer("divide_by_powers_of_two,plan_loops", print)
program = schedule(kernel, watch=show, passes=PASSES)
print(program.notes[0].text)
# [/kernel]

# [check]
x = np.random.default_rng(0).normal(size=9).astype(np.float32)
before, after = interpret(kernel, [x], {}), interpret(program.kernel, [x], {})
np.testing.assert_array_equal(before[0], after[0])  # the oracle runs both: no bit may differ
assert violations(program.kernel) == []
# [/check]
