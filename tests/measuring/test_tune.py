"""``polyop tune``: legal schedules, equal values, what is kept, and how it is read when a kernel is compiled."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import polyop
from polyop import Schedule
from polyop.call.explain import explain
from polyop.cli.main import main
from polyop.core.errors import ArgumentValueError, ScheduleError, UnsupportedError
from polyop.core.spec import Spec
from polyop.loops.library import tuned
from polyop.loops.library.tuned import SAME_BITS
from polyop.loops.pipeline import schedule
from polyop.testing.case import BrokenRuleError
from polyop.tune.model import estimate
from polyop.tune.search_space import Space
from polyop.tune.variants import Subject, difference

TEXT = """
import polyop

FACTOR = 2.0


@polyop.kernel(name="tuned{number}::transposed")
def transposed(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j] * FACTOR
    return y


@polyop.kernel(name="tuned{number}::rows")
def rows(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
        y[i] = total
    return y
"""
BLOCKS = Schedule().tile("i", 16).tile("j", 16).interchange("i.outer", "j.outer", "i.inner", "j.inner")
numbers = iter(range(1000))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / f"tuned_{next(numbers)}.py"
    path.write_text(TEXT.format(number=path.stem.removeprefix("tuned_")))
    return path


def loaded(path):
    from polyop.cli.load import load

    return load(str(path))


def kept(operator, specs, steps, **changes):
    """Write an entry for a kernel, as a search does, and return it."""
    from polyop.tune.keep import keep
    from polyop.tune.search import Outcome, Tried

    subject = Subject.of(operator, specs, {})
    outcome = Outcome(subject, best=Tried(steps, "measured", values=SAME_BITS), gain=(2.0, 1.5, 2.5))
    written = Path(keep(outcome))
    data = json.loads(written.read_text())
    data["entries"][-1].update(changes)
    written.write_text(json.dumps(data))
    tuned._read.clear()
    return written


def explained(operator, *sizes):
    kernel = operator.operator.kernels[0]
    return "\n".join(kernel.explain([Spec(sizes, "float32")], {}))


def test_the_verb_keeps_what_explain_and_calls_use(file, capsys):
    """The default walks across rows; blocks are several times as fast on any machine."""
    options = ["--input", "float32[1024,1024]", "--seconds", "4"]
    assert main(["tune", str(file), "transposed", *options, "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert sum(facts["counts"].values()) == len(facts["tried"])
    assert facts["counts"]["measured"] > 0
    assert all(one["values"] == SAME_BITS for one in facts["tried"] if one["gain"] is not None)
    if facts["best"] is None:  # another program took the processors
        assert not Path(f"{file}.tuned.json").exists()
        return
    assert facts["file"] == f"{file}.tuned.json"
    operator = loaded(file).transposed
    text = explained(operator, 1000, 1000)
    assert "for float32[1024,1024], " in text
    assert f"from {file}.tuned.json; values: {SAME_BITS}" in text
    assert "tuned on" not in explained(operator, 8, 1000)
    x = np.random.default_rng(0).random((1000, 1000), np.float32)
    np.testing.assert_array_equal(operator(x), x.T * np.float32(2))


@pytest.mark.parametrize(
    ("ratios", "reason"),
    [
        ((), "no other schedule was measured"),
        (
            (1.25, 2.0),
            "of the 2 that were measured, the fastest is 0.80 times as fast, and 1.03 times is the least",
        ),
        (
            (0.5, 2.0),
            "of the 2 that were measured, the fastest is 2.00 times as fast in the median, but not beyond noise",
        ),
    ],
)
def test_the_table_says_why_the_default_was_the_best(file, ratios, reason):
    from polyop.tune.as_text import table
    from polyop.tune.search import Outcome, Tried

    subject = Subject.of(loaded(file).rows, [Spec((64, 32), "float32")], {})
    tried = [Tried(Schedule(), "measured", 1.0, ratio, 1.0, SAME_BITS) for ratio in ratios]
    lines = list(table(Outcome(subject, tried, default_cost=1.0)))
    assert f", {len(ratios)} measured; default" in lines[1]
    assert lines[-1].startswith(f"the default is the best, and nothing is kept: {reason}")


def test_the_table_counts_everything(file, capsys):
    assert main(["tune", str(file), "rows", "--input", "float32[64,32]", "--seconds", "1", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"schedules tried in \d+ s, \d+ measured; default", text)
    assert "default / it" in text or "nothing is kept" in text
    assert not Path(f"{file}.tuned.json").exists()


def test_recorded_calls_and_gradients_are_tuned(file, tmp_path, capsys):
    number = file.stem.removeprefix("tuned_")
    tensor = {"dtype": "float32", "shape": [16, 24], "strides": [24, 1], "device": "cpu"}
    row = {"operator": f"tuned{number}::rows", "part_of": "", "tensors": {"x": tensor}, "attributes": {}}
    calls = tmp_path / "calls.json"
    calls.write_text(json.dumps({"format": 1, "calls": [row]}))
    options = ["--from", str(calls), "--gradient", "--seconds", "0.5", "--json"]
    assert main(["tune", str(file), *options]) == 0
    facts = json.loads(capsys.readouterr().out)
    names = [f"tuned{number}::rows", f"tuned{number}::rows__backward"]
    assert [fact["operator"] for fact in facts] == names
    assert facts[0]["inputs"] == "float32[16,24]"


def test_a_kept_schedule_changes_the_code_of_its_sizes(file):
    operator = loaded(file).transposed
    kept(operator, [Spec((64, 64), "float32")], BLOCKS)
    assert "as the schedule says: tile" in explained(operator, 60, 70)
    assert "as the schedule says" not in explained(operator, 60, 700)
    for shape in ((64, 64), (60, 70), (5, 700)):
        x = np.random.default_rng(1).random(shape, np.float32)
        np.testing.assert_array_equal(operator(x), x.T * np.float32(2))
    kernel = operator.operator.kernels[0]
    assert {options.schedule for _, options in kernel._libraries} == {Schedule(), BLOCKS}


def test_no_tuned_schedule_with_the_variable(file, monkeypatch):
    operator = loaded(file).transposed
    kept(operator, [Spec((64, 64), "float32")], BLOCKS)
    monkeypatch.setenv(tuned.VARIABLE, "0")
    assert "tuned on" not in explained(operator, 64, 64)


def test_an_edited_function_has_one_warning_and_the_default(file):
    kept(loaded(file).transposed, [Spec((64, 64), "float32")], BLOCKS)
    text = file.read_text().replace("tuned", "edited", 1)
    file.write_text(f"# the text moves down\n\n{text}")
    assert "tuned on" in explained(loaded(file).transposed, 64, 64)
    file.write_text(text.replace("FACTOR = 2.0", "FACTOR = 3.0"))
    operator = loaded(file).transposed
    with pytest.warns(polyop.FallbackWarning, match="for another text of it, and not used: polyop tune"):
        assert "tuned on" not in explained(operator, 64, 64)
    x = np.ones((64, 64), np.float32)
    np.testing.assert_array_equal(operator(x), 3 * x.T)


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("{", "JSONDecodeError"),
        ('{"format": 9, "entries": []}', "it has format 9, not 1"),
        ('{"format": 1, "entries": [{"function": 1}]}', "ValueError"),
    ],
)
def test_a_damaged_file_is_ignored_with_a_warning(file, content, seen):
    Path(f"{file}.tuned.json").write_text(content)
    operator = loaded(file).transposed
    with pytest.warns(polyop.FallbackWarning, match=f"is ignored, as it cannot be read: .*{seen}"):
        operator(np.ones((3, 4), np.float32))


@pytest.mark.parametrize(
    "steps", [[["explode", ["i"], 2]], [["tile", ["i"], -1]], [["tile", "i"]], [["tile", ["i"], "a"]]]
)
def test_steps_that_are_no_steps_are_not_run(file, steps):
    operator = loaded(file).transposed
    kept(operator, [Spec((64, 64), "float32")], BLOCKS, schedule=steps)
    with pytest.warns(polyop.FallbackWarning, match="is ignored, as it cannot be read"):
        operator(np.ones((64, 64), np.float32))


def test_a_step_that_is_not_legal_is_not_used(file):
    operator = loaded(file).transposed
    kept(operator, [Spec((64, 64), "float32")], Schedule().tile("k", 4))
    with pytest.warns(polyop.FallbackWarning, match="the schedule of transposed is not used"):
        np.testing.assert_array_equal(
            operator(np.ones((64, 64), np.float32)), np.full((64, 64), 2, np.float32)
        )


def test_the_default_is_best_forgets_an_earlier_schedule(file):
    from polyop.tune.keep import keep
    from polyop.tune.search import Outcome

    operator = loaded(file).transposed
    path = kept(operator, [Spec((64, 64), "float32")], BLOCKS)
    kept(operator, [Spec((512, 64), "float32")], BLOCKS)
    assert len(tuned.read(str(path))) == 2
    assert keep(Outcome(Subject.of(operator, [Spec((64, 64), "float32")], {}))) == ""
    assert [entry.sizes for entry in tuned.read(str(path))] == ["512x64"]


def test_a_folder_that_cannot_be_written(file, tmp_path):
    """In a process without rights: root may write everywhere."""
    code = f"""
import os, sys
os.environ["POLYOP_CACHE_DIR"] = {str(tmp_path / "cache")!r}
sys.path.insert(0, {str(file.parent)!r})
from polyop.loops.library import tuned
from polyop.loops.library.tuned import SAME_BITS
real = tuned._write
def refuse(path, entries):
    if path.startswith({str(file)!r}):
        raise PermissionError(path)
    real(path, entries)
tuned._write = refuse
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_tune as tools
operator = tools.loaded({str(file)!r}).transposed
path = tools.kept(operator, [tools.Spec((64, 64), "float32")], tools.BLOCKS)
assert str(path).startswith({str(tmp_path / "cache")!r}), path
assert f"from {{path}}" in tools.explained(operator, 64, 64)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not Path(f"{file}.tuned.json").exists()


def test_sums_in_another_order_are_said_and_not_measured(file):
    subject = Subject.of(loaded(file).rows, [Spec((64, 1000), "float32")], {})
    default = subject.results(subject.with_schedule(Schedule()))
    other = subject.results(subject.with_schedule(Schedule().tile("j", 8)))
    is_same = other[0].tobytes() == default[0].tobytes()  # as the lanes of this machine have it
    sums = "sums in another order than the default's"
    assert difference(subject, other, default).startswith(SAME_BITS if is_same else sums)
    assert difference(subject, [default[0].copy()], default) == SAME_BITS
    wrong = [default[0] + 1]
    with pytest.raises(BrokenRuleError):
        difference(subject, wrong, default)
    near = [default[0] * np.float32(1 + 1e-6)]
    assert difference(subject, near, default).startswith(sums)


def test_every_neighbour_of_the_default_is_legal_or_refused(file):
    """A legal one has the values of the default; a refused one raises before anything runs."""
    subject = Subject.of(loaded(file).transposed, [Spec((40, 24), "float32")], {})
    space, default = Space.of(subject.typed), subject.results(subject.with_schedule(Schedule()))
    outcomes = set()
    for values in list(space.neighbours())[::4]:
        steps = space.schedule(values, Schedule())
        assert steps.steps
        try:
            call = subject.with_schedule(steps)
            np.testing.assert_array_equal(subject.results(call)[0], default[0])
            outcomes.add("legal")
        except ScheduleError:
            outcomes.add("refused")
    assert "legal" in outcomes
    assert space.schedule(space.default(), Schedule()) == Schedule()


def test_the_model_prefers_blocks_to_columns_and_threads_to_none(file):
    spec = Spec((1024, 1024), "float32")
    kernel = loaded(file).transposed.operator.kernels[0].typed([spec], {})

    def cost(steps, threads=2):
        return estimate(schedule(kernel, steps=steps), [spec], {}, threads, 32)

    columns = Schedule().parallel("i")  # loops that the author names stay: the default has blocks
    assert cost(BLOCKS) < cost(columns)
    assert cost(Schedule()) < cost(Schedule(), threads=1)


def test_gradients_are_subjects_of_their_own(file):
    subject = Subject.of(loaded(file).transposed, [Spec((64, 32), "float32")], {})
    (gradient,) = subject.gradient()
    assert (gradient.typed.name, gradient.inputs) == ("transposed__backward", "- - float32[32,64]")
    call = gradient.with_schedule(Schedule())
    np.testing.assert_array_equal(gradient.results(call)[0], np.full((64, 32), 2, np.float32))


def test_a_tuned_schedule_is_for_dense_memory(file):
    operator = loaded(file).transposed
    kept(operator, [Spec((512, 512), "float32")], BLOCKS)
    x = np.arange(512 * 600, dtype=np.float32).reshape(512, 600)[:, :512]  # large enough to be read in place
    for _ in range(8):
        np.testing.assert_array_equal(operator(x), 2 * x.T)
    text = explain(operator, (Spec((512, 512), "float32"),))
    assert "in rows are copied: the schedule that was tuned" in text
    assert "where they lie" not in text


def test_what_is_written_in_place_has_its_first_values_again(tmp_path):
    path = tmp_path / "written.py"
    path.write_text("""
import polyop


@polyop.kernel(name="written::doubled")
def doubled(x):
    for i in range(x.shape[0]):
        x[i] = 2.0 * x[i]
    return x
""")
    subject = Subject.of(loaded(path).doubled, [Spec((64,), "float32")], {})
    call = subject.with_schedule(Schedule())
    first = subject.results(call)
    call()  # as a measurement does, many times
    other = subject.results(subject.with_schedule(Schedule().tile("i", 8)))
    assert difference(subject, other, first) == SAME_BITS


def test_what_has_no_schedule(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text(
        "import polyop\nf = polyop.operator('plainly::f(Tensor x) -> Tensor', lambda x: x, infer='x')\n"
    )
    with pytest.raises(UnsupportedError, match="only loop kernels have one"):
        Subject.of(loaded(path).f, [Spec((2,), "float32")], {})


def test_explain_says_that_a_tuned_schedule_has_other_bits(file):
    """A row alone takes the default, in a batch of this size another order of its sum."""
    operator = loaded(file).rows
    kernel, specs = operator.operator.kernels[0], [Spec((64, 64), "float32")]
    assert kernel.explain_bits(specs, {}).startswith("the same for a row alone")
    kept(operator, specs, Schedule().vectorize("i"), values="sums differ")
    seen = kernel.explain_bits(specs, {})
    assert seen == "depend on the sizes: the schedule tuned for float32[64,64] adds in another order"


def test_a_deterministic_kernel_is_not_tuned(file):
    given = loaded(file).rows
    operator = polyop.kernel(given.python, name=f"{file.stem}::in_order", deterministic="batch")
    with pytest.raises(UnsupportedError, match="one schedule serves all sizes"):
        Subject.of(operator, [Spec((64, 64), "float32")], {})
    assert tuned.find(*_typed(operator), [(64, 64)]) is None


def _typed(operator):
    kernel = operator.operator.kernels[0]
    return kernel.typed([Spec((64, 64), "float32")], {}), kernel.options


def test_tuning_again_starts_from_the_compilers_choice(file):
    """What was kept before is no default: else nothing would beat it, and it would be forgotten."""
    operator = loaded(file).transposed
    specs = [Spec((64, 64), "float32")]
    kept(operator, specs, BLOCKS)
    subject = Subject.of(operator, specs, {})
    default = subject.with_schedule(subject.kernel.schedule)
    default()
    (kernel,) = [k for k in _kernels(default) if k.device == "cpu"]
    assert [options.schedule for _, options in kernel._libraries] == [Schedule()]
    assert "tile" in str(operator.operator.kernels[0].scheduled(specs, {}).applied)


def _kernels(call):
    bound = next(cell.cell_contents for cell in call.__closure__ if hasattr(cell.cell_contents, "operator"))
    return bound.operator.kernels


def test_a_schedule_whose_threads_share_sums_has_another_order(file):
    """For a few rows one thread runs, and the bits are equal: that says nothing of other sizes."""
    from polyop.tune.search import Search, Tried

    operator = loaded(file).rows
    search = Search(Subject.of(operator, [Spec((4, 64), "float32")], {}), 5, 0, False, print)
    steps = Schedule().parallel("j")
    for one in (Schedule(), steps):
        search.cost(one)
    tried = Tried(steps, "")
    search.time(tried, search.study.ask(search.distributions))
    assert (tried.outcome, tried.values) == ("reordered", "threads share the sums total: another order")


def test_a_kept_schedule_that_shares_sums_is_no_promise_of_bits(file):
    operator = loaded(file).rows
    kernel, specs = operator.operator.kernels[0], [Spec((64, 64), "float32")]
    kept(operator, specs, Schedule().parallel("j"))
    assert "each has its own part of total" in kernel.explain_bits(specs, {})


def test_a_file_of_another_version_is_not_written_over(file):
    operator = loaded(file).rows
    specs = [Spec((64, 64), "float32")]
    path = kept(operator, specs, Schedule().vectorize("j"))
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    before = path.read_text()
    with pytest.raises(ArgumentValueError, match="no file of schedules that this polyop can read"):
        kept(operator, specs, Schedule().vectorize("j"))
    assert path.read_text() == before


def test_explain_takes_the_default_where_a_tuned_schedule_is_refused(file):
    operator = loaded(file).rows
    kept(operator, [Spec((64, 64), "float32")], Schedule().vectorize("nope"))
    with pytest.warns(polyop.FallbackWarning, match="there is no loop nope"):
        text = explained(operator, 64, 64)
    assert "tuned on" not in text and "compiled for" in text
