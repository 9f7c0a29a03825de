"""``polyop build``: compile C, C++ and CUDA sources to a shared library."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..build import build
from ..build.show import line_per_file
from ..core.errors import ArgumentValueError
from .terminal import say, say_json


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "build",
        help="compile C, C++ and CUDA sources to a shared library",
        description="Compile sources to a shared library. Sources that include PyTorch's headers, ms_ext.h "
        "or pytorch_npu_helper.hpp are compiled and linked against the installed PyTorch; where they have "
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m), the library is a Python module of its own name. "
        "CC, CXX, CUDACXX and HIPCXX name the compilers.",
    )
    parser.add_argument("sources", nargs="+", metavar="SRC", help="a .c .cc .cpp .cxx .cu or .hip file")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="the library; without it, the cache's own copy is named"
    )
    parser.add_argument(
        "-I", dest="include", action="append", default=[], metavar="DIR", help="a folder of headers"
    )
    parser.add_argument(
        "-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]", help="a macro"
    )
    parser.add_argument(
        "--flag", action="append", default=[], metavar="FLAG", help="for the compilers, as in --flag=-fopenmp"
    )
    parser.add_argument(
        "--file-flag",
        action="append",
        default=[],
        metavar="SRC=FLAG",
        help="for the compiler of one source, as in --file-flag=wide.cc=-mavx2",
    )
    parser.add_argument(
        "--link-flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="for the linker, as in --link-flag=-lblas",
    )
    parser.add_argument("--debug", action="store_true", help="no optimisation, with debug information")
    parser.add_argument(
        "--arch",
        action="append",
        metavar="SM",
        help="a CUDA architecture, as in --arch sm_90 (default: the GPUs here)",
    )
    parser.add_argument("--no-torch", action="store_true", help="do not look for PyTorch")
    parser.add_argument("--json", action="store_true", help="print the library and its sources as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Build, and print the path of the library; return 0. Raises ``BuildError`` and ``CacheError``."""
    file_flags = _file_flags(options.file_flag, options.sources)
    with line_per_file():
        library = build(
            options.sources,
            flags=[*(f"-D{name}" for name in options.define), *options.flag],
            file_flags=file_flags,
            link_flags=options.link_flag,
            include_paths=options.include,
            debug=options.debug,
            cuda_architectures=options.arch,
            torch=False if options.no_torch else None,
            output=Path(options.output) if options.output else None,
        )
    facts = {"library": str(library), "sources": options.sources}
    if options.json:
        say_json(facts)
    else:
        say(library)
    return 0


def _file_flags(given: list[str], sources: list[str]) -> dict[str | Path, list[str]]:
    """Return the flags of each source. A source may have a ``=`` in its name."""
    flags: dict[str | Path, list[str]] = {}
    for text in given:
        source = next((one for one in sources if text.startswith(f"{one}=")), None)
        if source is None:
            hint = f"the sources are {', '.join(sources)}"
            raise ArgumentValueError(
                "--file-flag", "must be SRC=FLAG for one of the sources", text, hint=hint
            )
        flags.setdefault(source, []).append(text[len(source) + 1 :])
    return flags
