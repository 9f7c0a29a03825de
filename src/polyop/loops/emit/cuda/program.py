"""The whole CUDA file of a kernel: compiled, not run on hardware.

It is printed from the same schedule as the C of the CPU. shapes.py chooses the launches, parts.py prints
them, and this module adds the struct and the entry.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...analysis.bounds import Bounds
from ...analysis.dependence import Kind
from ...ir.grammar import Buffer, Kernel
from ...ir.plan import Plan
from ..common.ctypes import identifier, memory
from ..common.entry import Entry, warnings_text
from ..common.writer import Writer
from .bodies import CudaExpressions, c_type
from .parts import Parts
from .shapes import Mapper


def print_cuda(
    kernel: Kernel,
    plan: Plan,
    bounds: Bounds,
    owners: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, Kind],
    *,
    function: str,
    checked: bool = False,
) -> str:
    """Return the CUDA file; ``function`` is the exported name, with the signature of a kernel.

    The function accepts all sizes and GPUs. If an index is checked at each access, it waits for its stream
    and reports the first index outside; else it only launches.
    """
    expressions = CudaExpressions(kernel, bounds, checked=checked)
    mapper = mapped(kernel, plan, bounds, owners, kinds)
    parts = Parts(kernel, expressions, mapper, owners)
    body = parts.print(mapper.pieces(kernel.body))
    file = kernel.file.rsplit("/", 1)[-1]
    texts = (
        f"/* {function}: the loop kernel {kernel.name} of {file}, for CUDA: compiled, not run on hardware */",
        '#include "polyop/loops/device.h"',
        f"\nnamespace polyop_loops_{function} {{",
        _structs(kernel, parts, expressions),
        body,
        CudaEntry(kernel, bounds, expressions, function, parts).print(),
    )
    return "\n".join(texts) + warnings_text(kernel, function, cpp=True)


def mapped(
    kernel: Kernel,
    plan: Plan,
    bounds: Bounds,
    owners: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, Kind],
) -> Mapper:
    """Return the mapper that chooses a kernel's launches; after ``pieces`` its ``notes`` give the reasons."""
    mapper = Mapper(kernel, plan, kinds, owners)
    mapper.dynamic = frozenset(buffer for buffer, _ in bounds.dynamic)
    return mapper


def _structs(kernel: Kernel, parts: Parts, expressions: CudaExpressions) -> str:
    out = Writer()
    with out.block("struct scalars"):
        for name, kind in parts.outer.items():
            out.line(f"{c_type(kind)} {identifier(name)};")
    out.lines[-1] += ";"
    with out.block("struct kernel"):
        for name, buffer in kernel.buffers.items():
            out.line(
                f"{'const ' if buffer.role == 'input' else ''}{memory(buffer.dtype)}* {identifier(name)};"
            )
        for name, buffer in kernel.buffers.items():
            for axis in range(len(buffer.shape)):
                out.line(f"int64_t {expressions.size(name, axis)};")
        for name, kind in kernel.attributes.items():
            out.line(f"{c_type(kind)} {identifier(name)};")
        for name in parts.variables:
            out.line(f"int64_t at_{name};")
        for name in parts.private:
            out.line(f"void* own_{name};")
        out.line("int64_t partials;")
        out.line("scalars* state;")
        out.line("polyop_failure* failure;")
    out.lines[-1] += ";"
    return out.text()


class CudaEntry(Entry):
    """Prints the entry of one kernel; allocations and clears are in stream order."""

    def __init__(
        self, kernel: Kernel, bounds: Bounds, expressions: CudaExpressions, function: str, parts: Parts
    ) -> None:
        super().__init__(kernel, bounds, expressions, function)
        self.parts = parts
        self.memory: list[tuple[str, str, str, str | None]] = []
        """What a call allocates: field, type, bytes, and the condition for zeros: "" always, None never."""

    def print(self) -> str:
        """Return the text."""
        places = ", ".join(f'{{{line}, {axis}, "{name}"}}' for line, name, axis in self.expressions.places)
        if places:
            self.out.line(f"static const struct polyop_place places[] = {{{places}}};")
        arguments = "int nparam, void** params, int64_t** shapes, void* given, void* extra"
        with self.out.block(f"static int call({arguments})"):
            count = len(self.inputs) + len(self.outputs)
            self.out.line(f'if (nparam < {count}) return polyop_fail(extra, "too few tensors");')
            self.out.line("(void)shapes;")
            self.out.line("const cudaStream_t stream = (cudaStream_t)given;")
            self.out.line("kernel self = {};")
            self.arguments()
            self.attributes()
            self.sizes()
            self.preconditions()
            self.overlaps()
            self._run()
        self.out.line("}  // namespace")
        self.out.line()
        arguments = "int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes"
        with self.out.block(f'extern "C" int {self.function}({arguments}, void* stream, void* extra)'):
            self.out.line("(void)ndims, (void)dtypes;")
            call = f"polyop_loops_{self.function}::call"
            self.out.line(f"return {call}(nparam, params, shapes, stream, extra);")
        return self.out.text()

    def arguments(self) -> None:
        """Print the reading of tensors and of input sizes."""
        for number, buffer in enumerate([*self.inputs, *self.outputs]):
            constant = "const " if buffer.role == "input" else ""
            cast = f"({constant}{memory(buffer.dtype)}*)"
            self.out.line(f"self.{identifier(buffer.name)} = {cast}params[{number}];")
        for number, buffer in enumerate(self.inputs):
            for axis in range(len(buffer.shape)):
                size = self.expressions.size(buffer.name, axis)
                pair = axis == len(buffer.outer_shape)
                value = "2" if pair else f"shapes[{number}][{axis}]"
                self.out.line(f"const int64_t {size} = self.{size} = {value};")

    def _run(self) -> None:
        for name, buffer in self.kernel.buffers.items():
            c, size = identifier(name), self.bytes(buffer)
            if buffer.role == "local" and name not in self.parts.slotted:
                when = self._cleared(buffer) if buffer.zeroed else None
                self.memory.append((c, memory(buffer.dtype), size, when))
            elif buffer.role == "output" and buffer.zeroed:
                self._clear(c, self._cleared(buffer), size)
        if self.parts.outer:
            self.memory.append(("state", "scalars", "(int64_t)sizeof(scalars)", ""))
        if self.expressions.places:
            self.memory.append(("failure", "polyop_failure", "(int64_t)sizeof(polyop_failure)", ""))
        for number, (field, elem, size, when) in enumerate(self.memory):
            self.out.line(f"const polyop_taken taken{number}_({size}, stream);")
            self.out.line(f"if (taken{number}_.wrong) return polyop_fail(extra, taken{number}_.wrong);")
            self.out.line(f"self.{field} = ({elem}*)taken{number}_.data;")
            if when is not None:
                self._clear(field, when, size)
        self.out.line("if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);")
        if not self.expressions.places:
            self.out.line("return 0;")
            return
        self.out.line("polyop_failure failure = {};")
        for call in (
            "cudaMemcpyAsync(&failure, self.failure, sizeof failure, cudaMemcpyDeviceToHost, stream)",
            "cudaStreamSynchronize(stream)",
        ):
            self._try(call)
        self.out.line("return polyop_report(extra, &failure, places);")

    def _cleared(self, buffer: Buffer) -> str:
        """Return the condition, in C, on which a tensor is cleared: CUDA refuses to clear no bytes."""
        needed = self.needs_zeros(buffer)
        return f"{self.bytes(buffer)} > 0" + (f" && {needed}" if needed else "")

    def _clear(self, field: str, when: str, size: str) -> None:
        """Print what clears memory; an empty ``when`` means always."""
        with self.out.block(f"if ({when})" if when else ""):
            self._try(f"cudaMemsetAsync(self.{field}, 0, {size}, stream)")

    def _try(self, call: str) -> None:
        self.out.line(f"if (const cudaError_t wrong = {call})")
        self.out.line("  return polyop_fail(extra, cudaGetErrorString(wrong));")
