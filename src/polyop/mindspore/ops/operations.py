"""The primitives under the path that older scripts import: ``from mindspore.ops import operations as P``."""

from __future__ import annotations

from typing import Any

from .. import ops


def __getattr__(name: str) -> Any:
    return getattr(ops, name)
