"""The forward kernel that also returns temporaries, which its gradient then need not compute again."""

from __future__ import annotations

from ..analysis.session import IslSession
from ..ir.grammar import Kernel
from ..runner import Watch, run_passes
from .adjoint import start
from .derivation import Derivation
from .pipelines import SAVING
from .proved import proved


def saving(
    kernel: Kernel, tape: str, left: frozenset[str] = frozenset(), watch: Watch | None = None
) -> Kernel | None:
    """Return a typed kernel with further outputs, of what its gradient reads; None where there are none.

    ``tape``: "all" of what would be computed again, or "auto": what is of fewer dimensions than an input is.
    ``left`` are temporaries that are not returned in any case.
    """
    begin = start(kernel).with_(tape=tape, not_saved=left)

    def derived(session: IslSession) -> Derivation:
        return run_passes(begin.with_(session=session), SAVING, watch, is_derivation=True)

    derivation, _ = proved(kernel, "gradient", derived)
    return derivation.kernel if derivation.saved else None
