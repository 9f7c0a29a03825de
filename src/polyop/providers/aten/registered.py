"""Libraries that register operators in PyTorch (``TORCH_LIBRARY``): detects them and lists the operators."""

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
"""Functions that TORCH_LIBRARY, TORCH_LIBRARY_IMPL and their stable forms call."""


def registers_in_torch(file: LibraryFile) -> bool:
    """Whether the library imports a function that TORCH_LIBRARY calls; none of its code runs."""
    return any(_REGISTERS.match(name) for name in file.undefined)


def torch_operators(path: Path) -> list[tuple[str, list[str]]]:
    """Open a library and return the operators that it registers in PyTorch.

    Each comes as (schema, dispatch keys that have a kernel). Raises ``HostError`` without PyTorch,
    and ``LibraryError`` if the library cannot be opened.
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
    keys_of: dict[str, list[str]] = {}
    for name, key in sorted(_registered() - before):
        keys_of.setdefault(name, [])
        if key:
            keys_of[name].append(key)
    return [(_schema(name), sorted(keys, key=KEYS.index)) for name, keys in keys_of.items()]


def _registered() -> set[tuple[str, str]]:
    """Return (name, "") for every operator of PyTorch, and (name, key) for each key with a kernel."""
    import torch

    names = {(name, "") for name in torch._C._dispatch_get_all_op_names()}
    registered = torch._C._dispatch_get_registrations_for_dispatch_key
    return names | {(name, key) for key in KEYS for name in registered(key)}


def _schema(name: str) -> str:
    import torch

    base, _, overload = name.partition(".")
    try:
        return str(torch._C._get_schema(base, overload))
    except RuntimeError:  # kernels for an operator that was never defined
        return f"{name} (no schema)"
