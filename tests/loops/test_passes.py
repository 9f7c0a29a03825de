"""After every pass of the compiler a kernel means what it meant before."""

import inspect

import numpy as np
import pytest

from polyop.loops import pipeline as compiler
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Kernel
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations


@pytest.fixture
def passes(monkeypatch):
    """Return a function that gives the kernel after each pass, with the pass's name."""
    found = []

    def watched(name, function):
        def run(*inputs, **named):
            made = function(*inputs, **named)
            kernel = made[0] if isinstance(made, tuple) and made else made
            if isinstance(kernel, Kernel):
                found.append((name, kernel))
            return made

        return run

    for name, function in inspect.getmembers(compiler, inspect.isfunction):
        if function.__module__ != compiler.__name__:
            monkeypatch.setattr(compiler, name, watched(name, function))

    def of(kernel):
        found.clear()
        compiler.schedule(kernel)
        return list(found)

    return of


def test_each_pass_keeps_the_meaning(program, passes):
    tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
    kernel = parse(program.function, tensors, program.attributes)
    stages = passes(kernel)
    assert {name for name, _ in stages} >= {"starts", "privatise", "restructure", "accumulate"}
    chosen = [stages[k] for k in range(len(stages)) if k == 0 or stages[k][1] != stages[k - 1][1]]
    for name, changed in chosen:
        assert violations(changed) == [], name
    for sizes in program.sizes():
        if sum(sizes.values()) > 80:
            continue  # the larger sizes are for what the compiler emits
        arrays = program.arrays(sizes)
        expected = interpret(kernel, arrays, program.attributes)
        for name, changed in chosen:
            for wanted, seen in zip(expected, interpret(changed, arrays, program.attributes), strict=True):
                same(wanted, seen, program.rough, f"{name} {sizes}")


def same(wanted, seen, rough, where):
    if rough:
        wanted, seen = wanted.astype(np.float64), seen.astype(np.float64)
        np.testing.assert_allclose(seen, wanted, rough, rough, err_msg=where)
    else:
        np.testing.assert_array_equal(seen, wanted, err_msg=where)
