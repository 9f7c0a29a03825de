"""PyTorch tensors: ``torch.ops``, autograd, functorch, the compiler, and the guarded fast call."""

from .host import HOST

__all__ = ["HOST"]
