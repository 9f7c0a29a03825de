"""Runs an operator: ``launch`` writes NumPy arrays, ``evaluate`` returns new values in any namespace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.dtypes import DTYPES, DType
from ...core.errors import ArgumentTypeError, ArgumentValueError, KernelError, PolyopError, UnsupportedError
from ...core.origin import of_function
from ...core.schema import Argument
from ...core.untraced import untraced
from .arguments import is_tensor, match, shown, tensors, written
from .registry import core_loops, find, on_replacement
from .row import Row

# computed in float32 and rounded once at the end, as on Ascend's vector units
_SMALL_FLOATS = {row.numpy for row in DTYPES if row.kind == "float" and row.itemsize < 4}


@untraced
def launch(name: str, args: Sequence[Any]) -> None:
    """Run an operator on NumPy arrays, as the two phases of aclnn do on Ascend.

    ``args`` are in the order of the prototype, or have the outputs last. Inputs may have any strides.
    Results are cast to the outputs' dtypes. Division by zero and overflow give inf and nan.

    >>> out = np.empty(2)
    >>> launch("aclnnMul", [np.array([1.0, 2.0]), np.array([3.0, 4.0]), out]); out
    array([3., 8.])

    Raises ``UnsupportedError`` for an unknown name, ``ArgumentTypeError`` and
    ``ArgumentValueError`` for arguments that the prototype does not allow.
    """
    row = find(name)
    run(row, match(row, args))


@untraced
def writes(name: str, count: int) -> tuple[tuple[int, ...], ...]:
    """Return the possible positions of the written arguments among ``count``; () for an unknown name.

    >>> writes("aclnnAdd", 4), writes("aclnnInplaceMul", 2), writes("aclnnNobody", 2)
    (((3,),), ((0,),), ())
    """
    try:
        return written(find(name), count)
    except UnsupportedError:
        return ()


def run(row: Row, values: Sequence[Any]) -> None:
    """Run an operator on all arguments of its prototype, and write the outputs among them."""
    _check_written(row, values)
    if row.direct is not None:
        row.direct(values)
        return
    with np.errstate(all="ignore"):
        results = call(row, numpy_namespace(), [_input(values[i]) for i in row.inputs])
        if len(results) > 1 and _overlap(results, values, row):
            results = [np.array(r) if is_tensor(r) else r for r in results]
        for i, result in zip(row.written, results, strict=True):
            _write(row, row.schema.arguments[i], values[i], result)


def evaluate(name: str, args: Sequence[Any], xp: Any) -> tuple[Any, ...]:
    """Return new values of the written arguments, as arrays of the namespace ``xp``.

    Nothing is written, so a namespace with gradients (``array_api_compat.torch``) can differentiate
    the call. Pure outputs in ``args`` may be None or missing; a value for a given output is cast to its
    dtype. Raises what ``launch`` raises, and ``UnsupportedError`` for an operator of a library.
    """
    row = find(name)
    if row.direct is not None:
        rule = "is machine code: there is no array function to evaluate or differentiate"
        raise UnsupportedError(row.name, rule, where=row.where)
    values = match(row, args, outputs=False)
    inputs = [_named(xp, values[i]) if isinstance(values[i], DType) else values[i] for i in row.inputs]
    with np.errstate(all="ignore"):
        results = call(row, xp, inputs)
    returned = []
    for i, result in zip(row.written, results, strict=True):
        out, argument = values[i], row.schema.arguments[i]
        if is_tensor(out) and result is not None:
            _check_shape(row, argument.name, out, result)
            result = xp.astype(result, out.dtype)  # noqa: PLW2901 - cast to the output's dtype
        returned.append(result)
    return tuple(returned)


def call(row: Row, xp: Any, inputs: Sequence[Any]) -> list[Any]:
    """Return one value per written argument, computed by the row's function."""
    try:
        returned = row.function(xp, *inputs)
    except PolyopError:
        raise
    except Exception as problem:
        if row.where is not None:
            raise  # an author's function: its own traceback is most useful
        seen = ", ".join(map(shown, tensors(inputs)))
        rule = f"cannot take these arguments: {problem}"
        raise ArgumentValueError(row.name, rule, seen, hint=row.shown) from problem
    results = list(returned) if isinstance(returned, tuple) else [returned]
    if len(results) != len(row.written):
        rule = f"must return {len(row.written)} values, one for each written argument"
        raise KernelError(row.name, rule, len(results), where=of_function(row.function))
    return results


@lru_cache(maxsize=1)
def numpy_namespace() -> Any:
    """Return NumPy with the names of the array API standard."""
    import array_api_compat.numpy as namespace

    return namespace


def _named(xp: Any, row: DType) -> Any:
    return getattr(xp, row.name, row.numpy)


def _input(value: Any) -> Any:
    """Return an argument for the array function: read-only, with small floats as float32."""
    if isinstance(value, list):
        return [_input(item) for item in value]
    if isinstance(value, DType):
        return np.dtype(np.float32) if value.numpy in _SMALL_FLOATS else value.numpy
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype in _SMALL_FLOATS:
        return value.astype(np.float32)
    view = value.view()
    view.flags.writeable = False
    return view


def _check_written(row: Row, values: Sequence[Any]) -> None:
    for i in row.written:
        argument = row.schema.arguments[i]
        for out in tensors([values[i]]):
            subject = f"{row.name}: argument {argument.name}"
            if not isinstance(out, np.ndarray):
                raise ArgumentTypeError(subject, "must be a NumPy array here", type(out).__name__)
            if not out.flags.writeable:
                raise ArgumentValueError(subject, "is written", "a read-only array", hint="pass a copy")
    _check_dtype(row, values)


def _check_dtype(row: Row, values: Sequence[Any]) -> None:
    """Raise if the first output differs from a dtype attribute: the result would be rounded twice."""
    declared = next((v for v in values if isinstance(v, DType)), None)
    out = values[row.written[0]]
    if declared is None or not isinstance(out, np.ndarray):
        return
    if row.of_pytorch and declared.kind == "complex" and out.dtype.kind == "f":
        return  # a norm is computed in this dtype, and is real
    if out.dtype != declared.numpy:
        name = row.schema.arguments[row.written[0]].name
        raise ArgumentTypeError(
            f"{row.name}: argument {name}", f"must be {declared}, as dtype says", shown(out)
        )


def _overlap(results: Sequence[Any], values: Sequence[Any], row: Row) -> bool:
    written = list(tensors([values[i] for i in row.written]))
    return any(np.may_share_memory(r, out) for r in tensors(results) for out in written)


def _write(row: Row, argument: Argument, out: Any, result: Any) -> None:
    if out is None or result is None:
        return
    if not isinstance(out, list):
        result = np.asarray(result)
        _check_shape(row, argument.name, out, result)
        np.copyto(out, result, casting="unsafe")
        return
    if not isinstance(result, (list, tuple)) or len(result) != len(out):
        seen = len(result) if isinstance(result, (list, tuple)) else type(result).__name__
        raise ArgumentValueError(
            f"{row.name}: argument {argument.name}", f"the result has {seen} tensors", len(out)
        )
    for number, (item, value) in enumerate(zip(out, result, strict=True)):
        _check_shape(row, f"{argument.name}[{number}]", item, value)
    copies = [np.array(value) for value in result]
    for item, value in zip(out, copies, strict=True):
        np.copyto(item, value, casting="unsafe")


def _check_shape(row: Row, name: str, out: Any, result: Any) -> None:
    if tuple(out.shape) != tuple(result.shape):
        rule = f"the result has shape {tuple(result.shape)}"
        hint = row.shown
        raise ArgumentValueError(
            f"{row.name}: argument {name}", rule, f"an output of {tuple(out.shape)}", hint=hint
        )


def connect() -> None:
    """Give the native core the functions that C++ modules call, with the ufuncs registered now."""
    from ... import _core

    _core.connect(launch, core_loops(), writes)


on_replacement.append(connect)
