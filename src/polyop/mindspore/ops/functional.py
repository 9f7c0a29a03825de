"""The functions under the path that older scripts import: ``from mindspore.ops import functional as F``."""

from __future__ import annotations

from typing import Any

from .. import ops


def __getattr__(name: str) -> Any:
    return getattr(ops, name)
