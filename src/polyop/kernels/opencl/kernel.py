"""Kernels of an author in OpenCL C: what a call passes to them. The host of OpenCL's arrays launches them."""

from __future__ import annotations

import copy
import inspect
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...binary.allowed import allowed_folders, check_allowed
from ...core.dims.dims import Dims
from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError, ArgumentValueError, BuildError, KernelError, SchemaError
from ...core.origin import caller
from ...core.schema import Schema
from ...core.spec import Spec
from .. import described
from ..base import Accepts
from ..gridded import Call, GriddedKernel, Owner, bind
from . import signature

if TYPE_CHECKING:
    from pathlib import Path

DEVICE = "opencl"
TEXTS = "POLYOP_OPENCL_TEXTS"
"""The variable that names a folder for the texts of loop kernels, to read beside what a debugger says."""
LOCAL_SIZE = "local_size"
"""The one of ``constants=`` that is no macro: how many work-items are a group."""
_INCLUDE = re.compile(r"#(?:\s|/\*.*?\*/)*include\b", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def folder_of_texts() -> str:
    """Return the folder that :data:`TEXTS` names, or nothing."""
    return os.environ.get(TEXTS, "")


class Launch(NamedTuple):
    """What a call passes: values in the order of the parameters, sizes, and options of the compiler."""

    values: tuple[Any, ...]
    grid: tuple[int, ...]
    local_size: tuple[int, ...] | None
    options: tuple[str, ...]


class OpenCLKernel(GriddedKernel):
    """The kernel ``name`` of a text in OpenCL C; ``label`` names the text in errors."""

    GRID = "how many work-items run the kernel"
    EXAMPLE = 'lambda meta: (meta["n"],)'
    device = DEVICE
    native = False
    accepts: Accepts

    def __init__(self, text: str, name: str, label: str, options: tuple[str, ...], accepts: Accepts) -> None:
        """Read the parameters of the kernel; raises ``ArgumentTypeError`` if that cannot be done."""
        self.name, self.label, self.options, self.accepts = name, label, options, accepts
        self.text = f'#line 1 "{label}"\n{text}'
        self.includes = bool(_INCLUDE.search(text.replace("\\\n", "")))
        self.definition = object() if self.includes else None
        self._grid, self._constants, self._where, self._reads = None, {}, None, {}
        try:
            found = signature.parameters(text, name)
        except signature.UnknownParameterError as problem:
            raise ArgumentTypeError(self, str(problem)) from None
        if found is None:
            rule = f"the text must define one kernel void {name}(...), outside of #if and without macros"
            raise ArgumentTypeError(self, rule, f"the kernels {', '.join(signature.kernels(text)) or 'none'}")
        self.parameters = found

    def __str__(self) -> str:
        """Return ``file:function``."""
        return f"{os.path.basename(self.label)}:{self.name}"

    def with_grid(self, grid: Any, constants: Mapping[str, Any] | None, where: Any) -> OpenCLKernel:
        """Return the kernel with a grid and constants.

        Raises ``ArgumentValueError`` for a constant that is no name of C.
        """
        other = copy.copy(self)
        other._grid, other._constants, other._where = grid, dict(constants or {}), where  # noqa: SLF001
        for name in constants or ():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                rule = "constants= must have names of macros"
                raise ArgumentValueError(self, rule, repr(name), where=where)
        return other

    def for_schema(self, schema: Schema, where: Any) -> Any:
        """Return the kernel for an operator with this schema; raises ``ArgumentTypeError``."""
        self.check_grid()
        return super().for_schema(schema, where)

    def for_dims(self, dims: Dims | None, where: Any) -> OpenCLKernel:
        """Return the kernel for an operator with these dimensions; raises ``SchemaError``."""
        assert self._schema is not None
        bound = copy.copy(self)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = {p.name: inspect.Parameter(p.name, kind, annotation=p.text) for p in self.parameters}
        owner = Owner(f"{self._schema.qualified_name}: {self}", "a kernel in OpenCL C", where)
        reads, of_tensors = bind(parameters, (), self._schema, dims, owner)
        for parameter in self.parameters:
            if parameter.is_pointer != (parameter.name in of_tensors):
                kinds = ("a pointer", "a number") if parameter.is_pointer else ("a number", "a tensor")
                rule = f"the parameter {parameter.name} is {kinds[0]}, and would get {kinds[1]}"
                raise SchemaError(owner.subject, rule, where=where)
        bound._dims, bound._reads = dims, reads  # noqa: SLF001
        return bound

    def content(self) -> Iterator[bytes]:
        """Yield the text, the options, the grid and the constants."""
        yield repr((self.text, self.name, self.options)).encode()
        yield from described.value(self._grid)
        yield from described.value(dict(sorted(self._constants.items())))

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why these specs are refused, or None. A pointer of another dtype reads other numbers."""
        refused = self.accepts.refuse(inputs)
        if refused is not None or self._schema is None:
            return refused
        arguments: list[Any] = [None] * len(self._schema.arguments)
        for position, spec in zip(self._schema.tensor_positions, inputs, strict=True):
            arguments[position] = spec
        call = Call(tuple(arguments), outputs, {})
        for parameter in self.parameters:
            spec = self._reads[parameter.name](call) if parameter.is_pointer else None
            if spec is None or parameter.dtype is None:
                continue
            name = "uint8" if spec.dtype.name == "bool" else spec.dtype.name
            if name != parameter.dtype:
                return f"its parameter {parameter.text} takes {parameter.dtype}, not {spec.dtype}"
        return None

    def launch_of(self, schema: Schema, arguments: Sequence[Any], outputs: Sequence[Any]) -> Launch:
        """Return what a call passes to the kernel; raises ``KernelError`` for a value that does not fit."""
        values = self.values(schema, arguments, outputs)
        constants = dict(values.constants)
        local = constants.pop(LOCAL_SIZE, None)
        if local is not None:
            local = self.checked_sizes(LOCAL_SIZE, local, 1, f'as in constants={{"{LOCAL_SIZE}": (64,)}}')
        macros = tuple(f"-D{name}={_macro(value)}" for name, value in constants.items())
        passed = tuple(self._passed(p, values.parameters[p.name]) for p in self.parameters)
        return Launch(passed, self.grid_of(values.meta), local, (*self.options, *macros))

    def _passed(self, parameter: signature.Parameter, value: Any) -> Any:
        if parameter.is_pointer:
            return value
        kind = dtype(parameter.dtype).numpy
        if not _fits(kind, value):
            rule = f"the parameter {parameter.text} holds no such number"
            hint = "declare it as another type, such as long or double"
            raise KernelError(self, rule, value, where=self._where, hint=hint)
        return kind.type(value)

    def failure(self, code: int, text: str, threw: bool) -> str:
        """Return the error for a launch that OpenCL refused."""
        del code, threw
        return f"OpenCL refuses the launch: {text}"


def _fits(kind: np.dtype[Any], value: Any) -> bool:
    """Whether a number of OpenCL C has the value: an integer exactly, a float to its precision."""
    if kind.kind in "iu":
        whole = isinstance(value, (int, np.integer))
        return whole and bool(np.iinfo(kind).min <= value <= np.iinfo(kind).max)
    if not isinstance(value, (int, float, np.integer)):
        return False
    with np.errstate(over="ignore"):
        rounded = float(kind.type(value))
    return (
        math.isfinite(rounded) or not math.isfinite(value) if isinstance(value, float) else rounded == value
    )


def _macro(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def is_opencl(path: str | Path) -> bool:
    """Whether the file name is that of a text in OpenCL C."""
    return os.path.splitext(path)[1] == ".cl"


def source(
    paths: Sequence[str | Path],
    code: str | None,
    function: str,
    options: Sequence[str],
    include_paths: Sequence[str | Path],
    accepts: Accepts,
) -> OpenCLKernel:
    """Return the kernel ``function`` of a file, or of ``code``.

    Raises ``ArgumentTypeError`` for a file that POLYOP_LIBRARY_PATHS does not allow, and for parameters that
    cannot be read; ``BuildError`` for a file that cannot be read.
    """
    if len(paths) + (code is not None) != 1:
        seen = f"{len(paths)} files{' and code=' if code is not None else ''}"
        raise ArgumentValueError("source", "a kernel in OpenCL C is one file, or code=", seen, where=caller())
    folders = [*include_paths, *(os.path.dirname(os.path.realpath(path)) for path in paths)]
    text, label = code or "", "code"
    if paths:
        label = check_allowed(paths[0], "source")
        try:
            with open(label, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as problem:
            raise BuildError(f"source {paths[0]}", f"cannot be read: {problem}") from None
    options = (*options, *(f"-I{os.path.realpath(folder)}" for folder in folders))
    kernel = OpenCLKernel(text, function, label, options, accepts)
    if kernel.includes and allowed_folders() is not None:
        rule = "must include no file, because POLYOP_LIBRARY_PATHS is set"
        hint = "the compiler of a driver does not say what it has read"
        raise ArgumentTypeError(f"source {label}", rule, hint=hint)
    return kernel
