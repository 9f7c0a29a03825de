"""``dims=`` of the functions of a C++ module or library: by name, as a text or with what is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...core.dims.claims import check_keywords
from ...core.dims.dims import Dims
from ...core.dims.infer import infer_from_dims
from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError, InferError, SchemaError
from ...core.limits import shown
from ...core.schema import Schema


class Notation(NamedTuple):
    """A function in index notation, and what gives the dtypes of its outputs beside it, or None."""

    dims: Dims
    infer: Any = None

    def keywords(self) -> dict[str, Any]:
        """Return the value that :func:`read` takes: texts, numbers, tuples and dictionaries alone."""
        keywords = {"dims": self.dims.text, **self.dims.claims()}
        return keywords if self.infer is None else {**keywords, "infer": _named(self.infer)}


def _named(infer: Any) -> Any:
    """Return dtypes as names; a text is one, or the name of an argument."""
    if isinstance(infer, (tuple, list)):
        return tuple(map(_named, infer))
    return infer if isinstance(infer, str) else dtype(infer).name


def read(value: Any, schema: Schema, origin: Any) -> Notation:
    """Return the rule of a function in index notation.

    ``value`` is the text of ``dims=``, or a mapping with the keywords of :func:`polyop.operator`:
    ``{"dims": "b i, i o -> b o", "parallel": "b o", "infer": "float64"}``.

    Raises ``SchemaError`` for dimensions that do not fit the schema, ``ArgumentTypeError`` for other values
    and ``TypeError`` for other keywords.
    """
    subject = f"{schema.qualified_name}: dims"
    if not isinstance(value, (str, Mapping)):
        rule = "must be a text, or a mapping with dims and what is claimed of them"
        raise ArgumentTypeError(subject, rule, f"{shown(value)} ({type(value).__name__})", where=origin)
    claims: dict[str, Any] = {"dims": value} if isinstance(value, str) else dict(value)
    text, infer = claims.pop("dims", None), claims.pop("infer", None)
    check_keywords(claims, "dims", ("dims", "infer"))
    if not isinstance(text, str):
        hint = '{"dims": "b i, i o -> b o", "parallel": "b o"}'
        raise SchemaError(subject, "needs the text of the dimensions", shown(text), where=origin, hint=hint)
    return Notation(Dims.parse(text, schema, **claims, origin=origin), infer)


def read_all(
    subject: str, dims: Any, schemas: Mapping[str, Schema], infer: Mapping[str, Any], origin: Any
) -> dict[str, Notation]:
    """Return the rules of the functions that ``dims`` names.

    ``schemas`` are those of all functions, ``infer`` the infer rules of some. Raises ``SchemaError``,
    ``ArgumentTypeError`` and ``TypeError`` as :func:`read` does, ``SchemaError`` for an unknown function, or
    for one that has an infer rule too, ``InferError`` for a dtype that is none.
    """
    if dims is None:
        return {}
    if not isinstance(dims, Mapping):
        rule = "must be a mapping from functions to their dimensions"
        raise ArgumentTypeError(subject, rule, f"{shown(dims)} ({type(dims).__name__})", where=origin)
    notations = {}
    for name, value in dims.items():
        if name not in schemas:
            rule = f"must name functions over tensors: {', '.join(schemas) or 'none'}"
            raise SchemaError(subject, rule, shown(name), where=origin)
        if name in infer:
            rule = "has a rule in infer= and one in dims=, which give its shapes twice"
            hint = 'the dtype goes beside the dimensions: {"dims": "n -> n", "infer": "float64"}'
            raise SchemaError(schemas[name].qualified_name, rule, where=origin, hint=hint)
        notations[name] = read(value, schemas[name], origin)
        infer_from_dims(notations[name].dims, schemas[name], notations[name].infer)  # refuses a wrong infer
    return notations


def with_marks(dims: Dims, schema: Schema) -> Dims:
    """Return the rule for a schema that the first call corrected: a written argument is no new output.

    The author has written an entry for each result of the C++ function. Raises ``InferError`` where a result
    is an argument with another entry, and ``SchemaError`` for a claim that is false of what is written.
    """
    entries = {schema.arguments[i].name: e for i, e in zip(schema.tensor_positions, dims.inputs, strict=True)}
    fresh = []
    for number, (entry, result) in enumerate(zip(dims.outputs, schema.returns, strict=True)):
        if not result.type.alias:
            fresh.append(entry)
            continue
        name = schema.arguments[schema.alias_of(number)].name
        if str(entry) != str(entries[name]):
            rule = (
                f"dims= gives output {number} the entry {str(entry)!r}, and it is argument {name}, which has"
            )
            raise InferError(dims.operator, f"{rule} {str(entries[name])!r}", where=dims.origin)
    text = " -> ".join(", ".join(map(str, entries)) for entries in (dims.inputs, fresh))
    return Dims.parse(text, schema, **dims.claims(), origin=dims.origin)
