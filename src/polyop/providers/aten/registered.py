"""Operators that a library registers in PyTorch (``TORCH_LIBRARY``): whether it does, and which they are."""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

import re
from pathlib import Path

from ...binary.allowed import check_allowed
from ...binary.elf import LibraryFile
from ...binary.file_kind import subject_of
from ...core.errors import HostError, LibraryError
from ...kernels.module.registrations import KEYS

_REGISTERS = re.compile(r"_ZN\w*5torch(7Library|6detail16TorchLibrary)|aoti_torch_library_|torch_library_")
"""What a library calls that uses TORCH_LIBRARY, TORCH_LIBRARY_IMPL, or their stable forms."""


def registers_in_torch(file: LibraryFile) -> bool:
    """Return whether the library calls what TORCH_LIBRARY calls; none of its code runs."""
    return any(_REGISTERS.match(name) for name in file.undefined)


def torch_operators(path: Path) -> list[tuple[str, list[str]]]:
    """Open a library and return what is new in PyTorch then: schemas with the keys that have functions.

    Raises ``HostError`` without PyTorch, and ``LibraryError`` where the library cannot be opened.
    """
    try:
        import torch
    except ImportError as problem:
        rule = f"could not be imported, and the library registers its operators there: {problem}"
        raise HostError("torch", rule, hint="pip install torch") from None
    before = _registered()
    resolved = check_allowed(path)
    try:
        torch.ops.load_library(resolved)
    except (OSError, RuntimeError) as problem:
        raise LibraryError(subject_of(path), f"cannot be opened: {problem}") from None
    found: dict[str, list[str]] = {}
    for name, key in sorted(_registered() - before):
        found.setdefault(name, [])
        if key:
            found[name].append(key)
    return [(_schema(name), sorted(keys, key=KEYS.index)) for name, keys in found.items()]


def _registered() -> set[tuple[str, str]]:
    """Return every operator of PyTorch by name, with "" and with each key that has a function."""
    import torch

    names = {(name, "") for name in torch._C._dispatch_get_all_op_names()}
    registered = torch._C._dispatch_get_registrations_for_dispatch_key
    return names | {(name, key) for key in KEYS for name in registered(key)}


def _schema(name: str) -> str:
    import torch

    base, _, overload = name.partition(".")
    try:
        return str(torch._C._get_schema(base, overload))
    except RuntimeError:  # functions for an operator that nobody defined
        return f"{name} (no schema)"
