"""Export models with operators to ONNX, and run them in ONNX Runtime with the same kernels.

::

    program = torch.onnx.export(model, inputs, dynamo=True, custom_translation_table=translation_table())
    program.save("model.onnx")
    session = onnxruntime.InferenceSession("model.onnx", session_options())

A call of ``myops::scale`` is a node ``scale`` of the domain ``myops``, version :data:`OPSET`.
:mod:`polyop.graph.onnx_attributes` describes its inputs and attributes.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .. import _core
from ..call import registry
from ..call.operator import Operator
from ..core.arguments import bind
from ..core.errors import ArgumentTypeError, ArgumentValueError, HostError, SchemaError
from . import onnx_session
from .onnx_attributes import dtype_name, inputs_and_attributes, refusal

__all__ = ["OPSET", "library", "session_options", "translation_table"]

OPSET = 1
"""The version of every domain. It never changes: the operator's schema decides what a node means."""


def translation_table(*operators: Any) -> dict[Any, Callable[..., Any]]:
    """Return the ``custom_translation_table`` for ``torch.onnx.export`` with these operators.

    Without arguments it has all operators of this process that ONNX can hold. Raises ``UnsupportedError``
    for an operator that ONNX cannot hold, with the argument and the rule, and ``HostError`` without
    PyTorch or onnxscript.
    """
    _need("torch", "torch")
    _need("onnxscript", "onnx onnxscript")
    table = {}
    if not operators:
        for bound in registry.operators():
            with contextlib.suppress(SchemaError):  # PyTorch does not take its schema, so no model holds it
                if refusal(bound.operator) is None:
                    table[bound.torch] = _translation(bound.operator)
    for bound in operators:
        if not isinstance(getattr(bound, "operator", None), Operator):
            raise ArgumentTypeError("translation_table", "takes operators", repr(bound))
        refused = refusal(bound.operator)
        if refused is not None:
            raise refused
        table[bound.torch] = _translation(bound.operator)
    return table


def _translation(operator: Operator) -> Callable[..., Any]:
    def translate(*args: Any, **kwargs: Any) -> Any:
        return _node(operator, bind(operator.schema, args, kwargs, operator.origin))

    translate.__name__ = translate.__qualname__ = operator.schema.name
    translate.__doc__ = f"Add a node of {operator.name}."
    return translate


def _node(operator: Operator, values: tuple[Any, ...]) -> Any:
    """Add the node of a call to the graph that is being exported; return its outputs."""
    evaluator, ir = importlib.import_module("onnxscript.evaluator"), importlib.import_module("onnxscript.ir")
    arguments = list(values)
    for i, argument in operator.schema.attributes():
        items = values[i] if isinstance(values[i], (list, tuple)) else [values[i]]
        if any(isinstance(item, ir.Value) for item in items):
            rule = "must be known when the model is exported: ONNX attributes are constants"
            hint = "export with this size static, or pass it as a tensor"
            subject = f"{operator.name}: argument {argument.name}"
            raise ArgumentValueError(subject, rule, "a value of the graph", where=operator.origin, hint=hint)
        if argument.type.base == "ScalarType":
            dtypes = list(map(dtype_name, items))
            arguments[i] = dtypes if isinstance(values[i], (list, tuple)) else dtypes[0]
    inputs, attributes = inputs_and_attributes(operator, arguments)
    domain, name = onnx_session.node_type(operator)
    node = ir.Node(
        domain,
        name,
        inputs,
        [_attribute(ir, key, value) for key, value in attributes.items()],
        num_outputs=len(operator.schema.returns),
        version=OPSET,
    )
    evaluator.default().nodes.append(node)
    return node.outputs[0] if len(node.outputs) == 1 else node.outputs


def _attribute(ir: Any, name: str, value: Any) -> Any:
    if hasattr(value, "dtype"):
        if value.dtype != object:
            return ir.AttrTensor(name, ir.Tensor(value))
        texts = [text.encode() for text in value.tolist()]
        return ir.AttrTensor(name, ir.StringTensor(texts, shape=ir.Shape(value.shape)))
    if isinstance(value, list):
        floats = any(isinstance(item, float) for item in value)
        return (ir.AttrFloat32s if floats else ir.AttrInt64s)(name, value)
    kinds = {int: ir.AttrInt64, float: ir.AttrFloat32, str: ir.AttrString}
    return kinds[type(value)](name, value)


def library() -> str:
    """Return the path of the library for ``SessionOptions.register_custom_ops_library``.

    It is polyop's native core. A session has the operators that this process had defined when the
    library was registered.

    >>> import os
    >>> os.path.basename(library()).split(".")[0]
    '_core'
    """
    return str(_core.__file__)


_registered: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
"""Session options -> the rows of the operators that they have."""


def session_options(options: Any = None) -> Any:
    """Return ``onnxruntime.SessionOptions`` with the operators of this process; ``options`` get them too.

    Operators that are defined later are not included, and an operator must live as long as its
    sessions. Options that have all operators already are returned unchanged. Raises ``HostError``
    without ONNX Runtime 1.16 or later, and for options with polyop's operators when others have been
    defined since: ONNX Runtime does not add to them.
    """
    runtime = _need("onnxruntime", "onnxruntime")
    session = runtime.SessionOptions() if options is None else options
    rows = onnx_session.rows()
    if session in _registered:
        later = sorted({row[2] for row in rows if row not in _registered[session]})
        if later:
            rule = "these options have polyop's operators already, and take none that were defined since"
            raise HostError("onnxruntime", rule, ", ".join(later), hint="begin with new SessionOptions")
        return session
    try:
        session.register_custom_ops_library(library())
    except Exception as problem:  # noqa: BLE001 - its errors have no class in common
        raise HostError("onnxruntime", f"does not take polyop's operators: {problem}") from None
    _registered[session] = rows
    return session


@functools.cache
def _need(module: str, packages: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        rule = f"could not be imported: {problem}"
        raise HostError(module, rule, hint=f"pip install {packages}") from None
