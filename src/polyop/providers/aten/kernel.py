"""The kernel for hosts other than PyTorch: runs PyTorch's operator on the memory of arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

from ...core.errors import ArgumentTypeError, ArgumentValueError, KernelError
from ...core.schema import Schema
from ...core.spec import Spec
from ...hosts.torch import tensors
from ...kernels.python import PythonKernel, empty
from .function import TorchFunction, flatten_tensors, to_torch
from .functional import STATISTICS

_CPU = torch.device("cpu")

_kept: ContextVar[tuple[TorchFunction, list[Any]] | None] = ContextVar("kept", default=None)


@contextlib.contextmanager
def keep_results(function: TorchFunction) -> Iterator[list[Any]]:
    """Give a list, to which the kernel of ``function`` adds what PyTorch returns inside of the block."""
    results: list[Any] = []
    token = _kept.set((function, results))
    try:
        yield results
    finally:
        _kept.reset(token)


class AtenKernel(PythonKernel):
    """PyTorch's operator on CPU arrays, whose memory it reads and writes in place."""

    def __init__(self, source: TorchFunction) -> None:
        """Keep the function of PyTorch."""
        super().__init__(self.on_arrays)
        self.source = source

    def __str__(self) -> str:
        """Return the name of PyTorch's operator."""
        return f"PyTorch's {self.source.schema.qualified_name}"

    def call(
        self,
        schema: Schema,
        arguments: Sequence[Any],
        outputs: Sequence[Spec],
        fixed: Mapping[str, Any],
        new: Callable[[Spec], Any] = empty,
    ) -> list[Any]:
        """Return the new outputs as dense arrays that share no memory with the inputs.

        ``outputs`` are checked unless the list is empty, which means unknown. Raises ``KernelError``
        with PyTorch's message, and ``ArgumentValueError`` if PyTorch wrote a read-only array.
        """
        del schema, fixed, new
        arrays = self._run(arguments)
        if outputs:
            self._check(arrays, outputs)
        return arrays

    def on_arrays(self, *arguments: Any) -> Any:
        """Return the new outputs for one value per argument: one array, a tuple, or None."""
        arrays = self._run(arguments)
        single = len(arrays) == 1 and not self.source.schema.returns_list
        return arrays[0] if single else tuple(arrays) or None

    def _run(self, arguments: Sequence[Any]) -> list[Any]:
        schema = self.source.schema
        converted = to_torch(schema, arguments, from_array)
        with torch.inference_mode(mode=False), torch.no_grad():
            result = self.source.result(converted)
        kept = _kept.get()
        if kept is not None and kept[0] is self.source:
            kept[1].append(result)
        self._check_inputs(schema, arguments, converted)
        return self._arrays(self.source.tensors(result), flatten_tensors(schema, converted))

    def _check_inputs(self, schema: Schema, arguments: Sequence[Any], converted: Sequence[Any]) -> None:
        for argument, array, tensor in zip(schema.arguments, arguments, converted, strict=True):
            subject = f"{schema.qualified_name}: argument {argument.name}"
            if array is None or not argument.type.is_tensor or argument.type.is_list:
                continue
            if argument.type.writes and tensor.shape != array.shape:
                rule = f"must have the result's shape {tuple(tensor.shape)}, as only PyTorch can resize it"
                raise ArgumentValueError(subject, rule, array.shape)
            if argument.type.writes or argument.name not in STATISTICS:
                continue
            if tensors.to_numpy(tensor).tobytes() != array.tobytes():
                rule = "was written, as its statistics are in training"
                raise ArgumentValueError(subject, rule, "a read-only array", hint="pass a copy")

    def _arrays(self, results: Iterable[Any], inputs: Iterable[Any]) -> list[Any]:
        # a view of an input or of another output is copied
        storages = {tensor.untyped_storage().data_ptr() for tensor in inputs if tensor is not None}
        arrays: list[Any] = []
        for result in results:
            if result is None:
                arrays.append(None)
                continue
            try:
                tensors.spec(result)
                if result._is_zerotensor():  # noqa: SLF001 - a gradient that is 0 everywhere has no memory
                    result = torch.zeros(result.shape, dtype=result.dtype)  # noqa: PLW2901
                plain = tensors.dense(result).cpu()
            except (ArgumentTypeError, NotImplementedError) as problem:
                raise KernelError(self, "gave a result that is no array", str(problem)) from None
            memory = plain.untyped_storage().data_ptr()
            if memory in storages:
                plain = plain.clone()
            storages.add(memory)
            arrays.append(tensors.to_numpy(plain))
        return arrays

    def _check(self, arrays: list[Any], outputs: Sequence[Spec]) -> None:
        expected = [(tuple(spec.shape), spec.dtype.numpy) for spec in outputs]
        actual = [(array.shape, array.dtype) if array is not None else None for array in arrays]
        if expected != actual:
            rule = f"must give {', '.join(map(str, outputs))}, as PyTorch said without the data"
            seen = ", ".join("None" if item is None else f"{item[1]}{list(item[0])}" for item in actual)
            raise KernelError(self, rule, seen)


def from_array(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """Return a tensor over the memory of an array."""
    # PyTorch has no read-only tensors, so a read-only array is copied
    return tensors.from_numpy(array if array.flags.writeable else array.copy(), _CPU)
