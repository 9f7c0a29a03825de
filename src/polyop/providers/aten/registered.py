"""Libraries that register operators in PyTorch (``TORCH_LIBRARY``): detects them and lists the operators."""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

from ...binary.allowed import check_allowed
from ...binary.elf import LibraryFile, all_names
from ...binary.file_kind import subject_of
from ...core import programs
from ...core.errors import HostError, LibraryError
from ...kernels.module.registrations import KEYS

_REGISTERS = re.compile(
    r"_ZN\w*5torch(7Library|6detail16TorchLibrary)|_ZN3c1017RegisterOperators|aoti_torch_library_|torch_library_"
)
"""Functions that TORCH_LIBRARY, TORCH_LIBRARY_IMPL, their stable forms and RegisterOperators call."""

_DEFINES = re.compile(r"_ZL\d+TORCH_LIBRARY_static_init_(\w+)")
"""The variable that ``TORCH_LIBRARY(namespace, m)`` declares; only a stripped library lacks its name."""
_REGISTER_OPERATORS = "debug: registered by RegisterOperators"
_LIST_NAMES = """
import sys, torch
names = torch._C._dispatch_get_all_op_names
before = {*names()}
torch.ops.load_library(sys.argv[1])
print(*{*names()} - before)
"""
_PLACE = re.compile(r"^debug: registered at (.*:\d+)$", re.MULTILINE)


def registers_in_torch(file: LibraryFile) -> bool:
    """Whether the library imports a function that TORCH_LIBRARY calls; none of its code runs."""
    return any(_REGISTERS.match(name) for name in file.undefined)


def torch_operators(path: Path) -> list[tuple[str, str | None, list[str]]]:
    """Open a library and return the operators that it registers in PyTorch.

    Each comes as (name, schema or None, dispatch keys that have a kernel). Raises ``HostError`` without
    PyTorch, and ``LibraryError`` if the library cannot be opened, or defines a namespace that is defined
    already.
    """
    try:
        import torch
    except ImportError as problem:
        rule = f"could not be imported, and the library registers its operators there: {problem}"
        raise HostError("torch", rule, hint="pip install torch") from None
    resolved = check_allowed(path)
    namespaces = {match[1] for name in all_names(path) if (match := _DEFINES.fullmatch(name))}
    before = _registered()
    mine = {row for row in before if row[0].partition("::")[0] in namespaces}
    again = _registered_again(Path(resolved), before)
    if _is_loaded(resolved):
        return _rows(mine | {row for row in before if row[0] in again})
    _check_free(path, sorted({name for name, _ in mine}))
    if again:
        rule = f"registers {min(again)}, and PyTorch takes one torch::RegisterOperators for it"
        hint = f'load a new version in a new process, or call the operator here: polyop.aten("{min(again)}")'
        raise LibraryError(subject_of(path), rule, "a second one", hint=hint)
    try:
        torch.ops.load_library(resolved)
    except (OSError, RuntimeError) as problem:
        raise LibraryError(subject_of(path), f"cannot be opened: {problem}") from None
    return _rows(_registered() - before)


def _registered_again(path: Path, registered: set[tuple[str, str]]) -> set[str]:
    """Return the operators here that a library registers by RegisterOperators; another process opens it.

    The names are arguments of its code, so a file does not tell them. It is opened elsewhere only if it holds
    a namespace of operators that were registered here in that way.
    """
    import torch

    content = path.read_bytes()
    if b"RegisterOperators" not in content:
        return set()
    here = {
        name
        for name, key in registered
        if not key
        and name.partition("::")[0].encode() in content
        and _REGISTER_OPERATORS in torch._C._dispatch_dump(name)
    }
    if not here:
        return set()
    command = [sys.executable, "-c", _LIST_NAMES, str(path)]
    done = programs.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return here & {*done.stdout.split()}


def _rows(registered: set[tuple[str, str]]) -> list[tuple[str, str | None, list[str]]]:
    keys_of: dict[str, list[str]] = {}
    for name, key in sorted(registered):
        keys_of.setdefault(name, [])
        if key:
            keys_of[name].append(key)
    return [(name, _schema(name), sorted(keys, key=KEYS.index)) for name, keys in keys_of.items()]


def _is_loaded(path: str | Path) -> bool:
    try:
        ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return False
    return True


def _check_free(path: Path, names: list[str]) -> None:
    """Raise if another library defines the namespace of these operators: PyTorch would end the process."""
    import torch

    for name in names:
        place = _PLACE.search(torch._C._dispatch_dump(name))
        if place is not None and not re.search(r"\.py:\d+$", place[1]):  # not a namespace of Python's
            rule = (
                f"defines the namespace {name.partition('::')[0]}, and PyTorch takes one TORCH_LIBRARY for it"
            )
            hint = f'load a new version in a new process, or call the operators here: polyop.aten("{name}")'
            raise LibraryError(subject_of(path), rule, f"a second one, after {place[1]}", hint=hint)


def _registered() -> set[tuple[str, str]]:
    """Return (name, "") for every operator of PyTorch, and (name, key) for each key with a kernel."""
    import torch

    names = {(name, "") for name in torch._C._dispatch_get_all_op_names()}
    registered = torch._C._dispatch_get_registrations_for_dispatch_key
    return names | {(name, key) for key in KEYS for name in registered(key)}


def _schema(name: str) -> str | None:
    import torch

    base, _, overload = name.partition(".")
    try:
        return str(torch._C._get_schema(base, overload))
    except RuntimeError:  # kernels for an operator that was never defined
        return None


def has_kernel(name: str, key: str) -> bool:
    """Whether an operator has a kernel for a dispatch key."""
    import torch

    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))
