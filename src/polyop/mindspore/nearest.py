"""The answer to a name that is not here: what this layer is, and the nearest name that it has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def missing(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """Return the error for ``module.name``.

    >>> print(missing("polyop.mindspore.ops", "Sigmoids", ["Sigmoid", "Mul"]))
    module 'polyop.mindspore.ops' has no attribute 'Sigmoids': this layer has what \
custom-operator programs use; the nearest is 'Sigmoid'
    """
    # a capital tells a primitive from a function: look without regard to it, and prefer its like
    likes = sorted(names, key=lambda known: known[:1].isupper() == name[:1].isupper())
    by_lower = {known.lower(): known for known in likes if not known.startswith("_")}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3)
    nearest = " or ".join(repr(by_lower[c]) for c in close)
    text = f"module {module!r} has no attribute {name!r}: this layer has what custom-operator programs use"
    return AttributeError(f"{text}; the nearest is {nearest}" if close else text)
