"""The errors for transforms of JAX that polyop has no rule for: they name the operator, and a way out."""

from __future__ import annotations

import sys
from typing import Any

from jax.interpreters import ad

from ...call.arrival import Arrival
from ...core.errors import UnsupportedError
from .primitive import operator_p, tangent_p

_JET = "jax.experimental.jet"


def _refuse_transposition(_: Any, *flat: Any, site: Any) -> Any:
    del flat
    rule = "jax.linear_transpose needs an operator that is known to be linear, and polyop knows none"
    hint = "of a linear function, jax.vjp(f, jnp.zeros_like(x))[1] is the transpose"
    raise UnsupportedError(site.operator.name, rule, where=site.operator.origin, hint=hint)


def _refuse_series(*_: Any, **parameters: Any) -> Any:
    site = parameters["site"] if "site" in parameters else parameters["linearization"].site
    rule = "jax.experimental.jet has rules for JAX's own primitives alone"
    hint = "jax.jvp of jax.jvp, and jax.jacfwd, give the higher derivatives"
    raise UnsupportedError(site.operator.name, rule, where=site.operator.origin, hint=hint)


def _refuse_jet(_: str) -> None:
    rules = sys.modules[_JET].jet_rules
    rules[operator_p] = rules[tangent_p] = _refuse_series


def refuse() -> None:
    """Register the errors with JAX; importing ``jet`` is left to the program."""
    ad.primitive_transposes[operator_p] = _refuse_transposition
    if _JET in sys.modules:
        _refuse_jet(_JET)
    else:
        Arrival(_JET, _refuse_jet).wait()
