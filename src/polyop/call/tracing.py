"""The module ``torch`` as a global variable, for functions that ``torch.compile`` traces.

A traced look into ``sys.modules`` walks through all of it, and an import meanwhile ends the compilation.
"""

from __future__ import annotations

from typing import Any

torch: Any = None
"""The module, once the PyTorch host is present, which sets it."""
