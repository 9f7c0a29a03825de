"""Compile and link a library that the cache does not have."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import BuildError
from .cache import BuildOutput, Cache
from .depfile import parse_depfile
from .headers import check_headers
from .options import BuildOptions
from .plan import Plan, Unit, make_plan
from .run import Finished, failed, progress, run
from .sources import Source

if TYPE_CHECKING:
    from .precompiled import Precompiled

_UNKNOWN_NAME = (
    r"is not a member of|has not been declared|was not declared|does not name a type|no member named"
    r"|undeclared|unknown type name|not a template|No such file|file not found|incomplete type|no type named"
)
_MISSING_HEADER = r"error: '?([^\s:']+)'?:? (?:No such file|file not found)"
_FOLDERS_OF_TORCH = ("torch/", "ATen/", "c10/", "caffe2/", "pybind11/", "Python.h")
_ASCEND_HEADER = (
    r"error: '?((?:torch_npu|third_party/acl|acl|aclnn|aclnnop|op_plugin)/[^\s:']+)'?:? "
    r"(?:No such file|file not found)"
)


class CompileFailed(Exception):  # noqa: N818 - not an error yet: the build may succeed with other headers
    """A source that did not compile, with the compiler's output."""

    def __init__(self, unit: Unit, finished: Finished) -> None:
        super().__init__(finished.output)
        self.unit, self.finished = unit, finished


def make(plan: Plan, sources: Sequence[Source], options: BuildOptions, name: str) -> str:
    """Build a plan, unless another process has built it meanwhile, and return the path of the library.

    PyTorch's lightest headers are tried first; if a name is unknown, all of them. Raises ``BuildError``
    with the compiler's message, and ``CacheError``.
    """
    cache = Cache()

    def build(work: Path) -> BuildOutput:
        try:
            return make_library(plan, work, name, cache)
        except CompileFailed as problem:
            failure = problem
            rule = "cannot be compiled"
            missing = re.search(_ASCEND_HEADER, failure.finished.output)
            if missing:
                rule += f": it includes {missing[1]} of torch_npu or CANN, and -I names no folder that has it"
            elif plan.torch is not None and _may_need_more(failure.finished.output):
                from .libtorch import EVERYTHING

                try:
                    if plan.tier != EVERYTHING:
                        everything = make_plan(sources, options, name, EVERYTHING)
                        return make_library(everything, work, name, cache)
                except CompileFailed as second:
                    failure = second
            raise failed(failure.unit.source.path, rule, failure.finished) from None

    paths = [source.path for source in sources]
    return cache.get(plan.request, paths, build, watch=paths).path


def _may_need_more(output: str) -> bool:
    """Whether a source may compile with all headers of PyTorch: a name is unknown, or one of its headers."""
    missing = re.search(_MISSING_HEADER, output)
    if missing:
        return missing[1].startswith(_FOLDERS_OF_TORCH)
    return re.search(_UNKNOWN_NAME, output) is not None


def make_library(plan: Plan, work: Path, name: str, cache: Cache, label: str = "") -> BuildOutput:
    """Compile every source, as many at a time as there are processors, and link them.

    ``label`` is what messages call it: else the names of the sources.
    Raises ``CompileFailed`` for a source that does not compile, ``BuildError`` if linking fails.
    """
    headers: list[Precompiled | None] = [None] * len(plan.units)
    if plan.torch is not None:
        from .precompiled import precompiled

        # one after another: most sources share a header, and precompiling one needs much memory
        headers = [precompiled(unit, plan.torch, cache) for unit in plan.units]
    names = label or ", ".join(dict.fromkeys(unit.source.name for unit in plan.units))
    objects = [work / f"{number}.o" for number in range(len(plan.units))]
    library = work / f"{name}.so"
    with progress(f"compiling {names}"):
        inputs = _compile_all(plan.units, headers, objects)
        finished = run(plan.link_command(objects, library))
    if finished.code:
        raise failed(names, "cannot be linked", finished)
    return BuildOutput(library, inputs, [folder for unit in plan.units for folder in unit.search])


def _compile_all(
    units: Sequence[Unit], headers: Sequence[Precompiled | None], targets: Sequence[Path]
) -> list[str]:
    """Compile the sources, and return all files that the compilers have read."""
    if len(units) == 1:
        return _compile(units[0], headers[0], targets[0])
    from concurrent.futures import ThreadPoolExecutor, as_completed

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        running = [pool.submit(_compile, *one) for one in zip(units, headers, targets, strict=True)]
        try:
            for done in as_completed(running):
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)  # of a build that has failed, no further source is compiled
            raise
    return [path for one in running for path in one.result()]


def _compile(unit: Unit, header: Precompiled | None, target: Path) -> list[str]:
    """Compile one source, and return the files that the compiler has read."""
    depfile = target.with_suffix(".d")
    finished = run(unit.command(target, depfile, header.flags if header else ()))
    if finished.code:
        raise CompileFailed(unit, finished)
    if not (target.exists() and depfile.exists()):
        rule = "must be a compiler: it ended without an error, and without an object file"
        raise BuildError(shlex.join(unit.compiler.command), rule, hint="look at CC, CXX and CUDACXX")
    read = [str(Path(path).absolute()) for path in parse_depfile(os.fsdecode(depfile.read_bytes()))]
    check_headers(_without_precompiled(read, header))
    if header is None:
        return read
    return [*_without_precompiled(read, header), *header.inputs]


def _without_precompiled(read: Sequence[str], header: Precompiled | None) -> list[str]:
    """Return the files without the precompiled header, whose ``inputs`` are the files it was made from."""
    names = set(header.flags) if header else set()
    return [path for path in read if path.removesuffix(".gch") not in names and path not in names]
