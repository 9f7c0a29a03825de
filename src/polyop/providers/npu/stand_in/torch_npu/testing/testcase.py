"""``TestCase`` and ``run_tests`` in rehearsal."""

from __future__ import annotations

import unittest
from typing import Any

import torch

__all__ = ["TestCase", "run_tests"]

run_tests = unittest.main


class TestCase(unittest.TestCase):
    """A test case that compares tensors."""

    def assertRtolEqual(self, x: Any, y: Any, prec: float = 1e-4, prec16: float = 1e-3) -> None:  # noqa: N802
        """Fail unless two values are close: half precision to ``prec16``, others to ``prec``."""
        if not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point:
            self.assertEqual(x, y)  # noqa: PT009 - a test case of unittest
            return
        tolerance = prec16 if x.dtype in (torch.float16, torch.bfloat16) else prec
        torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance)
