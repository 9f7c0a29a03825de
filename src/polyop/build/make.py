"""Build a library that the cache does not have: compile what has changed, and link."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from ..binary.elsewhere import loading_problem
from ..core.errors import BuildError
from .cache import BuildOutput, Cache
from .commands import Plan, make_plan
from .objects import CompileFailed, Objects
from .options import BuildOptions
from .run import failed, run
from .show import progress
from .sources import Source

_ASCEND_HEADER = (
    r"error: '?((?:torch_npu|third_party/acl|acl|aclnn|aclnnop|op_plugin)/[^\s:']+)'?:? "
    r"(?:No such file|file not found)"
)


def make(plan: Plan, sources: Sequence[Source], options: BuildOptions, name: str) -> str:
    """Build a plan, unless another process has built it meanwhile, and return the path of the library.

    A source is compiled with PyTorch's lightest headers first; if a name is unknown in it, with all of them.
    Raises ``BuildError`` with the compiler's message, and ``CacheError``.
    """
    cache = Cache()

    @functools.cache
    def with_everything() -> Plan:
        from .libtorch import EVERYTHING

        return make_plan(sources, options, name, EVERYTHING)

    def build(work: Path) -> BuildOutput:
        try:
            return make_library(plan, work, name, cache, fuller=with_everything if plan.torch else None)
        except CompileFailed as problem:
            rule = "cannot be compiled"
            missing = re.search(_ASCEND_HEADER, problem.finished.output)
            if missing:
                rule += f": it includes {missing[1]} of torch_npu or CANN, and -I names no folder that has it"
            raise failed(problem.unit.source.path, rule, problem.finished) from None

    paths = [source.path for source in sources]
    return cache.get(plan.request, paths, build, watch=paths).path


def make_library(
    plan: Plan,
    work: Path,
    name: str,
    cache: Cache,
    label: str = "",
    *,
    fuller: Callable[[], Plan] | None = None,
    keep_objects: bool = True,
) -> BuildOutput:
    """Compile every source whose object the cache does not have, and link all objects.

    ``label`` is what messages call it: else the names of the sources. ``fuller``: see :class:`Objects`.
    The cache keeps the objects of several sources, unless ``keep_objects`` is False. The object of a single
    source would only help where nothing but the flags of the linker is new, and double what the cache holds.
    Raises ``CompileFailed`` for a source that does not compile, ``BuildError`` if linking fails.
    """
    names = label or ", ".join(dict.fromkeys(unit.source.name for unit in plan.units))
    kept = keep_objects and len(plan.units) > 1
    build = Objects(plan, names, work, cache, kept=kept, fuller=fuller)
    library = work / f"{name}.so"
    with progress(build.text, detail=f"compiling {names}"):
        objects = build.compile()
        if fuller and any(one.unit not in plan.units for one in objects):
            plan = fuller()  # it is linked against what only all headers need
        finished = run(plan.link_command([one.file for one in objects], library))
    if finished.code:
        raise failed(names, "cannot be linked", finished)
    problem = loading_problem(library)
    if problem is not None:  # its hash would make the cache trust it for ever
        rule = (
            f"cannot be linked: the linker ended without an error, and its file cannot be loaded: {problem}"
        )
        hint = "is there space on the disk, and is the linker the compiler's own?"
        raise BuildError(names, rule, hint=f"{hint}\n  command: {shlex.join(finished.command)}")
    inputs = [path for one in objects for path in one.inputs]
    return BuildOutput(library, inputs, [folder for unit in plan.units for folder in unit.search])
