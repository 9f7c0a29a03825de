"""What hosts of frameworks with a tracer set here.

A traced look into ``sys.modules`` walks through all of it, and an import meanwhile ends the compilation. So
the host of PyTorch leaves the module here for functions that ``torch.compile`` traces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

torch: Any = None
"""The module, once the PyTorch host is present, which sets it."""

marks: list[Callable[[type], None]] = []
"""What is called with each class of operators that is defined later: Paddle knows methods one by one."""
