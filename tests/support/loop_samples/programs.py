"""Loop kernels of every kind that the compiler treats differently, with their inputs.

Inputs are small whole numbers, so that sums in any order are the same to the last bit; a program
with functions of floats says how far results may differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from loop_samples import convolutions, dense, elements, everyday, private, small, triangles
from polyop.loops.ir.schedule import NOTHING, Schedule

SMALL, RAGGED = (0, 1, 2, 3, 7, 8, 9), (17, 33, 65, 70, 130)


@dataclass(frozen=True, eq=False)
class Program:
    """A kernel and its tensors: "float32 n m, int64 n <m" has an index into an axis of size m.

    ``rough`` is the relative error that results may have, ``largest`` the largest number of elements of a
    tensor, and ``least`` the smallest size of an axis. With ``positive``, inputs are at least 0.5. ``steps``
    are an author's schedule, for the tests of passes.
    """

    function: Callable[..., Any]
    tensors: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    rough: float = 0.0
    largest: int = 2200
    positive: bool = False
    least: int = 0
    steps: Schedule = NOTHING

    @property
    def name(self) -> str:
        """The function's name and its first dtype."""
        return f"{self.function.__name__}-{self.tensors.split()[0]}"

    @property
    def rows(self) -> list[tuple[str, list[str], str]]:
        """Each tensor's dtype, axes, and the size that its elements are below if they are indices, else ""."""
        rows = []
        for text in self.tensors.split(","):
            dtype, *axes = text.split()
            below = next((axis[1:] for axis in axes if axis.startswith("<")), "")
            rows.append((dtype, [axis for axis in axes if not axis.startswith("<")], below))
        return rows

    def sizes(self) -> list[dict[str, int]]:
        """Return all sizes to try: equal ones, different ones, and ragged ones that are not too much work."""
        axes = [axis for _, own, below in self.rows for axis in (*own, below)]
        symbols = list(dict.fromkeys(axis for axis in axes if axis and not axis.isdigit()))
        all_sizes = [dict.fromkeys(symbols, size) for size in SMALL]
        if len(symbols) > 1:
            all_sizes += [
                {s: (5, 1, 9, 3)[(k + shift) % 4] for k, s in enumerate(symbols)} for shift in range(4)
            ]
        for turn, size in enumerate(RAGGED):
            sizes = {
                s: (size, 6, 19)[(k + turn) % 3 if len(symbols) > 1 else 0] for k, s in enumerate(symbols)
            }
            if all(np.prod(self._shape(axes, sizes), dtype=int) <= self.largest for _, axes, _ in self.rows):
                all_sizes.append(sizes)
        return [sizes for sizes in all_sizes if min(sizes.values(), default=1) >= self.least]

    @staticmethod
    def _shape(axes: list[str], sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(int(a) if a.isdigit() else sizes[a] for a in axes)

    def arrays(self, sizes: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
        """Return inputs of these sizes."""
        random = np.random.default_rng([seed, *sizes.values()])
        inputs = []
        for dtype, axes, below in self.rows:
            kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
            shape = self._shape(axes, sizes)
            if below:
                inputs.append(random.integers(0, max(1, sizes[below]), shape).astype(kind))
            elif self.positive:
                inputs.append((random.integers(1, 9, shape) / 2).astype(kind))
            else:
                low = 0 if dtype.startswith("u") or dtype == "bool" else -3
                inputs.append(random.integers(low, 2 if dtype == "bool" else 4, shape).astype(kind))
        return inputs


MATMULS = (
    dense.matmul_ijk,
    dense.matmul_ikj,
    dense.matmul_jik,
    dense.matmul_jki,
    dense.matmul_kij,
    dense.matmul_kji,
)
TWO = {"alpha": 2.0, "beta": 3.0}
NUMBERS = ("bool", "int8", "int64", "uint8", "uint32", "float16", "bfloat16", "float32", "float64")

PROGRAMS = (
    Program(dense.matmul, "float32 n k, float32 k m", largest=700),
    *(Program(f, "float32 n k, float32 k m", largest=700) for f in MATMULS),
    Program(dense.matmul_ijk, "float64 n k, float64 k m", largest=700),
    Program(dense.matmul_ijk, "int32 n k, int32 k m", largest=700),
    Program(dense.matmul_ikj, "bfloat16 n k, bfloat16 k m", rough=0.05, largest=700),
    Program(dense.matmul_ikj, "float8_e4m3fn n k, float8_e5m2 k m", largest=700),
    Program(dense.gemm_in_place, "float32 n k, float32 k m, float32 n m", TWO, largest=700),
    Program(dense.matmul_transposed, "float32 k n, float32 m k", largest=700),
    Program(dense.batched, "float32 b n k, float32 b k m", largest=300),
    Program(dense.matmul_relu_bias, "float32 n k, float32 k m, float32 m", largest=700),
    Program(dense.syrk, "float64 n k, float64 n n", TWO, largest=1200),
    Program(dense.past_the_last_row, "float64 k n", largest=1200),
    Program(dense.syr2k, "float32 n k, float32 n k, float32 n n", largest=1200),
    Program(dense.trmm, "float64 n n, float64 n m", largest=300),
    Program(dense.conv, "float32 n m, float32 3 2", least=3),
    Program(dense.channels, "float32 n m 3, float32 2 3 3 k", least=3),
    Program(dense.channels, "float64 n m 4, float64 2 2 3 k", least=2, largest=600),
    Program(dense.atax, "float32 n m, float32 m"),
    Program(dense.softmax, "float32 n m", rough=1e-5, least=1),
    Program(dense.softmax, "float64 n m", rough=1e-12, least=1),
    Program(dense.layernorm, "float32 n m, float32 m, float32 m", rough=1e-4, least=1),
    Program(dense.rms_norm, "float32 n m", rough=1e-5),
    Program(dense.rms_norm, "float16 n m", rough=0.01),
    Program(dense.row_reductions, "float32 n m", least=1),
    Program(dense.row_reductions, "int8 n m", least=1),
    Program(dense.row_reductions, "uint64 n m", least=1),
    Program(dense.column_reductions, "float32 n m"),
    Program(dense.column_reductions, "int16 n m"),
    *(Program(dense.whole_sum, f"{dtype} n") for dtype in NUMBERS),
    Program(dense.one_total, "float32 n m k"),
    Program(dense.two_operators, "float32 n m", largest=700),
    Program(dense.sums_beside_products, "int32 n m", largest=700),
    Program(dense.largest_beside_sums, "float64 n m", largest=700),
    Program(dense.same_element_once, "int16 n m", largest=300),
    Program(dense.argmax, "float32 n m", least=1),
    Program(dense.argmax, "int64 n m", least=1),
    Program(dense.count_true, "bool n"),
    Program(dense.any_all, "bool n m"),
    Program(dense.histogram, "int64 n <m, int32 m"),
    *(Program(elements.square, f"{dtype} n") for dtype in NUMBERS),
    Program(elements.leaky_relu, "float32 n"),
    Program(elements.leaky_relu, "int8 n"),
    Program(elements.nested_ifs, "float32 n m, bool m"),
    Program(elements.nested_ifs, "int64 n m, bool m"),
    Program(elements.guarded, "float32 n"),
    Program(elements.drawn, "float64 n m, uint32 2", rough=1e-5),
    Program(elements.guarded, "uint8 n"),
    Program(elements.clamped, "float32 n, float32 m"),
    Program(elements.clamped_at_one_end, "float64 n m"),
    Program(elements.clamped_image, "float32 n m"),
    Program(elements.clamped_by_data, "float32 n, int64 m"),
    Program(elements.shifted_under_if, "float32 n m"),
    Program(elements.diagonal, "float64 n n"),
    Program(elements.one_iteration, "float32 n", least=1),
    Program(elements.reverse, "float32 n"),
    Program(elements.every_other, "int32 n"),
    Program(elements.from_the_end, "float32 n m"),
    Program(elements.transposed, "bfloat16 n m"),
    Program(elements.transposed, "float8_e5m2 n m"),
    Program(elements.float8, "float8_e4m3fn n, float8_e5m2 n"),
    Program(elements.transposed, "float32 n m"),
    Program(elements.divisions, "int32 n, int32 n"),
    Program(elements.divisions, "float32 n, float32 n"),
    Program(elements.casts, "float32 n, int32 n"),
    Program(elements.functions, "float32 n", rough=2e-6, positive=True),
    Program(elements.functions, "float64 n", rough=1e-14, positive=True),
    Program(elements.further_functions, "float32 n", rough=2e-6, positive=True),
    Program(elements.further_functions, "float64 n", rough=1e-14, positive=True),
    Program(everyday.functions_of_numpy, "float32 n", rough=2e-6, positive=True),
    Program(everyday.functions_of_numpy, "float64 n", rough=1e-14, positive=True),
    Program(everyday.divisors, "int32 n, int32 n"),
    Program(everyday.divisors, "uint8 n, uint8 n"),
    Program(everyday.divisors, "int64 n, int64 n"),
    *(
        Program(elements.shifts, f"{dtype} n, {dtype} n")
        for dtype in ("int8", "int32", "int64", "uint8", "uint16", "uint64")
    ),
    Program(elements.whole_powers, "int32 n"),
    Program(elements.special, "float32 n"),
    Program(elements.attributes, "float32 n", {"n": 3, "by": 2.0, "flag": True}),
    Program(elements.never_runs, "float32 n", {"n": 0}),
    Program(elements.never_runs, "float32 n", {"n": 2}),
    Program(elements.indirect, "float32 n m, int32 k <n", least=1),
    Program(elements.scatter_add, "float32 n m, int64 n <n"),
    Program(elements.names, "float32 n, float32 n, float32 m, float32 n"),
    Program(elements.stencil, "float32 n m"),
    Program(elements.two_stencils, "float32 n m"),
    Program(elements.jacobi, "float64 n m, float64 n m", {"steps": 3}, rough=1e-12, largest=700),
    Program(elements.seidel, "int64 n m"),
    Program(elements.scan, "float64 n m, float64 m", rough=1e-12),
    Program(elements.fourth_power, "float64 n"),
    Program(elements.prefix_sum, "float32 n"),
    Program(elements.in_place_prefix, "int32 n"),
    Program(elements.thomas, "int64 n m, int64 n m"),
    Program(elements.row_temporary, "float32 n m"),
    Program(elements.up_and_down, "int64 n m", least=1),
    Program(elements.up_and_down, "int16 n m", least=1),
    Program(elements.wander, "float64 n m", least=1),
    Program(elements.wander, "int32 n m", least=1),
    *(
        Program(elements.there_and_back, f"{dtype} n m, {dtype} n m", least=1)
        for dtype in ("float32", "float64", "int64", "int16")
    ),
    Program(elements.four_columns, "float32 n m", least=1),
    Program(elements.four_columns, "float64 n m", least=1),
    *(
        Program(elements.columns_ahead, f"{dtype} n m, {dtype} n m", least=1)
        for dtype in ("float64", "uint32", "float32")
    ),
    Program(elements.one_after_another, "float32 n", rough=2e-6, positive=True),
    Program(elements.one_after_another, "float64 n", rough=1e-14, positive=True),
    Program(elements.tile_temporary, "float32 n m"),
    Program(elements.triangular_sum, "float32 n n"),
    Program(private.filled_then_read_under_if, "float32 n m"),
    Program(private.filled_then_read_under_if, "int64 n m"),
    Program(private.written_under_if, "float64 n m"),
    Program(private.picked_by_a_tensor, "float32 n m, int64 n <n"),
    Program(private.scan_in_the_row, "int32 n m", least=1),
    Program(private.both_loops_split, "float32 n m k", largest=700),
    Program(private.one_row_of_two_axes, "float64 n m"),
    Program(dense.linear, "float32 b n k, float32 k m", largest=300),
    Program(dense.linear_with_bias, "float32 b n k, float32 m k, float32 m", largest=300),
    Program(dense.shared_on_the_left, "float64 n k, float64 b k m", largest=300),
    Program(dense.heads, "float32 b h n k, float32 h k m", largest=300),
    Program(dense.images, "float32 b n m c, float32 2 2 c k, float32 k", largest=300, least=2),
    *(
        Program(convolutions.padded, f"{d} c n, {d} o c p", largest=200)
        for d in ("float32", "int64", "float16")
    ),
    *(Program(convolutions.spread, f"{d} c n, {d} o c p", largest=200) for d in ("float64", "int32")),
    Program(convolutions.padded_image, "float32 b c n m, float32 o c p 3", largest=120),
    Program(convolutions.spread_image, "float32 b c n m, float32 c o p q", largest=120),
    Program(convolutions.mirrored, "float32 c n, float32 o c p", largest=200),
    *(Program(convolutions.looked_for, f"{d} c n, {d} o c p", largest=200) for d in ("float32", "int16")),
    Program(convolutions.looked_for_in_an_image, "float64 c n m, float64 o c p q", largest=120),
    *(
        Program(triangles.of_triangles, f"{d} n n, {d} n n", largest=10000)
        for d in ("float32", "float64", "int8")
    ),
    Program(triangles.in_a_band, "float32 n m, float32 m m", largest=10000, least=1),
    *(
        Program(triangles.below_the_diagonal, f"{d} n n, {d} n m", largest=10000)
        for d in ("float64", "float32", "int32", "float16")
    ),
    *(Program(triangles.between_rows, f"{d} n m, {d} 2 m k", largest=5000) for d in ("float32", "int64")),
    Program(triangles.one_after_another, "float32 n m, float32 m", largest=5000),
    *(
        Program(triangles.by_a_column, f"{d} n m, {d} m 1", largest=10000)
        for d in ("float32", "float16", "int8")
    ),
    Program(triangles.by_a_column, "float64 n m, float64 m k", largest=10000, least=1),
    # for passes that change none of those above
    Program(dense.log_sum_exp, "float32 n m", rough=1e-5, least=1),
    Program(small.around_nothing, "float32 n"),
    Program(dense.online_attention, "float32 n 4, float32 m 4, float32 m 3", rough=1e-5, least=1),
    Program(dense.attention, "float32 n 4, float32 m 4, float32 m 3", rough=1e-5, least=1),
    Program(
        small.column_by_column,
        "float32 n m",
        steps=Schedule().tile("j", 16).interchange("j.outer", "i", "j.inner"),
    ),
    Program(small.window_weights, "float32 n 2 i, float32 n c i, float32 2 c 3"),
    Program(elements.gelu, "float32 n", rough=2e-6),
    Program(convolutions.of_groups, "float32 c n, float32 o p", largest=300),
)
