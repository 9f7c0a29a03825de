"""What is done for a kernel that the build cache does not have: arranged, printed, compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import debug
from ..emit.c.choose import choosing
from ..emit.printer import c_file, source
from ..pipeline import original, schedule
from ..program import Program
from ..targets import isa
from ..targets.cuda import CUDA
from .options import exported, flags_of, language_of

if TYPE_CHECKING:
    from ...build.cache import BuildOutput
    from ..ir.grammar import Kernel
    from .options import Options


def arranged(kernel: Kernel, options: Options) -> Program:
    """Return the kernel scheduled; where that fails the author's own order, with ``fallback`` saying so.

    isl may spend so much on a kernel: beyond, the author's order is right and slower. Anything else is a
    mistake of the compiler, which POLYOP_STRICT=1 raises.
    """
    import islpy

    if options.checked:
        return original(kernel, "debug: loops stay in the author's order, and every index is checked")
    try:
        return schedule(kernel)
    except Exception as problem:  # whatever a pass stumbles over, the plain order is right
        if debug.is_strict() and not isinstance(problem, islpy.Error):
            raise
        text = (
            f"{kernel.name}: loops stay in the author's order, on one thread and with every index checked: "
            f"{type(problem).__name__}: {problem}"
        )
        return original(kernel, text, fallback=text)


def sources(kernel: Kernel, options: Options, *, divided: bool = False) -> list[str]:
    """Return the files of a kernel: one, or one for each instruction set and one that chooses.

    They are in C, and in CUDA for the instruction set "cuda". ``divided``: a long one may be two, which
    are compiled side by side.
    """
    found = arranged(kernel, options)

    def files(name: str, function: str) -> list[str]:
        if name == CUDA.name or not divided:
            texts = [source(found, name, function, precise=options.precise, checked=found.checked)]
        else:
            texts = c_file(found, name, function, precise=options.precise, checked=found.checked).files()
        if found.fallback:
            linkage = 'extern "C" ' if name == CUDA.name else ""
            texts[0] += f"{linkage}const char {function}_fallback[] = {json.dumps(found.fallback)};\n"
        return texts

    if options.isa != isa.PORTABLE:
        return files(options.isa, exported(kernel))
    names = isa.family()
    if len(names) == 1:
        return files(names[0], exported(kernel))
    texts = [text for name in names for text in files(name, f"{exported(kernel)}__{name}")]
    return [*texts, choosing(exported(kernel), names)]


def make(kernel: Kernel, options: Options, request: Any) -> str:
    """Return the library of a kernel, made for ``request``. Raises ``BuildError``."""
    from ...build import compilers
    from ...build.cache import Cache
    from ...build.make import CompileFailed, make_library
    from ...build.options import BuildOptions
    from ...build.plan import make_plan
    from ...build.run import failed
    from ...build.sources import gather, store_code

    language = language_of(options)
    flags = flags_of(compilers.find(language).family, options)
    cache = Cache()

    def made(work: Path) -> BuildOutput:
        files = [store_code(text, language) for text in sources(kernel, options, divided=True)]
        plan = make_plan(gather(files, None, language, ()), BuildOptions.of(flags=flags), kernel.name)
        try:
            library = make_library(plan, work, kernel.name, cache)
        except CompileFailed as refused:
            raise failed(
                kernel.name, f"is a loop kernel whose {language.upper()} cannot be compiled", refused.finished
            ) from None
        # what was printed just now follows from the request: as an input it would look like an edited file
        return library._replace(inputs=[path for path in library.inputs if path not in files])

    return cache.get(request, [kernel.file], made).path
