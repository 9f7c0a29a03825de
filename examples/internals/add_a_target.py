"""Add a target, an instruction set that kernels are compiled for: x86-64 with SSE 4.2."""

# ruff: noqa: F821 - the words of loop kernels

import platform

import numpy as np

import polyop
from polyop.loops.emit.printer import source
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule
from polyop.loops.targets.table import TARGETS, Target


# [kernel]
def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


program = schedule(parse(matmul, [("float32", 2), ("float32", 2)], {}))
# [/kernel]

# [row]
SSE4 = Target(
    "sse4",
    "x86",
    features=("sse4.2",),  # what the processor must have, and clang's flag
    pragmas=("sse4.2",),  # gcc's pragma, in the printed C
    tile=(4, 2),  # a register tile of 4 rows x 2 vectors
)
TARGETS["sse4"] = SSE4
# [/row]

# [print]
text = source(program, "sse4", "loop_matmul")
print("\n".join(line for line in text.splitlines() if "sse4" in line))
# [/print]
assert text != source(program, "avx2", "loop_matmul")

if platform.machine() == "x86_64":
    # [run]
    compiled = polyop.source(
        code=text, language="c", function="loop_matmul", flags=["-fno-math-errno", "-fwrapv"]
    )
    op = polyop.operator(
        "targets::matmul(Tensor a, Tensor b) -> Tensor",
        compiled,
        dims="i k, k j -> i j",
    )
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(op(a, a.T.copy()), a @ a.T)
    # [/run]
