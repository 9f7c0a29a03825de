"""CUDA texts of loop kernels, run without a GPU: compiled by g++ on top of cuda_on_cpu.h."""

import contextlib
import ctypes
import hashlib
import linecache
import os
import shlex
import subprocess
from pathlib import Path

from filelock import FileLock

from polyop.loops.emit.printer import source as source_of
from polyop.loops.pipeline import original, schedule

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = ROOT / "include"
# no -fwrapv: integers that wrap do so by the text's own functions
COMPILER = [*shlex.split(os.environ.get("CXX", "c++")), "-x", "c++", "-std=c++17", "-O1", "-w", "-fPIC"]
COMPILER += ['-DPOLYOP_DEVICE_EMULATION="cuda_on_cpu.h"', f"-I{INCLUDE}", f"-I{Path(__file__).parent}"]
HEADERS = [Path(__file__).with_name("cuda_on_cpu.h"), *sorted((INCLUDE / "polyop/loops").glob("*.h"))]


def text(kernels, *, checked=False):
    """Return the CUDA text of typed kernels; number k is exported as ``loops_k``."""
    made = [original(kernel) if checked else schedule(kernel) for kernel in kernels]
    return "\n".join(
        source_of(one, "cuda", f"loops_{k}", checked=checked or one.checked) for k, one in enumerate(made)
    )


def build(source, *flags):
    """Return the library of a CUDA text, compiled once for all workers of a test run."""
    read = b"".join(header.read_bytes() for header in HEADERS)
    key = hashlib.sha256("\0".join([source, *COMPILER, *flags]).encode() + read).hexdigest()[:20]
    folder = Path(os.environ["POLYOP_CACHE_DIR"]) / "batches"
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"emulated-{key}.so"
    with FileLock(f"{made}.lock"):
        if not made.exists():
            file, partial = folder / f"{key}.cu", folder / f"{key}.part"
            file.write_text(source)
            subprocess.run([*COMPILER, *flags, "-shared", file, "-o", partial], check=True)
            partial.rename(made)
    return made


@contextlib.contextmanager
def order(number):
    """Threads of a block take turns in another order for each number meanwhile."""
    before = os.environ.get("POLYOP_EMULATION_ORDER")
    os.environ["POLYOP_EMULATION_ORDER"] = str(number)
    try:
        yield
    finally:
        os.environ.pop("POLYOP_EMULATION_ORDER")
        if before is not None:
            os.environ["POLYOP_EMULATION_ORDER"] = before


def count(path, what):
    """Return how many "launches" there were, or how many pieces of device memory are "live"."""
    function = getattr(ctypes.CDLL(str(path)), f"emulated_{what}")
    function.restype = ctypes.c_longlong
    return function()


def function_of(source, name):
    """Return the function of a text, of a file that is called ``<name>``."""
    file, names = f"<{name}>", {}
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names[name]
