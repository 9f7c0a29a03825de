"""Random loop programs: plain Python, the interpreter and the compiled code agree."""

import random

import numpy as np
import pytest

from polyop.core.errors import KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.interpret import interpret
from polyop.loops.targets import isa

BATCHES, EACH = 3, 25
numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 promotes Python numbers by their value; a kernel promotes as NumPy 2",
)


@pytest.mark.slow
@numpy_2
@pytest.mark.parametrize("number", range(BATCHES))
def test_random_programs(number, generate, batch):
    programs = [generate.Generator(random.Random(f"{number} {k}")) for k in range(EACH)]
    functions = [program.function() for program in programs]
    kernels = [parse(f, p.types, {}) for f, p in zip(functions, programs, strict=True)]
    target = isa.available()[number % len(isa.available())]
    path = batch.build(batch.text(kernels, target), "-DPOLYOP_GRAIN=1")
    compared = 0
    for k, (program, function, kernel) in enumerate(zip(programs, functions, kernels, strict=True)):
        run = batch.bound(function, program.types, {}, path, k)
        for ragged in (False, False, True):
            compared += agree(generate, batch, program, function, kernel, run, program.arrays(ragged=ragged))
    assert compared > EACH


def agree(generate, batch, program, function, kernel, run, arrays):
    """Compare all runs. Return whether there was something to compare."""
    where = f"{program.text}\n{[a.shape for a in arrays]}"
    try:
        reference = interpret(kernel, arrays)
    except IndexError:
        for refuses in (plain(function), lambda *a: in_threads(batch, run, a)):
            with pytest.raises((IndexError, KernelError)):
                refuses(*(a.copy() for a in arrays))
        return False
    if not generate.exact(reference, program.dtype):
        return False
    by_python = plain(function)(*(a.copy() for a in arrays))
    by_python = by_python if isinstance(by_python, tuple) else (by_python,)
    compiled = in_threads(batch, run, [a.copy() for a in arrays])
    for one, two, three in zip(reference, by_python, compiled, strict=True):
        np.testing.assert_array_equal(one, two, err_msg=f"Python and the interpreter:\n{where}")
        np.testing.assert_array_equal(three, one, err_msg=f"compiled and interpreted:\n{where}")
    return True


def in_threads(batch, run, arrays):
    with batch.threads(3):
        return run(*arrays)
