"""The exported function of a kernel: arguments in, checks, memory, the call of ``run``."""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet

from ...analysis.bounds import Bounds
from ...ir.grammar import Buffer, Kernel
from .c_text import computed, identifier, memory
from .expressions import Expressions, Scope
from .writer import Writer


class Entry:
    """Prints the entry of one kernel."""

    def __init__(
        self,
        kernel: Kernel,
        bounds: Bounds,
        expressions: Expressions,
        function: str,
        without: AbstractSet[str] = frozenset(),
    ) -> None:
        self.kernel, self.bounds, self.expressions, self.function = kernel, bounds, expressions, function
        self.without = without
        """Local tensors whose memory other functions allocate."""
        buffers = kernel.buffers
        self.inputs = [b for b in buffers.values() if b.role in ("input", "inplace")]
        self.outputs = [buffers[n] for n in kernel.outputs if buffers[n].role == "output"]
        self.out = Writer()

    def print(self) -> str:
        """Return the C text."""
        places = ", ".join(f'{{{line}, {axis}, "{name}"}}' for line, name, axis in self.expressions.places)
        self.out.line(f"static const struct polyop_place places[] = {{{places or '{0, 0, 0}'}}};")
        arguments = (
            "int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, void* stream"
        )
        with self.out.block(f"int {self.function}({arguments}, void* extra)"):
            self.out.line("(void)ndims; (void)dtypes; (void)stream; (void)shapes;")
            count = len(self.inputs) + len(self.outputs)
            self.out.line(f'if (nparam < {count}) return polyop_fail(extra, "too few tensors");')
            self.out.line("struct kernel self = {0}, *const k = &self;")
            self.arguments()
            self.attributes()
            self.sizes()
            self.preconditions()
            self.overlaps()
            self._run()
        return self.out.text()

    def arguments(self) -> None:
        """Print the reading of tensors and of input sizes."""
        for number, buffer in enumerate([*self.inputs, *self.outputs]):
            self.out.line(f"self.{identifier(buffer.name)} = params[{number}];")
        for number, buffer in enumerate(self.inputs):
            for axis in range(len(buffer.shape)):
                size = self.expressions.size(buffer.name, axis)
                pair = axis == len(buffer.outer_shape)
                value = "2" if pair else f"shapes[{number}][{axis}]"
                self.out.line(f"const int64_t {size} = self.{size} = {value};")

    def attributes(self) -> None:
        """Print the reading of attributes from ``extra``."""
        for name, kind in self.kernel.attributes.items():
            c, real = identifier(name), computed(kind)[0] == "f"
            read = "polyop_get_float" if real else "polyop_get_int"
            self.out.line(f"{'double' if real else 'int64_t'} {c} = 0;")
            self.out.line(f'if ({read}(extra, "{name}", &{c})) return 1;')
            self.out.line(f"self.{c} = {c};")

    def sizes(self) -> None:
        """Print the sizes of outputs and temporaries."""
        for name, buffer in self.kernel.buffers.items():
            if buffer.role not in ("output", "local"):
                continue
            for axis, size in enumerate(buffer.shape):
                c = self.expressions.size(name, axis)
                text = self.expressions.scalar(size, Scope())
                self.out.line(f"const int64_t {c} = self.{c} = max_i64(0, {text});")

    def preconditions(self) -> None:
        """Print the checks of attributes and sizes."""
        for demand in self.kernel.demands:
            condition = self.expressions.scalar(demand.condition, Scope())
            self.out.line(f"if (!({condition})) return polyop_fail(extra, {json.dumps(demand.text)});")
        for wrong in sorted(self.bounds.preconditions, key=lambda one: not one.rule):  # a rule says more
            place = f'(struct polyop_place){{{wrong.line}, {wrong.axis}, "{wrong.buffer}"}}'
            size = self.expressions.scalar(wrong.size, Scope())
            function = "polyop_negative" if wrong.negative else "polyop_misfit"
            condition = self.expressions.scalar(wrong.condition, Scope())
            if wrong.rule:
                text = json.dumps(f"line {wrong.line}: {wrong.rule}")
                self.out.line(f"if ({condition}) return polyop_fail(extra, {text});")
                continue
            self.out.line(f"if ({condition}) return {function}(extra, {place}, {size});")

    def needs_zeros(self, buffer: Buffer) -> str:
        """Return the condition, in C, on which a tensor that may need zeros does; "" where it always does."""
        return "" if buffer.zeroed_if is None else self.expressions.scalar(buffer.zeroed_if, Scope())

    def overlaps(self) -> None:
        """Print checks that an input written in place shares no memory with another input."""
        for number, buffer in enumerate(self.inputs):
            for other, second in enumerate(self.inputs):
                both = buffer.role == second.role == "inplace"
                if buffer.role != "inplace" or other == number or (both and other < number):
                    continue
                text = f"{buffer.name} is written in place: it must not share memory with {second.name}"
                ours = f"{self.address(number)}, {self.bytes(buffer)}"
                theirs = f"{self.address(other)}, {self.bytes(second)}"
                self.out.line(f"if (polyop_overlap({ours}, {theirs}))")
                self.out.line(f'  return polyop_fail(extra, "{text}");')

    def address(self, number: int) -> str:
        """Return where a tensor of the call starts, for the check of overlaps."""
        return f"params[{number}]"

    def bytes(self, buffer: Buffer) -> str:
        """Return the size of a tensor, in C."""
        sizes = (self.expressions.size(buffer.name, axis) for axis in range(len(buffer.shape)))
        return " * ".join([*sizes, f"(int64_t)sizeof({memory(buffer.dtype)})"])

    def _run(self) -> None:
        buffers = self.kernel.buffers.values()
        local = [b for b in buffers if b.role == "local" and b.name not in self.without]
        for buffer in local:
            c = identifier(buffer.name)
            self.out.line(f"self.{c} = polyop_scratch({self.bytes(buffer)});")
            self.out.line(f"if (!self.{c}) polyop_out_of_memory(k);")
        with self.out.block("if (!self.failure.place)"):
            for buffer in buffers:
                if buffer.zeroed and (buffer.role == "output" or buffer in local):
                    clear = f"polyop_zero(self.{identifier(buffer.name)}, {self.bytes(buffer)});"
                    needed = self.needs_zeros(buffer)
                    self.out.line(f"if ({needed}) {clear}" if needed else clear)
            self.out.line("run(k);")
        for buffer in local:
            self.out.line(f"polyop_release(self.{identifier(buffer.name)});")
        self.out.line("return polyop_report(extra, &self.failure, places);")


def warnings_text(kernel: Kernel, function: str, *, cpp: bool = False) -> str:
    """Return the definition of a text that the library exports: reads of elements before any write.

    It is empty where there are none. In C++ a constant is global only where it is also declared extern.
    """
    rows = []
    for buffer in kernel.buffers.values():
        if buffer.first_read:
            text = kernel.source.get(buffer.first_read, "").strip()
            where = kernel.where(buffer.first_read)
            rows.append(f"{where}: {buffer.name} is read before it is written, so it starts as zeros: {text}")
    if not rows:
        return ""
    name = f"const char {function}_warnings[]"
    definition = f"{name} = {json.dumps(chr(10).join(rows), ensure_ascii=True)};\n"
    return f'extern "C" {{\nextern {name};\n{definition}}}\n' if cpp else definition
