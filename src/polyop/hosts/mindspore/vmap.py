"""``ms.vmap`` over operators: the batch rule of the operator in one call, or one call per item.

MindSpore asks for the rule of a primitive by its name, and the compiler reads the rule's text. A launch's
rule passes axes, shapes and dtypes, which are constants, to a Python function. That chooses the text of the
batched call: the operator's batch rule is run on symbols (symbols.py).

MindSpore refuses a primitive with a side effect. A launch that writes is marked as having one only so that
MindSpore passes its tensors uncopied. Under vmap it runs without the mark: it returns what it wrote, and
``ops.assign``, for which MindSpore has a rule, copies that into the argument.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

from mindspore import ops
from mindspore.ops._vmap.vmap_base import vmap_rules_getters
from mindspore.ops.primitive import constexpr

from ...call import batching
from ...call.batching import BatchedCall
from ...call.flat_tensors import with_tensors
from ...call.foreign import flatten
from ...call.rule import Rule
from ...core.errors import FallbackWarning, PolyopError
from ...core.spec import Spec
from ...rules.batched_tensors import sample_shape
from .generated import make_function
from .launch import Launch
from .symbols import Recording, Symbol, record

Axes = Sequence[int | None]


def start() -> None:
    """Register the batching rule of launches; any other ``ops.Custom`` keeps its own rule."""
    previous = vmap_rules_getters.get("Custom", None)

    def rule_of(primitive: Any, size: int) -> Any:
        if isinstance(primitive, Launch):
            return _rule(primitive, size)
        return previous(primitive, size) if previous else None

    vmap_rules_getters.register("Custom")(rule_of)


def _rule(launch: Launch, size: int) -> Any:
    """Return the rule: it takes (tensor, axis) pairs, and the effect token of a launch that writes.

    The rule has one named parameter per pair, because MindSpore would unpack a single ``*args`` pair.
    """
    numbers = range(launch.inputs)
    parameters = [f"pair{i}" for i in numbers] + ["order"] * launch.ordered
    lines = [f"def rule{{n}}({', '.join(parameters)}):"]
    lines += [f"    x{i}, axis{i} = pair{i}" for i in numbers]
    constants = ", ".join(f"({''.join(f'{text.format(i)}, ' for i in numbers)})" for text in _CONSTANTS)
    lines += [f"    return choose{{n}}({constants})({', '.join(f'x{i}' for i in numbers)})"]
    pure = launch.by_value() if launch.ordered else launch

    def choose(axes: Axes, shapes: Sequence[Sequence[int]], dtypes: Sequence[Any]) -> Any:
        specs = [pure.spec_of(i, *row) for i, row in enumerate(zip(shapes, dtypes, strict=True))]
        normal = [None if a is None else a % len(s.shape) for a, s in zip(axes, specs, strict=True)]
        return _batched(pure, normal, specs, size)

    return make_function("rule", "\n".join(lines), choose=constexpr(choose))


_CONSTANTS = ("axis{}", "x{}.shape", "x{}.dtype")


def _batched(launch: Launch, axes: Axes, specs: Sequence[Spec], size: int) -> Any:
    """Return the function from the tensors to pairs: each output, and the axis that counts its items."""
    if all(axis is None for axis in axes):
        with record(Launch.of) as recording:
            alone = recording.launch(launch, _symbols(recording, specs))
        return _pairs(recording, alone, [None] * len(alone), len(specs))
    operator, schema = launch.bound.operator, launch.bound.schema
    in_dims = with_tensors(schema, launch.arguments, axes)
    in_dims = tuple(d if a.type.is_tensor else None for d, a in zip(in_dims, schema.arguments, strict=True))
    with record(Launch.of) as recording:
        arguments = with_tensors(schema, launch.arguments, _symbols(recording, specs))
        call = BatchedCall(operator, lambda inputs: _call(recording, launch, inputs))
        try:
            answer = _answer(call, in_dims, arguments)
        except PolyopError:
            raise
        except Exception as problem:  # noqa: BLE001 - an author's rule that does more than symbols can
            text = f"{operator.name}: the batch rule cannot run while MindSpore compiles: {problem}"
            warnings.warn(f"{text}. vmap runs one call per sample", FallbackWarning, 2)
            return _item_by_item(launch, axes, specs, size)
        # MindSpore loses a write in a graph that also moves axes of the tensor
        if answer is NotImplemented or (schema.mutates and not recording.is_one_launch):
            batching.warn_of_loop(operator, "mindspore")
            return _item_by_item(launch, axes, specs, size)
        outputs, out_axes = batching.rule_outputs(operator, answer, _count(launch, axes, specs), size)
    return _pairs(recording, outputs, out_axes, len(specs))


def _answer(call: BatchedCall, in_dims: Sequence[Any], arguments: Sequence[Any]) -> Any:
    author_s = not isinstance(call.operator.batch, Rule)
    if author_s and call.operator.schema.mutates:
        return NotImplemented  # it would return the new outputs alone
    return batching.answer(call, in_dims, arguments)


def _symbols(recording: Recording, specs: Sequence[Spec]) -> list[Symbol]:
    return [Symbol(recording, f"x{i}", spec) for i, spec in enumerate(specs)]


def _call(recording: Recording, launch: Launch, inputs: Sequence[Any]) -> tuple[Symbol, ...]:
    """Write the call of a rule: the same launch, with other tensors, which may be of other shapes."""
    return recording.launch(launch, list(flatten(launch.bound.schema, inputs)))


def _pairs(recording: Recording, outputs: Sequence[Any], axes: Axes, count: int) -> Any:
    result = "".join(f"({recording.text(x)}, {axis}), " for x, axis in zip(outputs, axes, strict=True))
    return recording.function([f"x{i}" for i in range(count)], f"({result})")


def _count(launch: Launch, axes: Axes, specs: Sequence[Spec]) -> int:
    """Return the number of outputs of one item."""
    items = [dataclasses.replace(s, shape=sample_shape(s, a)) for s, a in zip(specs, axes, strict=True)]
    return len(launch.output_specs(items))


def _item_by_item(launch: Launch, axes: Axes, specs: Sequence[Spec], size: int) -> Any:
    """Return the function that launches once per item, unrolled: a loop takes the compiler longer."""
    lines = [f"def batched{{n}}({', '.join(f'x{i}' for i in range(len(axes)))}):"]
    lines += [f"    items{i} = unbind{{n}}(x{i}, {axis})" for i, axis in enumerate(axes) if axis is not None]
    items = [f"x{i}" if axis is None else f"items{i}[{{}}]" for i, axis in enumerate(axes)]
    lines += [f"    r{k} = launch{{n}}({', '.join(items).format(*[k] * len(items))})" for k in range(size)]
    stacked = (
        f"(stack{{n}}(({''.join(f'r{k}[{j}], ' for k in range(size))})), 0), "
        for j in range(_count(launch, axes, specs))
    )
    text = "\n".join([*lines, f"    return ({''.join(stacked)})"])
    return make_function("batched", text, launch=launch, unbind=ops.unbind, stack=ops.stack)
