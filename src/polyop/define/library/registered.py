"""The registered parts of one operator of a ``Library``, and how they are assembled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...call.bound import BoundOperator
from ...call.operator import Kernel, Operator
from ...core.dims.dims import Dims
from ...core.dims.infer import BesideDims, infer_from_dims
from ...core.errors import ArgumentValueError, InferError, SchemaError
from ...core.infer import FromSpecs
from ...core.origin import Origin
from ...core.schema import Schema
from ...core.spec import Spec
from ...kernels.base import KernelBase, LoopKernelBase
from ...rules.dims import with_dims_batch
from ..operator import (
    as_kernel_of,
    beside_batch,
    check_batch,
    checked_schema,
    elementwise_dims,
    infer_rule,
)
from .torch_rules import check_registered


@dataclass
class Parts:
    """The registered parts of one operator, each with the place where it was registered."""

    schema: tuple[Schema, Origin] | None = None
    dims: Dims | None = None
    kernels: dict[str, tuple[Any, Any, Origin]] = field(default_factory=dict)
    rules: dict[str, tuple[Any, Origin]] = field(default_factory=dict)
    bound: BoundOperator | None = None
    version: int = 0
    """Grows with each part."""
    assembled: int = -1
    """The version that ``bound`` has."""

    def copy(self) -> Parts:
        """Return the parts of now, to assemble them without a lock."""
        return replace(self, kernels=dict(self.kernels), rules=dict(self.rules))

    def assemble(self, name: str) -> Operator:
        """Return the operator ``namespace::name``.

        Raises ``SchemaError`` without a schema, ``InferError`` if the outputs' shapes and dtypes are not
        known, ``ArgumentTypeError`` and ``ArgumentValueError`` for a part that does not fit the schema.
        """
        if self.schema is None:
            part, origin = self._first()
            hint = f'write define("{name.rpartition("::")[2]}(...) -> ...")'
            raise SchemaError(name, f"has {part}, but no schema", where=origin, hint=hint)
        schema, origin = self.schema
        for kind in ("gradient", "jvp"):
            if kind in self.rules:
                checked_schema(schema, {kind: self.rules[kind][0]}, self.rules[kind][1])
        for rule, where in self.rules.values():
            check_registered(rule, schema, where)
        kernels = [_kernel(schema, device, *entry) for device, entry in self.kernels.items()]
        rules = {kind: rule for kind, (rule, _) in self.rules.items()}
        loops = [
            k
            for k in kernels
            if k.device == "cpu" and isinstance(k, LoopKernelBase) and "cuda" not in self.kernels
        ]
        kernels += [kernel.on("cuda") for kernel in loops]  # compiled at the first call
        batch = rules.get("batch")
        if self.dims is None:
            dims = elementwise_dims(schema, batch, rules.get("fake"), kernels, origin)
        else:
            dims = beside_batch(self.dims, batch)
        operator = Operator(
            schema=schema,
            infer=_infer(schema, self.rules.get("fake"), kernels, dims, origin),
            kernels=tuple(kernels or [AbsentKernel(schema.name)]),
            gradient=rules.get("gradient"),
            jvp=rules.get("jvp"),
            batch=check_batch(batch, schema, dims),
            dims=dims,
            origin=origin,
        )
        return with_dims_batch(operator)

    def _first(self) -> tuple[str, Origin]:
        rows = [(f"a kernel for {device}", entry[-1]) for device, entry in self.kernels.items()]
        rows += [(f"a {kind} rule", origin) for kind, (_, origin) in self.rules.items()]
        return rows[0]


@dataclass(eq=False)
class AbsentKernel(KernelBase):
    """Stands for the kernels of an operator without any; calls fail with a message that says so."""

    name: str
    device: str = "any"
    native: bool = False

    def __str__(self) -> str:
        """Return ``kernels``, the subject of the message."""
        return "kernels"

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str:
        """Return the reason: no kernel is registered."""
        del inputs, outputs
        return f'none is registered, for any device: impl("{self.name}", kernel, device="cpu")'


def _kernel(schema: Schema, device: str, value: Any, dtypes: Sequence[Any] | None, origin: Origin) -> Any:
    kernel: Any = as_kernel_of(schema, value, dtypes, origin)
    if device != "cpu" == kernel.device and isinstance(kernel, LoopKernelBase):
        kernel = kernel.on(device)
    if kernel.device not in (device, "any"):
        rule = f"the kernel is registered for {device}, but runs on {kernel.device}"
        raise ArgumentValueError(schema.qualified_name, rule, str(kernel), where=origin)
    return kernel


def _infer(
    schema: Schema,
    fake: tuple[Any, Origin] | None,
    kernels: Sequence[Kernel],
    dims: Dims | None,
    origin: Origin,
) -> Any:
    """Return the infer rule; beside ``dims``, a function of ``fake`` has to give the same shapes."""
    if fake is not None and dims is not None and callable(fake[0]):
        return BesideDims(infer_from_dims(dims, schema), FromSpecs(fake[0], schema), "fake", fake[1])
    if fake is not None:
        return infer_rule(schema, fake[0], kernels, {}, dims)
    try:
        return infer_rule(schema, None, kernels, {}, dims)
    except InferError as problem:
        hint = (
            f'write fake("{schema.name}", ...): the name of an argument, or a function from specs to a Spec; '
            "or give dims="
        )
        rule = "the shape and dtype of the output cannot be derived"
        raise InferError(schema.qualified_name, rule, where=origin, hint=hint) from problem
