"""The whole C file of a kernel: what it includes, its struct, its functions, its entry."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..bounds import Bounds
from ..ir import Kernel, Size, Type, walk
from ..plan import Plan
from .ctypes import computed, identifier, memory
from .expressions import Expressions, Scope
from .regions import Functions
from .tile import SHAPES
from .writer import Writer

PRELUDE = """\
struct kernel;
static inline __attribute__((unused)) int polyop_inside(struct kernel* k, int64_t* index, int64_t size, int place);
static inline __attribute__((unused)) void polyop_out_of_memory(struct kernel* k);
static inline __attribute__((unused)) void* polyop_scratch(int64_t bytes) {
  void* found = 0;
  return posix_memalign(&found, 64, bytes > 0 ? (size_t)bytes + 64 : 64) ? 0 : found;
}
#ifndef POLYOP_GRAIN
#define POLYOP_GRAIN 5e4
#endif
/* How many threads are worth it: a cost of 1 is about a quarter of a nanosecond, and each gets POLYOP_GRAIN. */
static inline __attribute__((unused)) int polyop_parts(double cost, int64_t trips) {
  if (cost < 2 * POLYOP_GRAIN || !polyop_threads) return 1;
  const double most = cost / POLYOP_GRAIN;
  const int allowed = polyop_threads();
  const int parts = allowed > most ? (int)most : allowed;
  return parts > trips ? (int)trips : parts;
}
static inline __attribute__((unused)) int polyop_run(polyop_body body, struct kernel* k, int64_t lo, int64_t hi,
                                                     int64_t chunk, int parts) {
  if (hi <= lo) return 0;
  if (parts > 1) return polyop_for(body, k, lo, hi, chunk, parts);
  body(k, lo, hi, 0);
  return 1;
}
#define floord(n, d) (((n) < 0) ? -((-(n) + (d) - 1) / (d)) : (n) / (d))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
"""

CHECK = """\
static inline int polyop_inside(struct kernel* k, int64_t* index, int64_t size, int place) {
  const int64_t found = *index;
  if (found < 0) *index += size;
  if ((uint64_t)*index < (uint64_t)size) return 1;
  int none = 0;
  if (__atomic_compare_exchange_n(&k->failed, &none, place, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    k->failed_index = found;
    k->failed_size = size;
  }
  return 0;
}
static inline void polyop_out_of_memory(struct kernel* k) {
  int none = 0;
  __atomic_compare_exchange_n(&k->failed, &none, -1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
"""


@dataclass(frozen=True)
class Target:
    """The instruction set that a file is for. ``pragma`` chooses it in gcc and clang."""

    name: str
    pragma: str = ""


TARGETS = {
    "baseline": Target("baseline"),
    "avx2": Target("avx2", "avx2,fma,f16c,bmi,bmi2"),
    "avx512": Target("avx512", "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2"),
    "neon": Target("neon"),
}


def print_program(
    kernel: Kernel,
    plan: Plan,
    bounds: Bounds,
    owners: Mapping[str, tuple[str, ...]],
    *,
    target: Target,
    function: str,
    precise: bool = False,
    checked: bool = False,
) -> str:
    """Return the C file; ``function`` is the exported name, with the signature of a kernel."""
    expressions = Expressions(kernel, bounds, precise=precise, checked=checked)
    functions = Functions(kernel, plan, expressions, owners, SHAPES[target.name])
    body = functions.print()
    out = Writer()
    out.line(f"/* {function}: the loop kernel {kernel.name} of {kernel.file.rsplit('/', 1)[-1]}, for {target.name} */")
    if target.pragma:
        out.line("#ifdef __GNUC__")
        out.line(f'#pragma GCC target("{target.pragma}")')
        if target.name == "avx512":
            out.line('#pragma GCC target("prefer-vector-width=512")')
        out.line("#endif")
    wanted = {f"W{width}" for width in re.findall(r"[iuf]\d+v([1248])|POLYOP_LANES\(([1248])\)", body) for width in width if width}
    for name in sorted({name.upper() for name in expressions.used} | (wanted or {"W1"})):
        out.line(f"#define POLYOP_WANT_{name}")
    out.line("#include <stdlib.h>")
    out.line('#include "polyop/abi.h"')
    out.line('#include "polyop/parallel.h"')
    out.line('#include "polyop/loops/vector.h"')
    if expressions.used:
        out.line('#include "polyop/loops/math.h"')
    out.line()
    text = out.text() + PRELUDE + "\n" + _struct(kernel, plan, functions, expressions) + "\n" + CHECK + "\n" + body
    return text + "\n" + _entry(kernel, bounds, expressions, function) + _warnings(kernel, function)


def _warnings(kernel: Kernel, function: str) -> str:
    """Return a text in the library: which reads the author has to be told of."""
    rows = []
    for buffer in kernel.buffers.values():
        if buffer.first_read:
            text = kernel.source.get(buffer.first_read, "").strip()
            where = kernel.where(buffer.first_read)
            rows.append(f"{where}: {buffer.name} is read before it is written, so it starts as zeros: {text}")
    if not rows:
        return ""
    return f"const char {function}_warnings[] = {json.dumps(chr(10).join(rows), ensure_ascii=True)};\n"


def _struct(kernel: Kernel, plan: Plan, functions: Functions, expressions: Expressions) -> str:
    out = Writer()
    with out.block("struct kernel"):
        for name, buffer in kernel.buffers.items():
            out.line(f"{'const ' if buffer.role == 'input' else ''}{memory(buffer.dtype)}* {identifier(name)};")
        for name, buffer in kernel.buffers.items():
            for axis in range(len(buffer.shape)):
                out.line(f"int64_t {expressions.size(name, axis)};")
        for name, kind in kernel.attributes.items():
            out.line(f"{_attribute_type(kind)} {identifier(name)};")
        for name, text in functions.fields.items():
            out.line(f"{text} at_{name};")
        for name in dict.fromkeys(n for private in plan.private.values() for n, _ in private):
            out.line(f"void* own_{name};")
        out.line("int failed;")
        out.line("int64_t failed_index, failed_size;")
    out.lines[-1] += ";"
    return out.text()


def _attribute_type(kind: Type) -> str:
    elem = computed(kind)
    return "int" if elem == "bool" else elem


def _entry(kernel: Kernel, bounds: Bounds, expressions: Expressions, function: str) -> str:
    out = Writer()
    head = (
        f"int {function}(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, "
        "void* stream, void* extra)"
    )
    inputs = [b for b in kernel.buffers.values() if b.role in ("input", "inplace")]
    outputs = [kernel.buffers[n] for n in kernel.outputs if kernel.buffers[n].role == "output"]
    places = expressions.places
    with out.block("static int fail(struct kernel* k, void* extra)"):
        out.line('if (k->failed < 0) return polyop_fail(extra, "out of memory");')
        if places:
            rows = ", ".join(f"{{{line}, {axis}, \"{buffer}\"}}" for line, buffer, axis in places)
            out.line(f"static const struct {{ int line, axis; const char* name; }} places[] = {{{rows}}};")
            out.line("char text[256];")
            out.line(
                'snprintf(text, sizeof text, "line %d: index %lld is outside dimension %d of %s, which has size %lld", '
                "places[k->failed - 1].line, (long long)k->failed_index, places[k->failed - 1].axis, "
                "places[k->failed - 1].name, (long long)k->failed_size);"
            )
            out.line("return polyop_fail(extra, text);")
        else:
            out.line("return 1;")
    with out.block(head):
        out.line("(void)ndims; (void)dtypes; (void)stream; (void)shapes;")
        out.line(f'if (nparam < {len(inputs) + len(outputs)}) return polyop_fail(extra, "too few tensors");')
        out.line("struct kernel self = {0}, *const k = &self;")
        for number, buffer in enumerate([*inputs, *outputs]):
            out.line(f"self.{identifier(buffer.name)} = params[{number}];")
        for number, buffer in enumerate(inputs):
            for axis in range(len(buffer.shape)):
                size = expressions.size(buffer.name, axis)
                out.line(f"const int64_t {size} = self.{size} = shapes[{number}][{axis}];")
        _attributes(out, kernel)
        _sizes(out, kernel, expressions)
        _preconditions(out, kernel, bounds)
        _overlaps(out, kernel, inputs)
        _run(out, kernel, expressions)
    prefix = "#include <stdio.h>\n#include <string.h>\n" if places else "#include <string.h>\n"
    return prefix + out.text()


def _attributes(out: Writer, kernel: Kernel) -> None:
    for name, kind in kernel.attributes.items():
        c, elem = identifier(name), computed(kind)
        if elem[0] == "f":
            out.line(f"double {c} = 0;")
            out.line(f'if (polyop_get_float(extra, "{name}", &{c})) return 1;')
        else:
            out.line(f"int64_t {c} = 0;")
            out.line(f'if (polyop_get_int(extra, "{name}", &{c})) return 1;')
        out.line(f"self.{c} = {c};")


def _sizes(out: Writer, kernel: Kernel, expressions: Expressions) -> None:
    """Print the sizes of tensors that the kernel makes."""
    for name, buffer in kernel.buffers.items():
        if buffer.role not in ("output", "local"):
            continue
        for axis, size in enumerate(buffer.shape):
            c = expressions.size(name, axis)
            text = expressions.scalar(size, Scope())
            out.line(f"const int64_t {c} = self.{c} = max_i64(0, {text});")


def _preconditions(out: Writer, kernel: Kernel, bounds: Bounds) -> None:
    for wrong in bounds.preconditions:
        text = f"line {wrong.line}: with these sizes an index leaves dimension {wrong.axis} of {wrong.buffer}"
        named = re.sub(r"\b[A-Za-z_]\w*", lambda m: _named(m[0], kernel), wrong.condition)
        out.line(f'if ({named}) return polyop_fail(extra, "{text}");')


def _named(name: str, kernel: Kernel) -> str:
    """Return an attribute's C name; sizes, and what isl's own text calls, stay as they are."""
    return identifier(name) if name in kernel.attributes else name


def _overlaps(out: Writer, kernel: Kernel, inputs: list) -> None:  # type: ignore[type-arg]
    """Print a check that a tensor which is written is not given a second time."""
    for number, buffer in enumerate(inputs):
        if buffer.role != "inplace":
            continue
        for other, second in enumerate(inputs):
            if other != number and (second.role != "inplace" or other > number):
                text = f"{buffer.name} is written in place: it must not be {second.name}, too"
                out.line(f'if (params[{number}] == params[{other}] && {_elements(buffer)}) return polyop_fail(extra, "{text}");')


def _elements(buffer) -> str:  # type: ignore[no-untyped-def]
    return " && ".join(f"{buffer.name}_n{a} > 0" for a in range(len(buffer.shape))) or "1"


def _run(out: Writer, kernel: Kernel, expressions: Expressions) -> None:
    local = [b for b in kernel.buffers.values() if b.role == "local"]

    def length(name: str) -> str:
        axes = range(len(kernel.buffers[name].shape))
        return " * ".join([*(expressions.size(name, a) for a in axes), f"sizeof({memory(kernel.buffers[name].dtype)})"])

    for buffer in local:
        c = identifier(buffer.name)
        out.line(f"self.{c} = polyop_scratch({length(buffer.name)});")
        out.line(f"if (!self.{c}) self.failed = -1;")
    with out.block("if (!self.failed)"):
        for buffer in kernel.buffers.values():
            if buffer.zeroed and buffer.role in ("output", "local"):
                out.line(f"memset(self.{identifier(buffer.name)}, 0, {length(buffer.name)});")
        out.line("run(k);")
    for buffer in local:
        out.line(f"free(self.{identifier(buffer.name)});")
    out.line("return self.failed ? fail(k, extra) : 0;")


__all__ = ["TARGETS", "Size", "Target", "print_program", "walk"]
