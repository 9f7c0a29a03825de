"""CUDA texts of loop kernels, run without a GPU: compiled by g++ on top of cuda_on_cpu.h."""

import contextlib
import ctypes
import linecache
import os
import shlex
from pathlib import Path

from loop_samples.built_once import INCLUDE, built_once
from polyop.loops.emit.printer import source as source_of
from polyop.loops.pipeline import original, schedule
from polyop.loops.program import Program

# no -fwrapv: integers that wrap do so by the text's own functions
COMPILER = [*shlex.split(os.environ.get("CXX", "c++")), "-x", "c++", "-std=c++17", "-O1", "-w", "-fPIC"]
COMPILER += ['-DPOLYOP_DEVICE_EMULATION="cuda_on_cpu.h"', f"-I{INCLUDE}", f"-I{Path(__file__).parent}"]


def text(kernels, *, checked=False):
    """Return the CUDA text of typed or scheduled kernels; number k is exported as ``loops_k``."""
    programs = [
        one if isinstance(one, Program) else original(one) if checked else schedule(one) for one in kernels
    ]
    return "\n".join(
        source_of(program, "cuda", f"loops_{k}", checked=checked or program.checked)
        for k, program in enumerate(programs)
    )


def build(source, *flags):
    """Return the library of a CUDA text."""
    return built_once(source, ".cu", [*COMPILER, *flags])


@contextlib.contextmanager
def order(number):
    """Let the threads of a CUDA block take turns in an order that depends on ``number``."""
    before = os.environ.get("POLYOP_EMULATION_ORDER")
    os.environ["POLYOP_EMULATION_ORDER"] = str(number)
    try:
        yield
    finally:
        os.environ.pop("POLYOP_EMULATION_ORDER")
        if before is not None:
            os.environ["POLYOP_EMULATION_ORDER"] = before


def count(path, counter):
    """Return a counter: "launches" so far, or pieces of device memory that are "live"."""
    function = getattr(ctypes.CDLL(str(path)), f"emulated_{counter}")
    function.restype = ctypes.c_longlong
    return function()


def function_of(source, name):
    """Return the function ``name`` of a text, as if the text were the file ``<name>``."""
    file, names = f"<{name}>", {}
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names[name]
