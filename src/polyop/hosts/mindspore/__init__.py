"""MindSpore's tensors: PyNative calls on their memory, gradients, and graphs through its aot launch."""

from .host import HOST

__all__ = ["HOST"]
