"""The rule whose claims are tried: the author's ``dims=``, or what is proved of a kernel's loops."""

from __future__ import annotations

from typing import NamedTuple

from ...core.dims.dims import Dims
from ...core.errors import InferError, PolyopError, SchemaError
from ..case import Case, NotRunError, one_line
from .slices import sizes_of


class DimsRule(NamedTuple):
    """A rule in index notation; ``is_derived`` says that polyop proved it, and no author claims it."""

    dims: Dims
    is_derived: bool

    @property
    def origin(self) -> str:
        """Return the word before a claim in a report."""
        return "derived " if self.is_derived else ""


def rule_of(case: Case) -> DimsRule:
    """Return the rule of an operator; raises ``NotRunError`` without one that fits the sample."""
    if case.operator.dims is not None:
        return DimsRule(case.operator.dims, is_derived=False)
    dims = _derived(case)
    try:
        sizes_of(case, dims)
    except InferError as problem:
        raise NotRunError(f"what is proved of slices holds for equal sizes: {one_line(problem)}") from problem
    return DimsRule(dims, is_derived=True)


def _derived(case: Case) -> Dims:
    """Return what is proved of the loops for the specs of the sample."""
    from ...kernels.loop.kernel import LoopKernel
    from ...loops.dims.notation import claims, entries

    kernel = next((k for k in case.operator.kernels if isinstance(k, LoopKernel)), None)
    if kernel is None:
        raise NotRunError("no dims=")
    try:
        loops, slicings = kernel.slicings(case.prepare().inputs, case.attributes())
    except PolyopError as problem:
        raise NotRunError(f"nothing is proved of slices: {one_line(problem)}") from problem
    text = entries(loops, slicings)
    if text is None:
        raise NotRunError("the size of an output is no arithmetic of dims=")
    try:
        return Dims.parse(text, case.operator.schema, **claims(slicings))
    except SchemaError as problem:
        raise NotRunError(f"what is proved of slices is no text of dims=: {one_line(problem)}") from problem
