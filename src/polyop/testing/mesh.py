"""Compare calls on the devices of a mesh with plain ones: every placement of every tensor, and each split.

A claim of ``dims=`` that is false gives other values there; the failure names the placements and the claim.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Iterator, Sequence

from ..call.host import specs
from ..call.rule import Rule
from ..core.dtypes import dtype
from ..core.errors import FallbackWarning, NoDtypeError, PolyopError
from ..hosts.numpy import HOST
from ..sharding.of_call import is_claimed, sharding_rule
from ..sharding.placement import REPLICATE, Placement, Shard
from ..sharding.plan import plan
from ..sharding.rule import ShardingRule
from . import frameworks
from .case import Array, BrokenRuleError, Case, Check, NotRunError, one_line
from .compare import close, near
from .dims.outcome import KEYWORDS, claim_text
from .samples import draw

Placements = tuple[Placement, ...]
"""One for each tensor."""


def on_mesh(case: Case, host: str) -> str:
    """Compare values and gradients for each placement; return how many were tried."""
    if not is_claimed(case.operator):
        raise NotRunError("nothing is known of its dimensions: dims= says it")
    if host == "torch" and case.torch_device != "cpu":
        raise NotRunError("devices are simulated on the CPU")
    rule = sharding_rule(case.operator, specs(HOST, case.operator, case.arguments))
    if not rule.splits:
        raise NotRunError("no dimension may be split")
    framework, plain = frameworks.load(f"{host}_mesh"), frameworks.load(host)
    expected = plain.run(case)
    cotangents = _cotangents(case, expected)
    gradients = plain.gradients(case, cotangents) if cotangents else {}
    with framework.devices() as counts, warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)  # what cannot be split is gathered, and right
        tried = [
            (row, count)
            for row in placements(rule)
            for count in [n for n in counts if framework.can_place(rule, row, n)][:1]
        ]
        for row, count in tried:
            where = _words(case, rule, row, count)
            try:
                results, grads = framework.on_mesh(case, row, count, cotangents)
                _compare(case, results, expected, grads, gradients)
            except NoDtypeError:
                raise
            except (PolyopError, BrokenRuleError, AssertionError, RuntimeError) as problem:
                if lack := frameworks.lacking(problem):
                    raise NotRunError(lack) from None
                text = str(problem) if isinstance(problem, BrokenRuleError) else one_line(problem)
                raise BrokenRuleError(f"{where}: {text}") from None
    if not tried:
        raise NotRunError(f"no size of the sample can be split over {_either(counts)} devices")
    return f"{len(tried)} placements on {_either({count for _, count in tried})} devices"


def _either(counts: Iterable[int]) -> str:
    return " or ".join(map(str, sorted(counts)))


def placements(rule: ShardingRule) -> list[Placements]:
    """Return the placements to try: each of each tensor beside whole ones, and those of each split."""
    whole: Placements = (REPLICATE,) * len(rule.inputs)
    rows = [whole]
    for number, spec in enumerate(rule.inputs):
        shards = (Shard(dim) for dim in range(len(spec.shape)))
        rows += [(*whole[:number], shard, *whole[number + 1 :]) for shard in shards]
    rows += [strategy.inputs for strategy in rule.strategies]
    return list(dict.fromkeys(rows))


def _cotangents(case: Case, results: Sequence[Array]) -> list[Array]:
    """Return gradients of the outputs; none where the operator has no gradient on a mesh.

    That of a C++ module needs processes: its sizes are numbers, and those of simulated devices differ.
    """
    rule = case.operator.gradient
    recorded = isinstance(rule, Rule) and rule.is_recorded
    if not case.has_gradient or case.operator.schema.mutates or recorded:
        return []
    rng = case.rng("mesh")
    return [draw(x.shape, dtype(x.dtype), rng) for x in results]


def _compare(
    case: Case,
    results: list[Array],
    expected: list[Array],
    grads: dict[str, Array | None],
    others: dict[str, Array | None],
) -> None:
    close(case, "the mesh", results, expected, "the plain call")
    for number, (name, other) in enumerate(others.items()):
        grad = grads.get(name)
        if (grad is None) != (other is None):
            raise BrokenRuleError(f"gradient of {name}: must exist in both", "one of them")
        if grad is not None:
            near(f"the gradient of {name} on the mesh", number, grad, other,
                 tolerance=case.tolerance(grad.dtype), other="the plain call")  # fmt: skip


def _words(case: Case, rule: ShardingRule, row: Placements, count: int) -> str:
    """Return where the tensors are, and which claim splits the call."""
    names = [name for name, _ in case.tensors()]
    placed = ", ".join(f"{name} {placement}" for name, placement in zip(names, row, strict=True))
    chosen = plan(rule, (count,), [(placement,) for placement in row]).strategies[0]
    by = ", ".join(_claims(case, chosen.name)) if chosen.name else "not split"
    return f"on {count} devices with {placed} ({by})"


def _claims(case: Case, name: str) -> Iterator[str]:
    """Yield the claims about a dimension; ``...0`` is the first of those that ``...`` stands for."""
    dims, own = case.operator.dims, "..." if name.startswith("...") else name
    if dims is None:
        yield f"{own} is proved of the loops" if not name.startswith("...") else 'batch="elementwise"'
        return
    for keyword in KEYWORDS:
        reduced = dims.reductions.get(own) == keyword
        if reduced or (keyword == "halo" and own in dims.halo and own not in dims.reductions):
            yield claim_text(dims, keyword, own)
    if own not in dims.reductions and own not in dims.halo:
        yield claim_text(dims, "parallel", own)


CHECKS = tuple(Check("mesh", host, functools.partial(on_mesh, host=host)) for host in ("torch", "jax"))
"""One row for each framework that splits calls over devices."""
