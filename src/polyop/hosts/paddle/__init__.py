"""The host of Paddle, imported only when Paddle is."""

from .host import HOST

__all__ = ["HOST"]
