"""``TestCase`` and ``run_tests`` in rehearsal."""

# ruff: noqa: PT009 - a test case of unittest

from __future__ import annotations

import unittest
from numbers import Number
from typing import Any

import numpy as np
import torch

__all__ = ["TestCase", "run_tests"]

run_tests = unittest.main

_PRECISION = 1e-5
_HALVES = (torch.float16, torch.bfloat16)


class TestCase(unittest.TestCase):
    """A test case that compares tensors, arrays, numbers, and lists of these."""

    def assertEqual(  # type: ignore[override]  # noqa: N802 - torch_npu's name and parameters
        self, x: Any, y: Any, prec: Any = None, message: Any = None, msg: Any = None
    ) -> None:
        """Fail unless the values are equal; numbers, tensors and arrays may differ by ``prec``, 1e-5."""
        prec, message = (None, prec) if isinstance(prec, str) else (prec, message or msg)
        limit = _PRECISION if prec is None else prec
        if _are_lists(x, y):
            super().assertEqual(len(x), len(y), message)
            for first, second in zip(x, y, strict=True):
                self.assertEqual(first, second, limit, message)
        elif _is_array(x) or _is_array(y):
            a, b = self._pair(x, y, message)
            self._need(_same(a, b) | ((a - b).abs() <= limit), limit, message)
        elif isinstance(x, Number) and isinstance(y, Number):
            super().assertAlmostEqual(x, y, msg=message, delta=limit)  # type: ignore[call-overload]
        else:
            super().assertEqual(x, y, message)

    def assertRtolEqual(  # noqa: N802 - its name
        self,
        x: Any,
        y: Any,
        prec: float = 1e-4,
        prec16: float = 1e-3,
        auto_trans_dtype: bool = False,
        message: Any = None,
    ) -> None:
        """Fail unless the values are close, absolutely or relatively: those of half precision to ``prec16``.

        A share ``prec`` of the elements may differ more, but not in being a number. Dtypes are compared,
        unless ``auto_trans_dtype``.
        """
        if _are_lists(x, y):
            super().assertEqual(len(x), len(y), message)
            for first, second in zip(x, y, strict=True):
                self.assertRtolEqual(first, second, prec, prec16, auto_trans_dtype, message)
            return
        a, b = self._pair(x, y, message, dtypes=not auto_trans_dtype)
        limit = prec16 if getattr(x, "dtype", None) in (*_HALVES, np.float16) else prec
        difference, same = (a - b).abs(), _same(a, b)
        absolute = same | (difference <= limit)
        relative = same | (difference <= limit * (torch.maximum(a.abs(), b.abs()) + 1e-9))
        better = absolute if absolute.sum() > relative.sum() else relative
        nowhere_else = bool((a.isnan() == b.isnan()).all())
        self._need(better, limit, message, share=limit if nowhere_else else 0)

    def _pair(
        self, x: Any, y: Any, message: Any, *, dtypes: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both as tensors of double precision, of one shape."""
        a, b = (
            value.detach() if isinstance(value, torch.Tensor) else torch.tensor(value) for value in (x, y)
        )
        super().assertEqual(a.shape, b.shape, message)
        if dtypes and _is_array(x) and _is_array(y):
            super().assertEqual(a.dtype, b.dtype, message)
        wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
        return a.to(wide), b.to(wide)

    def _need(self, close: torch.Tensor, limit: float, message: Any, share: float = 0) -> None:
        wrong = int((~close).sum())
        if wrong > share * close.numel():
            differ = f"{wrong} of {close.numel()} elements differ by more than {limit}"
            self.fail(self._formatMessage(message, differ))


def _are_lists(x: Any, y: Any) -> bool:
    return isinstance(x, (list, tuple)) and isinstance(y, (list, tuple))


def _is_array(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, np.ndarray))


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return where the values are equal: infinities, and where both are no number."""
    return (a == b) | (a.isnan() & b.isnan())
