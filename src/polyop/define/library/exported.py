"""Libraries of ``polyop export``: their operators, for every host."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...binary import export_manifest
from ...binary.allowed import check_allowed
from ...binary.file_kind import subject_of
from ...call import registry
from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...core.errors import ArgumentValueError, LibraryError, PolyopError
from ...core.infer import InferRule
from ...core.origin import Origin
from ...core.parse import parse
from ...core.schema import Schema
from ...kernels.exported import ExportedKernel
from ..operator import bound_operator, checked_schema, given_dims, infer_rule
from . import namespace_owners
from .exported_rules import ExportedGradient, ExportedInfer, is_gradient
from .opened import OperatorLibrary

_loaded: dict[tuple[str, tuple[tuple[str, str], ...]], OperatorLibrary] = {}  # by digest and other names


def load_exported(
    path: Path, renamed: Mapping[str, str], docs: Mapping[str, str], origin: Origin
) -> OperatorLibrary:
    """Return the operators of an exported library; ``renamed`` has other names for its namespaces.

    Callers hold ``locks.define``. Raises ``LibraryError`` for a damaged manifest, ``SchemaError`` for names
    that are taken, ``ArgumentTypeError`` for a file that POLYOP_LIBRARY_PATHS does not allow.
    """
    check_allowed(path)
    content = export_manifest.read(path)
    assert content is not None, "the caller asked is_exported()"
    identity = (hashlib.sha256(path.read_bytes()).hexdigest(), tuple(sorted(renamed.items())))
    if identity in _loaded:
        return _loaded[identity]
    library = Rows(path, content, renamed, docs, origin)
    owners = {space: namespace_owners.Owner(str(path), None, identity) for space in library.namespaces()}
    for space, owner in owners.items():
        hint = f"load it under another name: namespaces={{{space!r}: ...}}"
        namespace_owners.check_free(renamed.get(space, space), owner, hint)
    opened = OperatorLibrary(path, library.operators())
    for space, owner in owners.items():
        namespace_owners.claim(renamed.get(space, space), dataclasses.replace(owner, library=opened))
    _loaded[identity] = opened
    return opened


class Rows:
    """The rows of a manifest, which make operators."""

    def __init__(
        self,
        path: Path,
        content: Mapping[str, Any],
        renamed: Mapping[str, str],
        docs: Mapping[str, str],
        origin: Origin,
    ) -> None:
        self.path, self.renamed, self.docs, self.origin = path, renamed, docs, origin
        self.register_torch: str = content["register_torch"]
        self.rows = {row["name"]: row for row in content["operators"]}
        self.schemas = {name: self._schema(row) for name, row in self.rows.items()}
        unknown = set(renamed) - set(self.namespaces())
        if unknown:
            hint = f"namespaces: {', '.join(self.namespaces())}"
            raise LibraryError(subject_of(path), "has no such namespace", min(unknown), hint=hint)

    def namespaces(self) -> list[str]:
        """Return the namespaces of the operators, as the library has them."""
        return list(dict.fromkeys(name.partition("::")[0] for name in self.rows))

    def operators(self) -> dict[str, BoundOperator]:
        """Return the operators by name; none of them stays if one cannot be made."""
        made: dict[str, BoundOperator] = {}
        gradients = {row["backward"] for row in self.rows.values()}
        try:
            for name in sorted(self.rows, key=lambda name: name not in gradients):
                made[self.schemas[name].qualified_name] = bound_operator(self._operator(name, made))
        except Exception as problem:
            for bound in made.values():
                registry.discard(bound)
                bound.retire()
            if isinstance(problem, (PolyopError, OSError)):
                raise
            raise self._damaged(f"{type(problem).__name__}: {problem}") from None
        return {schema.qualified_name: made[schema.qualified_name] for schema in self.schemas.values()}

    def _operator(self, name: str, made: Mapping[str, BoundOperator]) -> Operator:
        row, schema = self.rows[name], self.schemas[name]
        origin = self.origin
        own = name == schema.qualified_name and "torch" not in row["not_for"]
        torch = (name, self.register_torch) if own else ("", "")
        kernel = ExportedKernel(str(self.path), name, row["c"], row["kernels"], torch)
        fixed = {key: _value(one) for key, one in row["fixed"].items()}
        notation: Any = dict(row["notation"])
        dims = given_dims(notation.pop("dims", None), schema, notation, origin)
        infer: InferRule
        if row["outputs"] and dims is None:
            infer = ExportedInfer(kernel, schema, row["outputs"])
        else:
            infer = infer_rule(schema, row["infer"], (kernel,), fixed, dims)
        gradient, reason = None, row["no_backward"]
        if row["backward"]:
            other = self.schemas.get(row["backward"])
            backward = None if other is None else made.get(other.qualified_name)
            if backward is None or not is_gradient(backward.schema, schema):
                raise self._damaged(f"{row['backward']} is no gradient of {name}")
            gradient = ExportedGradient(schema, backward)
        return Operator(
            schema=schema,
            infer=infer,
            kernels=(kernel,),
            gradient=gradient,
            no_gradient=reason and f"has no gradient in this library: {reason}",
            dims=dims,
            attributes=fixed,
            doc=self.docs.get(schema.name, row["doc"]),
            origin=origin,
        )

    def _schema(self, row: Mapping[str, Any]) -> Schema:
        schema = parse(row["schema"])
        if schema.qualified_name != row["name"]:
            raise self._damaged(f"{row['name']:.80} has the schema of another operator")
        space = self.renamed.get(schema.namespace, schema.namespace)
        return checked_schema(dataclasses.replace(schema, namespace=space), {}, self.origin)

    def _damaged(self, reason: str) -> LibraryError:
        rule = f"is a library of polyop export, and its manifest is damaged: {reason}"
        return LibraryError(subject_of(self.path), rule, hint="export or copy it again")


def _value(value: Any) -> Any:
    """Return an attribute of the definition; ``{"float": "inf"}`` is a number that JSON has not."""
    if isinstance(value, list):
        return [_value(one) for one in value]
    return float(value["float"]) if isinstance(value, dict) else value


def refuse_options(path: Path, options: Mapping[str, Any], origin: Origin) -> None:
    """Raise ``ArgumentValueError`` for an option that an exported library has decided already."""
    for name, value in options.items():
        if value:
            rule = f"is a library of polyop export, so load_library takes no {name}= for it"
            raise ArgumentValueError(subject_of(path), rule, where=origin, hint="export it again")
