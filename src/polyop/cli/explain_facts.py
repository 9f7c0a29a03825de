"""The facts of ``polyop explain`` as JSON values, and the drawing of an operator's loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..call.bound import BoundOperator
from ..call.explain import arguments_of, explain
from ..core.errors import PolyopError
from ..core.spec import Spec
from ..kernels.base import LoopKernelBase

if TYPE_CHECKING:
    from ..loops.ir.grammar import Kernel
    from ..loops.library.options import Options
    from ..loops.loop_tree import LoopNode
    from ..loops.program import Program
    from ..loops.runner import Pass

Inputs = tuple[Spec, ...]
_TEXT = len("  defined at  ")
"""The column in which ``explain`` begins the text of a fact."""


def facts(bound: BoundOperator, inputs: Inputs, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``explain`` says of an operator: its facts by label, and its loops as a tree.

    Each label has a list: a fact may be there several times, as "kernel" is. The lines below a fact are its
    ``details``.
    """
    first, *lines = explain(bound, inputs, attributes).splitlines()
    rows: dict[str, list[dict[str, Any]]] = {}
    last: dict[str, Any] = {"details": []}
    for line in lines:
        if line[2:3] not in ("", " "):  # the label of a fact, in a column of its own
            last = {"text": line[_TEXT:].strip(), "details": []}
            rows.setdefault(line[:_TEXT].strip(), []).append(last)
        else:
            last["details"].append(line.strip())
    tree = [node.facts() for node in tree_of(bound, inputs, attributes)]
    return {"operator": bound.name, "schema": first, "facts": rows, "loops": tree}


def drawing(bound: BoundOperator, inputs: Inputs, attributes: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that draw an operator's loops; none without inputs or without loops."""
    from ..loops.loop_tree import drawn

    nodes = tree_of(bound, inputs, attributes)
    if nodes:
        yield "  loops"
        yield from drawn(nodes, "    ")


def tree_of(bound: BoundOperator, inputs: Inputs, attributes: Mapping[str, Any]) -> list[LoopNode]:
    """Return the scheduled loops of an operator's loop kernel for the CPU; empty if there are none."""
    kernel: Any = next((k for k in bound.operator.kernels if isinstance(k, LoopKernelBase)), None)
    if kernel is None or not inputs:
        return []
    try:
        arguments = arguments_of(bound, inputs, attributes)
        typed = kernel.typed(*bound.schema.tensors_and_attributes(arguments))
    except PolyopError:  # the text of ``explain`` has it
        return []
    return _tree(typed, kernel.options)


def _tree(kernel: Kernel, options: Options) -> list[LoopNode]:
    from ..loops.library.library import schedule_or_original
    from ..loops.loop_tree import loop_tree

    programs: list[Program] = []

    def watch(_: Pass[Any], program: Program, __: float) -> None:
        programs[:] = [program]  # the last one still has the accesses that conflict

    program = schedule_or_original(kernel, options, watch)
    return loop_tree(program if program.checked else programs[0])
