"""The kernels of an export: loop kernels, compiled for each signature, and C and C++ sources."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..build import compilers
from ..build.sources import LANGUAGES, store_code
from ..core.dtypes import DType, dtype
from ..core.errors import FallbackWarning, GradientError, UnsupportedError
from ..core.parse import parse
from ..core.schema import Argument, Schema
from ..kernels.loop.adjoints import Adjoints
from ..kernels.loop.derived import DerivedKernel
from ..kernels.loop.forms import GRADIENT
from ..kernels.loop.kernel import LoopKernel
from ..kernels.source import SourceKernel
from ..loops.ir.grammar import Kernel
from ..loops.library.make import fallback_of, sources, with_fallback
from ..loops.library.options import Options, exported, flags_of
from ..loops.program import Program
from ..loops.targets import isa
from ..wheel.signatures import Signature
from .operator import ExportedKernel, SourceFile
from .shapes import from_loops, of_loops

_TYPES = {"int": int, "float": float, "bool": bool}
_HIDDEN = "-fvisibility=hidden"


@dataclass(frozen=True)
class Compiled:
    """The kernels of an operator, their sources, and its schema."""

    schema: Schema
    kernels: tuple[ExportedKernel, ...]
    sources: tuple[SourceFile, ...]


def compile_loops(
    schema: Schema, loops: LoopKernel, signatures: Sequence[Signature], checks: Sequence[str]
) -> Compiled:
    """Return the kernels of a loop kernel for each signature; ``checks`` are the lines that check ``dims=``.

    Raises the errors of typing and compiling, and ``UnsupportedError`` for a size that C++ cannot compute.
    """
    kernels, files, loops = [], [], loops.of_all_values()
    for number, signature in enumerate(signatures):
        typed = loops.typed(signature.specs(), numbers_of(schema))
        unique = replace(typed, name=f"{schema.qualified_name.replace('::', '_')}_{number}")
        kernels.append(_kernel(unique, schema, typed.tensor_parameters, checks))
        files += _files(unique, loops)
    return Compiled(schema, tuple(kernels), tuple(files))


def compile_gradient(schema: Schema, loops: LoopKernel, signatures: Sequence[Signature]) -> Compiled:
    """Return the operator ``<name>_backward``, whose kernels are the derived gradients of a loop kernel.

    Its tensors are those of the loop kernel, its outputs and their gradients; one that no signature's kernel
    reads is optional. A signature whose dtypes have no gradient is left out. Raises ``GradientError`` if none
    is left, with the line that has no gradient.
    """
    loops = loops.of_all_values()
    derived = DerivedKernel.of(loops, GRADIENT)
    adjoints = list(_adjoints(derived, schema, signatures))
    read = [any(flags) for flags in zip(*map(derived.tensors_read, adjoints), strict=True)]
    gradient = _gradient_schema(schema, adjoints[0], read)
    kernels, files = [], []
    for number, adjoint in enumerate(adjoints):
        unique = replace(adjoint, name=f"{gradient.qualified_name.replace('::', '_')}_{number}")
        unread = [not one for one in derived.tensors_read(adjoint)]
        kernels.append(_kernel(unique, gradient, adjoint.tensor_parameters, (), unread))
        files += _files(unique, derived)
    return Compiled(gradient, tuple(kernels), tuple(files))


def _adjoints(derived: DerivedKernel, schema: Schema, signatures: Sequence[Signature]) -> Iterator[Kernel]:
    """Yield the gradient for each signature that has one with the same results as the first."""
    first, problem = None, None
    for signature in signatures:
        try:
            adjoint = Adjoints(derived, signature.specs(), numbers_of(schema)).adjoint().kernel
        except GradientError as error:
            problem = problem or error
            continue
        if not any(dtype(adjoint.buffers[name].dtype).is_floating for name in adjoint.outputs):
            problem = problem or GradientError(
                schema.qualified_name, "has no floating tensor to differentiate by"
            )
            continue
        first = first or adjoint
        if adjoint.outputs == first.outputs:
            yield adjoint
    if first is None and problem is not None:
        raise problem


def _gradient_schema(schema: Schema, adjoint: Kernel, read: Sequence[bool]) -> Schema:
    tensors = [
        f"{'Tensor' if is_read else 'Tensor?'} {name}"
        for name, is_read in zip(adjoint.tensor_parameters[: len(read)], read, strict=True)
    ]
    attributes = [str(argument) for _, argument in schema.attributes()]
    results = ", ".join(f"Tensor {name}" for name in adjoint.outputs)
    arguments = ", ".join([*tensors, *attributes])
    return parse(f"{schema.namespace}::{schema.name}_backward({arguments}) -> ({results})")


def _kernel(
    kernel: Kernel, schema: Schema, tensors: Sequence[str], checks: Sequence[str], unread: Sequence[bool] = ()
) -> ExportedKernel:
    inputs = tensors[: len(schema.tensor_positions)]
    outputs = of_loops(kernel, inputs, schema)
    if outputs is None:
        rule = "the size of an output cannot be computed in C++"
        hint = "write it in sizes and integer attributes with + - * // % max min"
        raise UnsupportedError(schema.qualified_name, rule, where=kernel.file, hint=hint)
    is_unread = [*unread, *(False for _ in inputs)][: len(inputs)]
    rows = [
        (None, None) if skipped else ((one.outer_dtype,), len(one.outer_shape))
        for one, skipped in zip((kernel.buffers[name] for name in inputs), is_unread, strict=True)
    ]
    return ExportedKernel(
        tuple(dtypes for dtypes, _ in rows),
        tuple(rank for _, rank in rows),
        (*checks, *from_loops(outputs, len(inputs), sum(1 for _ in schema.attributes()))),
        exported(kernel),
        outputs=tuple(outputs),
    )


def _files(kernel: Kernel, loops: LoopKernel) -> list[SourceFile]:
    options = Options(isa.PORTABLE, loops.precise, schedule=loops.schedule)
    placed = replace(kernel, file=kernel.file.rpartition("/")[2])  # messages name no path of the builder
    flags = (*flags_of(compilers.find("c").family, options), "-fvisibility=hidden")

    def printed(program: Program) -> list[SourceFile]:
        texts = sources(placed, options, program)
        if program.fallback:
            warnings.warn(FallbackWarning(program.fallback), stacklevel=4)
        again = None if program.fallback else lambda problem: printed(fallback_of(placed, problem))
        return [SourceFile(store_code(text, "c"), "c", flags, instead=again) for text in texts]

    return with_fallback(placed, options, printed)


def numbers_of(schema: Schema) -> Mapping[str, Any]:
    """Return a value of its type for each attribute: the types alone matter to a loop kernel."""
    return {argument.name: _value(argument) for _, argument in schema.attributes()}


def _value(argument: Argument) -> Any:
    return _TYPES[argument.type.base](1)


def kernel_of(kernel: SourceKernel, schema: Schema, infer: Sequence[str]) -> ExportedKernel:
    """Return the kernel, for the dtypes that it declares; without any it checks them itself."""
    declared: tuple[DType, ...] = kernel.declared_dtypes
    dtypes = tuple(one.name for one in declared) or None
    count = len(schema.tensor_positions)
    init = f"{kernel.name}Init" if kernel.has_init else ""
    return ExportedKernel((dtypes,) * count, (None,) * count, tuple(infer), kernel.name, init)


def files_of(kernel: SourceKernel) -> list[SourceFile]:
    """Return the sources of the kernel, with the flags that it is built with."""
    files = [(path, LANGUAGES[f".{path.rpartition('.')[2]}"]) for path in kernel.files]
    if kernel.code is not None:
        files.append((store_code(kernel.code, kernel.language), kernel.language))
    options = kernel.options
    return [
        SourceFile(path, of, (*options.flags_of(path), _HIDDEN), options.include_paths, options.link_flags)
        for path, of in files
    ]
