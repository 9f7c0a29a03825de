"""What a setup.py says of one operator library."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from setuptools import Extension

from ..core.errors import ArgumentTypeError, ArgumentValueError

ENVIRONMENT = "POLYOP_CUDA_ARCHITECTURES"
"""Names architectures, with commas or spaces between them, where a setup.py does not."""


class OperatorExtension(Extension):  # type: ignore[misc]
    """A library of operators in a wheel: sources that include ``polyop/library.h``.

    ``name``    the Python package that the wheel has for it, as ``myops._ops``: it holds the library,
                its operators as functions, their type stubs and what is known of them.
    ``names``   functions that are not called as in the schema: ``{"add_custom": "my_op"}``.
    ``docs``    docstrings of the operators and their stubs, by the function's name.
    ``extra_compile_args``  a list, or lists for ``"cxx"`` and ``"nvcc"``.
    ``cuda_architectures``  what sources in CUDA are compiled for, as ``["sm_80", "sm_90"]``; else what
                the variable POLYOP_CUDA_ARCHITECTURES lists, else as in ``polyop build``.

    The other arguments are setuptools' own. Raises ``ArgumentTypeError`` and ``ArgumentValueError``
    for what cannot be built.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[Any],
        *,
        extra_compile_args: Sequence[str] | Mapping[str, Sequence[str]] = (),
        names: Mapping[str, str] | None = None,
        docs: Mapping[str, str] | None = None,
        debug: bool = False,
        cuda_architectures: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Check and keep what is given."""
        if not all(part.isidentifier() for part in name.split(".")):
            raise ArgumentValueError(
                "OperatorExtension", "its name must be one that import takes", repr(name)
            )
        if isinstance(sources, str) or not sources:
            raise ArgumentTypeError(
                f"OperatorExtension {name}", "needs a list of sources", repr(sources), hint="[...]"
            )
        self.flags = _flags(name, extra_compile_args)
        self.cuda_architectures = _architectures(name, cuda_architectures)
        self.names, self.docs, self.debug = dict(names or {}), dict(docs or {}), debug
        super().__init__(name, [str(source) for source in sources], **options)

    def compile_flags(self) -> list[str]:
        """Return the flags for the compilers, macros among them."""
        macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in self.define_macros]
        return [*macros, *(f"-U{name}" for name in self.undef_macros), *self.flags]

    def link_flags(self) -> list[str]:
        """Return the flags for the linker."""
        folders = [f"-L{folder}" for folder in self.library_dirs]
        paths = [f"-Wl,-rpath,{folder}" for folder in self.runtime_library_dirs]
        libraries = [f"-l{library}" for library in self.libraries]
        return [*self.extra_objects, *folders, *paths, *libraries, *self.extra_link_args]


def _architectures(name: str, given: Sequence[str] | None) -> list[str] | None:
    """Return the architectures of the setup.py, else of the environment, None for neither."""
    if isinstance(given, str):
        rule = "cuda_architectures must be a list"
        raise ArgumentTypeError(f"OperatorExtension {name}", rule, repr(given), hint=f"write {[given]!r}")
    if given is not None:
        return list(given)
    return re.findall(r"[^\s,;]+", os.environ.get(ENVIRONMENT, "")) or None


def _flags(name: str, given: Sequence[str] | Mapping[str, Sequence[str]]) -> list[str]:
    if isinstance(given, str):
        rule = "extra_compile_args must be a list of flags"
        raise ArgumentTypeError(
            f"OperatorExtension {name}", rule, repr(given), hint=f"write {given.split()!r}"
        )
    if not isinstance(given, Mapping):
        return list(given)
    unknown = set(given) - {"cxx", "nvcc"}
    if unknown:
        rule = "extra_compile_args has the keys cxx and nvcc"
        raise ArgumentValueError(f"OperatorExtension {name}", rule, repr(min(unknown)))
    return [*given.get("cxx", ()), *given.get("nvcc", ())]
