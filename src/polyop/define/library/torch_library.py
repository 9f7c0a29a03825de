"""Load libraries that register operators by ``TORCH_LIBRARY``, so that every host can call them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...binary.allowed import check_allowed
from ...binary.elf import read
from ...binary.file_kind import file_problem, subject_of
from ...call.bound import BoundOperator
from ...core import locks
from ...core.dims.infer import infer_from_dims
from ...core.errors import ArgumentValueError, LibraryError, UnsupportedError
from ...core.infer import FromSpecs
from ...core.origin import Origin
from ...kernels.module.registrations import ENTRY
from ...providers.aten import aten
from ...providers.aten.registered import has_kernel, registers_in_torch, torch_operators
from ...rules.dims import DimsBatch
from ..module.dims import Notation, read_all
from .first_load import try_elsewhere
from .opened import OperatorLibrary, by_name, set_forward_mode

_loaded: dict[str, OperatorLibrary] = {}  # by the digest of the file: PyTorch loads a library once
_notations: dict[str, Notation] = {}  # by operator: what a caller gave it


def is_torch_library(path: Path) -> bool:
    """Whether a library registers operators in PyTorch, and none in polyop. The file is read, not loaded."""
    if file_problem(path) is not None:
        return False
    file = read(path)
    return registers_in_torch(file) and ENTRY not in file.functions


def load_torch_library(
    path: Path,
    options: Mapping[str, Any],
    infer: Mapping[str, Any],
    jvp: Mapping[str, Any],
    dims: Any,
    origin: Origin,
) -> OperatorLibrary:
    """Return the operators that a library registers in PyTorch, with the caller's rules attached.

    A wrong rule changes none of them. A library is first loaded in a subprocess, because contradictory
    registrations abort the process.

    Raises ``ArgumentValueError`` for ``options`` that are not None, and for a rule of an operator that the
    library does not have; ``InferError`` for a rule of another type; ``SchemaError`` for one that contradicts
    another; ``HostError`` without PyTorch, and ``LibraryError`` for a library that PyTorch cannot load, or
    that registers no operator.
    """
    subject = subject_of(path)
    unusable = [name for name, value in options.items() if value is not None]
    if unusable:
        rule = f"registers its operators in PyTorch, so load_library takes no {unusable[0]}= for it"
        hint = "names, docstrings and shapes are those that are registered in PyTorch"
        raise ArgumentValueError(subject, rule, where=origin, hint=hint)
    check_allowed(path)
    with locks.define:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest not in _loaded:
            try_elsewhere(path, digest, origin)
            _loaded[digest] = _open(path, subject, origin)
        library = _loaded[digest]
        rules = [
            (bound, FromSpecs(rule, bound.schema)) for bound, rule in by_name(library, "infer", infer, origin)
        ]
        notations = _read_dims(library, dims, [bound for bound, _ in rules], origin)
        set_forward_mode(library, jvp, origin)
        for bound, from_specs in rules:
            bound.update(dataclasses.replace(bound.operator, infer=from_specs))
        for bound, notation in notations:
            _set_dims(bound, notation)
        return library


def _read_dims(
    library: OperatorLibrary, dims: Any, inferred: Sequence[BoundOperator], origin: Origin
) -> list[tuple[BoundOperator, Notation]]:
    """Return operators with their dimensions; those of ``inferred`` have an infer rule of the caller."""
    operators = {name: one for one in library for name in _names(one)}
    schemas = {name: operator.schema for name, operator in operators.items()}
    infer = {name: one.operator.infer for one in inferred for name in _names(one)}
    found = read_all(f"{library.path.name}: dims", dims, schemas, infer, origin)
    return [(operators[name], notation) for name, notation in found.items()]


def _names(bound: BoundOperator) -> tuple[str, str]:
    return bound.schema.name, bound.schema.qualified_name


def _set_dims(bound: BoundOperator, notation: Notation) -> None:
    """Give an operator its dimensions, by which ``vmap`` is one call, in PyTorch too."""
    from ...providers.aten.batch import give_rule

    if _notations.get(bound.name) == notation:
        return
    rules: dict[str, Any] = {"dims": notation.dims, "batch": DimsBatch(bound.schema, notation.dims)}
    if notation.infer is not None or not has_kernel(bound.torch.name(), "Meta"):
        rules["infer"] = infer_from_dims(notation.dims, bound.schema, notation.infer)
    bound.update(dataclasses.replace(bound.operator, **rules))
    give_rule(bound)
    _notations[bound.name] = notation


def _open(path: Path, subject: str, origin: Origin) -> OperatorLibrary:
    from ...providers.aten.batch import keep_together  # it imports PyTorch

    names = [name for name, schema, _ in torch_operators(path) if schema is not None]
    if not names:
        rule = "registers no operator with a schema"
        hint = 'operators that another library registers are called by name: polyop.aten("namespace::name")'
        raise LibraryError(subject, rule, where=origin, hint=hint)
    looked_up = {name: _find(name) for name in names}
    refused = {name: one for name, one in looked_up.items() if isinstance(one, UnsupportedError)}
    library = OperatorLibrary(
        path, {name: one for name, one in looked_up.items() if name not in refused}, refused
    )
    keep_together(library)
    for bound in library:
        if bound.operator.batch is not None:
            bound.operator.batch.advice = "; give dims= where it is loaded to do better"
    return library


def _find(name: str) -> BoundOperator | UnsupportedError:
    try:
        return aten(name)
    except UnsupportedError as problem:
        return problem
