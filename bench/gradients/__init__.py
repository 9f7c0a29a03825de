"""Kernels whose derived gradients are measured, with the same computation in PyTorch and JAX."""

from . import dense, rowwise, sweeps

PROGRAMS = {program.name: program for family in (sweeps, rowwise, dense) for program in family.PROGRAMS}
