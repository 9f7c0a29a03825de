"""The host of PyOpenCL's arrays, imported only when PyOpenCL is."""

from .host import HOST

__all__ = ["HOST"]
