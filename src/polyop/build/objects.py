"""Compile the sources of a build, each to an object. An object that the cache has is not compiled again.

The cache keeps an object from the moment at which it is whole. So a build that failed or was killed goes on
where it was, and after an edit only what has read the edited file is compiled.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import BuildError
from .cache import BuildOutput, Cache
from .commands import Plan, Unit
from .depfile import check_headers, parse_depfile
from .run import Finished, Processes, run
from .show import Count

if TYPE_CHECKING:
    from .lookup import CachedFile
    from .precompiled import Precompiled

_UNKNOWN_NAME = (
    r"is not a member of|has not been declared|was not declared|does not name a type|no member named"
    r"|undeclared|unknown type name|not a template|No such file|file not found|incomplete type|no type named"
)
_MISSING_HEADER = r"error: '?([^\s:']+)'?:? (?:No such file|file not found)"
_FOLDERS_OF_TORCH = ("torch/", "ATen/", "c10/", "caffe2/", "pybind11/", "Python.h")


class CompileFailed(Exception):  # noqa: N818 - not an error yet: the build may succeed with other headers
    """A source that did not compile, with the compiler's output."""

    def __init__(self, unit: Unit, finished: Finished) -> None:
        super().__init__(finished.output)
        self.unit, self.finished = unit, finished


class Compiled(NamedTuple):
    """An object: its unit, its file, and the files that its compiler has read."""

    unit: Unit
    file: Path
    inputs: Sequence[str]


class Objects:
    """The objects of one build.

    ``plan``    what is compiled
    ``label``   what the build is called
    ``work``    the build's folder
    ``kept``    whether the cache keeps each object, too
    ``fuller``  the plan with all headers of PyTorch, for a source in which a name is unknown; or None
    """

    def __init__(
        self,
        plan: Plan,
        label: str,
        work: Path,
        cache: Cache,
        *,
        kept: bool,
        fuller: Callable[[], Plan] | None,
    ) -> None:
        self._count = Count(label, [unit.source.name for unit in plan.units])
        self._plan, self._work, self._cache, self._kept, self._fuller = plan, work, cache, kept, fuller
        self._headers: dict[int, Precompiled | None] = {}
        self._processes = Processes()

    def text(self) -> str:
        """Return what is being done now."""
        return self._count.text()

    def compile(self) -> list[Compiled]:
        """Return the objects in the order of the units; compile, as many at a time as there are processors.

        Raises ``CompileFailed`` for a source that does not compile. The objects of others are kept.
        """
        units = self._plan.units
        done = {number: one for number in range(len(units)) if (one := self._found(number)) is not None}
        missing = [number for number in range(len(units)) if number not in done]
        if self._plan.torch is not None:
            from .precompiled import precompiled

            # one after another: most sources share a header, and precompiling one needs much memory
            torch = self._plan.torch
            self._headers = {number: precompiled(units[number], torch, self._cache) for number in missing}
        self._count.found(len(done))
        done.update(self._compile(missing))
        return [done[number] for number in range(len(units))]

    def _found(self, number: int) -> Compiled | None:
        """Return an object that the cache has, with the usual headers of PyTorch or with all of them."""
        if not self._kept:
            return None
        unit = self._plan.units[number]
        found = self._cache.find(self._plan.object_request(unit), "object")
        if found is None and self._fuller is not None:
            with contextlib.suppress(BuildError):  # there are no headers of Python
                unit = self._fuller().units[number]
                found = self._cache.find(self._plan.object_request(unit), "object")
        return None if found is None else _compiled(unit, found)

    def _compile(self, missing: Sequence[int]) -> Iterator[tuple[int, Compiled]]:
        """Yield the number and the object of each source when it is compiled."""
        if len(missing) == 1:
            yield missing[0], self._with_enough_headers(missing[0])
            return
        from concurrent.futures import ThreadPoolExecutor, as_completed

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            running = {pool.submit(self._with_enough_headers, number): number for number in missing}
            try:
                for one in as_completed(running):
                    yield running[one], one.result()
            except BaseException:  # of a build that has failed, no further source is compiled
                pool.shutdown(wait=False, cancel_futures=True)
                self._processes.end()
                raise

    def _with_enough_headers(self, number: int) -> Compiled:
        unit = self._plan.units[number]
        with self._count.compiling(number):
            try:
                return self._object(number, unit)
            except CompileFailed as problem:
                if self._fuller is None or not _may_need_more(problem.finished.output):
                    raise
                fuller = self._fuller().units[number]
                if fuller == unit:
                    raise
            return self._object(number, fuller)

    def _object(self, number: int, unit: Unit) -> Compiled:
        """Compile one source, or wait for another process that compiles it."""
        header = self._headers.get(number)
        if not self._kept:
            target = self._work / f"{number}.o"
            return Compiled(unit, target, _run_compiler(unit, header, target, self._processes))

        def make(work: Path) -> BuildOutput:
            target = work / f"{unit.source.name.partition('.')[0]}.o"
            return BuildOutput(target, _run_compiler(unit, header, target, self._processes), unit.search)

        path = unit.source.path
        request = self._plan.object_request(unit)
        return _compiled(unit, self._cache.get(request, [path], make, watch=[path], kind="object"))


def _compiled(unit: Unit, cached: CachedFile) -> Compiled:
    return Compiled(unit, Path(cached.path), [item.path for item in cached.result.inputs])


def _may_need_more(output: str) -> bool:
    """Whether a source may compile with all headers of PyTorch: a name is unknown, or one of its headers."""
    missing = re.search(_MISSING_HEADER, output)
    if missing:
        return missing[1].startswith(_FOLDERS_OF_TORCH)
    return re.search(_UNKNOWN_NAME, output) is not None


def _run_compiler(unit: Unit, header: Precompiled | None, target: Path, processes: Processes) -> list[str]:
    """Compile one source, and return the files that the compiler has read."""
    depfile = target.with_suffix(".d")
    finished = run(unit.command(target, depfile, header.flags if header else ()), processes)
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
