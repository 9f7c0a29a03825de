"""``mindspore.common.api``: another name for what ``mindspore`` has."""

from ..capture import jit

__all__ = ["jit"]
