"""The whole text of a kernel for a device: its kernels, and the host function that launches them.

It is printed from the same schedule as the C of the CPU. mapping.py chooses the launches, print_pieces.py
prints them, and this module adds the structs and the entry. CUDA text is compiled, not run on hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...analysis.bounds import Bounds
from ...analysis.dependence import Kind
from ...ir.grammar import Buffer, Kernel
from ...ir.plan import Plan
from ..common.c_text import identifier, memory
from ..common.entry import Entry, warnings_text
from ..common.writer import Writer
from .bodies import DeviceExpressions, c_type
from .dialect import Dialect
from .mapping import Mapper
from .print_pieces import Parts


class DeviceText(NamedTuple):
    """The host's C++, and the device's text where that is compiled at run time, else an empty one."""

    host: str
    device: str = ""


def print_device(
    kernel: Kernel,
    plan: Plan,
    bounds: Bounds,
    owners: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, Kind],
    dialect: Dialect,
    *,
    function: str,
    checked: bool = False,
) -> DeviceText:
    """Return the text; ``function`` is the exported name, with the signature of a kernel.

    The function accepts all sizes and devices. If an index is checked at each access, it waits for its
    stream and reports the first index outside; else it only launches.
    """
    expressions = DeviceExpressions(kernel, bounds, dialect, checked=checked)
    mapper = mapped(kernel, plan, bounds, owners, kinds)
    parts = Parts(kernel, expressions, mapper, owners)
    run = parts.print(mapper.pieces(kernel.body))
    entry = DeviceEntry(kernel, bounds, expressions, function, parts).print()
    numbers = _numbers(kernel, parts, expressions)
    file = kernel.file.rsplit("/", 1)[-1]
    title = f"/* {function}: the loop kernel {kernel.name} of {file}, for {dialect.title}"
    kernels = "\n".join(parts.parts)
    start = [f'#include "{dialect.header}"', f"\nnamespace polyop_loops_{function} {{"]
    end = warnings_text(kernel, function, cpp=True)
    if dialect.has_pointers:
        texts = [f"{title}: compiled, not run on hardware */", *start, numbers, _pointers(kernel, parts)]
        return DeviceText("\n".join([*texts, kernels, run, entry]) + end)
    program = f"static polyop_program program({function}_device, {len(parts.parts)});"
    declared = f'extern "C" const char {function}_device[];'
    texts = [f"{title}: the host */", start[0], declared, start[1], numbers, _pointers(kernel, parts)]
    host = "\n".join([*texts, program, "", run, entry]) + end
    return DeviceText(host, "\n".join([f"{title}: the device */", numbers, kernels]))


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
    mapper.guarded = bounds.guarded
    return mapper


def _numbers(kernel: Kernel, parts: Parts, expressions: DeviceExpressions) -> str:
    """Return the structs of what the device gets by value, and of scalars that launches share."""
    out = Writer()
    if parts.outer:
        with out.block("struct scalars", end=";"):
            for name, kind in parts.outer.items():
                out.line(f"{c_type(kind)} {identifier(name)};")
    with out.block("struct numbers", end=";"):
        for name, buffer in kernel.buffers.items():
            if not expressions.dialect.has_pointers and buffer.role != "local":
                out.line(f"int64_t first_{identifier(name)};")
            for axis in range(len(buffer.shape)):
                out.line(f"int64_t {expressions.size(name, axis)};")
        for name, kind in kernel.attributes.items():
            out.line(f"{c_type(kind)} {identifier(name)};")
        for name in parts.variables:
            out.line(f"int64_t at_{name};")
        out.line("int64_t partials;")
    return out.text()


def _pointers(kernel: Kernel, parts: Parts) -> str:
    """Return the struct of all that the host gives to launches."""
    has_pointers = parts.dialect.has_pointers
    names = [*map(identifier, kernel.buffers), *(f"own_{name}" for name in parts.private)]
    names += [*(["state"] if parts.outer else []), *(["failure"] if parts.expressions.places else [])]
    out = Writer()
    with out.block("struct kernel : numbers", end=";"):
        for name in names:
            out.line(f"{parts.type_of(name)} {name};" if has_pointers else f"polyop_memory {name};")
    return out.text()


class DeviceEntry(Entry):
    """Prints the entry of one kernel; allocations and clears are in stream order."""

    def __init__(
        self, kernel: Kernel, bounds: Bounds, expressions: DeviceExpressions, function: str, parts: Parts
    ) -> None:
        super().__init__(kernel, bounds, expressions, function)
        self.parts, self.dialect = parts, parts.dialect
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
            if self.dialect.has_pointers:
                self.out.line("const polyop_stream stream = (polyop_stream)given;")
            else:
                self.out.line("polyop_queue queue(given, program);")
                self.out.line("if (queue.wrong) return polyop_fail(extra, queue.wrong);")
                self.out.line("const polyop_stream stream = &queue;")
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
            c = identifier(buffer.name)
            if self.dialect.has_pointers:
                self.out.line(f"self.{c} = ({self.parts.type_of(c)})params[{number}];")
            else:
                given = f"params[{number}]"  # null for an absent tensor
                self.out.line(f"if ({given}) self.{c} = *(const polyop_memory*){given};")
                self.out.line(f"self.first_{c} = self.{c}.offset / (int64_t)sizeof({memory(buffer.dtype)});")
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
            self.memory.append(("state", "struct scalars", "(int64_t)sizeof(scalars)", ""))
        if self.expressions.places:
            self.memory.append(("failure", "struct polyop_failure", "(int64_t)sizeof(polyop_failure)", ""))
        for number, (field, elem, size, when) in enumerate(self.memory):
            self.out.line(f"const polyop_taken taken{number}_({size}, stream);")
            self.out.line(f"if (taken{number}_.wrong) return polyop_fail(extra, taken{number}_.wrong);")
            self.out.line(f"self.{field} = {self.parts.given(elem, f'taken{number}_.data')};")
            if when is not None:
                self._clear(field, when, size)
        self.out.line("if (const char* wrong = run(self, stream)) return polyop_fail(extra, wrong);")
        if not self.expressions.places:
            self.out.line("return 0;")
            return
        self.out.line("polyop_failure failure = {};")
        self._try("polyop_fetch(&failure, self.failure, sizeof failure, stream)")
        self.out.line("return polyop_report(extra, &failure, places);")

    def address(self, number: int) -> str:
        """Return where a tensor of the call starts, for the check of overlaps."""
        return (
            f"params[{number}]"
            if self.dialect.has_pointers
            else f"self.{identifier(self.inputs[number].name)}"
        )

    def _cleared(self, buffer: Buffer) -> str:
        """Return the condition, in C, on which a tensor is cleared: devices refuse to clear no bytes."""
        needed = self.needs_zeros(buffer)
        return f"{self.bytes(buffer)} > 0" + (f" && {needed}" if needed else "")

    def _clear(self, field: str, when: str, size: str) -> None:
        """Print what clears memory; an empty ``when`` means always."""
        with self.out.block(f"if ({when})" if when else ""):
            self._try(f"polyop_clear(self.{field}, {size}, stream)")

    def _try(self, call: str) -> None:
        self.out.line(f"if (const char* wrong = {call}) return polyop_fail(extra, wrong);")
