"""Turn operators into what can be exported; what cannot leave is refused by name, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..call.bound import BoundOperator
from ..call.operator import Operator
from ..call.ranks import described, ranks_of
from ..core.dims.infer import FromDims
from ..core.errors import ArgumentValueError, GradientError, PolyopError, UnsupportedError
from ..core.infer import FromSpecs
from ..core.schema import Schema
from ..kernels.loop.kernel import LoopKernel
from ..kernels.source import SourceKernel
from ..rules.loops.gradient import GradientRule
from ..wheel.signatures import Signature, check_dtype, is_general, signature
from .kernels import compile_gradient, compile_loops, files_of, kernel_of, numbers_of
from .operator import ExportedOperator, SourceFile
from .shapes import from_dims, matching, names_of, same_as

DTYPES = ("float32", "float64")
"""The dtypes that a loop kernel is compiled for, if nothing else is said."""
_ATTRIBUTES = ("int", "float", "bool", "str")


def collect(
    operators: Sequence[BoundOperator],
    signatures: Mapping[str, Sequence[str]],
    dtypes: Sequence[str] | None,
) -> list[ExportedOperator]:
    """Return the exported operators; the derived gradient of a loop kernel follows it.

    ``signatures`` has texts for loop kernels, by the operator's name, as :class:`~polyop.wheel.LoopExtension`
    has them. ``dtypes`` are those of loop kernels; None for :data:`DTYPES`.
    Raises ``UnsupportedError`` that lists every operator which cannot be exported, each with its reason, and
    ``ArgumentValueError`` for signatures and dtypes that nothing uses.
    """
    _check_used(operators, signatures, dtypes)
    dtypes = DTYPES if dtypes is None else dtypes
    result: list[ExportedOperator] = []
    refused = {}
    for bound in operators:
        try:
            result += _exported(bound.operator, signatures.get(bound.name, ()), dtypes)
        except UnsupportedError as problem:  # noqa: PERF203 - an operator takes seconds to compile
            refused[bound.name] = str(problem)
    if refused:
        others = ", ".join(one.name for one in operators if one.name not in refused)
        hint = f"--only exports some of them: there are also {others}" if others else None
        reasons = "\n  ".join(refused.values())
        rule = f"{len(refused)} of {len(operators)} operators cannot be exported\n  {reasons}"
        raise UnsupportedError("export", rule, hint=hint)
    return result


def _check_used(
    operators: Sequence[BoundOperator],
    signatures: Mapping[str, Sequence[str]],
    dtypes: Sequence[str] | None,
) -> None:
    """Raise ``ArgumentValueError`` for a signature or for dtypes that no loop kernel uses."""
    loops = {one.name: kernel for one in operators if (kernel := _loop_kernel(one.operator)) is not None}
    for name in signatures:
        if name not in loops:
            exported = name in {one.name for one in operators}
            rule = f"must be for {'a loop kernel' if exported else 'an operator that is exported'}"
            hint = f"loop kernels that are exported: {', '.join(loops) or 'none'}"
            raise ArgumentValueError("export: a signature", rule, name, hint=hint)
    if dtypes is None:
        return
    for name in dtypes:
        check_dtype("export: dtypes", name)
    if not any(
        any(map(is_general, signatures[name])) if name in signatures else not kernel.declared_dtypes
        for name, kernel in loops.items()
    ):
        rule = "are for loop kernels that declare none, and no such operator is exported"
        hint = "T in a signature stands for them, as in T[:,:]; C and C++ sources check dtypes themselves"
        raise ArgumentValueError("export: dtypes", rule, ", ".join(dtypes), hint=hint)


_IN_PYTHON = "its author gives it in Python"


def _loop_kernel(operator: Operator) -> LoopKernel | None:
    """Return the kernel of an operator whose only kernel for the CPU is a loop kernel."""
    kernels = [one for one in operator.kernels if one.device == "cpu"]
    return kernels[0] if len(kernels) == 1 and isinstance(kernels[0], LoopKernel) else None


def _exported(operator: Operator, texts: Sequence[str], dtypes: Sequence[str]) -> Iterator[ExportedOperator]:
    _check_schema(operator)
    kernels: list[Any] = [one for one in operator.kernels if one.device == "cpu"]
    if not kernels:
        raise UnsupportedError(operator.name, "runs on CUDA alone, and libraries are exported for the CPU")
    loops = _loop_kernel(operator)
    if loops is not None:
        _check_choices(operator, loops)
        yield from _loops(operator, loops, _signatures(operator, loops, texts, dtypes))
        return
    other = next((one for one in kernels if not isinstance(one, SourceKernel)), None)
    if other is not None:
        rule = f"is {_kind(other)}, which cannot run without Python or is somebody else's library"
        hint = "C and C++ sources and loop kernels can be exported"
        raise UnsupportedError(operator.name, rule, where=operator.origin, hint=hint)
    files = list(dict.fromkeys(file for one in kernels for file in files_of(one)))
    kind = "C++ source" if any(file.language == "c++" for file in files) else "C source"
    rows = [kernel_of(one, operator.schema, _infer(operator)) for one in kernels]
    problem = _IN_PYTHON if operator.gradient is not None else ""
    yield _operator(operator, operator.schema, rows, files, kind, no_backward=problem)


def _loops(
    operator: Operator, kernel: LoopKernel, signatures: Sequence[Signature]
) -> Iterator[ExportedOperator]:
    dims = operator.dims
    checks = [] if dims is None else matching(dims, operator.schema, names_of(dims))
    compiled = compile_loops(operator.schema, kernel, signatures, checks)
    gradient, problem = None, _IN_PYTHON if operator.gradient else "it has none"
    if isinstance(operator.gradient, GradientRule):
        try:
            gradient = compile_gradient(operator.schema, kernel, signatures)
        except GradientError as error:
            problem = str(error)
    backward = "" if gradient is None else gradient.schema.qualified_name
    more = {"backward": backward, "no_backward": "" if backward else problem}
    yield _operator(operator, compiled.schema, compiled.kernels, compiled.sources, "loop kernel", **more)
    if gradient is not None:
        yield ExportedOperator(backward, gradient.schema, gradient.kernels, gradient.sources, "loop kernel")


def _operator(
    operator: Operator, schema: Schema, kernels: Any, files: Sequence[SourceFile], kind: str, **more: Any
) -> ExportedOperator:
    dims = operator.dims
    notation = {} if dims is None else {"dims": dims.text, **dims.claims()}
    fixed = dict(operator.attributes)
    by_loops = dims is None and all(one.outputs is not None for one in kernels)
    infer = None if by_loops else _infer_value(operator)
    doc = (operator.doc or "").strip()
    return ExportedOperator(
        operator.name,
        schema,
        tuple(kernels),
        tuple(files),
        kind,
        doc,
        notation,
        fixed=fixed,
        infer=infer,
        **more,
    )


def _signatures(
    operator: Operator, kernel: LoopKernel, texts: Sequence[str], dtypes: Sequence[str]
) -> list[Signature]:
    """Return the signatures that were given, else one for each dtype with the ranks that are known."""
    subject = f"export: {operator.name}"
    names = [one.name for one in kernel.declared_dtypes] or list(dtypes)
    ranks = ranks_of(operator)
    if texts:
        every = (signature(subject, text, name) for text in texts for name in names)
        return list(dict.fromkeys(one.with_ranks(subject, ranks, operator.origin) for one in every))
    unknown = [name for name, rank in ranks.items() if rank is None]
    if unknown or not ranks:
        rule = f"is a loop kernel, and nothing says how many dimensions {' and '.join(unknown) or 'it'} has"
        raise UnsupportedError(operator.name, rule, where=operator.origin, hint=_signature_hint(operator))
    signatures = [Signature(tuple((name, rank or 0) for rank in ranks.values())) for name in names]
    if operator.dims is None:
        try:
            kernel.typed(signatures[0].specs(), numbers_of(operator.schema))
        except PolyopError as problem:
            rule = f"by its loops {described(ranks)}; with one dtype for all tensors it is refused: {problem}"
            hint = _signature_hint(operator)
            raise UnsupportedError(operator.name, rule, where=operator.origin, hint=hint) from problem
    return signatures


def _signature_hint(operator: Operator) -> str:
    return f'give dims=, or a signature as in --signature "{operator.name}=T[:,:], float"'


def _infer(operator: Operator) -> list[str]:
    """Return the C++ that infers the outputs of a source's kernel."""
    rule: Any = operator.infer
    rule = getattr(rule, "rule", rule) if not isinstance(rule, FromSpecs) else rule
    if isinstance(rule, FromDims):
        if None in rule.dtypes and not operator.schema.tensor_positions:
            reason = "has no tensor argument, and nothing says the dtypes of its outputs"
            hint = 'give infer= beside dims=, as in infer="float32"'
            raise UnsupportedError(operator.name, reason, where=operator.origin, hint=hint)
        return from_dims(rule, operator.schema)
    if isinstance(rule, FromSpecs) and isinstance(rule.rule, str):
        position = operator.schema.tensor_positions.index(rule.position)
        return same_as(position, len(operator.schema.fresh))
    if not operator.schema.fresh:
        return []
    reason = "infers the shapes of its outputs by a function, which cannot be compiled"
    hint = 'give dims=, as in dims="n, n -> n", or infer="x" for an output like x'
    raise UnsupportedError(operator.name, reason, where=operator.origin, hint=hint)


def _infer_value(operator: Operator) -> str | list[str | None] | None:
    """Return what ``infer=`` was: the argument that outputs are like, or their dtypes beside ``dims=``."""
    rule: Any = operator.infer
    if isinstance(rule, FromSpecs):
        return rule.rule if isinstance(rule.rule, str) else None
    rule = getattr(rule, "rule", rule)
    if not isinstance(rule, FromDims):
        return None
    names = [argument.name for argument in operator.schema.arguments]
    return [names[one] if isinstance(one, int) else None if one is None else one.name for one in rule.dtypes]


def _check_schema(operator: Operator) -> None:
    """Raise ``UnsupportedError`` for arguments that an exported library cannot take."""
    problem = ""
    if operator.schema.returns_list:
        problem = "returns a list of tensors"
    for argument in operator.schema.arguments:
        if argument.type.is_tensor and argument.type.is_list:
            problem = f"takes a list of tensors, {argument.name}"
        elif not argument.type.is_tensor and argument.type.base.replace("SymInt", "int") not in _ATTRIBUTES:
            problem = f"has the attribute {argument.name} of type {argument.type}"
    if operator.attribute_names:
        problem = f"has attributes under other names: {', '.join(operator.attribute_names)}"
    if not operator.kernels:
        problem = "has no kernel"
    if problem:
        raise UnsupportedError(operator.name, f"{problem}, which an exported library cannot have")


def _check_choices(operator: Operator, kernel: LoopKernel) -> None:
    """Raise ``UnsupportedError`` for a parameter that selects the kernel: a library selects by dtypes."""
    names = {argument.name for argument in operator.schema.arguments}
    chosen = [n for n in (*kernel.outline.optional, *kernel.outline.strings) if n in names]
    if chosen:
        rule = f"is compiled once for each choice of {chosen[0]}, which an exported library cannot have"
        hint = "write a kernel for each choice, with the loops in a helper, and export these"
        raise UnsupportedError(operator.name, rule, where=operator.origin, hint=hint)


def _kind(kernel: Any) -> str:
    return str(kernel) if type(kernel).__name__ != "PythonKernel" else f"the Python function {kernel}"
