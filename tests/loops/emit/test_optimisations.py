"""What the printer of C does for speed: each row of its table changes the text of a sample when it is left out."""

import functools

import pytest

from loop_samples.programs import PROGRAMS
from loop_samples.reference import typed
from polyop.loops.emit.c.optimisations import OPTIMISATIONS
from polyop.loops.emit.printer import source
from polyop.loops.pipeline import PIPELINE, schedule

NAMES = [one.name for one in OPTIMISATIONS]


@functools.cache
def scheduled(program):
    return schedule(typed(program), steps=program.steps)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_row_the_text_of_a_sample_is_another(name, monkeypatch):
    def text(program, skipped):
        monkeypatch.setenv("POLYOP_SKIP_PASSES", skipped)
        return source(scheduled(program), "avx2", "f")

    assert any(text(program, "") != text(program, name) for program in PROGRAMS), name


def test_a_name_is_one_pass_or_one_optimisation():
    names = [*NAMES, *{one.name for one in PIPELINE}]
    assert len(names) == len(set(names))
