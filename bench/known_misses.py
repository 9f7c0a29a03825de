"""The rows that miss their bar, and why.

The values of rows that end in ", avx2" come from bench/results/cpu.json, a machine with AVX2 only; the others
are of an earlier run on a machine with AVX-512. Add a row only with a reason, and remove it when the bench
prints that its bar is no longer missed.
"""

from __future__ import annotations

from bars import KnownMiss

ROOF = "the roof measured in this run"
BEST = "the best of PyTorch and JAX"
TORCH = "PyTorch's own"
PEERS = "the best of NumPy, Numba, torch.compile"
OPEN = "its cause is not found; no earlier run, on other machines, missed it"
NARROW = "as with AVX-512, with vectors of half the length"

KNOWN_MISSES = (
    *(
        KnownMiss(
            f"PyOpenCL call of {kind}",
            "called by hand",
            value,
            "Python between arguments and launch: such calls have no native path, as those on the CPU have",
        )
        for kind, value in (("a loop kernel", 2.58), ("an OpenCL kernel", 4.69))
    ),
    KnownMiss(
        "gradients: flash attention, compile cold",
        "",
        4.46,
        "blocks, and the loop for rows too long for one, are both compiled: two texts of 64 kB, side by side",
    ),
    KnownMiss(
        "gradients: conv2d, avx2",
        BEST,
        1.35,
        "of register tiles of 4 by 3, 4 by 2 and 6 by 2 vectors none reaches it; since this run rows' "
        "ends take less, and this row alone gave 1.07",
    ),
    KnownMiss(
        "gradients: flash attention, avx2",
        BEST,
        1.67,
        "its cause is not found; 1.25 in the run before, where the peer took longer",
    ),
    KnownMiss(
        "gradients: embedding",
        BEST,
        1.2,
        "zeros are stored first, then the rows are added in order, each thread those of its own part",
    ),
    KnownMiss(
        "gradients: embedding, avx2",
        BEST,
        1.17,
        "each thread but the first adds to a copy of the gradient, which is cleared before and added after",
    ),
    KnownMiss(
        "loops: arc_distance, bound",
        ROOF,
        2.12,
        "the roof counts bytes; four sines and cosines, an arc tangent and two square roots per "
        "element take longer",
    ),
    KnownMiss(
        "loops: arc_distance, bound, avx2",
        ROOF,
        4.45,
        NARROW,
    ),
    KnownMiss(
        "loops: bias_gelu, avx2",
        PEERS,
        1.21,
        "its cause is not found on this machine yet",
    ),
    KnownMiss(
        "loops: bias_gelu, bound, avx2",
        ROOF,
        2.17,
        "the roof counts bytes; the exponential takes longer",
    ),
    KnownMiss(
        "loops: transpose, bound, avx2",
        ROOF,
        4.6,
        "the roof is that of a copy in order; a transpose goes through registers, and its stores "
        "come to a line in parts",
    ),
    KnownMiss(
        "loops: permute_0213, bound, avx2",
        ROOF,
        1.57,
        "the roof is that of one long copy; the rows that move are short",
    ),
    KnownMiss(
        "loops: softmax, bound",
        ROOF,
        1.47,
        "the roof counts each number read and written once; the exponential takes time too",
    ),
    KnownMiss(
        "loops: softmax, bound, avx2",
        ROOF,
        2.68,
        NARROW,
    ),
    KnownMiss(
        "loops: matmul_float64, avx2",
        PEERS,
        1.08,
        "measured before sums ran in blocks; the left operand is not packed",
    ),
    KnownMiss(
        "loops: doitgen, avx2",
        PEERS,
        1.13,
        "as the product of matrices of this dtype",
    ),
    KnownMiss(
        "loops: jacobi_2d, bound",
        ROOF,
        2.38,
        "the roof counts each number once per step; a point is read five times, and each step ends "
        "when all threads have ended it",
    ),
    KnownMiss(
        "loops: jacobi_2d, bound, avx2",
        ROOF,
        2.39,
        NARROW,
    ),
    KnownMiss(
        "loops: heat_3d, avx2",
        PEERS,
        2.62,
        "each load of a row's end waited for pieces put together in memory; since this run a "
        "mask loads them, and this row alone gave 0.99",
    ),
    KnownMiss(
        "loops: fdtd_2d, avx2",
        PEERS,
        1.26,
        OPEN,
    ),
    KnownMiss(
        "loops: fdtd_2d, bound",
        ROOF,
        1.77,
        "the roof counts each field twice per step; the updates of a step read neighbours of each "
        "other, so that threads wait between them",
    ),
    KnownMiss(
        "loops: fdtd_2d, bound, avx2",
        ROOF,
        2.01,
        NARROW,
    ),
    KnownMiss(
        "loops: hdiff, bound",
        ROOF,
        1.38,
        "the roof counts the field, the coefficient and the result; the Laplacian and the fluxes "
        "between them are not free",
    ),
    KnownMiss(
        "loops: hdiff, bound, avx2",
        ROOF,
        1.78,
        NARROW,
    ),
    KnownMiss(
        "loops: vadv, avx2",
        PEERS,
        1.26,
        OPEN,
    ),
    KnownMiss(
        "loops: vadv, bound",
        ROOF,
        1.39,
        "the roof counts bytes; the elimination divides at each level and waits for the level below",
    ),
    KnownMiss(
        "loops: vadv, bound, avx2",
        ROOF,
        3.68,
        NARROW,
    ),
    KnownMiss(
        "loops: softmax, compile warm",
        "",
        0.0276,
        "the text of the kernel is parsed and checked again in each process",
    ),
    KnownMiss(
        "C kernel, from the cache, first of a process",
        "-",
        0.0297,
        "the first kernel imports 33 modules of polyop, which take most of the time",
    ),
    KnownMiss(
        "torch call with DTensors, 16x8 by 8x8",
        "torch.mm of the same DTensors",
        1.98,
        "PyTorch divides calls of its own operators in C++; ours are divided in Python, some 7 us more",
    ),
    KnownMiss(
        "gradients: attention scores, avx2",
        BEST,
        1.15,
        "its cause is not found; 0.85 in the run before, where the peer took longer",
    ),
    KnownMiss(
        "gradients: conv2d into its result, avx2",
        BEST,
        1.41,
        "as conv2d above, whose loops it has; since this run 1.15",
    ),
    KnownMiss(
        "gradients: conv2d into its result, forward + backward, avx2",
        TORCH,
        1.54,
        "as the gradient alone, in the row above; since this run 1.38",
    ),
    KnownMiss(
        "loops: gather, bound, avx2",
        ROOF,
        1.66,
        "the roof counts each row once and in order; the rows are read as the index says",
    ),
    KnownMiss(
        "loops: atax, bound, avx2",
        ROOF,
        1.73,
        "its cause is not found; 1.2 in the run before, with the same code",
    ),
    KnownMiss(
        "loops: gesummv, bound, avx2",
        ROOF,
        2.2,
        "its cause is not found; 0.92 in the run before, with the same code; the roof's own "
        "traffic was 1.25 x as fast now",
    ),
    KnownMiss(
        "loops: column_sums, bound, avx2",
        ROOF,
        1.3,
        "1.01 in the run before, in the same time; the roof's own traffic was 1.25 x as fast now",
    ),
    KnownMiss(
        "loops: jacobi_2d, avx2",
        PEERS,
        1.02,
        "its cause is not found on this machine yet",
    ),
)
