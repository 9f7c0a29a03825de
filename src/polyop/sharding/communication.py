"""``op.communication``: what a call and its gradient move on a mesh, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..call.bound import BoundOperator
from ..call.prepare import normalise
from ..core.arguments import bind
from ..core.dims.entry import Entry
from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..core.schema import Argument
from ..core.spec import Spec
from ..core.texts import aligned, bytes_text
from .collectives import Call, TensorLayout
from .layouts import Mesh, layout_of, mesh_axes
from .of_call import is_claimed, sharding_rule
from .placement import REPLICATE, Partial, Placements, Shard
from .plan import plan, spec_bytes
from .transition import Collective, local_bytes

WHOLE = "nothing is claimed of its dimensions, so it runs whole on each device"
NO_GRADIENT = "there is no gradient"


@dataclass(frozen=True)
class Communication:
    """What a call of an operator moves on a mesh. ``str()`` is a table.

    ``mesh``       the devices along each axis, by name.
    ``inputs``     name, spec and placements of each tensor that is passed, lists opened.
    ``outputs``    likewise of the new outputs, then of the tensors that are written in place.
    ``forward``    the collectives of the call: each has its ``kind``, the mesh ``axis`` by name, the name of
                   its ``tensor``, and its ``bytes``.
    ``backward``   those of the gradients of all inputs of floating point.
    ``notes``      why something is whole or empty, in words.

    Bytes are those that each device receives.
    """

    operator: str
    mesh: Mapping[str, int]
    inputs: tuple[TensorLayout, ...]
    outputs: tuple[TensorLayout, ...]
    forward: tuple[Collective, ...]
    backward: tuple[Collective, ...]
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """The bytes that a device receives, forward and backward."""
        return sum(one.bytes for one in (*self.forward, *self.backward))

    @property
    def repeated(self) -> tuple[Collective, ...]:
        """The collectives of ``backward`` that move a tensor as ``forward`` did.

        PyTorch runs them again. A program of JAX that has both passes runs them once.
        """
        return tuple(one for one in self.backward if one in self.forward)

    @property
    def memory(self) -> int:
        """The bytes of a device's parts of all inputs and outputs."""
        return sum(self._local(tensor) for tensor in (*self.inputs, *self.outputs))

    def _local(self, tensor: TensorLayout) -> int:
        return local_bytes(spec_bytes(tensor.spec), tuple(self.mesh.values()), tensor.placements)

    def __str__(self) -> str:
        """Return tables of the tensors and of the collectives."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        axes = ", ".join(f"{name} {size}" for name, size in self.mesh.items())
        yield f"{self.operator} on {axes or 'one device'}"
        yield ""
        tensors = [
            (t.name, str(t.spec), layout_text(t, self.mesh), bytes_text(self._local(t)))
            for t in (*self.inputs, *self.outputs)
        ]
        yield from aligned([("tensor", "whole", "layout", "of a device"), *tensors], numbers_last=True)
        yield ""
        passes = (("forward", self.forward), ("backward", self.backward))
        rows = [
            (name, one.kind, str(one.axis), one.tensor, bytes_text(one.bytes))
            for name, collectives in passes
            for one in collectives
        ]
        totals = [
            (name, "in all", "", "", bytes_text(sum(c.bytes for c in collectives)))
            for name, collectives in passes
        ]
        head = ("pass", "collective", "axis", "tensor", "received")
        yield from aligned([head, *rows, *totals], numbers_last=True)
        yield from self.notes


def communication(
    bound: BoundOperator,
    mesh: Any,
    placements: Sequence[Any],
    shapes: Sequence[Any],
    dtype: Any = "float32",
    outputs: Sequence[Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Communication:
    """Return what a call moves; see ``BoundOperator.communication``."""
    axes = mesh_axes(mesh)
    arguments = _arguments(bound, shapes, dtype, attributes or {})
    if bound.is_module:
        module: Any = bound
        module.refine_schema(arguments)  # as the first call does: it marks written arguments in the schema
    inputs = tuple(_inputs(bound, axes, arguments, placements))
    rule = sharding_rule(bound.operator, arguments)
    writes = {argument.name for argument in bound.schema.arguments if argument.type.writes}
    written = [tensor for tensor in inputs if tensor.name.partition("[")[0] in writes]
    fresh = len(rule.outputs) - len(written)
    names = _output_names(fresh, written)
    if outputs is None:  # a tensor that is written in place stays where it is
        wanted: list[Placements | None] = [*[None] * fresh, *(tensor.placements for tensor in written)]
    else:
        wanted = _wanted(bound, axes, names, rule.outputs, outputs)
    sizes = tuple(axes.values())
    layouts = [tensor.placements for tensor in inputs]
    chosen = plan(rule, sizes, layouts, wanted)
    combined = [
        TensorLayout(name, spec, tuple(REPLICATE if isinstance(p, Partial) else p for p in want or row))
        for name, spec, want, row in zip(names, rule.outputs, wanted, chosen.outputs, strict=True)
    ]
    call = Call(bound.operator, arguments, rule, chosen.strategies, sizes, inputs, combined)
    notes = [] if is_claimed(bound.operator) else [WHOLE]
    notes += [] if bound.operator.gradient is not None else [NO_GRADIENT]
    return Communication(
        bound.name,
        axes,
        inputs,
        tuple(combined),
        _by_name(call.forward(), axes),
        _by_name(call.backward(), axes),
        tuple(notes),
    )


def _by_name(collectives: Sequence[Collective], mesh: Mesh) -> tuple[Collective, ...]:
    names = [*mesh]
    return tuple(replace(one, axis=names[int(one.axis)]) for one in collectives)


def _arguments(
    bound: BoundOperator, shapes: Sequence[Any], dtype: Any, attributes: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments of the call, with specs for tensors."""
    arguments = bound.schema.tensor_arguments
    _check_count(bound, "shapes", shapes, arguments)
    dtypes = [*dtype] if isinstance(dtype, (tuple, list)) else [dtype] * len(arguments)
    _check_count(bound, "dtype", dtypes, arguments)
    rows = zip(arguments, shapes, dtypes, strict=True)
    specs = {a.name: _spec(f"{bound.name}: shape of {a.name}", a, value, one) for a, value, one in rows}
    for name in specs.keys() & attributes.keys():
        raise ArgumentTypeError(
            bound.name, f"{name} is a tensor: it is one of shapes", repr(attributes[name])
        )
    values = bind(bound.schema, (), {**specs, **attributes}, bound.operator.origin)
    return normalise(bound.operator, values)


def _check_count(bound: BoundOperator, what: str, values: Any, arguments: Sequence[Argument]) -> None:
    names = ", ".join(argument.name for argument in arguments)
    if not isinstance(values, (tuple, list)) or len(values) != len(arguments):
        rule = f"{what} must be a tuple or list of {len(arguments)}, one for each tensor ({names})"
        seen = f"{len(values)}" if isinstance(values, (tuple, list)) else repr(values)
        raise ArgumentValueError(bound.name, rule, seen, where=bound.operator.origin)


def _spec(subject: str, argument: Argument, value: Any, dtype: Any) -> Any:
    """Return the spec of a shape, or of a tensor or spec; of each item of a list."""
    if value is None and argument.type.is_optional:
        return None
    if argument.type.is_list:
        if not isinstance(value, (tuple, list)):
            raise ArgumentTypeError(subject, "must be a list of shapes", repr(value))
        return tuple(_one_spec(subject, item, dtype) for item in value)
    return _one_spec(subject, value, dtype)


def _one_spec(subject: str, value: Any, dtype: Any) -> Spec:
    if isinstance(value, Spec):
        return value
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return Spec(tuple(value.shape), value.dtype)
    if not isinstance(value, (tuple, list)) or not all(type(n) is int and n >= 0 for n in value):
        raise ArgumentTypeError(subject, "must be a tuple of sizes, a spec or an array", repr(value))
    return Spec(tuple(value), dtype)


def _inputs(
    bound: BoundOperator, mesh: Mesh, arguments: Sequence[Any], placements: Sequence[Any]
) -> Iterator[TensorLayout]:
    """Yield the flat inputs with their layouts."""
    tensors = bound.schema.tensor_arguments
    _check_count(bound, "placements", placements, tensors)
    dims = bound.operator.dims
    entries: Sequence[Entry | None] = dims.inputs if dims is not None else (None,) * len(tensors)
    rows = zip(tensors, entries, bound.schema.tensor_positions, placements, strict=True)
    for argument, entry, position, layout in rows:
        value = arguments[position]
        if value is None:
            continue
        items = [(argument.name, value, layout)]
        if argument.type.is_list:
            layouts = [layout] * len(value) if layout is None else list(layout)
            if len(layouts) != len(value):
                rule = f"placements of the list {argument.name} must have {len(value)} layouts"
                raise ArgumentValueError(bound.name, rule, str(len(layouts)))
            names = [f"{argument.name}[{i}]" for i in range(len(value))]
            items = list(zip(names, value, layouts, strict=True))
        for name, spec, one in items:
            subject = f"{bound.name}: layout of {name}"
            yield TensorLayout(name, spec, layout_of(one, mesh, dimension_names(entry, spec), subject))


def dimension_names(entry: Entry | None, spec: Spec) -> tuple[str, ...]:
    """Return the names of a tensor's dimensions: those of ``dims=``, or numbers."""
    rank = len(spec.shape)
    named = () if entry is None else tuple(map(str, entry.dimensions))
    return (*map(str, range(rank - len(named))), *named)


def _output_names(fresh: int, written: Sequence[TensorLayout]) -> list[str]:
    return [*(["out"] if fresh == 1 else [f"out{i}" for i in range(fresh)]), *(t.name for t in written)]


def _wanted(
    bound: BoundOperator,
    mesh: Mesh,
    names: Sequence[str],
    specs: Sequence[Spec],
    outputs: Sequence[Any],
) -> list[Placements | None]:
    """Return the placements that the caller wants of each output."""
    if len(outputs) != len(names):
        rule = f"outputs must have {len(names)} layouts ({', '.join(names)})"
        raise ArgumentValueError(bound.name, rule, str(len(outputs)))
    rows = zip(names, specs, outputs, strict=True)
    return [
        layout_of(one, mesh, dimension_names(None, spec), f"{bound.name}: layout of {name}")
        for name, spec, one in rows
    ]


def layout_text(tensor: TensorLayout, mesh: Mapping[str, int]) -> str:
    """Return for each dimension the mesh axes that split it: ``[data, -]``."""
    words: list[list[str]] = [[] for _ in tensor.spec.shape]
    partial = ""
    for name, placement in zip(mesh, tensor.placements, strict=True):
        if isinstance(placement, Shard):
            words[placement.dim].append(name)
        elif isinstance(placement, Partial):
            partial += f", {placement.op} over {name}"
    return f"[{', '.join('*'.join(row) or '-' for row in words)}]{partial}"
