"""``Spec``: the shape, dtype and device of a tensor, without its data; and the device types, one row each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .dtypes import DType, dtype
from .errors import ArgumentTypeError
from .limits import shown


class Device(NamedTuple):
    """A device type.

    ``target``       how operator information names it; empty: it does not.
    ``c_functions``  whether a kernel on it may be a C function of ``polyop/abi.h``.
    ``on_demand``    whether loop kernels are made for it at their first call, not when they are defined.
    ``to_cpu``       how the tensor ``{}`` of a call is copied to the CPU, and ``from_cpu`` from there.
    """

    name: str
    target: str = ""
    c_functions: bool = False
    on_demand: bool = False
    to_cpu: str = ""
    from_cpu: str = ""


DEVICES = {
    row.name: row
    for row in (
        Device("cpu", "CPU", c_functions=True),
        Device("cuda", "GPU", c_functions=True, to_cpu="{}.cpu()"),
        Device("npu", "Ascend", to_cpu="{}.cpu()"),
        Device(
            "opencl",
            c_functions=True,
            on_demand=True,
            to_cpu="{}.get()",
            from_cpu="pyopencl.array.to_device(queue, {})",
        ),
    )
}
"""The rows by name."""

TARGETS = {name: row.target for name, row in DEVICES.items() if row.target}
"""The device types that operator information can name, and their names there."""

WITH_C_FUNCTIONS = tuple(name for name, row in DEVICES.items() if row.c_functions)
"""The device types on which a kernel may be a C function."""


def one_of(names: tuple[str, ...]) -> str:
    """Return device types as an error lists them.

    >>> one_of(("cpu", "cuda"))
    "'cpu' or 'cuda'"
    """
    return " or ".join(filter(None, [", ".join(map(repr, names[:-1])), repr(names[-1])]))


@dataclass(frozen=True, slots=True)
class Spec:
    """Shape, dtype and device of a tensor.

    ``shape`` holds ints, or a framework's symbolic integers while it traces. ``device`` is the type of the
    device without an index (``"cpu"``, ``"cuda"``).

    >>> from polyop.core.dtypes import dtype
    >>> str(Spec((2, 3), dtype("float32")))
    'float32[2, 3]'
    """

    shape: tuple[Any, ...]
    dtype: DType
    device: str = "cpu"

    def __str__(self) -> str:
        """Return ``dtype[shape]``, followed by the device if it is not the CPU."""
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        return text if self.device == "cpu" else f"{text} on {self.device}"

    def __post_init__(self) -> None:
        """Convert any spelling of a dtype, and a list as shape; raises ``ArgumentTypeError``."""
        if type(self.dtype) is not DType:
            object.__setattr__(self, "dtype", dtype(self.dtype))
        if type(self.shape) is not tuple:
            if not isinstance(self.shape, (list, tuple)):
                raise ArgumentTypeError("Spec", "the shape must be a tuple of sizes", shown(self.shape))
            object.__setattr__(self, "shape", tuple(self.shape))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the dense data in bytes."""
        return self.numel * self.dtype.itemsize


def are_numbers(arguments: Sequence[Any]) -> bool:
    """Whether no size of a tensor among the arguments of a call is a tracer's symbol."""
    each = [x for a in arguments for x in (a if isinstance(a, (list, tuple)) else (a,))]
    return all(type(size) is int for spec in each if isinstance(spec, Spec) for size in spec.shape)
