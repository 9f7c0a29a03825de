"""Every pass of the compiler keeps the meaning of a kernel: the interpreter runs it after each."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loop_samples.reference import typed
from pass_stages import TABLES, of_program, of_samples
from polyop.loops.derive.pipelines import PIPELINES
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import PIPELINE, schedule
from polyop.loops.runner import Pass

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow(8)
def test_each_pass_keeps_the_meaning(program):
    kernel = typed(program)
    chosen = []
    for table in ("compiler", "slicing"):
        after_each = of_program(program, table)
        assert [stage.name for stage in after_each[1:]] == [one.name for one in TABLES[table]]
        for before, stage in itertools.pairwise(after_each):
            if stage.kernel != before.kernel and stage.kernel not in [other.kernel for other in chosen]:
                chosen.append(stage)
    for stage in chosen:
        assert violations(stage.kernel) == [], stage.name
    for sizes in program.sizes():
        if sum(sizes.values()) > 80:
            continue  # the larger sizes are for compiled kernels
        arrays = program.arrays(sizes)
        expected = interpret(kernel, arrays, program.attributes)
        for stage in chosen:
            for reference, result in zip(
                expected, interpret(stage.kernel, arrays, program.attributes), strict=True
            ):
                same(reference, result, program.rough, f"{stage.name} {sizes}")


def same(reference, result, rough, where):
    if rough:
        reference, result = reference.astype(np.float64), result.astype(np.float64)
        np.testing.assert_allclose(result, reference, rough, rough, err_msg=where)
    else:
        np.testing.assert_array_equal(result, reference, err_msg=where)


@pytest.mark.parametrize("table", TABLES)
def test_each_row_of_a_table_changes_a_sample(table):
    """The tests of meaning say nothing of a pass that changes no sample."""
    idle = dict(enumerate((one.name for one in TABLES[table]), 1))
    for after_each in of_samples(table):
        idle = {k: name for k, name in idle.items() if not after_each[k].differs(after_each[k - 1])}
        if not idle:
            break
    rows = ", ".join(f"row {k} ({name})" for k, name in idle.items())
    samples = "OF_PASSES in derive_samples" if table in PIPELINES else "PROGRAMS in loop_samples"
    assert not idle, f"table {table}: {rows}: no sample of {samples} is changed"


def test_there_is_no_other_table():
    text = "\n".join(path.read_text() for path in (ROOT / "src/polyop/loops").rglob("*.py"))
    rows = {id(one) for table in TABLES.values() for one in table}
    assert len(re.findall(r"(?<![\w.])Pass\(\s*\w+,", text)) == len(rows)


@pytest.mark.slow(1)
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
