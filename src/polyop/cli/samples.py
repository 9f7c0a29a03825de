"""The operators that a file or module defines, with the samples that it gives for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..call import registry
from ..core.errors import ArgumentTypeError, ArgumentValueError
from .load import load, operators, split_target, unknown_operator

SAMPLES = "polyop_samples"


def operators_of(target: str) -> Iterator[tuple[Any, Any]]:
    """Yield (operator, samples) of one target; raises ``ArgumentValueError`` if there are none."""
    name, operator_name = split_target(target)
    before = {bound.name for bound in registry.operators()}
    module = load(name)
    samples = _samples(module)
    defined = [
        bound for bound in operators(module) if bound.name not in before or bound in vars(module).values()
    ]
    chosen = [bound for bound in defined if operator_name in ("", bound.name, bound.name.split("::")[-1])]
    if not chosen:
        if operator_name:
            raise unknown_operator(operator_name, name, defined)
        raise ArgumentValueError(name, "must define an operator", "no operators")
    names = {bound.name for bound in defined}
    for sampled in samples:
        if sampled not in names and registry.named(sampled) is None:
            raise unknown_operator(sampled, f"{name}, {SAMPLES}", defined)
    for bound in chosen:
        yield bound, samples.get(bound.name, ())


def _samples(module: Any) -> dict[str, Any]:
    samples = getattr(module, SAMPLES, {})
    if not isinstance(samples, dict):
        rule = "must be a dictionary, from the names of operators to sample inputs"
        raise ArgumentTypeError(SAMPLES, rule, type(samples).__name__)
    for name, inputs in samples.items():
        if not isinstance(inputs, (tuple, list, dict)):
            rule = "must be a tuple of sample inputs, or a dictionary of them by argument"
            raise ArgumentTypeError(f"{SAMPLES}[{name!r}]", rule, type(inputs).__name__)
    return samples
