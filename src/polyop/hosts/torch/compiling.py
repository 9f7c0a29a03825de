"""``torch.compile``: polyop's errors stay visible, and programs from its caches match the definitions.

Dynamo wraps exceptions of other classes in its own. So an error that is raised while it traces gets a class
derived from polyop's and from Dynamo's.

``torch.compile`` keys its caches by the text of a graph. That text names an operator, without its shapes or
its gradient. The cached program has both, so after an edit of a rule it would compute the old gradient. So
the key gets a digest of the definitions, by PyTorch's own setting for this:
``torch.compiler.config.cache_key_tag`` (an author's tag stays in front of it).
"""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING, Any

import torch

from ...binary.hashes import text_digest
from ...call import pickled
from ...core.errors import PolyopError

if TYPE_CHECKING:
    from ...call.bound import BoundOperator


def adapt(problem: PolyopError) -> None:
    """While PyTorch compiles, change the class of an error so that Dynamo passes it through."""
    if torch._guards.CompileContext.try_get() is None:
        return
    fields: Any = problem
    kind: Any = type(problem)
    fields.__class__ = _class_for_dynamo(kind)
    fields.msg = str(problem)
    fields.real_stack = torch._guards.TracingContext.extract_stack()
    fields.category, fields.gb_type = "polyop", ""
    fields.skip_frame = fields.logged = False
    fields.first_useful_frame = fields.frame_exec_strategy = fields._torch_dynamo_tracer_output = None


@functools.cache
def _class_for_dynamo(kind: Any) -> type[PolyopError]:
    """Return a class that Dynamo passes on in tracing (Unsupported) and in the backend (ShortenTraceback)."""
    dynamo = torch._dynamo.exc
    body = {"__module__": kind.__module__, "__doc__": kind.__doc__, "remove_from_stats": lambda self: None}
    return type(kind.__name__, (kind, dynamo.Unsupported, dynamo.ShortenTraceback), body)


class Definitions:
    """The digests of the operators in ``torch.ops``, by name, and the tag made of them."""

    def __init__(self) -> None:
        """Start without operators."""
        self._digests: dict[str, int] = {}
        self._of_all = 0  # the digests combined by exclusive or, so that their order does not matter

    def note(self, bound: BoundOperator) -> None:
        """Add an operator, or its new definition."""
        try:
            digest = pickled.definition_digest(bound.operator)
        except Exception:  # noqa: BLE001 - an object of a rule may raise anything when it is looked at
            digest = os.urandom(8).hex()  # no program on disk matches it
        self._put(bound.name, int(text_digest(f"{bound.name} {digest}")[:16], 16))

    def forget(self, bound: BoundOperator) -> None:
        """Remove an operator that has left ``torch.ops``."""
        if bound.name in self._digests:
            self._put(bound.name, 0)

    def tag(self) -> None:
        """Put the digest behind an author's tag. Tracing does it too: an author may set a tag at any time."""
        settings: Any = getattr(torch.compiler, "config", None)
        if hasattr(settings, "cache_key_tag"):  # an older PyTorch has no such setting
            authors = _OURS.sub("", settings.cache_key_tag)
            tag = f"{authors} polyop {self._of_all:016x}".strip()
            if tag != settings.cache_key_tag:
                settings.cache_key_tag = tag

    def _put(self, name: str, digest: int) -> None:
        self._of_all ^= self._digests.pop(name, 0) ^ digest
        if digest:
            self._digests[name] = digest
        self.tag()


_OURS = re.compile(r" ?\bpolyop [0-9a-f]{16}$")
definitions = Definitions()
"""What torch.compile keeps on disk is found again by the same definitions, and not after an edit."""
