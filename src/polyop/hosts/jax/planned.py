"""Eager calls that are planned once: from the second on, the native core calls the compiled program.

csrc/eager.cc finds the plan by the attributes of a call and by which of its tensors are present.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from ... import _core
from ...call.bound import BoundOperator
from . import tensors
from .primitive import call, program_of
from .site import Site


def plan(bound: BoundOperator, token: int, site: Site, arguments: Sequence[Any]) -> None:
    """Plan calls with these bound arguments, if nothing but their attributes decides what such a call does.

    ``token`` is from before the operator was read, so that no plan is made for one that has changed.
    """
    operator = bound.operator
    schema = operator.schema
    if bound.is_module or bound.runs_on_data or operator.target is not None or schema.mutates:
        return
    if schema.returns_list or not schema.fresh or not operator.infer.repeatable:
        return
    flat = site.flatten(arguments)
    program = program_of(site)
    if program is None or not flat or any(map(tensors.is_traced, flat)):
        return
    _core.set_eager_type(type(flat[0]))  # not sooner: an array of our own would start JAX's devices
    bound.plan_eager(token, _run(bound, site, program), *arguments)


def _run(bound: BoundOperator, site: Site, program: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called with the arrays that are present."""
    config = jax.config
    single = len(bound.schema.returns) == 1 and not bound.operator.returns_tuple

    def run(*flat: Any) -> Any:
        if config.jax_disable_jit or config.jax_debug_nans or config.jax_debug_infs:
            return bound.pack(call(site, flat))  # which checks the outputs
        outputs = program(*flat)
        return outputs[0] if single else tuple(outputs)

    return run
