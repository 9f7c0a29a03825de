"""``mindspore.common.tensor``: ``Tensor`` under the path that some scripts import."""

from ..tensor import Tensor, is_tensor, tensor

__all__ = ["Tensor", "is_tensor", "tensor"]
