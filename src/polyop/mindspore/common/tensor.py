"""``mindspore.common.tensor``: another name for what ``mindspore`` has."""

from ..tensor import Tensor, is_tensor, tensor

__all__ = ["Tensor", "is_tensor", "tensor"]
