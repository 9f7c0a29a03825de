"""Kernels whose derived gradients are measured, and what they are measured beside."""

from . import dense, rowwise, sweeps

PROGRAMS = {program.name: program for family in (sweeps, rowwise, dense) for program in family.PROGRAMS}
