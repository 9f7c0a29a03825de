"""Fixtures for Paddle's tensors."""

import pytest

pytest.importorskip("paddle", reason="not run: paddle is not installed")
