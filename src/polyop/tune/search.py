"""Search the fastest schedule: the cost model ranks what is proved legal, measurements decide.

Optuna proposes the values, with its TPE sampler. Its ask-and-tell interface leaves compiling, measuring and
the time budget to us. The sampler takes parameters of a few values without an order. A schedule that is
refused is told as a failed trial. It is well kept, and written in Python alone.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from ..bench.timing import measure
from ..core.errors import BuildError, PolyopError, ScheduleError, UnsupportedError
from ..core.texts import first_line
from ..loops.ir.schedule import Schedule
from ..loops.library.library import schedule_or_original
from ..loops.library.tuned import SAME_BITS
from ..loops.listing import listing
from ..loops.targets import isa
from ..testing.case import BrokenRuleError
from .model import estimate
from .search_space import Space
from .variants import Subject, difference

WIDTHS = {"avx512": 64, "avx2": 32}
"""Bytes of a vector, by target; all others have 16."""
RANKED = 96
"""How many schedules are ranked by the model before any is measured."""
RANKING_SHARE = 0.25
"""The part of the time in which they are."""
FIRST_MEASURED = 8
"""How many of them, the cheapest by the model, are measured before Optuna learns from measurements."""
COST_TOLERANCE = 0.02
"""Costs whose ratio is about this near to 1 are equal: the model is not as exact as that."""
MAX_COST_RATIO = 4.0
"""A schedule whose estimated cost is so many times that of the default is not compiled."""
QUICK, SURE = (3, 0.01), (21, 0.02)
"""Rounds and seconds of a slice: for every candidate, and for the best ones."""
FINALISTS = 3
MIN_GAIN = 1.03
"""A schedule must be faster by this factor to be kept, in the median and in the fastest slice of each."""
MIN_SHARE = 0.75
"""In so many of the slices it must be faster than the default was beside it. If it is as fast as the
default, noise alone passes this once in 75 times, with 21 slices."""


OUTCOMES = {
    "measured": "measured",
    "ranked out": "legal, and not compiled: the model says that others are faster",
    "refused": "a step is not legal, or cannot be proved in the quota of operations",
    "same loops": "the same loops as the default or as another one",
    "reordered": "sums in another order than the default's: --any-order measures them",
    "other values": "other values than the default",
    "does not compile": "cannot be compiled",
    "no time": "legal, and no time was left",
}
"""What became of a schedule, with what is printed."""


@dataclass
class Tried:
    """A schedule that was tried. ``ratio`` is its time divided by that of the default; None: not measured.

    ``outcome`` is "measured", or why there is no time: a row of :data:`OUTCOMES`. It is an empty text until
    that is decided.
    """

    schedule: Schedule
    outcome: str
    cost: float = math.nan
    ratio: float | None = None
    seconds: float | None = None
    values: str = ""

    @property
    def is_decided(self) -> bool:
        """Whether it has an outcome. One that is legal and was not compiled yet has none."""
        return bool(self.outcome)


@dataclass
class Outcome:
    """The result of a search. ``best`` is None where the default is the best.

    ``gain``: the time of the default divided by that of ``best``, with 10 % and 90 %.
    """

    subject: Subject
    tried: list[Tried] = field(default_factory=list)
    best: Tried | None = None
    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)
    default_seconds: float = math.nan
    default_cost: float = math.nan
    size: int = 0
    seconds: float = 0.0

    def count(self, outcome: str) -> int:
        """Return how many schedules had an outcome."""
        return sum(one.outcome == outcome for one in self.tried)


class Search:
    """One search; its state is an :class:`Outcome`."""

    def __init__(
        self, subject: Subject, seconds: float, seed: int, any_order: bool, report: Callable[[str], None]
    ) -> None:
        """Prepare a search of so many ``seconds``. ``any_order``: sums may be in another order."""
        self.optuna = _optuna()
        self.subject, self.any_order, self.report = subject, any_order, report
        self.space = Space.of(subject.typed)
        self.outcome = Outcome(subject, size=self.space.size)
        self.started, self.seconds = time.monotonic(), seconds
        self.study = self.optuna.create_study(
            sampler=self.optuna.samplers.TPESampler(seed=seed, multivariate=True)
        )
        self.distributions = {
            choice.name: self.optuna.distributions.CategoricalDistribution(choice.values)
            for choice in self.space.choices
        }
        self.known: dict[Schedule, Tried] = {}
        self.programs: dict[str, Tried] = {}
        self.shared: dict[Schedule, frozenset[str]] = {}
        """By schedule the sums that threads share, whose bits depend on the number of threads."""
        self.default = subject.with_schedule(subject.kernel.schedule)
        self.expected = subject.results(self.default)

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.seconds - (time.monotonic() - self.started)

    def run(self) -> Outcome:
        """Search until the time is over or all is tried."""
        out = self.outcome
        base = self.subject.kernel.schedule
        out.default_cost, loops = self.cost(base)
        self.programs[loops] = self.known[base] = Tried(
            base, "measured", out.default_cost, 1.0, None, SAME_BITS
        )
        out.default_seconds = measure([("default", self.default)], *QUICK)["default"].median
        ranked = self.rank()
        for tried, trial in ranked[:FIRST_MEASURED]:
            if self.left() <= 0:
                break
            self.time(tried, trial)
        for tried, trial in ranked[FIRST_MEASURED:]:
            tried.outcome = "ranked out"
            self.tell(trial, None)
        seen_before = 0
        while self.left() > 0 and len(self.known) < self.space.size and seen_before < RANKED:
            tried, trial, new = self.ask()
            seen_before = 0 if new else seen_before + 1
            if not new or tried.is_decided:
                self.tell(trial, tried.ratio)
            elif tried.cost > MAX_COST_RATIO * out.default_cost:
                tried.outcome = "ranked out"
                self.tell(trial, None)
            else:
                self.time(tried, trial)
        for tried in out.tried:
            if not tried.is_decided:
                tried.outcome = "no time"
        self.decide()
        out.seconds = time.monotonic() - self.started
        return out

    def ask(self) -> tuple[Tried, Any, bool]:
        """Return a schedule that Optuna proposes, its trial, and whether it is new."""
        trial = self.study.ask(self.distributions)
        schedule = self.space.schedule(trial.params, self.subject.kernel.schedule)
        if schedule in self.known:
            return self.known[schedule], trial, False
        tried = Tried(schedule, "")
        self.known[schedule] = tried
        self.outcome.tried.append(tried)
        try:
            tried.cost, loops = self.cost(schedule)
        except ScheduleError as problem:
            tried.outcome, tried.values = "refused", first_line(problem)
            return tried, trial, True
        twin = self.programs.setdefault(loops, tried)
        if twin is not tried:
            tried.outcome, tried.values = "same loops", str(twin.schedule)
        return tried, trial, True

    def rank(self) -> list[tuple[Tried, Any]]:
        """Return legal schedules, the cheapest by the model first: neighbours of the default, then others."""
        for values in self.space.neighbours():
            self.study.enqueue_trial(values)
        ranked: list[tuple[Tried, Any]] = []
        until = self.left() * (1 - RANKING_SHARE)
        waiting = sum(1 for _ in self.space.neighbours())
        for number in range(max(RANKED, waiting)):
            if self.left() < until or len(self.known) >= self.space.size:
                break
            tried, trial, new = self.ask()
            self.report(f"ranked {number + 1}")
            if not new or tried.is_decided:
                self.tell(trial, tried.ratio)
            else:
                ranked.append((tried, trial))
        return spread_out(ranked)

    def cost(self, steps: Schedule) -> tuple[float, str]:
        """Return the model's cost of a schedule, and its loops as text; raises ``ScheduleError``."""
        options = self.subject.kernel.options
        program = schedule_or_original(self.subject.typed, options._replace(schedule=steps))
        if program.fallback and steps != self.subject.kernel.schedule:
            raise ScheduleError(self.subject.kernel.name, program.fallback)
        targets = (name for over in program.plan.private.values() for name, _ in over)
        self.shared[steps] = frozenset(targets)
        width = WIDTHS.get(isa.available()[0] if options.isa == isa.PORTABLE else options.isa, 16)
        sizes = self.subject.specs, self.subject.attributes
        cost = estimate(program, *sizes, _core.thread_count(), width)
        return cost, f"{listing(program)}\n{program.plan}"

    def time(self, tried: Tried, trial: Any) -> None:
        """Compile a schedule, compare its values and measure it beside the default."""
        call = self.subject.with_schedule(tried.schedule)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tried.values = difference(self.subject, self.subject.results(call), self.expected)
            shared = self.shared[tried.schedule] - self.shared[self.subject.kernel.schedule]
            if tried.values == SAME_BITS and shared:  # equal here, by the number of threads and the sizes
                tried.values = f"threads share the sums {', '.join(sorted(shared))}: another order"
        except BrokenRuleError as problem:
            tried.outcome, tried.values = "other values", str(problem)
        except (BuildError, PolyopError) as problem:
            tried.outcome, tried.values = "does not compile", first_line(problem)
        else:
            self.measure(tried, call)
        self.tell(trial, tried.ratio if tried.outcome == "measured" else None)
        best = min((t.ratio for t in self.outcome.tried if t.ratio is not None), default=1.0)
        left = max(0.0, self.left())
        self.report(f"measured {self.outcome.count('measured')}, best {1 / best:.2f} x, {left:.0f} s left")

    def measure(self, tried: Tried, call: Callable[[], Any]) -> None:
        """Measure a schedule whose values are right."""
        if tried.values != SAME_BITS and not self.any_order:
            tried.outcome = "reordered"
            return
        timing = measure([("tuned", call), ("default", self.default)], *QUICK)
        best = [min(timing.slices[name]) for name in ("tuned", "default")]  # what disturbs makes slower
        tried.outcome, tried.ratio, tried.seconds = "measured", best[0] / best[1], best[0]

    def tell(self, trial: Any, ratio: float | None) -> None:
        """Tell Optuna the time of a trial, or that it has none."""
        if ratio is None:
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, math.log(ratio))

    def decide(self) -> None:
        """Measure the best ones again, longer, and choose one that is faster beyond noise, or none."""
        measured = sorted(
            (t for t in self.outcome.tried if t.ratio is not None), key=lambda t: t.ratio or 0.0
        )
        finalists = [t for t in measured[:FINALISTS] if t.ratio is not None and t.ratio < 1]
        if not finalists:
            return
        calls = [(str(n), self.subject.with_schedule(t.schedule)) for n, t in enumerate(finalists)]
        timing = measure([("default", self.default), *calls], *SURE)
        self.outcome.default_seconds = timing["default"].median
        gains = [timing.ratio("default", name) for name, _ in calls]
        number = max(range(len(gains)), key=lambda n: gains[n].median)
        gain, best = gains[number], finalists[number]
        for one, spread in zip(finalists, gains, strict=True):
            one.ratio = 1 / spread.median
        best.seconds = timing[str(number)].median
        slices = timing.slices["default"], timing.slices[str(number)]
        faster = sum(before > after for before, after in zip(*slices, strict=True)) / len(slices[0])
        least = min(gain.median, min(slices[0]) / min(slices[1]))
        if least >= MIN_GAIN and faster >= MIN_SHARE:
            self.outcome.best, self.outcome.gain = best, (gain.median, gain.low, gain.high)


def spread_out(ranked: list[tuple[Tried, Any]]) -> list[tuple[Tried, Any]]:
    """Return schedules in the order in which they are measured: by cost, but of equal costs one at a time.

    Those that the model cannot tell apart are much alike, as a tile of another size.
    """
    seen: Counter[int] = Counter()
    rows = []
    for tried, trial in sorted(ranked, key=lambda pair: pair[0].cost):
        bucket = round(math.log(max(tried.cost, 1.0)) / COST_TOLERANCE)
        rows.append((seen[bucket], tried.cost, tried, trial))
        seen[bucket] += 1
    return [(tried, trial) for _, _, tried, trial in sorted(rows, key=lambda row: row[:2])]


def search(
    subject: Subject,
    seconds: float = 60.0,
    *,
    seed: int = 0,
    any_order: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Return the outcome of a search of about so many seconds; ``report`` is given progress.

    Only schedules with the same bits as the default are measured, unless ``any_order`` allows sums in another
    order. Raises ``UnsupportedError`` without Optuna.
    """
    return Search(subject, seconds, seed, any_order, report).run()


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise UnsupportedError("polyop tune", "needs Optuna", hint="pip install 'polyop[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna
