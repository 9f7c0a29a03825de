"""After every pass of the compiler a kernel means what it meant before."""

import numpy as np

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import PIPELINE, schedule


def after_each(kernel):
    """Return the kernel after each pass, with the pass's name."""
    stages = []
    schedule(kernel, watch=lambda one, program, seconds: stages.append((one.name, program.kernel)))
    return stages


def test_each_pass_keeps_the_meaning(program):
    tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
    kernel = parse(program.function, tensors, program.attributes)
    stages = after_each(kernel)
    assert [name for name, _ in stages] == [one.name for one in PIPELINE]
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
