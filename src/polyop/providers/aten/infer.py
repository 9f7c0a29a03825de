"""The infer rule of PyTorch's operators: PyTorch runs them on tensors without data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from ...core.dtypes import dtype
from ...core.errors import ArgumentValueError, InferError, KernelError
from ...core.infer import first_device
from ...core.schema import Schema
from ...core.spec import Spec
from ...hosts.torch.tensors import TORCH_DTYPES
from .function import TorchFunction, flat_flags, flatten_tensors, special, to_torch


class UnknownOutputsError(InferError):
    """PyTorch cannot compute the shapes of the outputs without the data."""


class FromMeta:
    """Runs an operator on meta tensors; on fake tensors, if it has no kernel for meta tensors.

    The operator of an extension that has no Meta kernel runs on fake tensors at once: they say that they are
    on the CPU, as its C++ function may demand, and it cannot read their memory.
    """

    repeatable = True

    def __init__(self, function: TorchFunction) -> None:
        """Keep the function."""
        self.function = function

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per new output.

        Raises ``UnknownOutputsError`` if shapes depend on data, ``InferError`` if PyTorch refuses the
        specs, and ``ArgumentValueError`` if an argument that is written has the wrong shape.
        """
        schema = self.function.schema
        if self.function.shapes_by_a_run:
            return self._by_a_run(arguments)
        device = first_device(arguments)
        if not _takes_meta(self.function.function):
            return tuple(self._spec(result, device) for result in self._fake(arguments))
        converted = to_torch(schema, arguments, lambda spec: empty_tensor(spec, "meta"))
        rows = zip(schema.arguments, converted, strict=True)
        meta = tuple(_on_meta(argument.type.base, value) for argument, value in rows)
        try:
            results = self._run(meta)
        except KernelError as problem:
            cause = problem.__cause__
            if not isinstance(cause, NotImplementedError) and "meta" not in str(cause):
                raise infer_error(schema, problem) from None
            results = self._fake(arguments)
        else:
            self._check_written(arguments, meta)
        return tuple(self._spec(result, device) for result in results)

    def _by_a_run(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        def sample(spec: Spec) -> torch.Tensor:  # an index of 0 fits everywhere, a window of ones overlaps
            fill = torch.ones if spec.dtype.is_floating else torch.zeros
            return fill(spec.shape, dtype=TORCH_DTYPES[spec.dtype.name])

        try:
            tensors = to_torch(self.function.schema, arguments, sample)
            results = self._run(tensors)
        except KernelError as problem:
            raise infer_error(self.function.schema, problem) from None
        self._check_written(arguments, tensors)
        return tuple(self._spec(result, first_device(arguments)) for result in results)

    def _run(self, arguments: Sequence[Any]) -> list[Any]:
        if not self.function.schema.mutates:
            with torch.no_grad():
                return self.function(arguments)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a resized out=, which is an error here
            return self.function(arguments)

    def _fake(self, arguments: Sequence[Any]) -> list[Any]:
        from torch._subclasses import fake_tensor  # slow to import, and rarely needed

        schema = self.function.schema
        unknown: dict[type, tuple[str, str]] = {
            fake_tensor.DynamicOutputShapeException: _DATA_DEPENDENT,
            fake_tensor.DataDependentOutputException: (_NEEDS_DATA, _GIVE_INFER),
            fake_tensor.UnsupportedOperatorException: _NO_FAKE_KERNEL,
        }
        with fake_tensor.FakeTensorMode():
            fakes = to_torch(schema, arguments, lambda spec: empty_tensor(spec, spec.device))
            try:
                results = self._run(fakes)
            except KernelError as problem:
                rule, hint = unknown.get(type(problem.__cause__), ("", ""))
                if _READS_DATA in str(problem.__cause__):
                    rule, hint = _NO_FAKE_KERNEL[0], _GIVE_INFER
                elif rule == _DATA_DEPENDENT[0] and not self._takes_size(arguments):
                    rule, hint = _NEEDS_DATA, _GIVE_INFER
                if rule:
                    hint = hint.format(how=_how_to_give_infer(schema))
                    raise UnknownOutputsError(schema.qualified_name, rule, hint=hint) from None
                raise infer_error(schema, problem) from None
        self._check_written(arguments, fakes)
        return results

    def _takes_size(self, arguments: Sequence[Any]) -> bool:
        """Whether PyTorch says which sizes depend on data, so that ``size=`` can stand for them."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        with FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True):
            fakes = to_torch(self.function.schema, arguments, lambda spec: empty_tensor(spec, spec.device))
            try:
                self._run(fakes)
            except KernelError:
                return False
        return True

    def _check_written(self, arguments: Sequence[Any], tensors: Sequence[Any]) -> None:
        schema = self.function.schema
        for argument, spec, tensor in zip(schema.arguments, arguments, tensors, strict=True):
            if not argument.type.writes or argument.type.is_list or spec is None:
                continue
            if tuple(tensor.shape) != tuple(spec.shape):
                subject = f"{schema.qualified_name}: argument {argument.name}"
                rule = f"must have the result's shape {tuple(tensor.shape)}"
                raise ArgumentValueError(subject, rule, tuple(spec.shape))

    def _spec(self, result: Any, device: str) -> Spec:
        if result is None:
            raise UnknownOutputsError(
                self.function.schema.qualified_name, "leaves one of its results undefined"
            )
        return Spec(tuple(result.shape), dtype(result.dtype), device)


_DATA_DEPENDENT = (
    "the shapes of its outputs depend on the data, which is not known here",
    "pass size= (and fill_value=): the result is cut or filled to it; or call it on arrays that hold data",
)
_READS_DATA = "its data is not allocated yet"  # PyTorch's words about a fake tensor
_NEEDS_DATA = "PyTorch needs the data to find the shapes of its outputs, and the data is not known here"
_GIVE_INFER = (
    "give them by an infer rule: {how}, where the rule is a function from specs and attribute values to the "
    "output's polyop.Spec (a tuple for several), or the name of an argument"
)
_NO_FAKE_KERNEL = (
    "PyTorch does not know the shapes of its outputs without running it",
    f"{_GIVE_INFER}\nor its author adds them, with torch.library.register_fake",
)


def _how_to_give_infer(schema: Schema) -> str:
    """Return where an author writes the infer rule of PyTorch's operator, or of a library's."""
    if schema.namespace == "aten":
        return f'polyop.aten("{schema.qualified_name}", infer=rule)'
    return f"polyop.load_library(..., infer={{{schema.name!r}: rule}})"


def _takes_meta(function: Any) -> bool:
    """Whether a function takes meta tensors; an extension's does if it has a kernel for them."""
    if not isinstance(function, torch._ops.OpOverload) or function.namespace == "aten":  # noqa: SLF001
        return True
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key  # noqa: SLF001 - no public name
    return bool(has_kernel(function.name(), "Meta"))


def needs_data(problem: KernelError) -> bool:
    """Whether PyTorch raised in a run without data because it needs the data."""
    from torch._subclasses import fake_tensor  # slow to import, and rarely needed
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    kinds = (
        fake_tensor.DynamicOutputShapeException,
        fake_tensor.DataDependentOutputException,
        fake_tensor.UnsupportedOperatorException,
        GuardOnDataDependentSymNode,
        NotImplementedError,
    )
    return isinstance(problem.__cause__, kinds)


def infer_error(schema: Schema, problem: KernelError) -> InferError:
    """Return the error for arguments that PyTorch refused in a run without data."""
    message = str(problem).removeprefix(f"{schema.qualified_name}: ").split("\n", maxsplit=1)[0]
    return InferError(schema.qualified_name, message)


class LikeInputs:
    """The infer rule of a gradient: like each floating input that is wanted; shape (0,) for any other."""

    repeatable = True

    def __init__(self, schema: Schema) -> None:
        """Keep the schema of the operator that is differentiated."""
        self.schema = schema

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per tensor; the first argument is the output gradients, the last what is wanted."""
        *inputs, wanted = arguments[1:]
        empty = Spec((0,), dtype("float32"), first_device(inputs))
        flags = flat_flags(self.schema, inputs, wanted)
        return tuple(
            spec if flag and spec is not None and spec.dtype.is_floating else empty
            for spec, flag in zip(flatten_tensors(self.schema, inputs), flags, strict=True)
        )


def empty_tensor(spec: Spec, device: str) -> torch.Tensor:
    """Return a tensor of a spec, with any values, on a device that may be ``"meta"``."""
    return torch.empty(spec.shape, dtype=TORCH_DTYPES[spec.dtype.name], device=device)


def _on_meta(base: str, value: Any) -> Any:
    return special(base, "meta") if base == "Device" and value is not None else value
