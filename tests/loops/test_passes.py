"""Every pass of the compiler keeps the meaning of a kernel: the interpreter runs it after each."""

from dataclasses import replace

import numpy as np
import pytest

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import PIPELINE, schedule
from polyop.loops.runner import Pass


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
            continue  # the larger sizes are for compiled kernels
        arrays = program.arrays(sizes)
        expected = interpret(kernel, arrays, program.attributes)
        for name, changed in chosen:
            for reference, result in zip(
                expected, interpret(changed, arrays, program.attributes), strict=True
            ):
                same(reference, result, program.rough, f"{name} {sizes}")


def same(reference, result, rough, where):
    if rough:
        reference, result = reference.astype(np.float64), result.astype(np.float64)
        np.testing.assert_allclose(result, reference, rough, rough, err_msg=where)
    else:
        np.testing.assert_array_equal(result, reference, err_msg=where)


@pytest.mark.parametrize("name", [one.name for one in PIPELINE if not one.needed])
def test_a_pass_that_is_skipped_leaves_the_meaning(name, programs, monkeypatch):
    monkeypatch.setenv("POLYOP_SKIP_PASSES", name)
    for program in programs.PROGRAMS[::20]:
        kernel = parse(program.function, [(d, len(axes)) for d, axes, _ in program.rows], program.attributes)
        stages = []
        scheduled = schedule(kernel, watch=lambda one, after, seconds, stages=stages: stages.append(one.name))
        assert name not in stages
        arrays = program.arrays(program.sizes()[min(5, len(program.sizes()) - 1)])
        expected = interpret(kernel, arrays, program.attributes)
        for reference, result in zip(
            expected, interpret(scheduled.kernel, arrays, program.attributes), strict=True
        ):
            same(reference, result, program.rough, f"without {name}: {program.name}")


def test_a_pass_that_is_needed_is_not_skipped(programs, monkeypatch):
    monkeypatch.setenv("POLYOP_SKIP_PASSES", ",".join(one.name for one in PIPELINE))
    program = programs.PROGRAMS[0]
    kernel = parse(program.function, [(d, len(axes)) for d, axes, _ in program.rows], program.attributes)
    stages = []
    schedule(kernel, watch=lambda one, after, seconds: stages.append(one.name))
    assert stages == [one.name for one in PIPELINE if one.needed]


def breaks(program):
    """A pass with a bug: it stores a value of another dtype than its buffer."""
    (name,) = program.kernel.outputs
    buffer = replace(program.kernel.buffers[name], dtype="int8")
    return program.with_(kernel=replace(program.kernel, buffers={**program.kernel.buffers, name: buffer}))


def test_strict_says_which_pass_broke_the_grammar(programs, monkeypatch):
    monkeypatch.setenv("POLYOP_STRICT", "1")
    program = programs.PROGRAMS[0]
    kernel = parse(program.function, [(d, len(axes)) for d, axes, _ in program.rows], program.attributes)
    with pytest.raises(AssertionError, match="after breaks: line"):
        schedule(kernel, passes=(*PIPELINE[:3], Pass(breaks, ""), *PIPELINE[3:]))
