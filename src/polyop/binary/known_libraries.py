"""Libraries that kernels are often linked with: how to recognise them, and how to get them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Known(NamedTuple):
    """A framework: patterns of its library names and of its symbols, and what to do if they are missing."""

    name: str
    library: str
    symbol: str
    hint: str


KNOWN = (
    Known(
        "PyTorch",
        r"lib(torch|c10)",
        r"_Z\w*?(2at|3c10|5torch)\d",
        "it is PyTorch's: rebuild the source with polyop build, which finds the PyTorch that is installed",
    ),
    Known(
        "Python",
        r"libpython",
        r"_?Py[A-Z_]",
        "it is Python's: a kernel needs no Python; build it without pybind11",
    ),
    Known(
        "MindSpore",
        r"libmindspore",
        r"_Z\w*?9mindspore",
        "it is MindSpore's: rebuild the source with polyop build",
    ),
    Known(
        "CUDA",
        r"lib(cuda|cublas|cudnn|curand|nv)",
        r"(__)?cuda[A-Z]|cu(blas|rand|dnn)?[A-Z]",
        "it is CUDA's: is CUDA installed here?",
    ),
    Known(
        "tvm-ffi",
        r"libtvm_ffi",
        r"_ZN?K?3tvm3ffi|TVMFFI",
        "it is tvm-ffi's: pip install apache-tvm-ffi",
    ),
    Known(
        "CANN",
        r"lib(ascendcl|nnopbase|opapi)",
        r"acl(nn|rt)",
        "it is CANN's: is CANN installed here?",
    ),
)


def hint_about(name: str) -> str | None:
    """Return what to do about a missing library or symbol, or None if it is of no known framework.

    >>> hint_about("libcudart.so.12")
    "it is CUDA's: is CUDA installed here?"
    """
    return next((row.hint for row in KNOWN if re.match(f"{row.library}|{row.symbol}", name)), None)


def frameworks(needed: Sequence[str], undefined: Sequence[str]) -> Iterator[str]:
    """Yield the frameworks to which the libraries and symbols that a library needs belong.

    >>> list(frameworks(["libc10.so", "libc.so.6"], ["PyList_New"]))
    ['PyTorch (libc10.so)', 'Python (its symbols, not linked)']
    """
    for row in KNOWN:
        linked = [name for name in needed if re.match(row.library, name)]
        if linked:
            yield f"{row.name} ({', '.join(linked)})"
        elif any(re.match(row.symbol, name) for name in undefined):
            yield f"{row.name} (its symbols, not linked)"
