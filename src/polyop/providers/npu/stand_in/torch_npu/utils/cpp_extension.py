"""``NpuExtension`` in rehearsal: an extension for PyTorch's own ``BuildExtension``, with polyop's headers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from torch.utils.cpp_extension import BuildExtension, CppExtension

from polyop.build.left_out import left_out
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
    extension = CppExtension(name, list(sources), *args, **kwargs)
    _extensions.append(extension)
    return extension


_extensions: list[Any] = []
_LEFT_OUT = {
    "os": "import os",
    "PYTORCH_NPU_INSTALL_PATH": (
        "PYTORCH_NPU_INSTALL_PATH = os.path.dirname(os.path.abspath(torch_npu.__file__))"
    ),
}
"""Names of the printed setup.py, and the lines that the document leaves out."""


def _explain_failed_builds() -> None:
    """Make PyTorch's build, where it fails, name what the printed sources lack."""
    build = BuildExtension.build_extensions

    def build_extensions(self: Any) -> None:
        try:
            build(self)
        except Exception:
            for extension in _extensions:
                for source in extension.sources:
                    for note in left_out(source, extension.include_dirs):
                        sys.stderr.write(f"note: {note}\n")
            raise

    BuildExtension.build_extensions = build_extensions


def _explain_missing_names() -> None:
    """Make the end of a program by a name that the printed setup.py does not define show the line."""
    show = sys.excepthook

    def excepthook(
        kind: type[BaseException], problem: BaseException, traceback: TracebackType | None
    ) -> None:
        show(kind, problem, traceback)
        line = _LEFT_OUT.get(getattr(problem, "name", "") or "") if isinstance(problem, NameError) else None
        if line:
            sys.stderr.write(f"note: the printed setup.py leaves out {line}\n")

    sys.excepthook = excepthook


_explain_failed_builds()
_explain_missing_names()
