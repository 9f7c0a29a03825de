"""Derived kernels are kept in the build cache: a process that finds them there derives nothing.

To derive a gradient takes 0.1 to 0.5 s, because isl proves where values come from. What is kept is the typed
kernel that came out, as a pickle. It is trusted as the libraries beside it are: no other user may write into
the cache.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
from typing import TYPE_CHECKING, Any

from ...core.errors import CacheError
from .. import debug
from ..ir.grammar import Kernel
from .library import compiler_digest

if TYPE_CHECKING:
    from pathlib import Path


def derivation(what: str, kernel: Kernel, *arguments: Any, **options: Any) -> Any:
    """Return what a derivation makes of a typed kernel: kept by an earlier call or process, else made now.

    ``what`` is a name of :data:`polyop.loops.derive.forms.DERIVATIONS`; ``arguments`` and ``options`` are
    those of its function. A result that is a fallback, with its warning, is not kept. Raises what the
    function raises.
    """
    from ...build import lookup
    from ...build.paths import cache_folder

    request = _request(what, kernel, arguments, options)
    kept = lookup.look_up(cache_folder(), lookup.identity_of(request), kind="other")
    if kept is not None:
        with open(kept.path, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            return pickle.load(file)  # noqa: S301 - see the docstring of the module
    from ..derive.forms import DERIVATIONS  # late: it imports the passes

    made = DERIVATIONS[what](kernel, *arguments, **options)
    if not any(note.kind == "fallback" for note in getattr(made, "notes", ())):
        with contextlib.suppress(CacheError):  # a cache that cannot be written: it is derived again next time
            _keep(request, kernel, made)
    return made


def _request(
    what: str, kernel: Kernel, arguments: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, Any]:
    from ...binary import hashes

    given = [sorted(value) if isinstance(value, frozenset) else value for value in arguments]
    return {
        "derivation": what,
        "loops": hashes.text_digest(repr((kernel, given, sorted(options.items())))),
        "passes": compiler_digest(),
        "skipped": debug.skipped_passes(),
        "python": sys.version_info[:2],
    }


def _keep(request: Any, kernel: Kernel, made: Any) -> None:
    from ...build.cache import BuildOutput, Cache

    def write(work: Path) -> BuildOutput:
        file = work / "derived.pickle"
        file.write_bytes(pickle.dumps(made))
        return BuildOutput(file, [])

    Cache().get(request, [kernel.file], write, kind="other")
