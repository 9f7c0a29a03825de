"""Build the library of a kernel that is not in the build cache: run the passes, print, compile.

If any of these fails, the kernel is built in the author's order: :func:`with_fallback`. The text of a device
becomes a constant of the host's library, with polyop's headers in it: a driver compiles it on the machine
where it runs, which may have none of them.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...build.paths import include_dir
from ...core.errors import BuildError, CacheError, ScheduleError
from ...core.log import listener
from .. import debug
from ..emit.c.program import choosing
from ..emit.printer import c_file, device_text, source
from ..pipeline import WITHOUT_COPIES, original, schedule
from ..program import Program
from ..targets import isa
from ..targets.table import TARGETS
from .options import exported, flags_of, language_of

if TYPE_CHECKING:
    from ...build.cache import BuildOutput
    from ..ir.grammar import Kernel
    from ..runner import Watch
    from .options import Options

Made = TypeVar("Made")
PRELUDE = "polyop/loops/opencl_device.h"
_INCLUDE = re.compile(r'#include "(?:\.\./)?([\w/]+\.h)"')


def with_fallback(
    kernel: Kernel, options: Options, use: Callable[[Program], Made], watch: Watch | None = None
) -> Made:
    """Return what ``use`` makes of a kernel's scheduled program; if that fails, of the author's order.

    ``use`` prints the program, and may compile the text. What may fail is a pass or a printer, by any
    exception, or the compiler, by a ``RefusedError``: then ``Program.fallback`` says why. Each is a bug of
    polyop, which POLYOP_STRICT=1 raises, but isl's quota of operations, which is a limit. Beyond it the
    passes that copy loops are left out first.

    Raises ``ScheduleError`` for a step that is not legal, the errors of building that no other text avoids,
    and what fails in the author's order.
    """
    if options.checked:
        return use(original(kernel, "debug: loops stay in the author's order, and every index is checked"))
    import islpy

    watch = watch or _logged_passes(kernel.name)
    try:
        try:
            program = schedule(kernel, watch, steps=options.schedule)
        except islpy.Error:
            program = schedule(kernel, watch, WITHOUT_COPIES, options.schedule)
        return use(program)
    except Exception as problem:  # noqa: BLE001 - the next line raises it again if it is final
        program = fallback_of(kernel, problem)
    return use(program)


def fallback_of(kernel: Kernel, problem: Exception) -> Program:
    """Return a kernel in the author's order because of a problem; raise the problem if that is no way out."""
    import islpy

    is_bug = not isinstance(problem, islpy.Error)
    if _is_final(problem) or (is_bug and debug.is_strict()):
        raise problem
    how = "loops stay in the author's order, on one thread and with every index checked"
    text = f"{kernel.name}: {how}: {_reason(problem)}{'; POLYOP_STRICT=1 raises it' if is_bug else ''}"
    return original(kernel, text, fallback=text)


def _is_final(problem: Exception) -> bool:
    """Whether another order of the loops does not help."""
    from ...build.run import RefusedError

    if isinstance(problem, RefusedError):
        return False
    return isinstance(problem, (ScheduleError, BuildError, CacheError, OSError))


def _reason(problem: Exception) -> str:
    """Return what failed, on one line."""
    from ...build.run import RefusedError

    if isinstance(problem, RefusedError):
        return f"the compiler refuses their text: {problem.said}"
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"


def _logged_passes(name: str) -> Watch | None:
    """Return a watch that logs each pass as a detail, None if nobody reads them."""
    log = listener("loops", detail=True)
    if log is None:
        return None
    return lambda one, _, seconds: log.debug("loop kernel %s: %s took %.1f ms", name, one.name, 1e3 * seconds)


def sources(kernel: Kernel, options: Options, program: Program, *, divided: bool = False) -> list[str]:
    """Return the source texts of a kernel: one, or one for each instruction set and one that chooses.

    The language is that of :func:`language_of`. ``divided``: a long text may be divided into two, which are
    compiled side by side. ``program``: what :func:`with_fallback` hands over.
    """

    def files(name: str, function: str) -> list[str]:
        flags = {"precise": options.precise, "checked": program.checked}
        is_device = TARGETS[name].is_device
        if is_device:
            host, device = device_text(program, name, function, checked=program.checked)
            texts = [host, *([embedded(device, function)] if device else [])]
        elif divided:
            texts = c_file(program, name, function, **flags).files()
        else:
            texts = [source(program, name, function, **flags)]
        if program.fallback:
            linkage = 'extern "C" ' if is_device else ""
            texts[0] += f"{linkage}const char {function}_fallback[] = {json.dumps(program.fallback)};\n"
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
    from ...build.commands import make_plan
    from ...build.make import make_library
    from ...build.objects import CompileFailed
    from ...build.options import BuildOptions
    from ...build.run import failed
    from ...build.sources import gather, store_code

    language = language_of(options)
    flags = flags_of(compilers.find(language).family, options)
    cache = Cache()

    def build(work: Path) -> BuildOutput:
        started = time.perf_counter()

        def compile_text(program: Program) -> BuildOutput:
            texts = sources(kernel, options, program, divided=True)
            if log := listener("loops"):
                seconds = time.perf_counter() - started
                log.info("loop kernel %s: passes and %s in %.2f s", _shown(kernel), language.upper(), seconds)
            files = [store_code(text, language) for text in texts]
            plan = make_plan(gather(files, None, language, ()), BuildOptions.of(flags=flags), kernel.name)
            try:
                # all its texts follow from the kernel, so no edit leaves one of them as it was
                library = make_library(plan, work, kernel.name, cache, keep_objects=False)
            except CompileFailed as error:
                rule = f"is a loop kernel whose {language.upper()} cannot be compiled"
                raise failed(kernel.name, rule, error.finished) from None
            # texts follow from the request; as inputs they would look like files that may be edited
            return library._replace(inputs=[path for path in library.inputs if path not in files])

        return with_fallback(kernel, options, compile_text)

    return cache.get(request, [f"{kernel.file}: {_shown(kernel)}"], build).path


def _shown(kernel: Kernel) -> str:
    tensors = (f"{one.outer_dtype}[{len(one.outer_shape)}d]" for one in kernel.buffers.values())
    return f"{kernel.name} ({', '.join(tensors)})"


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
