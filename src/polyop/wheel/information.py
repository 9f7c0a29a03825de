"""The operators of a wheel, as its file ``operators.json`` describes them."""

from __future__ import annotations

import dataclasses
import hashlib
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import ArgumentValueError
from ..core.schema import Schema
from ..define.library.load import checked_rows, schema_of
from ..define.module.dims import Notation, read_all
from ..kernels.module.function_table import VERSION
from ..kernels.module.registrations import open_rows

FILE = "operators.json"
FORMAT = 1


@dataclass(frozen=True)
class Described:
    """One operator of a library.

    ``function`` is its Python name. ``keys`` map each dispatch key to the place (file and line) of its
    function, ``place`` is that of the schema. ``notation`` is the operator in index notation, if it is given.
    """

    schema: Schema
    function: str
    keys: Mapping[str, str]
    place: str
    notation: Notation | None = None

    @property
    def has_gradient(self) -> bool:
        """Whether a function is registered for an Autograd key."""
        return any(key.startswith("Autograd") for key in self.keys)


def describe(library: Path, names: Mapping[str, str]) -> list[Described]:
    """Return the operators of a library in the order of its sources.

    ``names`` maps Python names to operators, for names that differ from the schema's. Raises
    ``LibraryError`` and ``SchemaError`` as ``load_library`` does, and ``ArgumentValueError`` for names
    that cannot be used.
    """
    rows = checked_rows(open_rows(library), library, {})
    found = []
    for row in rows:
        if row.kind == "schema":
            keys = {
                one.key: one.place for one in rows if one.kind == "implementation" and one.name == row.name
            }
            found.append((schema_of(row), keys, row.place))
    return with_names(found, names)


def with_names(
    found: Sequence[tuple[Schema, Mapping[str, str], str]], names: Mapping[str, str]
) -> list[Described]:
    """Return operators with their Python names; ``found`` has the schema, the keys and the place of each.

    Raises ``ArgumentValueError`` for names that cannot be used.
    """
    renamed = {operator: name for name, operator in names.items()}
    operators: list[Described] = []
    for schema, keys, place in found:
        chosen = renamed.pop(schema.qualified_name, None) or renamed.pop(schema.name, None)
        function = chosen or schema.name + (f"_{schema.overload}" if schema.overload else "")
        operators.append(Described(schema, function, keys, place))
    if renamed:
        available = ", ".join(one.schema.qualified_name for one in operators)
        raise ArgumentValueError(
            "OperatorExtension: names",
            "must name operators",
            repr(min(renamed)),
            hint=f"there are {available}",
        )
    _check_functions(operators)
    return operators


def with_dims(operators: Sequence[Described], dims: Mapping[str, Any] | None) -> list[Described]:
    """Return the operators with what ``dims`` says of them, by the name of the Python function.

    Raises ``SchemaError`` and ``ArgumentTypeError`` as ``load_library`` does.
    """
    schemas = {one.function: one.schema for one in operators if one.schema.tensor_positions}
    notations = read_all("OperatorExtension: dims", dims, schemas, {}, None)
    return [dataclasses.replace(one, notation=notations.get(one.function)) for one in operators]


def _check_functions(operators: list[Described]) -> None:
    owners: dict[str, Described] = {}
    for one in operators:
        name, hint = one.function, "OperatorExtension(names={...}) gives it another"
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__") or name == "library":
            rule = "must have a Python name that is free: no keyword, not library, and no __ in front"
            raise ArgumentValueError(one.schema.qualified_name, rule, repr(name), where=one.place, hint=hint)
        if one.function in owners:
            rule = f"has the Python name {one.function}, as {owners[one.function].schema.qualified_name} has"
            hint = "OperatorExtension(names={...}) gives one of them another"
            raise ArgumentValueError(one.schema.qualified_name, rule, where=one.place, hint=hint)
        owners[one.function] = one


def record(library: Path, operators: list[Described], torch: str = "") -> dict[str, Any]:
    """Return the content of ``operators.json``: the library with its hash, and its operators.

    ``torch`` is the version of PyTorch that it was compiled for, "" for a library of polyop's ABI.
    """
    return {
        "format": FORMAT,
        **({"torch": torch} if torch else {"abi": VERSION}),
        "library": library.name,
        "sha256": hashlib.sha256(library.read_bytes()).hexdigest(),
        "operators": [
            {
                "schema": str(one.schema),
                "function": one.function,
                "place": one.place,
                "implementations": dict(one.keys),
                "gradient": one.has_gradient,
                **({} if one.notation is None else {"dims": one.notation.keywords()}),
            }
            for one in operators
        ],
    }
