"""Calls with NumPy arrays, beside a ufunc of NumPy."""

import numpy as np
from kernels import LARGE_STRIDED, leaky, loop_leaky, loop_leaky_rows, scaled
from measure import Row, Timed, beside


def rows() -> list[Row]:
    ours, wide = leaky(), np.ones((1000, 2000), np.float32)
    x, large, every_other = np.ones(4, np.float32), np.ones(1000, np.float32), np.ones(8, np.float32)[::2]

    def call(f: object, x: object, statement: str) -> Timed:
        return Timed(statement, {"f": f, "x": x})

    def add(x: object) -> Timed:
        return call(np.add, x, "f(x, x)")

    return [
        Row("NumPy call, 4 elements", "np.add(x, x)", 1.0, beside(call(ours, x, "f(x)"), add(x))),
        Row("NumPy call, 1000 elements", "np.add(x, x)", None, beside(call(ours, large, "f(x)"), add(large))),
        Row(
            "NumPy call, one float attribute",
            "np.add(x, x)",
            None,
            beside(call(scaled(), x, "f(x, 0.5)"), add(x)),
        ),
        *[
            Row(
                f"NumPy call of a {kind} kernel, not contiguous",
                "np.add(x, x)",
                4.0,
                beside(call(f, every_other, "f(x)"), add(every_other)),
            )
            for kind, f in (("C", ours), ("loop", loop_leaky()))
        ],
        *[
            Row(
                f"NumPy call of a loop kernel, {layout}, a million elements",
                "np.add(x, x)",
                4.0,
                beside(call(loop_leaky_rows(), part(wide), "f(x)"), add(part(wide))),
            )
            for layout, part in LARGE_STRIDED.items()
        ],
    ]
