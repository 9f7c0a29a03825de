"""Random schedules of the sample programs: each is refused, or keeps the values and can be given back."""

import random

import numpy as np
import pytest

from polyop import Schedule
from polyop.core.errors import ScheduleError
from polyop.loops.analysis.loop_names import loop_names
from polyop.loops.emit.printer import source
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import schedule
from polyop.loops.schedule.chosen import chosen
from polyop.loops.targets import isa

WORDS = ("tile", "interchange", "interchange", "fuse", "unroll", "parallel", "vectorize")


def random_steps(names, rng):
    """Return a schedule of up to four steps for loops of these names."""
    names, steps = list(names), Schedule()
    for word in rng.choices(WORDS, k=rng.randint(1, 4)):
        name = rng.choice(names)
        start = names.index(name)
        if word == "tile":
            steps = steps.tile(name, rng.randint(2, 4))
            names[start : start + 1] = [f"{name}.outer", f"{name}.inner"]
        elif word == "unroll":
            steps = steps.unroll(name, rng.randint(1, 3))
        elif word == "fuse":
            same = [other for other in names if other.split("#")[0] == name.split("#")[0]]
            steps = steps.fuse(*same[:2]) if len(same) > 1 else steps
        elif word == "interchange":
            nest = names[start : start + rng.randint(2, 4)]
            steps = steps.interchange(*reversed(nest)) if len(nest) > 1 else steps
        else:
            steps = getattr(steps, word)(name)
    return steps


@pytest.mark.slow
def test_random_schedules(program):
    tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
    kernel = parse(program.function, tensors, program.attributes)
    names, rng = loop_names(kernel, {}), random.Random(program.name)
    for _ in range(8 if names else 0):
        steps = random_steps(names, rng)
        try:
            first = schedule(kernel, steps=steps)
        except ScheduleError:
            continue
        assert violations(first.kernel) == [], steps
        for sizes in program.sizes():
            if sum(sizes.values()) > 40:
                continue
            arrays = program.arrays(sizes)
            results = interpret(first.kernel, arrays, program.attributes)
            for one, other in zip(interpret(kernel, arrays, program.attributes), results, strict=True):
                expected, result = one.astype(np.float64), other.astype(np.float64)
                np.testing.assert_allclose(result, expected, program.rough, program.rough, err_msg=str(steps))
        second = schedule(kernel, steps=chosen(first))
        name = isa.available()[0]
        assert source(second, name, "f") == source(first, name, "f"), steps
