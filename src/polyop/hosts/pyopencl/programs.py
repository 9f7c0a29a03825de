"""Programs of OpenCL: built once for a context and a device, and kept in the build cache.

:func:`enqueue` runs a kernel of an author's text. Loop kernels get their programs by loop_programs.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyopencl as cl

from ...build.cache import BuildOutput, Cache
from ...core import locks
from ...core.errors import BuildError, CacheError
from ...core.lru_cache import LruCache

_kernels: LruCache[Any] = LruCache(1024)
building = locks.own("programs of OpenCL", locks.Level.COMPILE)
_passing = locks.own("arguments of OpenCL's kernels", locks.Level.TABLE)
_FORMAT = 1
_PYOPENCLS_CACHE: Any = False
"""Whether PyOpenCL keeps programs itself: it does not check their files as the build cache does."""


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
    with building:
        kernel = _kernels.get(key)
        if kernel is None:
            make = from_text if source.definition is not None else built
            kernel = cl.Kernel(make(*where, source.text, source.options, source.label), name)
            _kernels.put(key, kernel)
    with _passing:  # a kernel has one set of arguments
        kernel.set_args(*values)
        cl.enqueue_nd_range_kernel(queue, kernel, grid, local_size)


def built(context: Any, device: Any, text: str, options: tuple[str, ...], label: str) -> Any:
    """Return the program of a text: from the build cache, or compiled now. Raises ``BuildError``."""
    made: list[Any] = []

    def make(work: Path) -> BuildOutput:
        program = from_text(context, device, text, options, label)
        made.append(program)
        devices = program.get_info(cl.program_info.DEVICES)
        file = work / "program.clbin"
        file.write_bytes(program.get_info(cl.program_info.BINARIES)[devices.index(device)])
        return BuildOutput(file, [])

    try:
        binary = _binary(_request(device, text, options), label, make)
        if not made:
            return cl.Program(context, [device], [binary]).build(list(options), devices=[device])
    except (CacheError, OSError):  # no folder to write to, or another process has removed the entry
        pass
    except cl.Error:  # a driver may refuse what it wrote itself, as after an update
        made.clear()
    return made[0] if made else from_text(context, device, text, options, label)


def _binary(request: dict[str, Any], label: str, make: Callable[[Path], BuildOutput]) -> bytes:
    """Return what the build cache has for a request, which it makes anew if it is damaged."""
    found = Cache().get(request, [label], make, kind="other")
    binary = Path(found.path).read_bytes()
    if hashlib.sha256(binary).hexdigest() == found.result.sha256:
        return binary
    Path(found.path).unlink(missing_ok=True)
    return _binary(request, label, make)


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


def from_text(context: Any, device: Any, text: str, options: tuple[str, ...], label: str) -> Any:
    """Return the program that the driver makes of a text. Raises ``BuildError`` with the driver's words."""
    program = cl.Program(context, text)
    try:
        return program.build(list(options), devices=[device], cache_dir=_PYOPENCLS_CACHE)
    except cl.Error as problem:
        log = (
            str(problem).partition("\n")[2].strip()
        )  # the first line names a function of OpenCL, three times
        raise BuildError(label, f"cannot be compiled for {device.name}:\n{log or problem}") from None
