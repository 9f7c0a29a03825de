"""Kernels with peers and bounds: fifteen of NPBench at medium sizes, and layers of networks."""

from . import dense, norms, pointwise, scans, stencils, vectors

ROWS = {
    row.name: row for family in (pointwise, norms, vectors, dense, stencils, scans) for row in family.ROWS
}
