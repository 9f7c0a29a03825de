"""Kernels with peers and bounds: fifteen of NPBench at medium sizes, and layers of networks."""

from . import dense, norms, permutes, pointwise, scans, stencils, vectors

ROWS = {
    row.name: row
    for family in (pointwise, permutes, norms, vectors, dense, stencils, scans)
    for row in family.ROWS
}
