"""Random contractions under conditions, and additions to shifted elements: all passes keep what they mean."""

import numpy as np
import pytest

import instruction_sets
from loop_samples.windows import Windows
from polyop.core.errors import KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import schedule

FORMS, EACH = ("gather", "scatter"), 6


def same(results, expected, where):
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=where)


@pytest.mark.slow(4, more=4)
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("form", FORMS)
def test_scheduled_loops_mean_the_same(form, seed, generate):
    windows = Windows(form, seed)
    kernel = parse(generate.function_of(windows.text), windows.types, windows.attributes)
    scheduled = schedule(kernel).kernel
    assert violations(scheduled) == []
    compared = 0
    for number in range(12):
        arrays = windows.arrays(number, special=number % 2 == 1)
        try:
            expected = interpret(kernel, arrays, windows.attributes)
        except IndexError:
            continue  # the call would be refused: see the compiled ones
        where = f"{windows.text}\n{[a.shape for a in arrays]}"
        same(interpret(scheduled, arrays, windows.attributes), expected, where)
        compared += 1
    assert compared


@pytest.mark.slow
@pytest.mark.parametrize("target", [instruction_sets.BEST, *instruction_sets.OTHERS])
@pytest.mark.parametrize("first", range(100, 130, EACH))
@pytest.mark.parametrize("form", FORMS)
def test_compiled_loops_mean_the_same(form, first, target, generate, batch):
    every = [Windows(form, seed) for seed in range(first, first + EACH)]
    functions = [generate.function_of(one.text) for one in every]
    kernels = [parse(f, one.types, one.attributes) for f, one in zip(functions, every, strict=True)]
    path = batch.build(batch.text(kernels, target), "-DPOLYOP_GRAIN=1")
    for place, (windows, function, kernel) in enumerate(zip(every, functions, kernels, strict=True)):
        run = batch.bound(function, windows.types, windows.attributes, path, place)
        for number in range(12):
            arrays = windows.arrays(number, special=number % 2 == 1)
            where = f"{windows.text}\n{[a.shape for a in arrays]}"
            try:
                expected = interpret(kernel, arrays, windows.attributes)
            except IndexError:
                with pytest.raises(KernelError):
                    run(*arrays)
                continue
            for threads in (1, 3):
                with batch.threads(threads):
                    same(run(*arrays), expected, where)
