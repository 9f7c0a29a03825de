"""``mindspore.common.api``: ``jit`` under the path that some scripts import."""

from ..capture import jit

__all__ = ["jit"]
