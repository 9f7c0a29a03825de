"""The infer rule of a module's function: the function itself, run on tensors without data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dims.infer import FromDims, check_agreement
from ...core.errors import InferError
from ...core.schema import Schema
from ...core.spec import Spec, are_numbers
from .kernel import READS_DATA, Derived, ModuleKernel


class ModuleInfer:
    """Output specs from a dry run: the function allocates tensors without data, and launches nothing."""

    repeatable = True

    def __init__(self, kernel: ModuleKernel, schema: Schema) -> None:
        self.kernel, self.schema = kernel, schema

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per new output; raises ``InferError``."""
        inputs, attributes = self.schema.tensors_and_attributes(arguments)
        derived = self.derived(inputs, attributes)
        undeclared = [
            argument.name
            for argument, write in self._writes(inputs, derived.written)
            if write and not argument.type.writes
        ]
        if undeclared:
            rule = f"writes its argument {undeclared[0]}, which its schema shows only after a first call"
            hint = "call the operator once before it is traced: the first call corrects the schema"
            raise InferError(self.schema.qualified_name, rule, where=self.kernel.path, hint=hint)
        if self.schema.returns_list:
            return derived.outputs
        if len(derived.outputs) != len(self.schema.returns):
            rule = f"must give {len(self.schema.returns)} outputs"
            raise InferError(self.schema.qualified_name, rule, len(derived.outputs), where=self.kernel.path)
        return tuple(derived.outputs[i] for i in self.schema.fresh)

    def derived(self, inputs: Sequence[Any], attributes: dict[str, Any]) -> Derived:
        """Return what the function does for these specs."""
        return self.kernel.derive(inputs, attributes)

    def _writes(self, inputs: Sequence[Any], written: Sequence[bool]) -> list[tuple[Any, bool]]:
        tensors = [a for a in self.schema.arguments if a.type.is_tensor]
        return list(zip(tensors, per_argument(inputs, written), strict=True))


class ModuleBesideDims:
    """The infer rule of ``dims=`` for a module's function, whose dry run has to give the same outputs.

    Symbols are not passed to C++, and a function that reads data has no dry run: ``dims=`` alone gives the
    outputs then.
    """

    repeatable = True

    def __init__(self, rule: FromDims, module: ModuleInfer) -> None:
        """Take the rule of ``dims=``, and that of the function."""
        self.rule, self.module = rule, module

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per new output; raises ``InferError``, also where the two disagree."""
        outputs = self.rule(arguments)
        if not are_numbers(arguments):
            return outputs
        try:
            others = self.module(arguments)
        except InferError as problem:
            if READS_DATA in str(problem):
                return outputs
            raise
        subject, name = self.rule.schema.qualified_name, str(self.module.kernel)
        check_agreement(subject, outputs, [other.shape for other in others], name, self.rule.dims.origin)
        for number, (output, other) in enumerate(zip(outputs, others, strict=True)):
            if output.dtype != other.dtype:
                rule = f"dims= gives output {number} the dtype {output.dtype}, and {name} {other.dtype}"
                hint = f'beside dims=, infer= gives the dtype: "{other.dtype}"'
                raise InferError(subject, rule, where=self.rule.dims.origin, hint=hint)
        return outputs


def per_argument(inputs: Sequence[Any], flags: Sequence[bool]) -> list[bool]:
    """Return a flag for each argument from those of its tensors: for a list, whether any is set."""
    remaining = iter(flags)
    return [
        any([next(remaining) for _ in value]) if isinstance(value, tuple) else next(remaining)  # noqa: C419 - all are read
        for value in inputs
    ]
