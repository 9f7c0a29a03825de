"""``NpuExtension`` in rehearsal: an extension for PyTorch's own ``BuildExtension``, with polyop's headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch.utils.cpp_extension import CppExtension

from polyop.build.paths import include_folder

__all__ = ["NpuExtension"]


def NpuExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - its name
    """Return a ``setuptools.Extension``, as PyTorch's ``CppExtension`` makes it, for sources for Ascend.

    polyop's ``pytorch_npu_helper.hpp`` is read first, in the place of the project's copy.
    """
    headers = Path(include_folder(), "polyop")
    first = [
        part
        for file in ("pytorch_npu_helper.hpp", "npu/module.h")
        for part in ("-include", str(headers / file))
    ]
    flags = kwargs.get("extra_compile_args") or []
    if isinstance(flags, Mapping):
        kwargs["extra_compile_args"] = {**flags, "cxx": [*first, *flags.get("cxx", ())]}
    else:
        kwargs["extra_compile_args"] = [*first, *flags]
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", ()), str(headers.parent), str(headers)]
    return CppExtension(name, list(sources), *args, **kwargs)
