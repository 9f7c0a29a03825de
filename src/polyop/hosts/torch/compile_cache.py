"""A program that PyTorch keeps on disk is found again only while its operators have the same definitions.

``torch.compile`` keys its caches by the text of a graph. That text has an operator's name, and neither its
shapes nor its gradient, which the kept program has: after an edit of the gradient rule it would compute the
old gradient. So the key gets a digest of the definitions, by PyTorch's own setting for this:
``torch.compiler.config.cache_key_tag`` (an author's tag stays in front of it).
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import torch

from ...call import content

if TYPE_CHECKING:
    from ...call.bound import BoundOperator


class Definitions:
    """The digests of the operators in ``torch.ops``, by name, and the tag made of them."""

    def __init__(self) -> None:
        """Start without operators."""
        self._digests: dict[str, str] = {}
        self._authors = self._tag = ""

    def note(self, bound: BoundOperator) -> None:
        """Add an operator, or its new definition."""
        try:
            self._digests[bound.name] = content.definition_digest(bound.operator)
        except Exception:  # noqa: BLE001 - an object of a rule may raise anything when it is looked at
            self._digests[bound.name] = os.urandom(8).hex()  # nothing kept is found, which is right
        self._set_tag()

    def forget(self, bound: BoundOperator) -> None:
        """Remove an operator that has left ``torch.ops``."""
        if self._digests.pop(bound.name, None) is not None:
            self._set_tag()

    def _set_tag(self) -> None:
        settings: Any = getattr(torch.compiler, "config", None)
        if not hasattr(settings, "cache_key_tag"):  # an older PyTorch
            return
        if settings.cache_key_tag != self._tag:
            self._authors = settings.cache_key_tag
        whole = hashlib.sha256(repr(sorted(self._digests.items())).encode()).hexdigest()[:16]
        settings.cache_key_tag = self._tag = f"{self._authors} polyop {whole}".strip()


definitions = Definitions()
