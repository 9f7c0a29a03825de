"""The 30 kernels of PolyBench/C 4.2.1 as loop kernels."""

from . import blas2, blas3, medley, mining, solvers, stencils, sweeps

PROGRAMS = {
    program.name: program
    for family in (blas3, blas2, mining, solvers, stencils, sweeps, medley)
    for program in family.PROGRAMS
}
