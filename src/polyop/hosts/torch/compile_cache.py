"""A program that PyTorch keeps on disk is found again only while its operators have the same definitions.

``torch.compile`` keys its caches by the text of a graph. That text has an operator's name, and neither its
shapes nor its gradient, which the kept program has: after an edit of the gradient rule it would compute the
old gradient. So the key gets a digest of the definitions, by PyTorch's own setting for this:
``torch.compiler.config.cache_key_tag`` (an author's tag stays in front of it).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch

from ...binary.hashes import text_digest
from ...call import pickled

if TYPE_CHECKING:
    from ...call.bound import BoundOperator


class Definitions:
    """The digests of the operators in ``torch.ops``, by name, and the tag made of them."""

    def __init__(self) -> None:
        """Start without operators."""
        self._digests: dict[str, int] = {}
        self._authors = self._tag = ""
        self._all = 0  # of all digests, in any order

    def note(self, bound: BoundOperator) -> None:
        """Add an operator, or its new definition."""
        try:
            digest = pickled.definition_digest(bound.operator)
        except Exception:  # noqa: BLE001 - an object of a rule may raise anything when it is looked at
            digest = os.urandom(8).hex()  # nothing kept is found, which is right
        self._put(bound.name, int(text_digest(f"{bound.name} {digest}")[:16], 16))

    def forget(self, bound: BoundOperator) -> None:
        """Remove an operator that has left ``torch.ops``."""
        if bound.name in self._digests:
            self._put(bound.name, 0)

    def _put(self, name: str, digest: int) -> None:
        self._all ^= self._digests.get(name, 0) ^ digest
        self._digests[name] = digest
        settings: Any = getattr(torch.compiler, "config", None)
        if not hasattr(settings, "cache_key_tag"):  # an older PyTorch
            return
        if settings.cache_key_tag != self._tag:
            self._authors = settings.cache_key_tag
        settings.cache_key_tag = self._tag = f"{self._authors} polyop {self._all:016x}".strip()


definitions = Definitions()
