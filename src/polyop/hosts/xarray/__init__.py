"""Arrays of xarray: the dimensions of ``dims=`` are matched to theirs by name, then by position."""

from .host import HOST

__all__ = ["HOST"]
