"""Every pass of a derivation keeps what the kernel means, and any pass that can be skipped may be left out."""

import numpy as np
import pytest

from derive_samples import differences
from derive_samples.kernels import OF_PASSES
from polyop.loops.analysis.initialisation import with_initialisation
from polyop.loops.derive.forms import derive
from polyop.loops.derive.pipelines import ADJOINT, CHECKPOINTED, PIPELINES
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import schedule

SKIPPABLE = [one.name for one in ADJOINT if not one.needed]


def kernel_of(case):
    function, reals, indices = OF_PASSES[case]
    arrays = [*reals, *indices]
    return parse(function, [(a.dtype.name, a.ndim) for a in arrays], {}), arrays


@pytest.mark.slow(5)
@pytest.mark.parametrize("form", PIPELINES)
@pytest.mark.parametrize("case", OF_PASSES)
def test_each_pass_keeps_the_meaning(case, form, helpers):
    """All stages with the same outputs give the same values: those of the primal, then of the derived kernel.

    The compiler's own passes on the derived kernel are among them: some change no other kernels.
    """
    kernel, arrays = kernel_of(case)
    if form == "batched":
        arrays = [np.stack([a, a]) for a in arrays]
    stages = []

    def watch(one, program, seconds):  # which buffers start as zeros is settled by the last pass alone
        stages.append((one, with_initialisation(program.kernel, program.session)))

    derived = derive(kernel, form, watch=watch)
    if derived is not None:
        schedule(derived, watch=lambda one, program, seconds: stages.append((one, program.kernel)))
    random = np.random.default_rng(0)
    values = dict(zip(kernel.parameters, arrays, strict=True))
    if form != "batched":
        values |= zip(kernel.outputs, interpret(kernel, arrays, {}), strict=True)
    results, before = {}, None
    for one, stage in stages:
        if stage == before:
            continue
        before = stage
        assert violations(stage, unique_loops=one.unique_loops) == [], one.name
        for name in stage.parameters:
            if name not in values:  # the gradient d_y of y, the tangent t_x of x
                like = values[name[2:]]
                values[name] = random.normal(size=like.shape) if helpers.real(like) else like
        seen = interpret(stage, helpers.given(stage, [values[n] for n in stage.parameters]), {})
        expected = results.setdefault((stage.name, stage.outputs), seen)
        for a, b in zip(expected, seen, strict=True):
            np.testing.assert_allclose(b, a, 1e-9, 1e-12, err_msg=one.name)


@pytest.mark.slow(4)
@pytest.mark.parametrize("name", SKIPPABLE)
@pytest.mark.parametrize("case", OF_PASSES)
def test_a_pass_that_is_skipped_leaves_the_gradient(case, name, monkeypatch):
    monkeypatch.setenv("POLYOP_SKIP_PASSES", name)
    function, reals, indices = OF_PASSES[case]
    arrays = [*reals, *indices]
    derived = differences.Derived(function, arrays)
    differences.check_directions(derived, arrays, rough=1e-4)


def test_checkpointing_has_the_passes_of_the_gradient_and_its_own():
    names, more = ([one.name for one in table] for table in (ADJOINT, CHECKPOINTED))
    at = names.index("reverse")
    assert more == [*names[:at], "checkpointing", "to_be_recorded", *names[at:]]
