"""Time an operator for some inputs, beside peers and beside the roofs of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..call.bound import BoundOperator
from ..call.explain import arguments_of
from ..call.host import specs as specs_of
from ..core.errors import PolyopError
from ..core.spec import Spec
from ..hosts.numpy import HOST
from ..loops.analysis.work import Work
from ..testing import samples
from ..testing.case import BrokenRuleError, Case
from ..testing.compare import close
from .frameworks import NAMES, framework
from .peers import Peer
from .roofline import Roofs
from .timing import Spread, measure
from .work import work_of, work_of_gradient

OURS = "polyop"
SETTLE_S = 0.05
"""For how long a call runs before its slice where several frameworks are timed: their threads spin."""


@dataclass(frozen=True)
class Settings:
    """How to measure: ``rounds`` of slices of ``slice_s`` seconds; ``gradient``: a call and its gradient."""

    rounds: int = 21
    slice_s: float = 0.02
    gradient: bool = False
    host: str = "numpy"


@dataclass(frozen=True)
class Entry:
    """One contestant: the operator in a framework, or a peer. ``wrong`` says how its values differ."""

    name: str
    framework: str
    seconds: Spread | None = None
    ratio: Spread | None = None
    wrong: str = ""


@dataclass(frozen=True)
class Result:
    """The times of an operator for one set of inputs.

    ``ratio`` of an entry is our time divided by the peer's, in the same framework: below 1, polyop is faster.
    ``work`` is that of the call, with its gradient where that is timed; None where it cannot be counted.
    """

    operator: str
    inputs: str
    gradient: bool
    entries: tuple[Entry, ...]
    work: Work | None
    roofs: Roofs | None

    @property
    def name(self) -> str:
        """The operator and its inputs."""
        return f"{self.operator} {self.inputs}{', with gradient' if self.gradient else ''}"

    @property
    def wrong(self) -> list[Entry]:
        """The peers whose values differ from ours."""
        return [entry for entry in self.entries if entry.wrong]

    def of_roof(self, entry: Entry) -> float | None:
        """Return the least time of the machine divided by the median: 1 is the roof."""
        if self.work is None or self.roofs is None or entry.seconds is None or not self.work.bytes:
            return None
        return self.roofs.seconds(self.work) / entry.seconds.median

    def lines(self) -> list[dict[str, Any]]:
        """Return the rows as plain data, as ``comparison`` reads them."""
        ours = {entry.framework: entry for entry in self.entries if entry.name == OURS}
        rows = []
        for entry in self.entries:
            if entry.seconds is None:
                continue
            start = {"name": f"{self.name} in {NAMES[entry.framework]}", "framework": entry.framework}
            roof = self.of_roof(entry)
            if entry.name == OURS:
                spread, own = entry.seconds, {"beside": "", "unit": "s", "ours_s": entry.seconds.median}
            elif entry.ratio is not None:
                mine = ours[entry.framework].seconds
                assert mine is not None
                spread = entry.ratio
                own = {
                    "beside": entry.name,
                    "unit": "x",
                    "ours_s": mine.median,
                    "peer_s": entry.seconds.median,
                }
            value = {"value": spread.median, "low": spread.low, "high": spread.high, "of_roof": roof}
            rows.append({**start, **own, **value})
        return rows


def bench(
    bound: BoundOperator,
    inputs: Sequence[Any] = (),
    attributes: Mapping[str, Any] | None = None,
    peers: Sequence[Peer] = (),
    settings: Settings | None = None,
    roofs: Roofs | None = None,
) -> Result:
    """Return the times of an operator and of its peers for inputs: specs, arrays, or none for samples.

    Values are drawn as ``check`` draws them. A peer whose values differ beyond the tolerance of the dtype is
    not timed; its entry says how they differ. Raises what a call raises.
    """
    settings = settings or Settings()
    numbers = dict(attributes or {})
    given = tuple(inputs)
    if given and all(isinstance(x, Spec) or x is None for x in given):
        arguments_of(bound, given, numbers)  # the errors of a call, before anything is allocated
    arguments = samples.arguments(bound.operator, given, numbers, 0)
    case = Case(bound, arguments, None, ("numpy",), 0)
    names = list(dict.fromkeys([settings.host, *(peer.framework for peer in peers)]))
    if peers and not any(peer.framework == settings.host for peer in peers):
        names.remove(settings.host)
    expected = _values("numpy", case, bound, settings.gradient)
    entries, calls = _contestants(case, names, peers, settings, expected)
    timing = measure(calls, settings.rounds, settings.slice_s, SETTLE_S if len(calls) > 1 else 0.0)
    timed = [_timed(entry, timing) for entry in entries]
    return Result(
        bound.name, _text(case), settings.gradient, tuple(timed), _work(bound, case, settings), roofs
    )


def _contestants(
    case: Case, names: Sequence[str], peers: Sequence[Peer], settings: Settings, expected: list[Any]
) -> tuple[list[Entry], list[tuple[str, Callable[[], Any]]]]:
    """Return an entry for each contestant, and the calls of those whose values are right."""
    rows: list[tuple[Entry, Any, bool]] = [(Entry(OURS, name), case.bound, True) for name in names]
    rows += [(Entry(peer.name, peer.framework), peer.function, peer.takes_all) for peer in peers]
    entries, calls = [], []
    for entry, function, takes_all in rows:
        module, gradient = framework(entry.framework), settings.gradient
        arguments = module.convert(case, gradient=gradient)
        if not takes_all:
            arguments = tuple(arguments[i] for i in case.operator.schema.tensor_positions)
        try:
            call = module.timed(case, _called(case, function), arguments, gradient=gradient)
            got = module.arrays(case, call())
            close(case, entry.name, got, expected, OURS)
        except BrokenRuleError as problem:
            entries.append(Entry(entry.name, entry.framework, wrong=f"its values differ: {problem}"))
            continue
        except Exception as problem:
            if function is case.bound:
                raise
            wrong = f"its call fails: {type(problem).__name__}: {str(problem).strip().splitlines()[:1]}"
            entries.append(Entry(entry.name, entry.framework, wrong=wrong))
            continue
        entries.append(entry)
        calls.append((f"{entry.framework} {entry.name}", call))
    return entries, calls


def _called(case: Case, function: Any) -> Any:
    """Return what is called with all arguments by position: our operator may have keyword-only ones."""
    schema = case.operator.schema
    if function is not case.bound or not any(a.keyword_only for a in schema.arguments):
        return function

    def call(*arguments: Any) -> Any:
        args, keywords = schema.split(arguments)
        return case.bound(*args, **keywords)

    return call


def _values(name: str, case: Case, function: Any, gradient: bool) -> list[Any]:
    module = framework(name)
    arguments = module.convert(case, gradient=gradient)
    call = module.timed(
        case, _called(case, function) if not gradient else function, arguments, gradient=gradient
    )
    return [array.copy() for array in module.arrays(case, call())]


def _timed(entry: Entry, timing: Any) -> Entry:
    if entry.wrong:
        return entry
    own, ours = f"{entry.framework} {entry.name}", f"{entry.framework} {OURS}"
    ratio = None if entry.name == OURS else timing.ratio(ours, own)
    return Entry(entry.name, entry.framework, timing[own], ratio)


def _text(case: Case) -> str:
    values = ", ".join(f"{name}={value}" for name, value in case.attributes().items())
    texts = [str(HOST.spec(value)).replace(", ", ",") for _, value in case.tensors()]
    return " ".join(texts) + (f" ({values})" if values else "")


def _work(bound: BoundOperator, case: Case, settings: Settings) -> Work | None:
    """Return the work of what is timed, or None where it is not known."""
    arguments = specs_of(HOST, bound.operator, case.arguments)
    tensors = [arguments[i] for i in bound.schema.tensor_positions]
    if any(isinstance(spec, (list, tuple)) for spec in tensors):
        return None
    try:
        work = work_of(bound, tensors, case.attributes())
        backward = work_of_gradient(bound, tensors, case.attributes()) if settings.gradient else None
    except PolyopError:
        return None
    if not settings.gradient:
        return work
    return None if backward is None else work + backward
