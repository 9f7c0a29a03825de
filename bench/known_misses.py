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
BLAS = "NumPy's OpenBLAS"
AKG = "MindSpore's AKG"
OPEN = "its cause is not found; no earlier run, on other machines, missed it"
NARROW = "as with AVX-512, with vectors of half the length"

KNOWN_MISSES = (
    KnownMiss(
        "gradients: gelu with bias, avx2",
        BEST,
        1.87,
        "erf and its derivative took an exponential each; since this run they share one, and this "
        "row alone gave 0.72",
    ),
    KnownMiss(
        "gradients: conv2d, avx2",
        BEST,
        1.12,
        "of register tiles of 4 by 3, 4 by 2 and 6 by 2 vectors none reaches it",
    ),
    KnownMiss(
        "gradients: flash attention, avx2",
        BEST,
        1.25,
        "its cause is not found; listed with 1.4 before, beside a peer with AVX-512",
    ),
    KnownMiss(
        "gradients: clamped border, avx2",
        BEST,
        1.57,
        OPEN,
    ),
    KnownMiss(
        "gradients: clamped border, forward + backward, avx2",
        TORCH,
        1.41,
        "as the gradient alone, in the row above",
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
        1.48,
        "a copy of the gradient was cleared and added for each thread; since this run the first "
        "thread has none, "
        "and this row alone gave 1.31",
    ),
    KnownMiss(
        "gradients: embedding, forward + backward, avx2",
        TORCH,
        1.35,
        "as the gradient alone, in the row above; since this run 1.06",
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
        7.62,
        NARROW,
    ),
    KnownMiss(
        "loops: bias_gelu, avx2",
        PEERS,
        1.43,
        "tanh took a polynomial beside its exponential; since this run 1 + tanh takes none, and "
        "this row alone gave 1.34",
    ),
    KnownMiss(
        "loops: bias_gelu, bound, avx2",
        ROOF,
        3.33,
        "the roof counts bytes; the exponential takes longer; since this run 2.13",
    ),
    KnownMiss(
        "loops: transpose, bound, avx2",
        ROOF,
        2.2,
        "the roof is that of a copy in order; a transpose goes through registers, and its stores "
        "come to a line in parts",
    ),
    KnownMiss(
        "loops: permute_0213, bound, avx2",
        ROOF,
        1.63,
        "the roof is that of one long copy; the rows that move are short",
    ),
    KnownMiss(
        "loops: softmax, avx2",
        PEERS,
        1.15,
        OPEN,
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
        4.03,
        NARROW,
    ),
    KnownMiss(
        "loops: matmul_float32, avx2",
        PEERS,
        1.05,
        "the left operand is not packed, and the sums are not blocked along k, so that they keep their order",
    ),
    KnownMiss(
        "loops: matmul_float64, avx2",
        PEERS,
        1.08,
        "as the product of float32 matrices above",
    ),
    KnownMiss(
        "loops: doitgen, avx2",
        PEERS,
        1.07,
        "as the product of matrices of this dtype",
    ),
    KnownMiss(
        "loops: covariance, avx2",
        PEERS,
        2.98,
        "the left operand was read down its columns, a page of memory per step; since this run it is packed, "
        "and this row alone gave 1.09",
    ),
    KnownMiss(
        "loops: covariance, contraction, avx2",
        BLAS,
        2.92,
        "as beside the best of the peers, which is OpenBLAS; since this run 1.13",
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
        2.59,
        NARROW,
    ),
    KnownMiss(
        "loops: heat_3d, avx2",
        PEERS,
        1.27,
        OPEN,
    ),
    KnownMiss(
        "loops: fdtd_2d, avx2",
        PEERS,
        1.12,
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
        2.03,
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
        2.25,
        NARROW,
    ),
    KnownMiss(
        "loops: vadv, avx2",
        PEERS,
        1.57,
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
        3.16,
        NARROW,
    ),
    KnownMiss(
        "loops: softmax, compile warm",
        "",
        0.0562,
        "the text of the kernel is parsed and checked again in each process; since this run the "
        "checks take less, "
        "and this row alone gave 0.040",
    ),
    KnownMiss(
        "C kernel, from the cache, first of a process",
        "-",
        0.0224,
        "the first kernel imports 33 modules of polyop, which take most of the time",
    ),
    KnownMiss(
        "loops: bias_gelu, MindSpore graph",
        AKG,
        1.46,
        "as the row beside torch.compile, its cause is not found",
    ),
    KnownMiss(
        "loops: permute_0213, MindSpore graph",
        AKG,
        1.12,
        "its cause is not found on this machine yet",
    ),
    KnownMiss(
        "MindSpore PyNative call, 4 elements",
        "MindSpore's ops.Custom, aot",
        0.164,
        "three quarters are MindSpore's from_numpy, which makes the result, and asnumpy, timed with both: "
        "they alone would give 0.12",
    ),
    KnownMiss(
        "torch backward of a C kernel",
        "ATen's leaky_relu",
        1.14,
        "its cause is not found on this machine yet",
    ),
    KnownMiss(
        "torch call with DTensors, 16x8 by 8x8",
        "torch.mm of the same DTensors",
        1.82,
        "PyTorch divides calls of its own operators in C++; ours are divided in Python, some 7 us more",
    ),
)
