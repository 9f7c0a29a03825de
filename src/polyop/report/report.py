"""``op.report(...)``: collect the facts of an operator for some inputs, and make the page of them."""

from __future__ import annotations

import html
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from ..bench.machine import machine
from ..bench.peers import Peer, find_peer
from ..call.bound import BoundOperator
from ..call.explain import explain
from ..core.errors import PolyopError
from ..kernels.threads import get_num_threads
from ..loops.targets import isa
from .call import Called, called, spec_of
from .gradient import derived, gradient_of
from .iteration_space import parameter_values
from .measured import measured
from .page import need_libraries, page
from .sharding import tables
from .stages import form_of
from .summary import answers
from .values import Facts, Form, Measured


@dataclass(frozen=True)
class Report:
    """A report of an operator. ``html`` is the whole page; a notebook shows it.

    ``facts`` is what the page shows, as values. ``path`` is the file that it was written to, or None.
    """

    name: str
    html: str = field(repr=False)
    facts: Facts = field(repr=False)
    path: Path | None = None

    def save(self, path: str | Path) -> Path:
        """Write the page to a file and return its path."""
        target = Path(path)
        target.write_text(self.html, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, so that its styles stay inside."""
        text = html.escape(self.html, quote=True)
        style = "width:100%;height:80vh;border:1px solid #8884;border-radius:8px"
        return f'<iframe srcdoc="{text}" title="report of {html.escape(self.name)}" style="{style}"></iframe>'


def report(
    bound: BoundOperator,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any] | None = None,
    path: str | Path | None = None,
    *,
    against: Sequence[str] = (),
    load: Callable[[str], ModuleType] = importlib.import_module,
    measure: bool = True,
    mesh: Mapping[str, int] | None = None,
    progress: Callable[[str], object] = lambda text: None,
) -> Report:
    """Return the report of an operator for some inputs; see ``BoundOperator.report``.

    ``load`` imports the file of a peer. ``mesh``: the devices of the table of communication. ``progress`` is
    called with what is done next.
    """
    need_libraries()
    peers = [find_peer(text, load) for text in against]
    flat = [x for given in inputs for x in (given if isinstance(given, (list, tuple)) else [given])]
    present = [x for x in flat if x is not None]
    values = tuple(inputs) if present and all(hasattr(x, "__array__") for x in present) else ()
    specs = [spec_of(x, f"{bound.name}.report") for x in inputs]
    facts = collect(bound, specs, attributes or {}, values, peers, progress, measure=measure, mesh=mesh)
    made = Report(bound.name, page(facts), facts, None if path is None else Path(path))
    if path is not None:
        made.save(path)
    return made


def collect(
    bound: BoundOperator,
    specs: Sequence[Any],
    attributes: Mapping[str, Any],
    values: Sequence[Any] = (),
    peers: Sequence[Peer] = (),
    progress: Callable[[str], object] = lambda text: None,
    *,
    measure: bool = True,
    mesh: Mapping[str, int] | None = None,
) -> Facts:
    """Return all that a page shows. What the operator does not have is left out, and ``lacks`` says so.

    Raises what a call with these inputs raises, and ``ScheduleError``.
    """
    call = called(bound, specs, attributes)
    progress("the loops")
    forward = _form(call)
    progress("the gradient")
    gradient = gradient_of(bound, call)
    progress("times and roofs")
    times = _measured(bound, call, values, peers) if measure else Measured(missing="Nothing was measured.")
    rows, notes = tables(bound, call, mesh)
    about = bound.operator.doc.strip().partition("\n")[0]
    properties = machine()
    processor = f"{properties['processor']}, {get_num_threads()} threads, {isa.available()[0]}"
    return Facts(
        name=bound.name,
        schema=str(bound.operator),
        where=str(bound.operator.origin or ""),
        about=about,
        inputs=tuple(map(_input_text, call.given)),
        outputs=tuple(map(str, call.outputs)),
        machine=processor,
        answers=answers(forward, times, gradient),
        explanation=explain(bound, tuple(specs), attributes),
        forward=forward,
        gradient=gradient,
        measured=times,
        sharding=rows,
        sharding_notes=notes,
        lacks=tuple(_lacks(bound, call)),
    )


def _input_text(given: Any) -> str:
    return f"[{', '.join(map(str, given))}]" if isinstance(given, tuple) else str(given)


def _form(call: Called) -> Form | None:
    typed = call.typed
    if typed is None:
        return None
    sizes = parameter_values(typed, call.specs(), call.attributes)
    form: Form = call.kernel.with_best_schedule(
        typed, call.inputs, lambda options, _: form_of("forward", typed, options, sizes)
    )
    return form


def _measured(bound: BoundOperator, call: Called, values: Sequence[Any], peers: Sequence[Peer]) -> Measured:
    try:
        gradient = derived(bound, call)
    except PolyopError:  # the page of the gradient says it
        gradient = None
    return measured(bound, call, values, gradient, peers)


def _lacks(bound: BoundOperator, call: Called) -> Iterator[str]:
    if call.typed is None:
        yield (
            f"Its kernel ({call.kernel}) is not a Python loop nest that polyop compiles, so there are no "
            "loops, no passes, no C and no machine code to show."
        )
    if call.typed is not None and call.kernel.device != "cpu":
        yield "The report shows the code for the CPU."
    if bound.operator.gradient is None:
        yield "It has no gradient."
