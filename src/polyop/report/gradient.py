"""The gradient of an operator: what it needs, in bytes, and its loops where polyop derived it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..call.bound import BoundOperator
from ..call.rule import Rule
from ..core.errors import PolyopError
from ..kernels.loop.adjoints import Adjoints
from ..kernels.loop.temporaries import temporaries
from ..loops.analysis.sizes import bytes_of
from ..loops.analysis.work import Work, work_of_loops
from ..loops.derive.adjoint import Adjoint
from ..loops.ir.grammar import Assign, Kernel, statements
from .call import Called
from .iteration_space import parameter_values
from .stages import form_of
from .values import Form, Gradient, Kept


@dataclass(frozen=True)
class Derived:
    """The derived gradient that runs in a framework: its kernels, the adjoint of the call, and its specs.

    Where the forward saves temporaries, it is the gradient of that saving form, which reads them.
    """

    adjoints: Adjoints
    adjoint: Adjoint
    specs: tuple[Any, ...]
    attributes: Mapping[str, Any]

    @property
    def work(self) -> Work:
        """The operations and bytes of a call for the gradients of all inputs."""
        return work_of_loops(self.adjoint.kernel, self.specs, self.attributes)


def derived(bound: BoundOperator, called: Called) -> Derived | None:
    """Return the gradient that polyop derives for a call, or None where the rule is another one.

    Raises ``GradientError`` where a line has no gradient.
    """
    rule: Any = bound.operator.gradient
    if not (isinstance(rule, Rule) and rule.is_derived) or called.typed is None:
        return None
    saving = rule.saving(called.arguments)
    saved_rule: Any = rule if saving is None else saving.operator.gradient
    inputs, attributes = list(called.inputs), called.attributes
    adjoints = saved_rule.adjoints(inputs, attributes)
    adjoint = adjoints.within_limit(adjoints.differentiable_outputs())
    outputs = [*called.outputs, *_saved_specs(saving, called)]
    return Derived(adjoints, adjoint, (*inputs, *outputs, *outputs), attributes)


def _saved_specs(saving: BoundOperator | None, called: Called) -> Sequence[Any]:
    """Return the specs of the temporaries that the saving form returns beside the outputs."""
    if saving is None:
        return ()
    return tuple(saving.operator.infer(called.arguments)[len(called.outputs) :])


def gradient_of(bound: BoundOperator, called: Called) -> Gradient:
    """Return what a page says of the gradient of a call."""
    rule: Any = bound.operator.gradient
    if rule is None:
        return Gradient("none", missing="The operator has no gradient: asking for one is an error.")
    if not isinstance(rule, Rule):
        return Gradient("given", missing="The author gives the gradient, as a Python function of arrays.")
    try:
        found = derived(bound, called)
    except PolyopError as problem:
        return Gradient("none", missing=f"It cannot be derived: {problem}")
    if found is None:
        return Gradient("recorded" if rule.is_recorded else "given", missing="Its loops are not polyop's.")
    kernel = found.adjoint.kernel
    specs = dict(zip(kernel.tensor_parameters, found.specs, strict=True))
    sizes = parameter_values(kernel, specs, called.attributes)
    form: Form = found.adjoints.kernel.with_best_schedule(
        kernel,
        found.specs,
        lambda options, _: form_of("gradient", kernel, options, sizes, found.adjoint.notes),
    )
    return Gradient("derived", tuple(_kept(called, found)), tuple(_recomputed(called, found)), form)


def _recomputed(called: Called, found: Derived) -> Iterator[str]:
    """Yield the temporaries of the forward that the gradient computes again."""
    assert called.typed is not None
    forward, again = _made(called.typed), _made(found.adjoint.kernel)
    yield from (name for name in forward if name in again and name not in found.adjoint.tapes)


def _made(kernel: Kernel) -> list[str]:
    """Return the scalars and temporary tensors that a kernel computes."""
    local = [b.name for b in kernel.buffers.values() if b.role == "local"]
    return list(dict.fromkeys([*local, *(s.name for s in statements(kernel.body) if isinstance(s, Assign))]))


def _kept(called: Called, found: Derived) -> Iterator[Kept]:
    """Yield what the gradient needs: kept inputs and outputs, saved temporaries, tapes, recomputed values."""
    base, kernel = called.kernel, found.adjoint.kernel
    rows = temporaries(base, list(called.inputs), called.attributes)
    saved = {row.name: row for row in rows if row.fits}
    assert called.typed is not None
    tensors = called.typed.tensor_parameters
    names = [*tensors, *called.typed.outputs, *saved]
    read = found.adjoints.kept()
    known = dict(zip(kernel.tensor_parameters, found.specs, strict=True))
    for number, (name, flag) in enumerate(zip(names, read, strict=False)):
        if name in saved:
            kept_here = (
                "kept for the gradient" if flag else "but this gradient does not read it: it is dropped"
            )
            how = "saved" if flag else "dropped"
            yield Kept(name, how, saved[name].size, why=f"returned by the forward, {kept_here}")
        if not flag or name in saved:
            continue
        spec = found.specs[number]
        how = "input" if number < len(tensors) else "output"
        yield Kept(name, how, None if spec is None else spec.nbytes, why="kept by the framework, not copied")
    for name, source in found.adjoint.tapes.items():
        size = bytes_of(kernel, kernel.buffers[name], known, called.attributes)
        why = f"{source} is overwritten, so its values are written down while the gradient runs"
        yield Kept(name, "taped", size, kernel.buffers[name].line, why)
    for name in _recomputed(called, found):
        yield Kept(name, "recomputed", None, why="computed again while the gradient runs")
    for note in found.adjoint.notes:
        if note.line and note.kind != "fallback":
            yield Kept("", "note", None, note.line, note.text)
