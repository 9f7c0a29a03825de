"""The hint ``did you mean 'x'?`` of an error about an unknown name."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> str | None:
    """Return the question that names the nearest of the known names, at most ``most``; None if none is near.

    >>> did_you_mean("flaot32", ["float32", "int8"])
    "did you mean 'float32'?"
    >>> did_you_mean("q", ["float32", "int8"])
    """
    import difflib

    near = difflib.get_close_matches(name, list(known), most, cutoff)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else None
