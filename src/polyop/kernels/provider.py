"""A kernel that is somebody else's operator by name: it constructs, and says at the call what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.errors import UnsupportedError
from ..core.spec import Spec


@dataclass(eq=False)
class ProviderKernel:
    """The operator ``name`` of a provider (aclnn); no provider is connected yet."""

    name: str
    device: str = "any"
    native: bool = False

    def __str__(self) -> str:
        """Return ``provider operator name``."""
        return f"provider operator {self.name}"

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Raise ``UnsupportedError``: which provider is missing, and what can be used instead."""
        del inputs, outputs
        raise UnsupportedError(
            self,
            "aclnn operators need CANN, which was not found on this machine",
            hint="for a kernel of your own give 'file_name:func_name' with func_type 'aot'",
        )
