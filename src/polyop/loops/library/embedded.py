"""The text of a device as a constant of the host's library, with the headers that it needs in it.

A driver compiles it on the machine where it runs, which may have no headers of polyop.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from ...build.paths import include_dir

PRELUDE = "polyop/loops/opencl_device.h"
_INCLUDE = re.compile(r'#include "(?:\.\./)?([\w/]+\.h)"')


def embedded(device: str, function: str) -> str:
    """Return C++ that defines the constant ``<function>_device``: the headers and the text of a device."""
    name = f"const char {function}_device[]"
    text = f'R"polyop({prelude()}{device})polyop"'
    return f'extern "C" {{\nextern {name};\n{name} = {text};\n}}\n'


@functools.cache
def prelude() -> str:
    """Return the text of the headers that kernels of an OpenCL device use, each once."""
    return _text(include_dir() / PRELUDE, set())


def _text(path: Path, seen: set[Path]) -> str:
    if path in seen:
        return ""
    seen.add(path)
    lines: list[str] = []
    for line in path.read_text().splitlines():
        match = _INCLUDE.fullmatch(line)
        lines.append(_text((path.parent / line.split('"')[1]).resolve(), seen) if match else line)
    return "\n".join(lines) + "\n"
