"""Primitives, operations as classes: ``ops.Mul()(x, y)``, ``ops.ReduceSum(keep_dims=True)(x, 0)``.

A row of the table has the function that a primitive calls, and the arguments of its constructor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...core.errors import ArgumentTypeError, UnsupportedError
from ..interpose import wrap
from . import creation, elementwise, functions, losses
from .arguments import as_tensor, for_torch

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


def _real_div(x: Any, y: Any) -> Any:
    x, y = as_tensor(x), as_tensor(y)
    whole = not any(value.is_floating_point() or value.is_complex() for value in (x, y))
    return wrap(torch.div(x, y, rounding_mode="trunc" if whole else None))


def _split(x: Any, axis: int = 0, output_num: int = 1) -> Any:
    return wrap(torch.tensor_split(x, output_num, axis))


def _arg_with_value(name: str) -> Callable[..., Any]:
    def call(x: Any, axis: int = 0, keep_dims: bool = False) -> Any:
        values, indices = getattr(torch, name)(x, axis, keep_dims)
        return wrap((indices, values))

    return call


def _arg_extreme(name: str) -> Callable[..., Any]:
    def call(x: Any, axis: int = -1, output_type: Any = torch.int32) -> Any:
        return wrap(getattr(torch, name)(x, axis).to(for_torch(output_type)))

    return call


def _print(*values: Any) -> None:
    print(*values)  # noqa: T201 - that is what ops.Print does


REDUCTION = (("keep_dims", False),)
AXIS = (("axis", 0),)
LAST_AXIS = (("axis", -1),)
MATRICES = (("transpose_a", False), ("transpose_b", False))

# primitive: (function, or its name), (constructor's arguments with defaults)
ROWS: dict[str, tuple[Any, tuple[tuple[str, Any], ...]]] = {
    "Abs": ("abs", ()), "Add": ("add", ()), "AddN": ("addn", ()), "Assign": ("assign", ()),
    "AssignAdd": ("assign_add", ()), "AssignSub": ("assign_sub", ()), "Atan2": ("atan2", ()),
    "BatchMatMul": (_matmul, MATRICES), "BroadcastTo": ("broadcast_to", (("shape", ()),)),
    "Cast": ("cast", ()), "Ceil": ("ceil", ()), "Concat": ("concat", AXIS), "Cos": ("cos", ()),
    "Depend": ("depend", ()), "Div": ("div", ()), "Equal": ("equal", ()), "Erf": ("erf", ()),
    "Exp": ("exp", ()), "ExpandDims": ("expand_dims", ()), "Eye": ("eye", ()),
    "Floor": ("floor", ()), "FloorDiv": ("floor_div", ()), "FloorMod": ("floor_mod", ()),
    "GatherD": ("gather_elements", ()), "GeLU": (_gelu, ()), "Gather": ("gather", (("batch_dims", 0),)),
    "Greater": ("greater", ()), "GreaterEqual": ("greater_equal", ()), "Identity": (wrap, ()),
    "IsFinite": ("isfinite", ()), "IsInf": ("isinf", ()), "IsNan": ("isnan", ()), "Less": ("less", ()),
    "LessEqual": ("less_equal", ()), "Log": ("log", ()), "LogSoftmax": ("log_softmax", LAST_AXIS),
    "LogicalAnd": ("logical_and", ()), "LogicalNot": ("logical_not", ()), "LogicalOr": ("logical_or", ()),
    "MatMul": (_matmul, MATRICES), "Maximum": ("maximum", ()), "Minimum": ("minimum", ()),
    "Mul": ("mul", ()), "Neg": ("neg", ()), "NotEqual": ("not_equal", ()), "OnesLike": ("ones_like", ()),
    "Ones": ("ones", ()), "Pow": ("pow", ()), "Print": (_print, ()), "Rank": ("rank", ()),
    "ReLU": ("relu", ()), "ReLU6": ("relu6", ()), "RealDiv": (_real_div, ()), "Reciprocal":
    ("reciprocal", ()),
    "ReduceAll": ("all", REDUCTION), "ReduceAny": ("any", REDUCTION), "ReduceMax": ("amax", REDUCTION),
    "ReduceMean": ("mean", REDUCTION), "ReduceMin": ("amin", REDUCTION),
    "ReduceSum": ("reduce_sum", REDUCTION), "Reshape": ("reshape", ()), "Rsqrt": ("rsqrt", ()),
    "Select": ("select", ()), "Shape": ("shape", ()), "Sigmoid": ("sigmoid", ()), "Sign": ("sign", ()),
    "Sin": ("sin", ()), "Size": ("size", ()), "Softmax": ("softmax", LAST_AXIS),
    "Split": (_split, (("axis", 0), ("output_num", 1))), "Sqrt": ("sqrt", ()), "Square": ("square", ()),
    "Squeeze": ("squeeze", (("axis", None),)), "Stack": ("stack", AXIS), "Sub": ("sub", ()),
    "Tan": ("tan", ()), "Tanh": ("tanh", ()), "Tile": ("tile", ()), "Transpose": ("transpose", ()),
    "Unstack": ("unstack", AXIS), "Zeros": ("zeros", ()), "ZerosLike": ("zeros_like", ()),
    "Argmax": (_arg_extreme("argmax"), (("axis", -1), ("output_type", torch.int32))),
    "Argmin": (_arg_extreme("argmin"), (("axis", -1), ("output_type", torch.int32))),
    "ArgMaxWithValue": (_arg_with_value("max"), (("axis", 0), ("keep_dims", False))),
    "ArgMinWithValue": (_arg_with_value("min"), (("axis", 0), ("keep_dims", False))),
}  # fmt: skip


def _make(name: str, function: Any, options: tuple[tuple[str, Any], ...]) -> type[Primitive]:
    call = FUNCTIONS[function] if isinstance(function, str) else function
    body = {"_function": staticmethod(call), "_options": options, "__doc__": f"The primitive {name}."}
    return type(name, (Primitive,), body)


PRIMITIVES: dict[str, type[Primitive]] = {name: _make(name, *row) for name, row in ROWS.items()}
