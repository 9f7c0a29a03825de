"""From C, C++ and CUDA sources to a shared library in a content-addressed cache."""

from .compile import build
from .options import BuildOptions

__all__ = ["BuildOptions", "build"]
