"""Primitives, operations as classes: ``ops.Mul()(x, y)``, ``ops.ReduceSum(keep_dims=True)(x, 0)``.

A row of the table has the function that a primitive calls, and the arguments of its constructor.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from ...core.errors import ArgumentTypeError, UnsupportedError
from ..interpose import wrap
from . import creation, elementwise, functions, losses

FUNCTIONS = {**elementwise.FUNCTIONS, **functions.FUNCTIONS, **losses.FUNCTIONS, **creation.FUNCTIONS}


class Primitive:
    """An operation as an object: the constructor takes its attributes, a call computes."""

    _function: Callable[..., Any]
    _options: tuple[tuple[str, Any], ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = [name for name, _ in self._options]
        if len(args) > len(names) or kwargs.keys() - set(names[len(args) :]):
            rule = f"takes {', '.join(names) or 'no arguments'}"
            raise ArgumentTypeError(type(self).__name__, rule, f"{args} {kwargs}")
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        self.attributes: dict[str, Any] = {name: values.get(name, default) for name, default in self._options}

    @property
    def name(self) -> str:
        """The primitive's name."""
        return type(self).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute."""
        return self._function(*args, **kwargs, **self.attributes)

    def __repr__(self) -> str:
        return f"Prim[{self.name}]<{', '.join(f'{k}={v}' for k, v in self.attributes.items())}>"

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Return the primitive unchanged: no kernel here reads such attributes."""
        del name, value
        return self

    def set_device(self, device_target: str) -> Primitive:
        """Return the primitive; raises ``UnsupportedError`` for a device other than "CPU"."""
        if device_target != "CPU":
            raise UnsupportedError(
                self.name, "runs where its tensors are", hint="move them: x.move_to('GPU')"
            )
        return self


def _matmul(x: Any, y: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    a = torch.transpose(x, -1, -2) if transpose_a else x
    b = torch.transpose(y, -1, -2) if transpose_b else y
    return wrap(torch.matmul(a, b))


def _gelu(x: Any) -> Any:
    return wrap(torch.nn.functional.gelu(x, approximate="tanh"))


def _print(*values: Any) -> None:
    print(*values)  # noqa: T201 - that is what ops.Print does


REDUCTION = (("keep_dims", False),)
AXIS = (("axis", 0),)
LAST_AXIS = (("axis", -1),)
MATRICES = (("transpose_a", False), ("transpose_b", False))

# primitives without arguments of their own, whose function has the same name in small letters
_PLAIN = (
    "Abs", "Add", "Assign", "AssignAdd", "AssignSub", "Atan2", "Cast", "Ceil", "Cos", "Depend", "Div",
    "Equal", "Erf", "Exp", "ExpandDims", "Eye", "Floor", "FloorDiv", "FloorMod", "Greater", "GreaterEqual",
    "Less", "LessEqual", "Log", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mul",
    "Neg", "NotEqual", "Ones", "OnesLike", "Pow", "Rank", "Reciprocal", "Reshape", "Rsqrt", "Select",
    "Shape", "Sigmoid", "Sign", "Sin", "Size", "Sqrt", "Square", "Sub", "Tan", "Tanh", "Tile", "Transpose",
    "Zeros", "ZerosLike",
)  # fmt: skip

# primitive: (function, or its name), (constructor's arguments with defaults)
ROWS: dict[str, tuple[Any, tuple[tuple[str, Any], ...]]] = {
    **{name: (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(), ()) for name in _PLAIN},
    "AddN": ("addn", ()), "GatherD": ("gather_elements", ()), "GeLU": (_gelu, ()), "Identity": (wrap, ()),
    "IsFinite": ("isfinite", ()), "IsInf": ("isinf", ()), "IsNan": ("isnan", ()), "Print": (_print, ()),
    "ReLU": ("relu", ()), "ReLU6": ("relu6", ()),
    "BatchMatMul": (_matmul, MATRICES), "MatMul": (_matmul, MATRICES),
    "BroadcastTo": ("broadcast_to", (("shape", ()),)),
    "Concat": ("concat", AXIS), "Stack": ("stack", AXIS), "Unstack": ("unstack", AXIS),
    "Gather": ("gather", (("batch_dims", 0),)),
    "Softmax": ("softmax", LAST_AXIS), "LogSoftmax": ("log_softmax", LAST_AXIS),
    "ReduceAll": ("all", REDUCTION), "ReduceAny": ("any", REDUCTION), "ReduceMax": ("amax", REDUCTION),
    "ReduceMean": ("mean", REDUCTION), "ReduceMin": ("amin", REDUCTION),
    "ReduceSum": ("reduce_sum", REDUCTION),
    "Squeeze": ("squeeze", (("axis", None),)),
}  # fmt: skip


def _make(name: str, function: Any, options: tuple[tuple[str, Any], ...]) -> type[Primitive]:
    call = FUNCTIONS[function] if isinstance(function, str) else function
    body = {"_function": staticmethod(call), "_options": options, "__doc__": f"The primitive {name}."}
    return type(name, (Primitive,), body)


PRIMITIVES: dict[str, type[Primitive]] = {name: _make(name, *row) for name, row in ROWS.items()}
