"""The gradient of a Backward: exact where that is made of a provider's operators alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from .. import _core
from ..core.errors import GradientError
from ..gradients.recorded import Call
from ..hosts.base import host_of
from ..kernels.module.kernel import DEVICES, ROWS, ModuleKernel


@dataclasses.dataclass(frozen=True, eq=False)
class SecondRule:
    """The gradient rule of ``<name>__backward``.

    Backward is run without data and what it launches is noted; those operators are run again as
    the framework's own, which has their gradients. A kernel of the module's own in between has
    none: ``GradientError`` names it.
    """

    name: str
    kernel: ModuleKernel

    def __call__(self, saved: Any, grads: Any, text: str, outputs: Any, dgrads: Any) -> tuple[Any, ...]:
        """Return the gradients of the saved tensors and of the output gradients."""
        del outputs
        call = Call.parse(text)
        tensors = [*saved, *grads]
        host: Any = next(host for host in map(host_of, tensors) if host is not None)
        steps = self._steps(call, host, grads)
        smooth = [i for i, x in enumerate(tensors) if x is not None and host.spec(x).dtype.is_floating]

        def pull(*given: Any) -> tuple[Any, ...]:
            all_tensors = list(tensors)
            for i, tensor in zip(smooth, given, strict=True):
                all_tensors[i] = tensor
            return self._evaluate(steps, all_tensors, call, host)

        found = dict(zip(smooth, host.pull_back(pull, [tensors[i] for i in smooth], dgrads), strict=True))
        made = [found.get(i) for i in range(len(tensors))]
        return tuple(made[: len(saved)]), tuple(made[len(saved) :]), None

    def _steps(self, call: Call, host: Any, grads: Sequence[Any]) -> Any:
        derived = call.derive(self.kernel)
        if derived is None:
            raise self._refusal("its Forward depends on data")
        specs = [None if grad is None else host.spec(grad) for grad in grads]
        rows = tuple(None if s is None else (tuple(map(int, s.shape)), ROWS[s.dtype.name]) for s in specs)
        device = next((spec.device for spec in call.specs if spec is not None), "cpu")
        try:
            return _core.derive_backward(derived.tape, rows, DEVICES.get(device, 1))
        except RuntimeError as problem:
            raise self._refusal(str(problem)) from None

    def _evaluate(self, steps: Any, tensors: Sequence[Any], call: Call, host: Any) -> tuple[Any, ...]:
        from ..providers.aclnn import evaluate

        saved, grads, results, launches = steps
        rows = [*saved, *grads]
        env: dict[int, Any] = {
            row[1]: tensor for row, tensor in zip(rows, tensors, strict=True) if row is not None
        }
        xp = host.namespace()
        opaque: dict[int, str] = {}
        for kind, name, arguments, outputs in launches:
            if kind in ("kernel", "fill") or (kind == "view" and name != "reshape"):
                opaque.update(dict.fromkeys(outputs, name))
                continue
            needed = tuple(a for a in arguments if not _is_fresh(a, outputs, env))
            given = _filled(needed, env, opaque, self)
            if kind == "launch":
                made = evaluate(name, given, xp)
            else:
                made = (xp.reshape(given[0], given[1]),) if kind == "view" else (given[0],)
            env.update(zip(outputs, made, strict=True))
        answer = []
        for row, spec, flag in zip(results, call.specs, call.wanted, strict=True):
            if not flag:
                continue
            if row is None:
                answer.append(host.zeros(spec, tensors[0]))
            elif row[1] in opaque or row[1] not in env:
                raise self._refusal(f"it runs {opaque.get(row[1], 'a kernel')}, a kernel of its own")
            else:
                answer.append(env[row[1]])
        return tuple(answer)

    def refuse_opaque(self, name: str) -> GradientError:
        """Return the error for a kernel without a gradient."""
        return self._refusal(f"it runs {name}, a kernel of its own")

    def _refusal(self, reason: str) -> GradientError:
        hint = "call aclnn operators in Backward, whose gradients are known, or use a first derivative only"
        return GradientError(
            self.name, f"its Backward has no gradient: {reason}", where=self.kernel.path, hint=hint
        )


def _is_fresh(value: Any, outputs: Sequence[int], env: dict[int, Any]) -> bool:
    """Whether an argument is an output that holds nothing yet."""
    return isinstance(value, tuple) and value[:1] == ("tensor",) and value[1] in outputs and value[1] not in env


def _filled(value: Any, env: dict[int, Any], opaque: dict[int, str], rule: SecondRule) -> Any:
    """Return arguments of a step with tensors in place of their numbers; one to be written may be absent."""
    if isinstance(value, tuple):
        if len(value) == 2 and value[0] == "tensor":
            if value[1] in opaque:
                raise rule.refuse_opaque(opaque[value[1]])
            return env.get(value[1])
        return tuple(_filled(item, env, opaque, rule) for item in value)
    return value


