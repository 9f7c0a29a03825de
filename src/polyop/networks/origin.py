"""Where an operator that is not PyTorch's own comes from, and the line that brings it to other frameworks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from pathlib import Path

import torch

NOTHING = "nothing: write one (polyop new my-operators)"


def attribute(name: str) -> str:
    """Return the attribute of ``torch.ops`` that an operator is.

    >>> attribute("aten::add.Tensor"), attribute("torchvision::nms")
    ('aten.add.Tensor', 'torchvision.nms.default')
    """
    base, _, overload = name.replace("::", ".").replace("higher_order.", "higher_order.", 1).partition("::")
    parts = base.split(".")
    return base if len(parts) > 2 else f"{base}.{overload or 'default'}"


def line(name: str) -> str:
    """Return the line that calls an operator of a package in other frameworks."""
    package = package_of(name)
    imported = f"import {package}; " if package else ""
    return f'{imported}polyop.aten("{name}")'


def reason(name: str) -> str:
    """Return where an operator comes from."""
    package = package_of(name)
    if not package:
        return f"an operator that was registered at {place(name) or 'an unknown place'}"
    try:
        version = f" {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return f"an operator of {package}{version}"


def place(name: str) -> str:
    """Return the file and line that registered the schema of an operator, or nothing if none is known."""
    dump = torch._C._dispatch_dump(name.partition(".")[0])  # noqa: SLF001 - no public way to ask
    found = re.search(r"^debug: registered at (.*:\d+)$", dump, re.MULTILINE)
    return found[1] if found else ""


def package_of(name: str) -> str:
    """Return the package to import for an operator: that of its namespace, else that of the file; or nothing."""
    namespace = name.partition("::")[0]
    if namespace in sys.modules and importlib.util.find_spec(namespace):
        return namespace
    file = place(name).rpartition(":")[0]
    for module in sorted(sys.modules):
        root = getattr(sys.modules[module], "__file__", None)
        if (
            root
            and "." not in module
            and Path(root).name == "__init__.py"
            and file.startswith(f"{Path(root).parent}/")
        ):
            return module
    return ""
