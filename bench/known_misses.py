"""The rows that miss their bar, and why.

The values come from bench/results/cpu.json; those of gradients were measured beside other
work. Add a row only with a reason, and remove it when the bench prints
that its bar is no longer missed.
"""

from __future__ import annotations

from bars import KnownMiss

ROOF = "the roof measured in this run"
BEST = "the best of PyTorch and JAX"
TORCH = "PyTorch's own"

KNOWN_MISSES = (
    KnownMiss(
        "gradients: flash attention, avx2",
        BEST,
        1.4,
        "five products of matrices with vectors of half the length; the peer uses the machine's best vectors",
    ),
    KnownMiss(
        "gradients: flash attention, compile cold",
        "",
        1.5,
        "the gradient has five register tiles, each printed for several shapes of its edges",
    ),
    KnownMiss(
        "gradients: max pool, compile cold",
        "",
        1.43,
        "the row compiles the gradient that searches the place of each maximum; measured beside other work",
    ),
    KnownMiss(
        "gradients: conv2d, avx2",
        BEST,
        1.16,
        "of register tiles of 4 by 3, 4 by 2 and 6 by 2 vectors none reaches it; measured beside other work",
    ),
    KnownMiss(
        "gradients: conv2d into its result, avx2",
        BEST,
        1.19,
        "as the convolution with a scalar",
    ),
    KnownMiss(
        "gradients: conv2d into its result, forward + backward, avx2",
        TORCH,
        1.28,
        "as the convolution with a scalar",
    ),
    KnownMiss(
        "gradients: attention scores, avx2",
        BEST,
        1.08,
        "a register tile of 6 by 2 took a fifth less than 4 by 3; what is left has not been found",
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
        1.24,
        "the same cause as in the row with avx512",
    ),
    KnownMiss(
        "loops: arc_distance, bound",
        ROOF,
        2.12,
        "the roof counts bytes; four sines and cosines, an arc tangent and two square roots per element "
        "take longer",
    ),
    KnownMiss(
        "loops: softmax, bound",
        ROOF,
        1.47,
        "the roof counts each number read and written once; the exponential takes time too",
    ),
    KnownMiss(
        "loops: jacobi_2d, bound",
        ROOF,
        2.38,
        "the roof counts each number once per step; a point is read five times, and each step ends when "
        "all threads have ended it",
    ),
    KnownMiss(
        "loops: fdtd_2d, bound",
        ROOF,
        1.77,
        "the roof counts each field twice per step; the updates of a step read neighbours of each other, "
        "so that threads wait between them",
    ),
    KnownMiss(
        "loops: hdiff, bound",
        ROOF,
        1.38,
        "the roof counts the field, the coefficient and the result; the Laplacian and the fluxes between "
        "them are not free",
    ),
    KnownMiss(
        "loops: vadv, bound",
        ROOF,
        1.39,
        "the roof counts bytes; the elimination divides at each level and waits for the level below",
    ),
    KnownMiss(
        "loops: vadv, compile cold",
        "",
        0.604,
        "a long kernel: about half of the time is the passes', the other half the C compiler's",
    ),
    KnownMiss(
        "loops: syrk, compile cold",
        "",
        0.515,
        "three per cent above the bar; most of the time is the C compiler's",
    ),
    KnownMiss(
        "loops: heat_3d, compile cold",
        "",
        0.517,
        "three per cent above the bar; about half of the time is the passes', half the C compiler's",
    ),
    KnownMiss(
        "MindSpore PyNative call, 4 elements",
        "MindSpore's ops.Custom, aot",
        0.132,
        "a call takes 2 us, and MindSpore's asnumpy, timed with both, 5 more; the peer takes 47 to 83 us",
    ),
    KnownMiss(
        "module forward + backward, 4 elements",
        "the same as a C++ torch::autograd::Function",
        1.26,
        "the node is one of Python's: an autograd.Function in Python with the same product takes as long. "
        "Forward takes 2 us more than the peer, backward 3, freeing the node 2",
    ),
    KnownMiss(
        "torch call with DTensors, 16x8 by 8x8",
        "torch.mm of the same DTensors",
        1.82,
        "PyTorch divides calls of its own operators in C++; ours are divided in Python, some 7 us more",
    ),
)
