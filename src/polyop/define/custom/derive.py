"""Derive the schema and the infer rule of a ``Custom`` from its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...call.library_infer import library_halves
from ...call.operator import Operator
from ...call.prepare import AttributeValues
from ...core.dtypes import DType, dtype
from ...core.errors import InferError
from ...core.infer import DefaultRule, ShapeAndDtype, arity, is_shape
from ...core.information.information import Information
from ...core.parse import parse
from ...core.schema import MISSING, Schema, alias_names, format_default
from ...core.signature import Signature
from ...core.spec import Spec
from ...core.takes import check_takes

_PARAM_TYPES = {"required": "Tensor", "optional": "Tensor?", "dynamic": "Tensor[]"}


def input_count(out_shape: Any, out_dtype: Any, func: Any, information: Sequence[Information]) -> int | None:
    """Return how many arguments the operator takes, or None if only a call shows it."""
    if information and information[0].inputs:
        return len(information[0].inputs) + len(information[0].call_attributes)
    for rule in (out_shape, out_dtype, func):
        if callable(rule) and not isinstance(rule, (type, DType)):
            count = arity(rule)
            if count is not None:
                return count
    return None


def output_count(
    out_shape: Any, out_dtype: Any, inputs: int, information: Sequence[Information]
) -> tuple[int, bool]:
    """Return how many outputs there are, and whether a call returns a tuple.

    A function ``out_dtype`` is tried on float32. A tuple of one shape and one dtype gives a
    1-tuple, as in MindSpore.
    """
    if isinstance(out_dtype, tuple) and not out_dtype:
        return 0, False
    declared = len(information[0].outputs) if information and information[0].outputs else None
    value = out_dtype
    if callable(out_dtype) and not isinstance(out_dtype, (type, DType)):
        try:
            value = out_dtype(*(dtype("float32") for _ in range(arity(out_dtype) or inputs)))
        except Exception:  # noqa: BLE001 - the author's function may not accept float32
            value = None
    if isinstance(value, (list, tuple)):
        return len(value), True
    if (
        value is None
        and declared is None
        and isinstance(out_shape, (list, tuple))
        and not is_shape(out_shape)
    ):
        return len(out_shape), True
    if declared is not None and declared > 1:
        return declared, True
    return 1, isinstance(out_shape, (list, tuple)) and not is_shape(out_shape)


def derive_schema(
    name: str,
    signature: Signature,
    outputs: int,
    information: Sequence[Information],
    inplace: Sequence[tuple[int, int]] = (),
) -> tuple[Schema, dict[str, str]]:
    """Return the schema, and a map from its attribute names to the author's where these differ.

    Arguments have the names of the information, or x0, x1, ... for a signature. ``inplace`` has pairs:
    the number of an output, and of the input that it is written into.
    """
    names: dict[str, str] = {}
    if information and information[0].inputs:
        first = information[0]
        used_names: set[str] = set()
        arguments = [
            f"{_PARAM_TYPES.get(t.param_type or 'required', 'Tensor')} "
            f"{_identifier(t.name, f'x{i}', used_names)}"
            for i, t in enumerate(first.inputs)
        ]
        arguments += _attributes(first, used_names, names)
    else:
        kinds = {"T": "Tensor", "L": "Tensor[]"}
        arguments = [f"{kinds.get(letter, letter)} x{i}" for i, letter in enumerate(signature)]
    returns = ["Tensor"] * outputs
    for alias, (output, argument) in zip(alias_names(), inplace, strict=False):
        returns[output] = f"Tensor({alias}!)"
        arguments[argument] = arguments[argument].replace("Tensor", returns[output], 1)
    result = returns[0] if outputs == 1 else f"({', '.join(returns)})"
    return parse(f"custom::{name}({', '.join(arguments)}) -> {result}"), names


def _attributes(information: Information, used_names: set[str], names: dict[str, str]) -> list[str]:
    texts = []
    optional = True  # an argument may have a default only if all arguments after it have one
    for attribute in reversed(information.call_attributes):
        optional = optional and attribute.default is not MISSING
        default = f"={format_default(attribute.default)}" if optional else ""
        name = _identifier(attribute.name, "a", used_names)
        if name != attribute.name:
            names[name] = attribute.name
        texts.append(f"{attribute.schema_type} {name}{default}")
    return texts[::-1]


def _identifier(name: str | None, default: str, used_names: set[str]) -> str:
    import keyword

    clean = "".join(c if (c.isalnum() and c.isascii()) or c == "_" else "_" for c in name or default)
    if not clean.isidentifier() or keyword.iskeyword(clean):
        clean = f"{clean}_" if clean.isidentifier() else f"x_{clean}"
    while clean in used_names:
        clean += "_"
    used_names.add(clean)
    return clean


def derive_infer(
    out_shape: Any, out_dtype: Any, schema: Schema, operator: Operator, subject: str
) -> ShapeAndDtype:
    """Return the infer rule. For None, the library's functions or the information's rows are used.

    ``operator`` has the author's names of the attributes in ``schema``.
    """
    halves = library_halves(schema, operator.kernels, AttributeValues.of(operator))
    if out_dtype is None:
        from_rows = _dtype_from_rows(operator, schema)
        kernel_infers_dtype = halves is not None and getattr(operator.kernels[0], "has_infer_type", False)
        out_dtype = (
            halves[1] if kernel_infers_dtype and halves else from_rows or (halves[1] if halves else None)
        )
    if out_shape is None and halves is not None:
        out_shape = halves[0]
    for role, rule in (("out_shape", out_shape), ("out_dtype", out_dtype)):
        if callable(rule) and not isinstance(rule, (type, DType)):
            check_takes(role, rule, _names_for(rule, schema), schema, operator.origin)
    if len(schema.fresh) == len(schema.returns):
        return ShapeAndDtype(out_shape, out_dtype, len(schema.returns), subject)
    return _rule_for_fresh(out_shape, out_dtype, schema, subject)


def _names_for(rule: Any, schema: Schema) -> list[str]:
    """Return what a function of shapes or dtypes is called with: all arguments, or the tensors alone.

    Lists and None count as tensors in a call.
    """
    kinds = [(argument.name, argument.type) for argument in schema.arguments]
    tensors = [name for name, kind in kinds if kind.is_tensor]
    with_lists = [name for name, kind in kinds if kind.is_tensor or kind.is_list or kind.is_optional]
    names = (found for found in (tensors, with_lists) if arity(rule) == len(found))
    return next(names, [name for name, _ in kinds])


def _rule_for_fresh(out_shape: Any, out_dtype: Any, schema: Schema, subject: str) -> ShapeAndDtype:
    """Return the rule for the new outputs alone; the given rules also cover outputs written in place."""
    whole = ShapeAndDtype(out_shape, out_dtype, len(schema.returns), subject)

    def half(rule: Any, values_of: Any, kind: str) -> Any:
        if isinstance(rule, DefaultRule) or not schema.returns:
            return rule

        def fresh_values(arguments: Sequence[Any]) -> Any:
            values = values_of(arguments)
            for output in set(range(len(values))) - set(schema.fresh):
                position = schema.alias_of(output)
                actual = getattr(arguments[position], kind)
                if values[output] != actual:
                    name = schema.arguments[position].name
                    text = f"output {output} is the input {name}, written in place, whose {kind} is {actual}"
                    raise InferError(subject, text, f"{values[output]} from out_{kind}")
            return [values[i] for i in schema.fresh]

        return DefaultRule(fresh_values, subject)

    fresh_rule = ShapeAndDtype(
        half(out_shape, whole.shapes, "shape"),
        half(out_dtype, whole.dtypes, "dtype"),
        len(schema.fresh),
        subject,
    )
    fresh_rule.repeatable = whole.repeatable
    return fresh_rule


def _dtype_from_rows(operator: Operator, schema: Schema) -> DefaultRule | None:
    if not any(information.rows for information in operator.information):
        return None

    def output_dtypes(arguments: Sequence[Any]) -> Any:
        tensors = [arguments[i] for i in schema.tensor_positions]
        inputs: list[Any] = [list(x) if isinstance(x, tuple) else x for x in tensors]
        for information in operator.information:
            dtypes = information.output_dtypes(inputs)
            if dtypes is not None:
                return dtypes
        specs = ", ".join(str(x) for x in inputs if isinstance(x, Spec))
        reason = next(filter(None, (i.refuse(inputs) for i in operator.information)), None)
        rule = reason or "its rows do not determine the output dtype: give out_dtype"
        raise InferError(operator.name, f"the operator information: {rule}", specs, where=operator.origin)

    return DefaultRule(output_dtypes, "the operator information")
