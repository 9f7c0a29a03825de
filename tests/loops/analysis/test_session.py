"""Each compilation has its own isl context: compilations in several threads do not affect one another."""

from concurrent.futures import ThreadPoolExecutor

import islpy
import pytest

from loop_samples import small
from polyop.loops.analysis.polyhedra import Model
from polyop.loops.analysis.session import IslSession
from polyop.loops.emit.printer import source
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import original, schedule


def typed(function, *ranks):
    return parse(function, [("float32", rank) for rank in ranks], {})


SAMPLES = ((small.softmax, 2), (small.matmul, 2, 2), (small.blurred, 2), (small.with_borders, 1))


def compiled(sample):
    return source(schedule(typed(*sample)), "baseline", "f")


def test_threads_compile_the_same_text_as_one():
    expected = [compiled(sample) for sample in SAMPLES]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(compiled, SAMPLES * 4)) == expected * 4


def test_a_quota_is_for_one_session():
    kernel = typed(small.with_borders, 1)
    with pytest.raises(islpy.Error):
        Model(kernel, IslSession(1)).box("x", ("i",), ("i >= 0",))
    assert not Model(kernel, IslSession()).box("x", ("i",), ("i >= 0",)).is_empty()


def test_a_subset_that_isl_cannot_tell_in_time_is_none_and_costs_the_quota_nothing():
    text = "[n, m] -> {{ [i, j] : 0 <= 5 i + 2 j < n and 0 <= 3 i - j {} m and i >= 0 }}"

    def ask(session):
        small_set, large_set = (islpy.Set(text.format(sign), session.context) for sign in ("<", "<="))
        return session.is_subset(small_set, large_set), session.is_subset(large_set, small_set)

    assert ask(IslSession()) == (True, False)
    session = IslSession(10)
    session.context.set_max_operations(0)  # no limit for what comes before the question
    assert ask(session) == (False, False)
    with pytest.raises(islpy.Error):
        Model(typed(small.with_borders, 1), session).box("x", ("i",), ("i >= 0",))


def test_assumed_sizes_are_for_one_session():
    kernel = typed(small.with_borders, 1)
    session = IslSession()
    model = Model(kernel, session)
    size = model.parameters[0]
    assert size == "x.n0"
    large = model.parameter_set(["v_x_2e_n0 >= 8"])
    narrowed = Model(kernel, session.assuming([large]))
    head = ("x", ("i",), ("i = v_x_2e_n0",))
    assert narrowed.box(*head).params().is_subset(large)
    assert not Model(kernel, session).box(*head).params().is_subset(large)


def test_a_scheduled_program_holds_nothing_of_isl():
    kernel = typed(small.softmax, 2)
    for program in (schedule(kernel), original(kernel)):
        assert "context" not in program.session.__dict__
        assert all(kind.because is None for kind in program.kinds.values())
