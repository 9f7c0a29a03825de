"""``OperatorExtension``: one operator library in a setup.py."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from setuptools import Extension

from ..core.errors import ArgumentTypeError, ArgumentValueError

ENVIRONMENT = "POLYOP_CUDA_ARCHITECTURES"
"""The CUDA architectures, separated by commas or spaces, if a setup.py names none."""


class OperatorExtension(Extension):  # type: ignore[misc]
    """A library of operators in a wheel: sources that include ``polyop/library.h``.

    ``name``    the Python package that is made for it, such as ``myops._ops``. It has the library, the
                operators as functions, their type stubs, and a record of them.
    ``names``   Python names of functions that differ from the schema's: ``{"add_custom": "my_op"}``.
    ``docs``    docstrings of the operators and their stubs, by the name of the function.
    ``dims``    the dimensions of operators, by the name of the function, as ``load_library`` takes them:
                ``{"my_op": {"dims": "b i, i o -> b o", "parallel": "b o"}}``.
    ``extra_compile_args``  a list, or lists for ``"cxx"`` and ``"nvcc"``.
    ``cuda_architectures``  what CUDA sources are compiled for, such as ``["sm_80", "sm_90"]``. The default
                is the environment variable POLYOP_CUDA_ARCHITECTURES, else that of ``polyop build``.

    All other arguments are setuptools' own. Raises ``ArgumentTypeError`` and ``ArgumentValueError``
    for arguments that cannot be used.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[Any],
        *,
        extra_compile_args: Sequence[str] | Mapping[str, Sequence[str]] = (),
        names: Mapping[str, str] | None = None,
        docs: Mapping[str, str] | None = None,
        dims: Mapping[str, Any] | None = None,
        debug: bool = False,
        cuda_architectures: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Check the arguments."""
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
        self.dims = dims
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


def _architectures(name: str, argument: Sequence[str] | None) -> list[str] | None:
    """Return the architectures of the setup.py, else those of the environment, None without either."""
    if isinstance(argument, str):
        rule, hint = "cuda_architectures must be a list", f"write {[argument]!r}"
        raise ArgumentTypeError(f"OperatorExtension {name}", rule, repr(argument), hint=hint)
    if argument is not None:
        return list(argument)
    return re.findall(r"[^\s,;]+", os.environ.get(ENVIRONMENT, "")) or None


def _flags(name: str, argument: Sequence[str] | Mapping[str, Sequence[str]]) -> list[str]:
    if isinstance(argument, str):
        rule, hint = "extra_compile_args must be a list of flags", f"write {argument.split()!r}"
        raise ArgumentTypeError(f"OperatorExtension {name}", rule, repr(argument), hint=hint)
    if not isinstance(argument, Mapping):
        return list(argument)
    unknown = set(argument) - {"cxx", "nvcc"}
    if unknown:
        rule = "extra_compile_args has the keys cxx and nvcc"
        raise ArgumentValueError(f"OperatorExtension {name}", rule, repr(min(unknown)))
    return [*argument.get("cxx", ()), *argument.get("nvcc", ())]
