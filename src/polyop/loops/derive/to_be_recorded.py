"""TBR analysis: which values of the forward the gradient reads ("to be recorded"), and where they come from.

The kernel does not change; the result is :attr:`Derivation.recording`.
"""

from __future__ import annotations

from .derivation import Derivation
from .recording import Recording


def to_be_recorded(derivation: Derivation) -> Derivation:
    """Return the derivation with its recording; nothing is done where this kernel has one already."""
    if derivation.recording is not None:
        return derivation
    recording = Recording(
        derivation.kernel,
        derivation.session,
        dict(derivation.owners),
        derivation.inputs,
        derivation.outputs,
    )
    return derivation.with_(recording=recording)
