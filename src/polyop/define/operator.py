"""``polyop.operator``: an operator from a schema, kernels, and rules that cannot be derived."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..call.bound import BoundOperator
from ..call.library_infer import LibraryBesideDims, library_halves
from ..call.operator import Kernel, Operator
from ..call.prepare import AttributeValues
from ..call.rule import Rule
from ..core.dims.claims import Claims, check_keywords
from ..core.dims.dims import Dims, elementwise
from ..core.dims.infer import infer_from_dims
from ..core.dtypes import dtype
from ..core.errors import ArgumentTypeError, InferError, SchemaError, about
from ..core.infer import FromSpecs, InferRule, ShapeAndDtype
from ..core.limits import shown
from ..core.origin import Origin, caller
from ..core.parse import parse
from ..core.schema import Schema
from ..core.takes import check_takes, checked_reference
from ..core.tracebacks import quiet
from ..kernels.base import Accepts, KernelBase, LoopKernelBase
from ..kernels.function_pointer import FunctionPointerKernel, is_function_pointer
from ..kernels.gridded import GriddedKernel
from ..kernels.opencl.kernel import OpenCLKernel, is_opencl
from ..kernels.python import PythonKernel
from ..kernels.triton.kernel import TritonKernel, is_triton
from .custom.loops import definition, for_schema

if TYPE_CHECKING:
    from typing_extensions import Unpack


@quiet
def operator(
    schema: str,
    kernels: Any,
    *,
    infer: Callable[..., Any] | str | None = None,
    gradient: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | str | None = None,
    dims: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    dtypes: Sequence[Any] | None = None,
    autocast: str | None = None,
    reference: Callable[..., Any] | None = None,
    grid: tuple[int, ...] | Callable[[dict[str, Any]], tuple[int, ...]] | None = None,
    constants: Mapping[str, Any] | None = None,
    docs: str = "",
    doc: str = "",
    **claims: Unpack[Claims],
) -> BoundOperator:
    """Return an operator that every host present can call.

    ``schema``    ``"namespace::name(Tensor x, float alpha=1.0) -> Tensor"``.
    ``kernels``   ``"lib.so:func"``, ``"source.cc:func"``, a function of arrays or ``@triton.jit``, a pointer,
                  a ``tvm_ffi.Function``, what :func:`polyop.kernel`, ``source``, ``prebuilt`` return; a list.
    ``dtypes``    the dtypes that the kernels take; inputs of others are refused. Else kernels must check.
    ``infer``     a function from specs and attributes to the output's :class:`Spec` (a tuple for several), or
                  the argument whose spec outputs have. Else ``<Func>InferShape`` and ``<Func>InferType``.
    ``gradient``  inputs, output, output gradient -> tuple of input gradients.
    ``jvp``       inputs, output, tuple of tangents (None: zero) -> output tangent. Else from ``gradient``.
    ``batch``     how ``vmap`` is done: ``"elementwise"``, or (in_dims, inputs) -> (outputs, out_dims).
    ``dims``, ``reference``  names of dimensions, ``"b i, i o -> b o"``; definition in NumPy, for ``check``.
    ``autocast``, ``docs`` (or ``doc``), ``grid``, ``constants``  what autocast casts floating inputs to;
                  ``help(op)``, else a kernel's docstring; what a Triton kernel is launched and compiled with.

    >>> import numpy as np
    >>> half = operator("doc::half(Tensor x) -> Tensor", lambda x: x / 2, infer="x")
    >>> half(np.array([3.0]))
    array([1.5])

    Raises ``SchemaError``, ``InferError``, ``LibraryError``, ``BuildError``.
    """
    origin = _origin(claims)
    parsed = checked_schema(parse(schema), {"gradient": gradient, "jvp": jvp}, origin)
    given = _kernels(_with_grid(kernels, grid, constants, parsed, origin), parsed, dtypes, origin, attributes)
    notation = checked_dims(dims, parsed, claims, origin, (batch, infer, given))
    value = Operator(
        schema=parsed,
        batch=check_batch(batch, parsed, notation),
        infer=infer_rule(parsed, infer, given, attributes or {}, notation),
        kernels=_with_dims(given, notation, origin),
        gradient=gradient,
        jvp=jvp,
        dims=notation,
        attributes=dict(attributes or {}),
        autocast=None if autocast is None else dtype(autocast).name,
        reference=_reference(reference, given, parsed, attributes or {}, origin),
        doc=docs or doc or _docstring(kernels),
        origin=origin,
    )
    return bound_operator(value)


def _origin(claims: Claims) -> Origin:
    """Return where the operator is defined; raises ``ArgumentTypeError`` for an unknown keyword."""
    check_keywords(claims, "operator", inspect.unwrap(operator).__kwdefaults__ or ())
    return caller()


def _docstring(kernels: Any) -> str:
    """Return what the author wrote in the first kernel that is a function of Python, or nothing."""
    functions = [one for one in _listed(kernels) if inspect.isfunction(one)]
    return (inspect.getdoc(functions[0]) or "") if functions else ""


def of_loop_kernel(schema: Schema, function: Callable[..., Any], doc: str, origin: Any) -> Operator:
    """Return the operator of a function of ``@kernel`` with a schema that was derived from it."""
    from ..rules.loops.rules import with_derived

    kernel_list = _kernels(function, checked_schema(schema, {}, origin), None, origin)
    infer = infer_rule(schema, None, kernel_list, {})
    reference = definition(kernel_list[0], schema, {})
    return with_derived(Operator(schema, infer, kernel_list, reference=reference, doc=doc, origin=origin))


def _listed(kernels: Any) -> Sequence[Any]:
    several = isinstance(kernels, (list, tuple)) and not is_function_pointer(kernels)  # scipy's are tuples
    return kernels if several else [kernels]


def _with_grid(kernels: Any, grid: Any, constants: Any, schema: Schema, origin: Any) -> list[Any]:
    """Return the kernels, where those that are launched with a grid have it, and their constants."""
    from ..kernels.reference_name import split_reference

    listed = [
        as_kernel(k) if isinstance(k, str) and is_opencl(split_reference(k, "kernels")[0]) else k
        for k in _listed(kernels)
    ]
    given = [TritonKernel(k, grid, constants or {}, origin) if is_triton(k) else k for k in listed]
    given = [k.with_grid(grid, constants, origin) if isinstance(k, OpenCLKernel) else k for k in given]
    if (grid is not None or constants is not None) and not any(isinstance(k, GriddedKernel) for k in given):
        _refuse_grid(schema.qualified_name, listed, origin)
    return given


def _refuse_grid(subject: str, kernels: Sequence[Any], origin: Any) -> None:
    """Raise ``ArgumentTypeError``: no kernel is launched with ``grid=`` or ``constants=``."""
    import importlib.util

    installed = importlib.util.find_spec("triton") is not None
    rule = "grid= and constants= are for a function of @triton.jit or a kernel in OpenCL C"
    rule += "" if installed else ", and triton is not installed"
    hint = "decorate the kernel with @triton.jit" if installed else "pip install triton"
    seen = ", ".join(shown(kernel) for kernel in kernels)
    raise ArgumentTypeError(subject, rule, seen, where=origin, hint=hint)


def _with_dims(kernels: tuple[Kernel, ...], dims: Dims | None, origin: Any) -> tuple[Kernel, ...]:
    return tuple(cast("KernelBase", kernel).for_dims(dims, origin) for kernel in kernels)


def _kernels(
    kernels: Any, schema: Schema, dtypes: Any, origin: Any, attributes: Mapping[str, Any] | None = None
) -> tuple[Kernel, ...]:
    if isinstance(dtypes, str):
        hint = f"write dtypes=[{dtypes!r}]"
        raise ArgumentTypeError(
            schema.qualified_name, "dtypes must be a list", repr(dtypes), where=origin, hint=hint
        )
    try:
        rows = None if dtypes is None else list(map(dtype, dtypes))
    except ArgumentTypeError as problem:
        raise about(f"{schema.qualified_name}: dtypes", problem, origin) from None
    given = tuple(as_kernel_of(schema, item, rows, origin, attributes) for item in _listed(kernels))
    return (*given, *_for_gpus(given))


def _for_gpus(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    """Yield, for each loop or Triton kernel of the CPU, the one for GPUs, compiled at its first call."""
    for kernel in kernels:
        if isinstance(kernel, (LoopKernelBase, TritonKernel)) and kernel.device == "cpu":
            yield kernel.on("cuda")


def bound_operator(operator: Operator) -> BoundOperator:
    """Return the operator bound, with the rules that follow from its dimensions or its loops."""
    if operator.dims is not None and operator.dims.data_sizes:
        from .data_sized import DataSizedOperator

        return DataSizedOperator(operator)
    from ..rules.dims import with_dims_batch  # here: to decorate a kernel loads no rules
    from ..rules.loops.rules import with_derived

    return BoundOperator(with_dims_batch(with_derived(operator)))


def _reference(
    reference: Any, kernels: Sequence[Any], schema: Schema, attributes: Mapping[str, Any], origin: Any
) -> Any:
    """Return the author's reference, or a loop kernel as a Python function; None for other kernels."""
    if reference is not None:
        return checked_reference(reference, schema, origin)
    if not kernels or not isinstance(kernels[0], LoopKernelBase):
        return None
    return definition(kernels[0], schema, attributes)


_UNSUPPORTED_TYPES = {"complex", "Layout", "MemoryFormat", "Generator"}
RESERVED_NAMESPACES = {
    "aten",
    "prim",
    "prims",
    "quantized",
    "torch",
    "c10d",
    "higher_order",
    "inductor",
    "custom",
}


def checked_schema(schema: Schema, rules: Mapping[str, Any], origin: Any) -> Schema:
    """Return the schema; raises ``SchemaError`` or ``ArgumentTypeError`` if names or rules do not fit it."""
    _check_names(schema, origin)
    for name, rule in rules.items():
        check_rule(name, rule, schema, origin)
    return schema


def check_rule(name: str, rule: Any, schema: Schema, where: Any) -> None:
    """Raise ``ArgumentTypeError`` unless ``rule`` is None or takes the inputs, the output and one more.

    Raises ``SchemaError`` for a rule of an operator that writes an argument.
    """
    if rule is None:
        return
    subject = schema.qualified_name
    if not callable(rule):
        raise ArgumentTypeError(subject, f"{name} must be a function", repr(rule), where=where)
    arguments = [argument.name for argument in schema.arguments] + [
        "out",
        "tangents" if name == "jvp" else "dout",
    ]
    check_takes(name, rule, arguments, schema, where)
    if schema.mutates:
        text = f"has an argument that is written in place, so it cannot have a {name} rule"
        raise SchemaError(subject, text, where=where, hint="return a new tensor instead")


def _check_names(schema: Schema, origin: Any) -> None:
    if not schema.namespace:
        raise SchemaError(schema.name, "the name needs a namespace, as in demo::scale", where=origin)
    if schema.namespace in RESERVED_NAMESPACES:
        rule = f"the namespace {schema.namespace!r} is reserved for PyTorch or polyop"
        raise SchemaError(schema.qualified_name, rule, where=origin, hint="choose another namespace")
    for argument in schema.arguments:
        if argument.type.base in _UNSUPPORTED_TYPES:
            rule = f"argument {argument.name} is of type {argument.type}, which cannot be passed to a kernel"
            raise SchemaError(schema.qualified_name, rule, where=origin)


def as_kernel_of(
    schema: Schema,
    value: Any,
    dtypes: Sequence[Any] | None,
    origin: Any,
    attributes: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return a kernel of an operator; raises ``ArgumentTypeError`` if a function cannot be called so."""
    kernel = as_kernel(for_schema(value, schema, origin), dtypes)
    cast("KernelBase", kernel).check_declared(schema.qualified_name)
    if type(kernel) is PythonKernel:  # other kinds call their function in their own way
        names = [argument.name for argument in schema.arguments]
        check_takes("the kernel", kernel.function, names, schema, origin, attributes or ())
    return kernel


def as_kernel(value: Any, dtypes: Sequence[Any] | None = None) -> Kernel:
    """Return a kernel for any form that ``kernels=`` takes."""
    from pathlib import Path  # with what reads and builds libraries: not at import

    from ..kernels.library import prebuilt
    from ..kernels.reference_name import split_reference
    from ..kernels.source import is_source, source
    from ..kernels.tvm_ffi import is_function

    if isinstance(value, str):
        path, function = split_reference(value, "kernels")
        return (
            source(path, function=function, dtypes=dtypes)
            if is_source(path) or is_opencl(path)
            else prebuilt(Path(path), function, dtypes=dtypes)
        )
    if isinstance(value, KernelBase):
        return _restricted(cast("Kernel", value), dtypes)
    if is_function(value):
        return prebuilt(value, dtypes=dtypes)
    if is_function_pointer(value):
        return _restricted(FunctionPointerKernel(value), dtypes)
    if is_triton(value):
        TritonKernel(value, None, {}, caller())  # raises: it has no grid
    if callable(value):
        return _restricted(PythonKernel(value), dtypes)
    rule = "must be 'file:function', a Python function, or a kernel of polyop.source or polyop.prebuilt"
    hint = (
        "polyop.source(path, function=...) or polyop.prebuilt(path, ...) take a path"
        if isinstance(value, Path)
        else None
    )
    raise ArgumentTypeError("kernels", rule, type(value).__name__, where=caller(), hint=hint)


def _restricted(kernel: Kernel, dtypes: Sequence[Any] | None) -> Kernel:
    """Return a kernel that takes only these dtypes; raises ``ArgumentTypeError`` if it has its own."""
    if dtypes is None:
        return kernel
    if kernel.accepts is None:
        rule = "takes no dtypes=, because this kind of kernel determines its dtypes itself"
        raise ArgumentTypeError(str(kernel), rule, where=caller())
    chosen = tuple(dtype(value) for value in dtypes)
    if kernel.accepts.dtypes is not None and not set(chosen) <= set(kernel.accepts.dtypes):
        rule = f"takes {', '.join(map(str, kernel.accepts.dtypes))}, so dtypes= must name no other"
        raise ArgumentTypeError(str(kernel), rule, ", ".join(map(str, chosen)), where=caller())
    restricted: Any = copy.copy(kernel)  # the author may use the same kernel elsewhere, unrestricted
    restricted.accepts = Accepts(kernel.device, chosen)
    return cast("Kernel", restricted)


def check_batch(batch: Any, schema: Schema, dims: Dims | None) -> Any:
    """Return a batch rule: None, the author's function or a ``Rule``; else raises ``ArgumentTypeError``.

    It is None if ``"elementwise"`` was short for ``dims``, from which a rule is derived.
    """
    from ..rules.elementwise import ElementwiseBatch  # here: to decorate a kernel loads no rules

    if batch == "elementwise":
        return ElementwiseBatch() if dims is None else None
    if callable(batch) and not isinstance(batch, Rule):
        check_takes("batch", batch, ("in_dims", "inputs"), schema, None)
    if batch is None or callable(batch):
        return batch
    rule = "batch must be 'elementwise' or a function"
    raise ArgumentTypeError(schema.qualified_name, rule, repr(batch), where=caller())


def checked_dims(
    dims: str | None, schema: Schema, claims: Claims, origin: Any, others: tuple[Any, Any, Sequence[Kernel]]
) -> Dims | None:
    """Return the value of ``dims=`` and its claims, or of its short form; None without.

    ``others`` are ``batch``, ``infer`` and the kernels. Raises ``SchemaError`` or ``TypeError``.
    """
    given = given_dims(dims, schema, claims, origin)
    return elementwise_dims(schema, *others, origin) if given is None else beside_batch(given, others[0])


def given_dims(dims: str | None, schema: Schema, claims: Claims, origin: Any) -> Dims | None:
    """Return the value of ``dims=`` and its claims, None without; raises ``SchemaError``."""
    if dims is not None:
        return Dims.parse(dims, schema, **claims, origin=origin)
    for name, value in claims.items():
        if value:
            rule = f"{name}= is about dimensions, and the operator has no dims="
            hint = 'give dims=, as in dims="b i -> b"'
            raise SchemaError(schema.qualified_name, rule, where=origin, hint=hint)
    return None


def beside_batch(dims: Dims, batch: Any) -> Dims:
    """Return the value of ``dims=``; raises ``SchemaError`` if ``batch`` is its short form."""
    if batch == "elementwise":
        rule = 'batch="elementwise" repeats what dims= says of shapes'
        hint = 'give dims="... -> ...", parallel="..." alone'
        raise SchemaError(dims.operator, rule, where=dims.origin, hint=hint)
    return dims


def elementwise_dims(
    schema: Schema, batch: Any, infer: Any, kernels: Sequence[Kernel], origin: Any
) -> Dims | None:
    """Return the dimensions that ``batch="elementwise"`` is short for, None for another ``batch``.

    It is also None if a function of the author infers the shapes, in Python or in a library: that function
    decides which shapes fit, and it may broadcast, as dims never do.
    """
    if batch != "elementwise" or callable(infer):
        return None
    kernel: Any = next((k for k in kernels if k.native), None)
    if (
        infer is None
        and schema.fresh
        and kernel is not None
        and kernel.has_infer_shape
        and kernel.has_infer_type
    ):
        return None
    return elementwise(schema, origin)


def infer_rule(
    schema: Schema,
    infer: Any,
    kernels: Sequence[Kernel],
    attributes: Mapping[str, Any],
    dims: Dims | None = None,
) -> InferRule:
    """Return the author's infer rule, or that of the first library kernel; else raises ``InferError``."""
    if dims is not None:
        return _beside_dims(infer_from_dims(dims, schema, infer), schema, infer, kernels, attributes)
    if infer is not None:
        return FromSpecs(infer, schema)
    if not schema.fresh:
        return ShapeAndDtype((), (), 0, schema.qualified_name)
    kernel: Any = next((k for k in kernels if k.native), None)
    halves = library_halves(schema, kernels, AttributeValues(attributes))
    if halves is None or kernel is None or not (kernel.has_infer_shape and kernel.has_infer_type):
        hint = "give infer=: the name of an argument of the same spec, or a function from specs to the Spec"
        seen = None
        if kernel is not None:
            companions = {"InferShape": kernel.has_infer_shape, "InferType": kernel.has_infer_type}
            missing = [kernel.name + companion for companion, present in companions.items() if not present]
            seen = f"{kernel} without {' and '.join(missing)}"
        rule = "the shape and dtype of the output cannot be derived"
        raise InferError(schema.qualified_name, rule, seen, where=caller(), hint=hint)
    return ShapeAndDtype(*halves, len(schema.fresh), schema.qualified_name)


def _beside_dims(
    rule: InferRule, schema: Schema, infer: Any, kernels: Sequence[Kernel], attributes: Mapping[str, Any]
) -> InferRule:
    """Return the rule of ``dims=``, with what the library of the first native kernel infers.

    The author's ``infer=`` takes precedence over the library.
    """
    kernel: Any = next((k for k in kernels if k.native), None)
    halves = library_halves(schema, kernels, AttributeValues(attributes))
    if infer is not None or halves is None or not schema.fresh or isinstance(kernel, LoopKernelBase):
        return rule
    return LibraryBesideDims(rule, schema, kernel, halves)
