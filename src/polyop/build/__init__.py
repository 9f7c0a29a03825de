"""Build C, C++ and CUDA sources into shared libraries in a content-addressed cache."""

from .compile import build
from .options import BuildOptions

__all__ = ["BuildOptions", "build"]
