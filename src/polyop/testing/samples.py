"""Sample arguments: the caller's, or drawn from specs or from the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..call.host import host_of, map_tensors
from ..call.operator import Operator
from ..call.ranks import ranks_of
from ..core.arguments import bind
from ..core.dims.entry import Entry, evaluate
from ..core.dtypes import DType, dtype
from ..core.errors import ArgumentTypeError, InferError
from ..core.schema import MISSING
from ..core.spec import Spec

DEFAULT_SHAPE = (3, 4)
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67)
MAX_ATTEMPTS = 1000
"""How many sizes are drawn for the dimensions of ``dims=`` before a shape is the default one."""


def arguments(
    operator: Operator, args: Sequence[Any], attributes: Mapping[str, Any], seed: int
) -> tuple[Any, ...]:
    """Return arguments in the order of the schema; each tensor is a new NumPy array.

    ``args`` are arrays, tensors of a framework, or specs to draw values from. Without any, each
    required tensor is drawn in a shape that fits ``dims=``; without ``dims=``, in the default shape.
    Raises ``ArgumentTypeError`` for anything else.
    """
    rng = np.random.default_rng(seed)
    samples = args or _from_schema(operator, attributes)
    bound = bind(operator.schema, samples, attributes, operator.origin)

    def array(name: str, value: Any, _: Any) -> Any:
        if isinstance(value, Spec):
            return draw(value.shape, value.dtype, rng)
        return to_array(f"{operator.name}: sample of {name}", value)

    return map_tensors(operator, bound, array)


def to_array(subject: str, value: Any) -> Any:
    """Return a dense copy of an array or a framework's tensor; raises ``ArgumentTypeError``."""
    host = host_of(value)
    if host is not None and host.name == "torch":
        from ..hosts.torch.tensors import over

        return over(value).copy()
    if host is None and not isinstance(value, (bool, int, float, complex)):
        raise ArgumentTypeError(subject, "must be a tensor, an array or a Spec", type(value).__name__)
    array = np.asarray(value)
    return np.array(array, dtype=dtype(array.dtype).numpy, order="C")


def draw(shape: Sequence[int], kind: DType, rng: np.random.Generator) -> Any:
    """Return random values of both signs, at least 1/4 away from 0 where the dtype allows it.

    Many operators have a kink at 0, where no difference quotient equals the gradient.
    """
    size = tuple(shape)
    if kind.kind == "bool":
        return rng.integers(0, 2, size).astype(np.bool_)
    if kind.kind in ("int", "uint"):
        return rng.integers(-4 if kind.kind == "int" else 0, 5, size).astype(kind.numpy)
    values = rng.uniform(0.25, 1.75, size) * rng.choice([-1.0, 1.0], size)
    if kind.kind == "complex":
        return (values + 1j * rng.uniform(0.25, 1.75, size)).astype(kind.numpy)
    drawn = values.astype(kind.numpy)
    return np.where(np.isnan(drawn), np.abs(values).astype(kind.numpy), drawn)  # a dtype may have no sign


def registered_dtypes(operator: Operator) -> tuple[DType, ...]:
    """Return the dtypes that the kernels declare, else those of the information; () without any."""
    kinds: dict[str, DType] = {}
    for kernel in operator.kernels:
        for kind in kernel.declared_dtypes:
            kinds[kind.name] = kind
    for information in () if kinds else operator.information:
        for row in information.rows:
            if row and row[0].dtype:  # the first input's; an empty name stands for every dtype
                kinds[row[0].dtype] = dtype(row[0].dtype)
    return tuple(kinds.values())


def _from_schema(operator: Operator, attributes: Mapping[str, Any]) -> list[Any]:
    kinds = registered_dtypes(operator)
    kind = next((k for k in kinds if k.name == "float32"), kinds[0] if kinds else dtype("float32"))
    shapes = _shapes_from_dims(operator, attributes)
    samples: list[Any] = []
    for argument in operator.schema.arguments:
        if argument.keyword_only or argument.name in attributes:
            break
        if not argument.type.is_tensor:
            if argument.default is MISSING:
                rule = (
                    f"needs a value for its attribute {argument.name!r}, as in check(op, {argument.name}=...)"
                )
                raise ArgumentTypeError(operator.name, rule, where=operator.origin)
            samples.append(argument.default)
        elif argument.type.is_optional:
            samples.append(None)
        else:
            spec = Spec(shapes.get(argument.name, DEFAULT_SHAPE), kind)
            samples.append([spec] * 2 if argument.type.is_list else spec)
    return samples


def _shapes_from_dims(operator: Operator, attributes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor argument in sizes that fit the operator's ``dims``.

    Without ``dims`` loops may tell how many dimensions there are; {} if nothing is known. The sizes are the
    first ones for which the rule gives outputs without a size of 0. They differ where the rule lets them.
    """
    dims, schema = operator.dims, operator.schema
    if dims is None:
        ranks = {name: rank for name, rank in ranks_of(operator).items() if rank is not None}
        usual = all(rank == len(DEFAULT_SHAPE) for rank in ranks.values())
        return {} if usual else {name: DEFAULT_SHAPE[-1:] * rank for name, rank in ranks.items()}
    values = {a.name: a.default for _, a in schema.attributes() if a.default is not MISSING} | {**attributes}
    names = [name for name in dims.names if name not in values and name != "..."]
    fixed = {"...": (2,), **values}
    rng = np.random.default_rng(0)
    distinct = [*dict.fromkeys((*DEFAULT_SHAPE, *PRIMES))]
    for attempt in range(MAX_ATTEMPTS):
        is_drawn = attempt > 0 or len(names) > len(distinct)
        drawn = rng.permutation(max(9, len(names))) + 1 if is_drawn else distinct
        sizes = {**fixed, **dict(zip(names, map(int, drawn), strict=False))}
        shapes = [_shape_in(entry, sizes) for entry in dims.inputs]
        try:
            outputs = dims.output_shapes(sizes, values)
        except InferError:
            continue
        if all(0 not in shape for shape in outputs):
            arguments = [argument.name for argument in schema.tensor_arguments]
            return dict(zip(arguments, shapes, strict=True))
    return {}


def _shape_in(entry: Entry, sizes: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of an argument; a dimension of any size is ``DEFAULT_SHAPE``'s first."""
    leading = sizes["..."] if entry.ellipsis else ()
    known = [DEFAULT_SHAPE[0] if size is None else evaluate(size, sizes) for size in entry.dimensions]
    return (*leading, *known)
