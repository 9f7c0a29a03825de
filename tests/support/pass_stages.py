"""Samples after each pass of the tables of passes, for the tests that go through tables and samples."""

import functools
from typing import Any, NamedTuple

from derive_samples.kernels import OF_PASSES
from loop_samples.programs import PROGRAMS
from loop_samples.reference import typed
from polyop.loops.derive.forms import derive
from polyop.loops.derive.pipelines import PIPELINES
from polyop.loops.dims.derive import PASSES, PRIVATE
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Kernel
from polyop.loops.pipeline import PIPELINE, schedule
from polyop.loops.program import Program
from polyop.loops.runner import run_passes

SLICING = (*PASSES, *PRIVATE)
TABLES = {"compiler": PIPELINE, "slicing": SLICING, **PIPELINES}
"""All tables of passes, by name."""


class Stage(NamedTuple):
    """A sample after a pass, or before all of them (``name`` is "")."""

    name: str
    kernel: Kernel
    decided: tuple[Any, ...] = ()
    """What passes find or decide beside the kernel, but the notes."""

    def differs(self, other):
        """Whether a pass between the stages has changed the kernel, or decided something."""
        return self[1:] != other[1:]


def stage(name, program):
    """Return a program as a stage. It has no values of isl, whose memory would stay as long as the stage."""
    recording = getattr(program, "recording", None)
    rules = sorted(set(recording.explain())) if recording is not None else []
    limits = [
        limit
        for bounds in (program.assumed, program.bounds)
        if bounds is not None
        for limit in (bounds.preconditions, bounds.dynamic, [str(one) for one in bounds.sizes])
        if limit
    ]
    return Stage(name, program.kernel, (program.owners, program.plan, limits, rules))


def stages_of(kernel, run):
    """Return the stages of a kernel that ``run`` takes through a table, given a function to call after each pass."""
    stages = [stage("", Program(kernel))]
    run(lambda one, program, seconds: stages.append(stage(one.name, program)))
    return stages


@functools.cache
def of_program(program, table):
    """Return the stages of a row of the table of programs: ``table`` is "compiler" or "slicing"."""
    kernel = typed(program)
    if table == "slicing":
        return stages_of(kernel, lambda watch: run_passes(Program(kernel), SLICING, watch))
    return stages_of(kernel, lambda watch: schedule(kernel, watch, steps=program.steps))


@functools.cache
def of_derivation(case, form):
    """Return the stages of a derivation, and what is derived."""
    function, reals, indices = OF_PASSES[case]
    kernel, derived = parse(function, [(a.dtype.name, a.ndim) for a in (*reals, *indices)], {}), []
    stages = stages_of(kernel, lambda watch: derived.append(derive(kernel, form, watch=watch)))
    return stages, derived[0]


def of_samples(table):
    """Yield the stages of each sample of a table, made when they are asked for."""
    if table in PIPELINES:
        for case in OF_PASSES:
            yield of_derivation(case, table)[0]
        return
    for program in PROGRAMS:
        yield of_program(program, table)
    if table == "compiler":  # some of its passes change derived kernels only
        for case in OF_PASSES:
            gradient = of_derivation(case, "backward")[1]
            yield stages_of(gradient, functools.partial(schedule, gradient))
