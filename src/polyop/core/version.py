"""polyop's version."""

from __future__ import annotations


def version() -> str:
    """Return the version of the installed package; "0+checkout" for a source tree that is not installed."""
    import importlib.metadata  # slow, and rarely needed

    try:
        return importlib.metadata.version("polyop")
    except importlib.metadata.PackageNotFoundError:
        return "0+checkout"
