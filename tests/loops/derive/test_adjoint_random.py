"""Gradients of random programs of the generator, against differences in random directions."""

import random

import numpy as np
import pytest

from derive_samples import differences
from polyop.core.errors import GradientError

EACH, BATCHES = 12, 4


def programs(generate, number):
    """Yield programs in double precision."""
    found = 0
    for k in range(10_000):
        program = generate.Generator(random.Random(f"gradient {number} {k}"))
        dtypes = {dtype for dtype, _ in program.tensors.values()}
        if "float64" in dtypes and not dtypes & {"float32", "float16", "bfloat16"}:
            found += 1
            yield k, program
        if found == EACH:
            return


@pytest.mark.slow
@pytest.mark.parametrize("number", range(BATCHES))
def test_random_programs(number, generate):
    compared = 0
    for k, program in programs(generate, number):
        draw = np.random.default_rng([number, k])
        reals = [draw.uniform(-1.5, 1.5, a.shape) if a.dtype.kind == "f" else a for a in program.arrays()]
        try:
            derived = differences.Derived(program.function(), reals)
            derived.outputs(reals)
        except IndexError:
            continue
        except GradientError as error:
            raise AssertionError(f"{program.text}\n{error}") from error
        try:
            differences.check_directions(derived, reals, rough=1e-5)
        except AssertionError as error:
            raise AssertionError(f"{program.text}\n{error}") from error
        compared += 1
    assert compared > EACH // 2
