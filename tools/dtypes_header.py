"""The text of include/polyop/dtypes.h: the rows of core/dtypes.py for C. ``make golden`` writes it."""

from __future__ import annotations

from collections.abc import Iterable

from polyop.core.dtypes import DTYPES
from polyop.export.header import enumeration

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
    )


def _table(rows: Iterable[tuple[object, ...]]) -> str:
    return "".join(f"\\\n  X({', '.join(map(str, row))}) " for row in rows).rstrip()
