"""The text of include/polyop/dtypes.h: the rows of core/dtypes.py for C. ``make golden`` writes it."""

from __future__ import annotations

import bisect
import pathlib
from collections.abc import Iterable

import ml_dtypes
import numpy as np

from polyop.core.dtypes import DTYPES, DType
from polyop.export.header import enumeration

INFINITY = 0x7F800000  # of float32; the next word is a NaN
HEADER = """\
/* The dtypes of tensors: the rows of src/polyop/core/dtypes.py. `make golden` writes this file. */
#ifndef POLYOP_DTYPES_H
#define POLYOP_DTYPES_H

{enumeration}

/* clang-format off */

/* In the order of polyop_dtype: X(name, bytes of an element, DLPack's type code and bits, then the numbers
 * that PyTorch, CANN, ONNX and XLA have for it; -1: none). */
#define POLYOP_DTYPES(X) {rows}

/* Those that MindSpore has: X(its name, TypeId). */
#define POLYOP_MINDSPORE_DTYPES(X) {mindspore}

/* Floats of one byte in loop kernels: X(C type, conversions in loops/byte_floats.h, their arguments). */
#define POLYOP_BYTE_FLOATS(X) {byte_floats}

/* clang-format on */

#endif
"""


def text() -> str:
    """Return the header."""
    return HEADER.format(
        enumeration=enumeration(),
        rows=_table(
            (f'"{row.name}"', row.itemsize, *row.dlpack, row.torch, row.cann, row.onnx, row.xla)
            for row in DTYPES
        ),
        mindspore=_table(
            (row.name.title().replace("Uint", "UInt").replace("Bfloat", "BFloat"), row.type_id)
            for row in DTYPES
            if row.type_id
        ),
        byte_floats=_table(
            (row.c, *_conversions(row))
            for row in DTYPES
            if row.c and row.kind == "float" and row.itemsize == 1
        ),
    )


def _conversions(row: DType) -> tuple[object, ...]:
    """Return which macros convert a float of one byte, and their arguments, as ml_dtypes converts it."""
    info = ml_dtypes.finfo(row.numpy)
    if float(info.min) > 0:
        return "SCALE", 0

    def word(bits: int) -> int:
        with np.errstate(invalid="ignore"):
            return int(np.uint32(bits).view(np.float32).astype(row.numpy).view(np.uint8))

    sign = 1 << (info.bits - 1)
    values = np.arange(sign, dtype=np.uint8).view(row.numpy).astype(np.float32)
    top, none = word(INFINITY), word(INFINITY + 1)
    over = bisect.bisect_left(range(INFINITY), top, key=word)
    special = int(np.isfinite(values).sum())
    words = (f"0x{number:x}u" for number in (sign, special, top, none, over))
    return "FLOAT", info.nmant, 1 - int(info.minexp), *words


def _table(rows: Iterable[tuple[object, ...]]) -> str:
    return "".join(f"\\\n  X({', '.join(map(str, row))}) " for row in rows).rstrip()


if __name__ == "__main__":
    pathlib.Path(__file__).parents[1].joinpath("include", "polyop", "dtypes.h").write_text(text())
