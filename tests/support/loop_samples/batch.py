"""Many kernels in one C file, so that tests of hundreds of them need one run of the compiler."""

import contextlib
import ctypes
import hashlib
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from loop_samples.built_once import INCLUDE, built_once
from polyop import operator
from polyop.kernels.library import LibraryKernel
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.emit.printer import source as source_of
from polyop.loops.library.options import FLAGS
from polyop.loops.pipeline import original, schedule
from polyop.loops.program import Program

OPTIONS = [*FLAGS, f"-I{INCLUDE}"]
OPTIONS += ["-DPOLYOP_BAND=1", "-DPOLYOP_STEP=1"]  # bands as narrow as they can be, row by row
OPTIONS += ["-DPOLYOP_BLOCK=3000"]  # sums of a few dozen terms run in several blocks
COMPILER = [*shlex.split(os.environ.get("CC", "cc")), *OPTIONS, "-w"]
HEADER = re.compile(
    r"^(#if defined[^\n]*\n(#pragma .*\n)+#endif|#include .*|#define POLYOP_WANT_.*)$", re.MULTILINE
)
ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)")
STATIC = re.compile(r"^(?:static\b[^;={(]*?(\w+)(?:\[\])?\s*[({=]|struct (\w+) \{)", re.MULTILINE)


def symbol(number):
    """Return the exported name of a kernel of a batch."""
    return f"loops_{number}"


def text(kernels, isa, *, precise=False, checked=False):
    """Return one C text of typed or scheduled kernels; each kernel has names that no other one uses."""
    parts = []
    for number, kernel in enumerate(kernels):
        scheduled = isinstance(kernel, Program)
        program = kernel if scheduled else original(kernel) if checked else schedule(kernel)
        part = source_of(program, isa, symbol(number), precise=precise, checked=checked or program.checked)
        parts.append(part)
    pragmas = re.findall(r"^#pragma GCC target.*$", parts[0], re.MULTILINE)
    macros = sorted(
        {line for part in parts for line in re.findall(r"^#define POLYOP_WANT_\w+$", part, re.MULTILINE)}
    )
    # the widest set of includes first: math.h comes before what uses it
    includes = dict.fromkeys(
        line
        for part in sorted(parts, key=len, reverse=True)
        for line in re.findall(r"^#include .*$", part, re.MULTILINE)
    )
    first = [line for line in includes if "<" in line]
    ours = sorted((line for line in includes if "<" not in line), key=lambda line: "run.h" in line)
    lines = ["\n".join(pragmas), *macros, *first, *ours]
    for number, part in enumerate(parts):
        body = HEADER.sub("", part)
        own = {name for pair in STATIC.findall(ATTRIBUTE.sub("", body)) for name in pair if name}
        lines += [f"#define {name} {name}_of_{number}" for name in sorted(own)]
        lines += [body, *(f"#undef {name}" for name in sorted(own))]
    return "\n".join(lines)


def build(source, *flags):
    """Return the library of a C text."""
    return built_once(source, ".c", [*COMPILER, *flags, "-fPIC"], "-lm", "-O1")


def call(library, number, inputs, outputs):
    """Call kernel ``number`` of a library on arrays as they lie in memory."""
    function = ctypes.CDLL(str(library))[symbol(number)]
    arrays = [*inputs, *outputs]
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    sizes = [(ctypes.c_int64 * max(1, a.ndim))(*a.shape) for a in arrays]
    shapes = (ctypes.c_void_p * len(arrays))(*map(ctypes.addressof, sizes))
    assert function(len(arrays), pointers, None, shapes, None, None, None) == 0


@dataclass(eq=False)
class Prebuilt(LoopKernel):
    """A loop kernel whose library is that of a batch, built before."""

    path: Path = Path()
    exported: str = ""

    def library(self, kernel):
        """Return the native kernel in the library of the batch."""
        del kernel
        if not self._libraries:
            self._libraries[self.path] = LibraryKernel(self.path, self.exported, label=str(self))
        return self._libraries[self.path]


OPERATORS = {}
"""Operators by name: a fixture with parameters is made again when tests run in another order."""


def bound(function, tensors, attributes, path, number, device="cpu"):
    """Return a function that calls kernel ``number`` of a library through an operator.

    The function returns the list of all outputs, inputs that are written in place included.
    """
    kernel = Prebuilt(function, tuple(attributes), device=device, path=path, exported=symbol(number))
    outline = kernel.outline
    names = [name for name in outline.parameters if name not in attributes]
    marks = {name: f"({chr(97 + k)}!)" for k, name in enumerate(n for n in names if n in outline.outputs)}
    inputs = [f"Tensor{marks.get(name, '')} {name}_" for name in names]
    kinds = {bool: "bool", int: "int", float: "float"}
    inputs += [f"{kinds[type(value)]} {name}" for name, value in attributes.items()]
    results = [f"Tensor{marks.get(name, '')}" for name in outline.outputs]
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    name = f"loops_{hashlib.sha256(f'{path}{number}'.encode()).hexdigest()[:12]}::f"
    if name not in OPERATORS:
        OPERATORS[name] = operator(f"{name}({', '.join(inputs)}) -> {result}", kernel)
    op = OPERATORS[name]

    def call(*arrays):
        outputs = op(*arrays, *attributes.values())
        return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]

    return call


@contextlib.contextmanager
def threads(count):
    """Set the number of threads of loops in this block."""
    from polyop import get_num_threads, set_num_threads

    before = get_num_threads()
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(before)
