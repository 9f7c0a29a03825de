"""Try every claim of ``dims=`` on real numbers: run slices alone, put them together, compare with the whole.

::

    whole     f([x0 x1 x2 x3])           = [y0 y1 y2 y3]
    slices    f([x0 x1]), f([x2 x3])     = [y0 y1], [y2 y3]      parallel: the same elements

``outcomes`` takes a case and any :class:`~polyop.core.dims.dims.Dims` of its operator, the author's or
derived ones. Smaller cases are parts of the sample, so their values are valid where the sample's are. They
are tried in the order of their sizes, and a claim that is false is reported with the smallest one.
"""

from .outcome import Outcome, outcomes

__all__ = ["Outcome", "outcomes"]
