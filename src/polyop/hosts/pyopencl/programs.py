"""Programs of OpenCL: built once for a context and a device, and kept in the build cache."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyopencl as cl

from ...build.cache import BuildOutput, Cache
from ...core import locks
from ...core.errors import BuildError
from ...core.lru_cache import LruCache

_programs: LruCache[Any] = LruCache()
_lock = locks.own("programs of OpenCL", locks.Level.COMPILE)
_FORMAT = 1
_NO_CACHE: Any = False
"""For PyOpenCL's own cache, whose files are not checked as those of the build cache are."""


def built(queue: Any, text: str, options: tuple[str, ...], label: str, *, cached: bool = True) -> Any:
    """Return the program of a text of OpenCL C for a queue's device; raises ``BuildError``.

    ``label`` is what errors call it. The build cache keeps what the driver makes of a text if ``cached``:
    not for a text that includes headers, whose changes nobody would notice.
    """
    key = (queue.context, queue.device, text, options)
    with _lock:
        program = _programs.get(key)
        if program is None:
            program = _built(*key, label) if cached else _from_text(*key, label)
            _programs.put(key, program)
        return program


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
