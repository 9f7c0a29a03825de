"""``Custom`` with a loop kernel: its inputs, attributes and outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...call.operator import Kernel
from ...core.errors import ArgumentValueError, InformationError, SchemaError
from ...core.information.from_dictionaries import AttributeInfo, TensorInfo
from ...core.information.information import Information
from ...core.origin import place
from ...core.schema import MISSING, Schema
from ...kernels.base import KernelBase, LoopKernelBase

NUMBERS = ("int", "float", "bool", "all")
"""The value types of attributes that a loop kernel can have."""
NEVER_INDEXED = "{} is never indexed, so it must be a number: index it, remove it, or register it"


def loop_kernel(
    func: Callable[..., Any], func_type: str, information: Sequence[Information], subject: str
) -> Kernel:
    """Return the loop kernel of a function.

    Parameters are numbers if the information registers them as attributes or they have a default;
    all others are tensors. Raises the errors of the static checks, and ``InformationError`` for
    attributes that are not registered, or registered under another name.
    """
    from ...kernels.loop.kernel import LoopKernel
    from ...loops.frontend.parse import outline
    from ..kernel_options import options

    signature = outline(func)
    where = place(signature.file, signature.line)
    attributes = information[0].attributes if information else ()
    scalars = [n for n in signature.parameters if n not in signature.tensors and n not in signature.defaults]
    if scalars and not information:
        rule = f"the registration information must be set for {func_type} kernels with attributes"
        attributes_text = f"the attributes {scalars}"
        hint = _registration_hint(scalars)
        raise InformationError(subject, rule, attributes_text, where=where, hint=hint)
    _check_names(attributes, scalars, signature, information, subject, where)
    numbers = {a.name for a in attributes} | (set(signature.defaults) - set(signature.tensors))
    names = tuple(name for name in signature.parameters if name in numbers)
    return LoopKernel(func, names, **options(func))


def is_marked(func: Any) -> bool:
    """Return whether ``polyop.kernel`` or ``ops.kernel`` has marked a function as a loop kernel."""
    return callable(func) and hasattr(func, "compile_attrs")


def _registration_hint(scalars: Sequence[str]) -> str:
    rows = "".join(f'.attr("{n}", "required", "float")' for n in scalars)
    return f'{NEVER_INDEXED.format(scalars[0])}:\n  reg_info=CustomRegOp(){rows}.target("CPU").get_op_info()'


def _check_names(
    attributes: Sequence[AttributeInfo],
    scalars: Sequence[str],
    outline: Any,
    information: Sequence[Information],
    subject: str,
    where: str,
) -> None:
    names = [a.name for a in attributes]
    unknown = [name for name in names if name not in outline.parameters]
    missing = [name for name in scalars if name not in names] if information else []
    # if the information has no inputs and no attributes, an unused parameter may be a tensor
    if unknown or (missing and (information[0].inputs or attributes)):
        rule = (
            f"the attributes of a loop kernel must be registered under the names of its parameters "
            f"{list(outline.parameters)}"
        )
        registered = f"{names}" + (f"; {missing} are not" if missing else "")
        hint = None
        if missing and not unknown:
            hint = NEVER_INDEXED.format(missing[0])
        raise InformationError(subject, rule, registered, where=where, hint=hint)
    tensors = [name for name in names if name in outline.tensors]
    if tensors:
        rule = "an attribute is a number, and the function uses this one as a tensor"
        raise InformationError(subject, rule, ", ".join(tensors), where=where)
    for attribute in attributes:
        is_string = attribute.value_type == "str" and attribute.name in outline.strings
        if attribute.value_type not in NUMBERS and not is_string:
            rule = f"the attribute {attribute.name} of a loop kernel must be an int, a float or a bool"
            raise InformationError(subject, rule, attribute.value_type, where=where)


def for_schema(kernel: Any, schema: Schema, where: Any) -> Any:
    """Return a kernel for an operator with this schema; a function of ``@kernel`` becomes a loop kernel.

    A kernel that needs the schema gets it; others stay as they are. Raises ``SchemaError`` if the function
    has other tensors, attributes or outputs than the schema, or writes other arguments.
    """
    if callable(kernel) and hasattr(kernel, "compile_attrs"):
        from ...kernels.loop.kernel import LoopKernel
        from ...loops.frontend.parse import outline
        from ..kernel_options import options

        signature = outline(kernel)
        schema_names = {argument.name for _, argument in schema.attributes()}
        names = tuple(n for n in signature.parameters if n in schema_names or n not in signature.tensors)
        only_new = not schema.mutates and len(schema.fresh) == len(schema.returns)
        kernel = LoopKernel(kernel, names, **options(kernel), functional=bool(signature.inplace) and only_new)
    if isinstance(kernel, LoopKernelBase):
        _check_agreement(kernel, schema, where)
    return kernel.for_schema(schema, where) if isinstance(kernel, KernelBase) else kernel


def _check_agreement(kernel: Any, schema: Schema, where: Any) -> None:
    outline = kernel.outline
    tensors = [n for n in outline.parameters if n not in kernel.attributes]
    in_schema = {argument.name for _, argument in schema.attributes()}
    required = [n for n in kernel.attributes if n not in outline.defaults]
    aliases = {k: schema.tensor_positions.index(p) for k, p in _aliases(schema).items()}
    inplace = () if kernel.functional else outline.inplace
    rules = (
        (sorted(in_schema), sorted((in_schema & set(kernel.attributes)) | set(required)), "attributes"),
        (len(schema.tensor_positions), len(tensors), "tensors"),
        (len(schema.returns), len(outline.outputs), "outputs"),
        (aliases, {k: tensors.index(outline.parameters[p]) for k, p in inplace}, "outputs in place"),
    )
    for of_schema, of_function, what in rules:
        if of_schema != of_function:
            rule = f"the schema has {what} {of_schema}, and the function {outline.name} has {of_function}"
            raise SchemaError(schema.qualified_name, rule, where=f"{kernel.where}, operator at {where}")


def _aliases(schema: Schema) -> dict[int, int]:
    """Return the outputs that are arguments, each with the position of its argument."""
    return {k: schema.alias_of(k) for k in range(len(schema.returns)) if k not in schema.fresh}


def fixed_attributes(kernel: Any, information: Sequence[Information]) -> dict[str, Any]:
    """Return the attributes that no call passes: constants of the information, and defaults."""
    passed = [a.name for a in information[0].call_attributes] if information else []
    values = {n: v for n, v in kernel.outline.defaults.items() if n in kernel.attributes and n not in passed}
    if information:
        values.update({a.name: a.value for a in information[0].constants})
    return values


def definition(kernel: Any, schema: Schema, attributes: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function that runs the loops as Python: the meaning of the operator.

    It takes the arguments of the schema, and returns a tuple of the new outputs.
    """
    from ...loops.frontend.plain import plain

    function = plain(kernel.function)
    tensors = [n for n in kernel.outline.parameters if n not in kernel.attributes]

    def define(*args: Any, **kwargs: Any) -> Any:
        values = {**dict(zip((a.name for a in schema.arguments), args, strict=False)), **kwargs}
        arrays = [values.pop(schema.arguments[i].name) for i in schema.tensor_positions]
        if kernel.functional:
            arrays = [None if array is None else array.copy() for array in arrays]
        defaults = {a.name: a.default for _, a in schema.attributes() if a.default is not MISSING}
        numbers = {**attributes, **defaults, **values}
        result = function(**dict(zip(tensors, arrays, strict=True)), **numbers)
        outputs = result if isinstance(result, tuple) else (result,)
        return tuple(outputs[i] for i in schema.fresh)

    return define


def loop_inputs(kernel: Any) -> int:
    """Return how many parameters of a loop kernel are tensors."""
    return sum(name not in kernel.attributes for name in kernel.outline.parameters)


def completed(kernel: Any, information: Sequence[Information], name: str) -> tuple[Information, ...]:
    """Return the information, completed with the function's parameters and their defaults."""
    first = information[0] if information else Information(name, (), (), (), (), "CPU")
    outline = kernel.outline
    tensors = [n for n in outline.parameters if n not in kernel.attributes]
    attributes = (
        dataclasses.replace(a, default=outline.defaults.get(a.name, MISSING)) if a.default is MISSING else a
        for a in first.attributes
    )
    kinds = dict.fromkeys(outline.optional, "optional")
    inputs = first.inputs or tuple(TensorInfo(i, n, kinds.get(n, "required")) for i, n in enumerate(tensors))
    return (dataclasses.replace(first, inputs=inputs, attributes=tuple(attributes)), *information[1:])


def loop_outputs(kernel: Any, declared: int | None) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the number of outputs, and which of them are inputs written in place.

    Raises ``ArgumentValueError`` if the author declares another number.
    """
    outputs = len(kernel.outline.outputs)
    if declared is not None and declared != outputs:
        rule = (
            f"returns {outputs} tensor{'s' * (outputs != 1)}, and out_shape, out_dtype or the information "
            "declare another number"
        )
        raise ArgumentValueError(str(kernel), rule, declared, where=kernel.where)
    return outputs, kernel.outline.inplace
