"""Build the library of a kernel that is not in the build cache: run the passes, print, compile."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ScheduleError
from ...core.log import listener
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
    from ..runner import Watch
    from .options import Options


def schedule_or_original(kernel: Kernel, options: Options) -> Program:
    """Return the scheduled program of a kernel; if that fails, the author's order, with ``fallback``.

    isl has a quota of operations, and may fail for a large kernel. Any other exception is a bug of the
    compiler, which POLYOP_STRICT=1 raises. Raises ``ScheduleError`` for a step that is not legal.
    """
    import islpy

    if options.checked:
        return original(kernel, "debug: loops stay in the author's order, and every index is checked")
    try:
        return schedule(kernel, _logged_passes(kernel.name), steps=options.schedule)
    except ScheduleError:
        raise
    except Exception as problem:  # a bug of a pass must not stop a program that can run in order
        if debug.is_strict() and not isinstance(problem, islpy.Error):
            raise
        text = (
            f"{kernel.name}: loops stay in the author's order, on one thread and with every index checked: "
            f"{type(problem).__name__}: {problem}"
        )
        return original(kernel, text, fallback=text)


def _logged_passes(name: str) -> Watch | None:
    """Return a watch that logs each pass as a detail, None if nobody reads them."""
    log = listener("loops", detail=True)
    if log is None:
        return None
    return lambda one, _, seconds: log.debug("loop kernel %s: %s took %.1f ms", name, one.name, 1e3 * seconds)


def sources(
    kernel: Kernel, options: Options, *, divided: bool = False, program: Program | None = None
) -> list[str]:
    """Return the source texts of a kernel: one, or one for each instruction set and one that chooses.

    The language is C, or CUDA for the instruction set "cuda". ``divided``: a long text may be divided
    into two, which are compiled side by side. ``program``: what :func:`schedule_or_original` returned, for a
    caller that has it; else it is called here.
    """
    scheduled = program or schedule_or_original(kernel, options)

    def files(name: str, function: str) -> list[str]:
        flags = {"precise": options.precise, "checked": scheduled.checked}
        if name == CUDA.name or not divided:
            texts = [source(scheduled, name, function, **flags)]
        else:
            texts = c_file(scheduled, name, function, **flags).files()
        if scheduled.fallback:
            linkage = 'extern "C" ' if name == CUDA.name else ""
            texts[0] += f"{linkage}const char {function}_fallback[] = {json.dumps(scheduled.fallback)};\n"
        return texts

    if options.isa != isa.PORTABLE:
        return files(options.isa, exported(kernel))
    names = isa.family()
    if len(names) == 1:
        return files(names[0], exported(kernel))
    texts = [text for name in names for text in files(name, f"{exported(kernel)}__{name}")]
    return [*texts, choosing(exported(kernel), names)]


def make(kernel: Kernel, options: Options, request: Any) -> str:
    """Build the library of a kernel and return its path in the build cache. Raises ``BuildError``."""
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

    def build(work: Path) -> BuildOutput:
        started = time.perf_counter()
        files = [store_code(text, language) for text in sources(kernel, options, divided=True)]
        if log := listener("loops"):
            seconds = time.perf_counter() - started
            buffers = kernel.buffers.values()
            shown = ", ".join(f"{one.outer_dtype}[{len(one.outer_shape)}d]" for one in buffers)
            log.info(
                "loop kernel %s (%s): passes and %s in %.2f s", kernel.name, shown, language.upper(), seconds
            )
        plan = make_plan(gather(files, None, language, ()), BuildOptions.of(flags=flags), kernel.name)
        try:
            library = make_library(plan, work, kernel.name, cache)
        except CompileFailed as error:
            raise failed(
                kernel.name, f"is a loop kernel whose {language.upper()} cannot be compiled", error.finished
            ) from None
        # the printed texts follow from the request; as inputs they would look like files that may be edited
        return library._replace(inputs=[path for path in library.inputs if path not in files])

    return cache.get(request, [kernel.file], build).path
