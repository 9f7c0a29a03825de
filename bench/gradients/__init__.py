"""Kernels whose derived gradients are measured, with the same computation in PyTorch and JAX."""

from . import dense, networks, rowwise, sweeps

PROGRAMS = {
    program.name: program for family in (sweeps, rowwise, dense, networks) for program in family.PROGRAMS
}
