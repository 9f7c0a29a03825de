"""The whole CUDA file of a kernel: compiled, not run on hardware.

The schedule is the one that the CPU's C is printed from. ``cuda_shapes`` chooses the launches,
``cuda_parts`` prints them, and this puts the struct before and the entry behind them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..bounds import Bounds
from ..dependence import Kind
from ..ir import Kernel
from ..plan import Plan
from . import program
from .ctypes import identifier, memory
from .cuda_bodies import CudaExpressions, c_type
from .cuda_parts import Parts
from .cuda_shapes import Mapper
from .cuda_tile import fits
from .writer import Writer

SIGNATURE = (
    "int {}(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, "
    "void* stream_, void* extra)"
)


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

    It has no restriction on sizes or on the GPU. With an index that is checked at each access it
    waits for its stream, to tell at once which one was outside; else it only launches.
    """
    expressions = CudaExpressions(kernel, bounds, checked=checked)
    mapper = mapped(kernel, plan, bounds, owners, kinds)
    parts = Parts(kernel, expressions, mapper, owners)
    body = parts.print(mapper.pieces(kernel.body))
    out = Writer()
    file = kernel.file.rsplit("/", 1)[-1]
    out.line(
        f"/* {function}: the loop kernel {kernel.name} of {file}, for CUDA: compiled, not run on hardware */"
    )
    out.line('#include "polyop/abi.h"')
    out.line('#include "polyop/loops/device.h"')
    out.line()
    out.line(f"namespace polyop_loops_{function} {{")
    text = out.text() + _structs(kernel, parts, expressions) + "\n" + body + "\n"
    end = f'extern "C" {SIGNATURE.format(function)} {{\n  return polyop_loops_{function}::call(nparam, params, shapes, stream_, extra);\n}}\n'
    end = end.replace("return polyop_loops", "(void)ndims; (void)dtypes;\n  return polyop_loops")
    return (
        text
        + _call(kernel, bounds, expressions, parts)
        + "}  // namespace\n\n"
        + end
        + _warnings(kernel, function)
    )


def mapped(
    kernel: Kernel,
    plan: Plan,
    bounds: Bounds,
    owners: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, Kind],
) -> Mapper:
    """Return what chooses a kernel's launches; its ``notes`` tell why, once it has chosen."""
    mapper = Mapper(kernel, plan, kinds, owners)
    mapper.dynamic = frozenset(buffer for buffer, _ in bounds.dynamic)
    mapper.fits = fits
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
        out.line("polyop_status* status;")
    out.lines[-1] += ";"
    if expressions.places:
        index = "static inline __device__ bool polyop_inside(const kernel* k, int64_t* index, int64_t size, int place)"
        with out.block(index):
            out.line("return polyop_found_inside(k->status, index, size, place);")
    return out.text()


def _call(kernel: Kernel, bounds: Bounds, expressions: CudaExpressions, parts: Parts) -> str:
    out = Writer()
    inputs = [b for b in kernel.buffers.values() if b.role in ("input", "inplace")]
    outputs = [kernel.buffers[n] for n in kernel.outputs if kernel.buffers[n].role == "output"]
    with out.block(
        "static int call(int nparam, void** params, int64_t** shapes, void* stream_, void* extra)"
    ):
        out.line("(void)shapes;")
        out.line(f'if (nparam < {len(inputs) + len(outputs)}) return polyop_fail(extra, "too few tensors");')
        out.line("const cudaStream_t stream = (cudaStream_t)stream_;")
        out.line("kernel self = {};")
        for number, buffer in enumerate([*inputs, *outputs]):
            constant = "const " if buffer.role == "input" else ""
            out.line(f"self.{identifier(buffer.name)} = ({constant}{memory(buffer.dtype)}*)params[{number}];")
        for number, buffer in enumerate(inputs):
            for axis in range(len(buffer.shape)):
                size = expressions.size(buffer.name, axis)
                out.line(f"const int64_t {size} = self.{size} = shapes[{number}][{axis}];")
        program._attributes(out, kernel)
        program._sizes(out, kernel, expressions)
        program._preconditions(out, kernel, bounds)
        program._overlaps(out, kernel, inputs)
        _memory(out, kernel, expressions, parts)
        out.line("if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);")
        if expressions.places:
            _report(out, expressions)
        out.line("return 0;")
    return out.text()


def _memory(out: Writer, kernel: Kernel, expressions: CudaExpressions, parts: Parts) -> None:
    """Print what a call allocates and clears, in the order of the stream."""
    wanted: list[
        tuple[str, str, str, bool]
    ] = []  # the field, its type, the bytes, whether it starts as zeros
    for name, buffer in kernel.buffers.items():
        elem = memory(buffer.dtype)
        axes = range(len(buffer.shape))
        length = " * ".join([*(expressions.size(name, a) for a in axes), f"(int64_t)sizeof({elem})"])
        if buffer.role == "local" and name not in parts.slotted:
            wanted.append((identifier(name), elem, length, buffer.zeroed))
        elif buffer.role == "output" and buffer.zeroed:
            text = f"cudaMemsetAsync(self.{identifier(name)}, 0, {length}, stream)"
            out.line(
                f'if ({length} > 0 && {text} != cudaSuccess) return polyop_fail(extra, "cudaMemsetAsync failed");'
            )
    if parts.outer:
        wanted.append(("state", "scalars", "(int64_t)sizeof(scalars)", True))
    if expressions.places:
        wanted.append(("status", "polyop_status", "(int64_t)sizeof(polyop_status)", True))
    for number, (field, elem, length, zeroed) in enumerate(wanted):
        out.line(f"polyop_taken taken{number}_({length}, stream);")
        out.line(f'if (!taken{number}_.data) return polyop_fail(extra, "out of GPU memory");')
        out.line(f"self.{field} = ({elem}*)taken{number}_.data;")
        if zeroed:
            text = f"cudaMemsetAsync(self.{field}, 0, {length}, stream)"
            out.line(
                f'if ({length} > 0 && {text} != cudaSuccess) return polyop_fail(extra, "cudaMemsetAsync failed");'
            )


def _report(out: Writer, expressions: CudaExpressions) -> None:
    """Print the wait for the stream, and the error of the first index that was outside."""
    rows = ", ".join(f'{{{line}, {axis}, "{buffer}"}}' for line, buffer, axis in expressions.places)
    out.line("polyop_status status = {};")
    copied = "cudaMemcpyAsync(&status, self.status, sizeof status, cudaMemcpyDeviceToHost, stream)"
    out.line(f"if (cudaError_t wrong = {copied}) return polyop_fail(extra, cudaGetErrorString(wrong));")
    out.line(
        "if (cudaError_t wrong = cudaStreamSynchronize(stream)) return polyop_fail(extra, cudaGetErrorString(wrong));"
    )
    with out.block("if (status.place)"):
        out.line(f"static const struct {{ int line, axis; const char* name; }} places[] = {{{rows}}};")
        out.line("char text[256];")
        out.line(
            'snprintf(text, sizeof text, "line %d: index %lld is outside dimension %d of %s, which has size %lld", '
            "places[status.place - 1].line, status.index, places[status.place - 1].axis, "
            "places[status.place - 1].name, status.size);"
        )
        out.line("return polyop_fail(extra, text);")


def _warnings(kernel: Kernel, function: str) -> str:
    text = program._warnings(kernel, function)
    return (
        f'extern "C" {text.replace("const char", "extern const char", 1).partition(" =")[0]};\n{text}'
        if text
        else ""
    )


__all__ = ["mapped", "print_cuda"]
