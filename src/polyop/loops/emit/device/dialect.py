"""How CUDA C++ and OpenCL C spell what the printer writes, a row for each language.

The printers of this folder walk a program once for all of them, and take from a row what differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Axes = tuple[str, str]
"""A word along x, and along y."""


@dataclass(frozen=True)
class Dialect:
    """The words of a language. C text, in which ``{}`` are places for names."""

    name: str
    title: str
    header: str
    """The header of the host's text."""
    kernel: str
    """The head of a kernel: its launch ``bounds``, ``name`` and ``parameters``."""
    numbers: str
    """The parameter that holds sizes and attributes."""
    has_pointers: bool
    """Whether that parameter holds pointers too; otherwise each is a parameter of its own."""
    space: str
    """What precedes the type of an element in the device's memory."""
    restrict: str
    shared: str
    """What precedes the declaration of memory that a block shares."""
    barrier: str
    thread: Axes
    threads: Axes
    block: Axes
    blocks: Axes
    combine: Callable[[str, str, str, str], str]
    """Operator, element, value and width -> the value that all threads of a group combine."""
    broadcast: Callable[[str, str, str], str]
    """Element, value and width -> the value of the group's first thread."""
    atomic: Callable[[str, str, str, str], str]
    """Operator, element, address and value -> a statement."""
    rows_of_block: str
    """How many groups of ``width_`` threads a block has. A barrier is for a whole block."""

    def pointer(self, name: str) -> str:
        """Return how a kernel calls a pointer that the host gives it."""
        return f"self.{name}" if self.has_pointers else f"{name}_given"

    def declared(self, pointee: str, *, constant: bool = False) -> str:
        """Return the type of a pointer to the device's memory."""
        return f"{self.space}{'const ' if constant else ''}{pointee}*"


OPERATORS = {"+": "plus", "*": "times", "max": "greatest", "min": "least"}
"""The operators of reductions, as the headers name them."""

CUDA = Dialect(
    "cuda",
    "CUDA",
    header="polyop/loops/device.h",
    kernel="__global__ void {bounds}{name}({parameters})",
    numbers="const kernel self",
    has_pointers=True,
    space="",
    restrict="__restrict__",
    shared="__shared__",
    barrier="__syncthreads();",
    thread=("threadIdx.x", "threadIdx.y"),
    threads=("blockDim.x", "blockDim.y"),
    block=("blockIdx.x", "blockIdx.y"),
    blocks=("gridDim.x", "gridDim.y"),
    combine=lambda op, elem, value, width: f"polyop_combine<polyop_{OPERATORS[op]}>({value}, {width})",
    broadcast=lambda elem, value, width: f"polyop_broadcast({value}, {width})",
    atomic=lambda op, elem, place, value: f"polyop_atomic<polyop_{OPERATORS[op]}>({place}, {value});",
    rows_of_block="width_ == 32 ? 4 : 1",
)
OPENCL = Dialect(
    "opencl",
    "OpenCL",
    header="polyop/loops/opencl.h",
    kernel="__kernel void {name}({parameters})",
    numbers="const struct numbers self",
    has_pointers=False,
    space="__global ",
    restrict="restrict",
    shared="__local",
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    thread=("get_local_id(0)", "get_local_id(1)"),
    threads=("get_local_size(0)", "get_local_size(1)"),
    block=("get_group_id(0)", "get_group_id(1)"),
    blocks=("get_num_groups(0)", "get_num_groups(1)"),
    combine=lambda op, elem, value, width: (
        f"polyop_combine_{OPERATORS[op]}_{elem}({value}, {width}, shared_)"
    ),
    broadcast=lambda elem, value, width: f"polyop_broadcast_{elem}({value}, shared_)",
    atomic=lambda op, elem, place, value: f"polyop_atomic_{OPERATORS[op]}_{elem}({place}, {value});",
    rows_of_block="1",
)
DIALECTS = {row.name: row for row in (CUDA, OPENCL)}
"""By the name of their target."""
