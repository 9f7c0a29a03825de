"""``build``: sources in, the path of a shared library out."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BuildError
from . import atomic, libtorch
from .cache import Cache, Made
from .inputs import parse_depfile
from .options import BuildOptions
from .plan import Plan, Unit, make_plan
from .run import Finished, failed, progress, run
from .sources import gather

if TYPE_CHECKING:
    from .precompiled import Precompiled

_UNKNOWN_NAME = (
    r"is not a member of|has not been declared|was not declared|does not name a type|no member named"
    r"|undeclared|unknown type name|not a template|No such file|file not found|incomplete type|no type named"
)


class Refused(Exception):  # noqa: N818 - not an error yet: it becomes one when nothing else helps
    """A source that does not compile, with what the compiler said."""

    def __init__(self, unit: Unit, finished: Finished) -> None:
        super().__init__(finished.output)
        self.unit, self.finished = unit, finished


def build(
    sources: Sequence[str | Path] = (),
    *,
    code: str | None = None,
    language: str = "c++",
    flags: Sequence[str] = (),
    link_flags: Sequence[str] = (),
    include_paths: Sequence[str | Path] = (),
    debug: bool = False,
    cuda_architectures: Sequence[str] | None = None,
    torch: bool | None = None,
    output: str | Path | None = None,
) -> Path:
    """Return the path of the library built from sources, in the cache or at ``output``.

    ``code`` is one more source, given as text in ``language`` ("c", "c++" or "cuda"). Sources,
    the headers they read, flags, compiler and polyop's ABI version decide: where none of them
    has changed, nothing is compiled. ``torch``: see :class:`BuildOptions`.

    >>> build(code="int seven(void) { return 7; }", language="c").suffix
    '.so'

    Raises ``BuildError`` with the compiler's own message, and ``CacheError``.
    """
    options = BuildOptions.of(
        flags=flags,
        link_flags=link_flags,
        include_paths=include_paths,
        debug=debug,
        cuda_architectures=cuda_architectures,
        torch=torch,
    )
    found = gather(sources, code, language, options.include_paths)
    target = None if output is None else Path(output)
    name = (target or found[0].path).name.partition(".")[0]
    plan = make_plan(found, options, name)
    paths = [str(source.path) for source in found]
    cache = Cache()

    def make(work: Path) -> Made:
        try:
            return make_library(plan, work, name, cache)
        except Refused as refused:
            said = refused.finished.output
            if plan.tier not in (None, libtorch.EVERYTHING) and re.search(_UNKNOWN_NAME, said):
                try:
                    everything = make_plan(found, options, name, libtorch.EVERYTHING)
                    return make_library(everything, work, name, cache)
                except Refused as again:
                    refused = again
            raise failed(refused.unit.source.subject, "cannot be compiled", refused.finished) from None

    built = cache.get(plan.request, paths, make, watch=paths).path
    return built if target is None else _deliver(built, target)


def make_library(plan: Plan, work: Path, name: str, cache: Cache) -> Made:
    """Compile every source, as many at once as there are processors, and link.

    Raises ``Refused`` for a source that does not compile, ``BuildError`` for a link that fails.
    """
    from concurrent.futures import ThreadPoolExecutor

    # one after another: sources that share a header wait for it, and its compile needs much memory
    ready: list[Precompiled | None] = [None] * len(plan.units)
    if plan.torch is not None:
        from .precompiled import precompiled

        ready = [precompiled(unit, plan.torch, cache) for unit in plan.units]
    names = ", ".join(unit.source.path.name for unit in plan.units)
    with progress(f"compiling {names}"), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [
            pool.submit(_compile, unit, header, work / f"{number}.o")
            for number, (unit, header) in enumerate(zip(plan.units, ready, strict=True))
        ]
        inputs = [path for job in jobs for path in job.result()]
        objects = [work / f"{number}.o" for number in range(len(jobs))]
        library = work / f"{name}.so"
        done = run(plan.link_command(objects, library))
    if done.code:
        raise failed(names, "cannot be linked", done)
    return Made(library, inputs, [folder for unit in plan.units for folder in unit.search])


def _compile(unit: Unit, header: Precompiled | None, target: Path) -> list[str]:
    """Compile one source and return the files it has read."""
    depfile = target.with_suffix(".d")
    done = run(unit.command(target, depfile, header.flags if header else ()))
    if done.code:
        raise Refused(unit, done)
    if not (target.exists() and depfile.exists()):
        rule = "must be a compiler: it ended without an error, and without an object file"
        raise BuildError(shlex.join(unit.compiler.command), rule, hint="look at CC, CXX and CUDACXX")
    read = [str(Path(path).absolute()) for path in parse_depfile(depfile.read_text(encoding="utf-8"))]
    if header is None:
        return read
    hidden = set(header.flags)  # the header's own files lie in the cache; what it was made from counts
    return [
        *(path for path in read if path.removesuffix(".gch") not in hidden and path not in hidden),
        *header.inputs,
    ]


def _deliver(built: Path, target: Path) -> Path:
    try:
        atomic.copy(built, target)
    except OSError as problem:
        rule = "must be a path that can be written"
        raise BuildError(f"output {target}", rule, problem.strerror or problem) from None
    return target
