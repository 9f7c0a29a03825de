"""A function of a C++ module as a kernel, and its dry run on tensors without data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ... import _core
from ...binary.hashes import known_digest
from ...core.dtypes import DTYPES, dtype
from ...core.errors import ArgumentTypeError, InferError, KernelError
from ...core.schema import Argument, Schema
from ...core.spec import Spec
from ..base import KernelBase, flatten
from .function_table import LIST, NESTED, TENSOR, ModuleSignature

ROWS = {row.name: number for number, row in enumerate(DTYPES)}
DEVICES = {"cpu": 1, "cuda": 2}  # DLPack's numbers

WANTS_INFER = (
    "its Forward reads data before the shape of the output is known, so the shape cannot be derived: give "
    "load(infer={...}), or wrap loops over data in a PyboostRunner or polyop::launch(), which are skipped"
)
READS_DATA = "while output shapes are derived"
"""Part of the message of csrc/module/functions.cc when a dry run reads data."""


@dataclass(frozen=True)
class Saved:
    """A tensor that is saved for backward: an input, an output, or one that the function made (``own``)."""

    kind: str
    index: int
    spec: Spec
    number: int


@dataclass(frozen=True)
class Derived:
    """The result of a dry run: what a function does for given specs.

    ``aliases`` has, for each output, the flat input that it is, or -1. ``tape`` runs Backward. ``steps``
    are the launches; in them each tensor has a number, ``input_ids`` for flat inputs and ``output_ids``.
    """

    outputs: tuple[Spec, ...]
    aliases: tuple[int, ...]
    written: tuple[bool, ...]
    saved: tuple[Saved, ...]
    sources: tuple[tuple[int, int], ...]
    tape: Any
    steps: tuple[Any, ...]
    recorded: bool
    input_ids: dict[int, int]
    output_ids: tuple[int, ...]

    @property
    def own(self) -> tuple[Spec, ...]:
        """Specs of the saved tensors that are neither input nor output."""
        return tuple(one.spec for one in self.saved if one.kind == "own")


_KINDS = ("input", "output", "own")


def _spec(row: Any, device: str) -> Spec:
    shape, number = row
    return Spec(shape, DTYPES[number], device)


def _native(spec: Spec | None) -> Any:
    """Return a spec for the native core, which needs numbers: a symbolic size is specialised."""
    return None if spec is None else (tuple(int(size) for size in spec.shape), ROWS[spec.dtype.name])


@dataclass(eq=False)
class ModuleKernel(KernelBase):
    """The function at ``address`` of the module at ``path``; it allocates its outputs itself."""

    path: Path
    name: str
    address: int
    signature: ModuleSignature
    schema: Schema
    device: str = "cpu"
    native: bool = True
    allocates: bool = True
    attributes: Mapping[str, Any] = field(default_factory=dict)
    wants_infer: ClassVar[str] = WANTS_INFER

    def __str__(self) -> str:
        """Return ``module function name``."""
        return f"C++ function {self.name} of {self.path.name}"

    def content(self) -> Iterator[bytes]:
        """Yield the function's name and a digest of the module's bytes."""
        yield self.name.encode()
        yield known_digest(self.path).encode()

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why these specs are refused: C++ modules lack some dtypes."""
        del outputs
        for spec in flatten(inputs):
            if spec is not None and spec.dtype.type_id == 0:
                return f"C++ modules have no dtype {spec.dtype}"
        return None

    def launch(self, inputs: Sequence[Any], outputs: tuple[Spec, ...], attributes: Mapping[str, Any]) -> Any:
        """Return the native launch for attribute values; the same serves all specs."""
        del outputs
        values = self.values(inputs, attributes)
        tensors = [
            (argument.name, argument.type.writes)
            for argument, value in zip(self._tensors(), inputs, strict=True)
            for _ in (value if isinstance(value, tuple) else (value,))
        ]
        return _core.make_module_launch(self.address, self.signature.kinds, values, tensors, str(self))

    def values(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return one value per C++ parameter: attributes, and how many tensors each list has."""
        tensors = dict(zip((a.name for a in self._tensors()), inputs, strict=True))
        values: list[Any] = []
        for argument, kind in zip(self.signature.parameters, self.signature.kinds, strict=True):
            tensor = tensors.get(argument.name)
            if kind == TENSOR:
                values.append(None)
            elif kind == LIST:
                values.append(None if tensor is None else len(tensor))
            elif kind == NESTED:
                values.append(tuple(attributes[self.signature.rows[argument.name]]))
            else:
                values.append(native_value(argument, attributes[argument.name]))
        return tuple(values)

    def derive(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        requires_grad: Sequence[bool] | None = None,
    ) -> Derived:
        """Call the function on tensors without data.

        ``requires_grad`` has a flag for each flat input; by default every floating input has it. Raises
        ``InferError`` with the author's message, or if the function reads data.
        """
        specs = tuple(flatten(inputs))
        device = next((spec.device for spec in specs if spec is not None), "cpu")
        flags = tuple(map(is_differentiable, specs)) if requires_grad is None else tuple(requires_grad)
        values = self.values(inputs, attributes)
        native_specs = tuple(map(_native, specs))
        number = DEVICES.get(device, 1)
        try:
            result = _core.derive(self.address, self.signature.kinds, values, native_specs, flags, number)
        except RuntimeError as problem:
            hint = self.wants_infer if READS_DATA in str(problem) else None
            raise InferError(str(self), str(problem), where=self.path, hint=hint) from None
        _, outputs, written, saved, sources, tape, steps, recorded = result
        numbers = {i: n for n, i in enumerate(i for i, spec in enumerate(specs) if spec is not None)}
        ids = {n: i for i, n in numbers.items()}
        return Derived(
            tuple(_spec(row, device) for row, _ in outputs),
            tuple(ids.get(number, -1) for _, number in outputs),
            written,
            tuple(
                Saved(_KINDS[kind], index, _spec(row, device), number) for kind, index, row, number in saved
            ),
            sources,
            tape,
            steps,
            bool(recorded),
            numbers,
            tuple(number for _, number in outputs),
        )

    def specs(self, rows: Sequence[Any]) -> tuple[Spec | None, ...]:
        """Return specs from the native core's rows."""
        return tuple(None if row is None else _spec(row, self.device) for row in rows)

    def _tensors(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.schema.arguments if a.type.is_tensor)


def is_differentiable(spec: Spec | None) -> bool:
    """Whether a tensor can have a gradient."""
    return spec is not None and spec.dtype.is_floating


def native_value(argument: Argument, value: Any) -> Any:
    """Return an attribute as the native core takes it: a dtype as MindSpore's number."""
    if argument.type.base != "ScalarType" or value is None:
        return value
    return dtype(value).type_id


def plain_call(kernel_address: int, signature: ModuleSignature, values: Sequence[Any], like: Any) -> Any:
    """Call a function without tensor arguments; it makes tensors of the same framework as ``like``.

    Raises ``KernelError`` with the author's message.
    """
    native_values = tuple(
        native_value(argument, value) for argument, value in zip(signature.parameters, values, strict=True)
    )
    try:
        return _core.call_plain(kernel_address, signature.kinds, native_values, like)
    except (RuntimeError, TypeError) as problem:
        kind = ArgumentTypeError if isinstance(problem, TypeError) else KernelError
        raise kind(signature.schema.qualified_name, f"the C++ function failed: {problem}") from None
