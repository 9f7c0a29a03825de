"""``torch.compile``: polyop's errors reach the caller, and programs on disk are for the same definitions.

PyTorch's compiler hides an exception of another class within one of its own, behind its own text.
So an error that is made while it works is of a subclass of polyop's class and of PyTorch's.

``torch.compile`` keys its caches by the text of a graph. That text has an operator's name, and neither its
shapes nor its gradient, which the kept program has: after an edit of the gradient rule it would compute the
old gradient. So the key gets a digest of the definitions, by PyTorch's own setting for this:
``torch.compiler.config.cache_key_tag`` (an author's tag stays in front of it).
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

import torch

from ...binary.hashes import text_digest
from ...call import pickled
from ...core.errors import PolyopError

if TYPE_CHECKING:
    from ...call.bound import BoundOperator


def adapt(problem: PolyopError) -> None:
    """Make an error one that PyTorch's compiler lets through, where it is at work."""
    if torch._guards.CompileContext.try_get() is None:
        return
    fields: Any = problem
    kind: Any = type(problem)
    fields.__class__ = _class(kind)
    fields.msg = str(problem)
    fields.real_stack = torch._guards.TracingContext.extract_stack()
    fields.category, fields.gb_type = "polyop", ""
    fields.skip_frame = fields.logged = False
    fields.first_useful_frame = fields.frame_exec_strategy = fields._torch_dynamo_tracer_output = None


@functools.cache
def _class(kind: Any) -> type[PolyopError]:
    """Return a class for what is raised in tracing (Unsupported) and in the backend (ShortenTraceback)."""
    own = torch._dynamo.exc
    body = {"__module__": kind.__module__, "__doc__": kind.__doc__, "remove_from_stats": lambda self: None}
    return type(kind.__name__, (kind, own.Unsupported, own.ShortenTraceback), body)


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
