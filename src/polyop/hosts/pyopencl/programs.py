"""Programs of OpenCL: built once for a context and a device, and kept in the build cache."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyopencl as cl

from ...build.cache import BuildOutput, Cache
from ...core import locks
from ...core.errors import BuildError, PolyopError
from ...core.lru_cache import LruCache
from ...kernels.opencl.kernel import TEXTS

_kernels: LruCache[Any] = LruCache(1024)
_building = locks.own("programs of OpenCL", locks.Level.COMPILE)
_passing = locks.own("arguments of OpenCL's kernels", locks.Level.TABLE)
_FORMAT = 1
_NO_CACHE: Any = False
"""For PyOpenCL's own cache, whose files are not checked as those of the build cache are."""


_BUILD = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
)
"""``polyop_opencl_build`` of include/polyop/loops/opencl.h."""
_of_loops: dict[int, Any] = {}
"""Address -> a program that a library of loop kernels uses, kept as long as the process lives."""
_served: set[Path] = set()


class Source(NamedTuple):
    """A text of OpenCL C, the options it is compiled with, and what errors call it.

    ``definition`` is for a text that includes headers: they may have changed, so the build cache keeps not
    what the driver makes of it, and each definition is built.
    """

    text: str
    options: tuple[str, ...]
    label: str
    definition: object | None = None


def enqueue(
    queue: Any,
    source: Source,
    name: str,
    values: Sequence[Any],
    grid: tuple[int, ...],
    local_size: tuple[int, ...] | None = None,
) -> None:
    """Put a kernel of a text into the queue; its program is built once for a context and a device.

    Raises ``BuildError`` for a text that the driver cannot compile, and PyOpenCL's errors for the launch.
    """
    where = (queue.context, queue.device)
    key = (*where, source, name)
    with _building:
        kernel = _kernels.get(key)
        if kernel is None:
            make = _from_text if source.definition is not None else _built
            kernel = cl.Kernel(make(*where, source.text, source.options, source.label), name)
            _kernels.put(key, kernel)
    with _passing:  # a kernel has one set of arguments
        kernel.set_args(*values)
        cl.enqueue_nd_range_kernel(queue, kernel, grid, local_size)


def serve(libraries: Iterable[Path]) -> None:
    """Let libraries of loop kernels get their programs here, so that the build cache keeps them."""
    for path in set(libraries) - _served:
        ctypes.c_void_p.in_dll(ctypes.CDLL(str(path)), "polyop_opencl_build").value = _build_address
        _served.add(path)


def _program_of_loops(context: int, device: int, text: bytes, why: int, size: int) -> int | None:
    """Return the address of the program of a text, or None with the error as a text of ``size`` bytes."""
    try:
        where = cl.Context.from_int_ptr(context), cl.Device.from_int_ptr(device)
        _keep_text(text)
        with _building:
            program = _built(*where, text.decode(), _options(where[1]), "a loop kernel")
        _of_loops[program.int_ptr] = program
    except (PolyopError, cl.Error, OSError) as problem:
        told = str(problem).encode()[: size - 1] + b"\0"
        ctypes.memmove(why, told, len(told))
        return None
    return int(program.int_ptr)


_build_function = _BUILD(_program_of_loops)
_build_address = ctypes.cast(_build_function, ctypes.c_void_p).value


def _options(device: Any) -> tuple[str, ...]:
    """Return the options for the text of a loop kernel.

    pocl 3.1, on LLVM 15, computes wrong values where a loop holds barriers and loops between them, as in
    attention by blocks of rows. It does not without its optimisations, and neither does oclgrind.
    """
    return ("-cl-opt-disable",) if "PoCL" in device.version else ()


def _keep_text(text: bytes) -> None:
    folder = os.environ.get(TEXTS)
    if folder:
        Path(folder, f"{hashlib.sha256(text).hexdigest()[:16]}.cl").write_bytes(text)


def _built(context: Any, device: Any, text: str, options: tuple[str, ...], label: str) -> Any:
    made: list[Any] = []

    def make(work: Path) -> BuildOutput:
        program = _from_text(context, device, text, options, label)
        made.append(program)
        devices = program.get_info(cl.program_info.DEVICES)
        file = work / "program.clbin"
        file.write_bytes(program.get_info(cl.program_info.BINARIES)[devices.index(device)])
        return BuildOutput(file, [])

    found = Cache().get(_request(device, text, options), [label], make, kind="other")
    if made:
        return made[0]
    binary = Path(found.path).read_bytes()
    if hashlib.sha256(binary).hexdigest() != found.result.sha256:
        Path(found.path).unlink()  # it was damaged; the cache builds what is missing again
        return _built(context, device, text, options, label)
    try:
        return cl.Program(context, [device], [binary]).build(list(options), devices=[device])
    except cl.Error:  # a driver may refuse what it wrote itself, as after an update
        return _from_text(context, device, text, options, label)


def _request(device: Any, text: str, options: tuple[str, ...]) -> dict[str, Any]:
    """Return what identifies a program in the build cache: the text, and who compiles it for what."""
    platform = device.platform
    return {
        "opencl": _FORMAT,
        "text": hashlib.sha256(text.encode()).hexdigest(),
        "options": options,
        "device": [device.name, device.vendor, device.version, device.driver_version],
        "platform": [platform.name, platform.version],
    }


def _from_text(context: Any, device: Any, text: str, options: tuple[str, ...], label: str) -> Any:
    program = cl.Program(context, text)
    try:
        return program.build(list(options), devices=[device], cache_dir=_NO_CACHE)
    except cl.Error as problem:
        log = (
            str(problem).partition("\n")[2].strip()
        )  # the first line names a function of OpenCL, three times
        raise BuildError(label, f"cannot be compiled for {device.name}:\n{log or problem}") from None
