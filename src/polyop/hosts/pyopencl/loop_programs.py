"""The programs of loop kernels on OpenCL.

A library of loop kernels holds their text in OpenCL C (include/polyop/loops/opencl.h). For each context and
device it asks once for the program of the text, by a function that :func:`supply` sets in it. That function
is here: the program is taken from the build cache, or compiled.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyopencl as cl

from ...core.errors import PolyopError
from ...kernels.opencl.kernel import folder_of_texts
from .programs import building, built, from_text

HOOK = "polyop_opencl_build"
"""The symbol of the function in a library."""
_HOOK_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
    ctypes.c_size_t,
)
_TITLE = re.compile(r"the loop kernel (\w+) of (\S+),")
_supplied: set[int] = set()
_programs: dict[tuple[int, int, bytes], Any] = {}
"""By context, device and text. Libraries use them as long as the process lives."""
_stopped = threading.local()


def supply(hooks: Iterable[int]) -> None:
    """Set the function in libraries; ``hooks`` are the addresses of their symbols :data:`HOOK`."""
    for address in set(hooks) - _supplied:
        ctypes.c_void_p.from_address(address).value = ctypes.cast(_hook, ctypes.c_void_p).value
        _supplied.add(address)


def raise_what_stopped() -> None:
    """Raise what is no error of a program, such as a Ctrl-C while the driver compiled in this thread."""
    problem = _stopped.__dict__.pop("problem", None)
    if problem is not None:
        raise problem


@_HOOK_TYPE  # type: ignore[untyped-decorator] # ctypes
def _hook(context: int, device: int, text: bytes, program: Any, why: int, size: int) -> int:
    """Set ``program`` and return 0, or write the error at the address ``why`` and return 1.

    There is room for ``size`` bytes of text.
    """
    told = b""
    try:
        with building:
            key = (context, device, text)
            if key not in _programs:
                _programs[key] = _made(context, device, text.decode())
            program[0] = _programs[key].int_ptr
    except (PolyopError, cl.Error, OSError) as problem:
        told = (str(problem) or type(problem).__name__).encode()[: size - 1]
    except BaseException as problem:  # noqa: BLE001 - C cannot pass it on
        _stopped.problem, told = problem, b"stopped"
    ctypes.memmove(why, told + b"\0", len(told) + 1)
    return int(bool(told))


def _made(context: int, device: int, text: str) -> Any:
    """Return the program of a text; for somebody who reads it, compiled from the text."""
    title = _TITLE.search(text)
    label = f"{title[2]}: loop kernel {title[1]}" if title else "a loop kernel"
    place, chip = cl.Context.from_int_ptr(context), cl.Device.from_int_ptr(device)
    folder = folder_of_texts()
    if not folder:
        return built(place, chip, text, _options(chip), label)
    Path(folder, f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.cl").write_text(text)
    return from_text(place, chip, text, _options(chip), label)  # a debugger shows no lines of a binary


def _options(device: Any) -> tuple[str, ...]:
    """Return the options for the text of a loop kernel.

    pocl 3.1, on LLVM 15, computes wrong values where a loop holds barriers and loops between them, as in
    attention by blocks of rows. It does not without its optimisations, and neither does oclgrind. Later
    versions of pocl were not tried.
    """
    return ("-cl-opt-disable",) if "PoCL" in device.version else ()
