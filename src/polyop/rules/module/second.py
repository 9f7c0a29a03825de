"""The gradient of a module's Backward, for second derivatives.

Polyop runs Backward without data and records the operators that it launches. These run again as functions of
the framework, which differentiates them. So it works if Backward launches a provider's operators only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ... import _core
from ...call.host import Host, transforming_host
from ...call.rule import Rule
from ...core.errors import GradientError
from ...kernels.module.kernel import DEVICES, ROWS, Derived, ModuleKernel
from .recorded import Call
from .replay import Replay, UnknownValueError, depends


@dataclasses.dataclass(frozen=True, eq=False)
class SecondRule(Rule):
    """The gradient rule of ``<name>__backward``.

    Raises ``GradientError`` that names the kernel, if Backward launches a kernel of the module itself.
    """

    calls_operators = True
    name: str
    kernel: ModuleKernel

    def __call__(self, saved: Any, grads: Any, text: str, outputs: Any, dgrads: Any) -> tuple[Any, ...]:
        """Return the gradients of the saved tensors and of the output gradients."""
        del outputs
        call = Call.parse(text)
        tensors = [*saved, *grads]
        host = transforming_host(tensors)
        assert host is not None
        tensors, dgrads = host.alive(tensors), host.alive(dgrads)
        steps = self._steps(call, host, tensors[len(saved) :])
        smooth = [i for i, x in enumerate(tensors) if x is not None and host.spec(x).dtype.is_floating]

        def backward(*variables: Any) -> tuple[Any, ...]:
            all_tensors = list(tensors)
            for i, tensor in zip(smooth, variables, strict=True):
                all_tensors[i] = tensor
            return self._evaluate(steps, all_tensors, call, host)

        second_grads = host.pull_back(backward, [tensors[i] for i in smooth], dgrads)
        by_index = dict(zip(smooth, second_grads, strict=True))
        by_tensor = [by_index.get(i) for i in range(len(tensors))]
        return tuple(by_tensor[: len(saved)]), tuple(by_tensor[len(saved) :]), None

    def _steps(self, call: Call, host: Host, grads: Sequence[Any]) -> Any:
        derived = call.derive(self.kernel)
        if derived is None:
            raise self.refusal("its Forward depends on data")
        specs = [None if grad is None else host.spec(grad) for grad in grads]
        rows = tuple(None if s is None else (tuple(map(int, s.shape)), ROWS[s.dtype.name]) for s in specs)
        device = next((spec.device for spec in call.specs if spec is not None), "cpu")
        try:
            return _core.derive_backward(derived.tape, rows, DEVICES.get(device, 1))
        except RuntimeError as problem:
            raise self.refusal(str(problem)) from None

    def _evaluate(self, steps: Any, tensors: Sequence[Any], call: Call, host: Host) -> tuple[Any, ...]:
        saved, grads, results, launches = steps
        rows = zip([*saved, *grads], tensors, strict=True)
        replay = Replay(
            host.namespace(), {row[1]: tensor for row, tensor in rows if row is not None}, launches
        )
        input_grads = []
        for row, spec, needed in zip(results, call.specs, call.needs_gradient, strict=True):
            if not needed or spec is None:
                continue
            try:
                input_grads.append(host.zeros(spec, tensors[0]) if row is None else replay.value(row[1]))
            except UnknownValueError as reason:
                raise self.refusal(str(reason)) from None
        return tuple(input_grads)

    def refusal(self, reason: str) -> GradientError:
        """Return the error for a Backward that cannot be differentiated."""
        hint = "call aclnn operators in Backward, whose gradients are known, or use a first derivative only"
        return GradientError(
            self.name, f"its Backward has no gradient: {reason}", where=self.kernel.path, hint=hint
        )


@dataclasses.dataclass(frozen=True, eq=False)
class OwnTensors:
    """The tensors that a Forward computes and saves, as functions of its inputs.

    A second derivative needs their gradients, which no Backward computes. So the operators that Forward
    launches run again. Raises ``GradientError`` if they depend on a kernel of the module itself, or on an
    input that Forward did not save.
    """

    name: str
    kernel: ModuleKernel
    call: Call
    derived: Derived

    @property
    def active(self) -> list[int]:
        """The numbers, in the order of saving, of those that depend on an input which needs a gradient."""
        derived = self.derived
        inputs = [i for i, needed in enumerate(self.call.needs_gradient) if needed]
        dependent = depends(derived.steps, [derived.input_ids[i] for i in inputs])
        return [
            k
            for k, one in enumerate(derived.saved)
            if one.kind == "own" and one.spec.dtype.is_floating and one.number in dependent
        ]

    def again(self, inputs: dict[int, Any], outputs: dict[int, Any], which: Sequence[int]) -> tuple[Any, ...]:
        """Compute the saved tensors ``which`` again from the available inputs and outputs, both by index."""
        derived = self.derived
        host = transforming_host((*inputs.values(), *outputs.values()))
        if host is None:
            raise self.refusal("no input that it is computed from is saved")
        values = {derived.input_ids[i]: tensor for i, tensor in inputs.items()}
        fixed = {derived.output_ids[i]: tensor for i, tensor in outputs.items()}
        reasons = {
            number: f"it is computed from tensor {i} of the arguments, which is not saved"
            for i, number in derived.input_ids.items()
            if i not in inputs
        }
        replay = Replay(host.namespace(), {**values, **fixed}, derived.steps, tuple(fixed), reasons)
        try:
            return tuple(replay.value(derived.saved[k].number) for k in which)
        except UnknownValueError as reason:
            raise self.refusal(str(reason)) from None

    def refusal(self, reason: str) -> GradientError:
        """Return the error for a tensor that cannot be computed again."""
        rule = f"a tensor that its Forward computes and saves has no gradient: {reason}"
        hint = (
            "let Forward save the inputs that it is computed from, too, and compute it with aclnn operators"
        )
        return GradientError(self.name, rule, where=self.kernel.path, hint=hint)


def saved_again(name: str, kernel: ModuleKernel, call: Call, saved: Sequence[Any]) -> list[Any]:
    """Return the saved tensors of an eager call as functions of its inputs; raises ``GradientError``."""
    derived = call.derive(kernel)
    if derived is None:
        raise SecondRule(name, kernel).refusal("its Forward depends on data")
    own = OwnTensors(name, kernel, call, derived)
    tensors, which = list(saved), own.active
    if which:
        pairs = list(zip(derived.saved, saved, strict=True))
        inputs = {one.index: tensor for one, tensor in pairs if one.kind == "input"}
        outputs = {one.index: tensor for one, tensor in pairs if one.kind == "output"}
        for k, tensor in zip(which, own.again(inputs, outputs, which), strict=True):
            tensors[k] = tensor
    return tensors
