"""A call site: an operator, its attributes, and which of its optional tensors are present.

JAX's primitives take flat arrays and one hashable parameter. The site is that parameter, and it
translates between flat arrays and the arguments of the schema.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Sequence
from typing import Any

import jax

from ...call import foreign
from ...call.choose import need_somewhere
from ...call.host import specs
from ...call.narrow import narrowed
from ...call.operator import Operator
from ...call.prepare import normalise
from ...core.errors import InferError
from ...core.lru_cache import LruCache
from ...core.spec import Spec
from . import tensors

_sites: LruCache[Site] = LruCache()


def site_of(bound: Any, arguments: Sequence[Any]) -> Site:
    """Return the site of a call with bound and normalised arguments; equal calls share one.

    Raises ``ArgumentTypeError`` for an attribute that has no text.
    """
    operator: Operator = bound.operator
    # repr, because 1, 1.0 and True are equal, and so are 0.0 and -0.0
    wide = bool(jax.config.jax_enable_x64)
    key = (id(operator), repr(foreign.text_values(operator.schema, arguments)), wide)
    site = _sites.get(key)
    if site is None:  # a cached site keeps the operator alive, so that its id is not used again
        site = _sites.put(key, Site(bound, arguments))
    return site


class Site:
    """An operator with fixed attributes, called on flat arrays.

    The inputs are the tensors that are present, in schema order, with lists flattened. The outputs
    are the new tensors, then the new values of the arguments that the schema writes. Two sites are
    equal if they have the same operator and equal texts.

    ``wide``: whether JAX had 64-bit types when the call was made. Without them the outputs are those of
    ``call.narrow``. It is kept because JAX asks later too, where its own setting may be another one.
    """

    def __init__(self, bound: Any, arguments: Sequence[Any]) -> None:
        """Take bound and normalised arguments; of their tensors only the presence is kept."""
        self.bound = bound
        self.operator: Operator = bound.operator
        self.text = foreign.call_text(bound, arguments)
        self._described = json.loads(self.text)[
            2
        ]  # per argument: its value, or whether the tensor is present
        self.base = self
        self.wide = bool(jax.config.jax_enable_x64)
        self._key: tuple[Any, ...] = (id(self.operator), self.text, self.wide)
        self._outputs: tuple[Spec, ...] | None = None
        self._plain = not self.operator.schema.mutates
        self.form = self._form()

    def _form(self) -> str:
        """Return what calls have in common that differ in numbers alone; "" for a call without numbers."""
        rows = zip(self.operator.schema.arguments, self._described, strict=True)
        are = [not argument.type.is_tensor and type(value) in (int, float) for argument, value in rows]
        kinds = [
            type(v).__name__ if is_number else [v] for v, is_number in zip(self._described, are, strict=True)
        ]
        return repr((self._key[0], kinds)) if any(are) else ""

    def __hash__(self) -> int:
        """Return a hash of the operator's identity and the text."""
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        """Whether both call the same operator with equal attributes."""
        return isinstance(other, Site) and self._key == other._key

    def __repr__(self) -> str:
        """Return the operator's name."""
        return self.operator.name

    def flatten(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the tensors that are present among the arguments, with lists flattened."""
        return tuple(foreign.flatten(self.operator.schema, arguments))

    def unflatten(self, flat: Sequence[Any]) -> tuple[Any, ...]:
        """Return all arguments in schema order, with these flat values as the tensors."""
        return normalise(self.operator, foreign.unflatten(self.operator.schema, self._described, flat))

    def by_argument(self, flat: Sequence[Any]) -> tuple[Any, ...]:
        """Return one value per argument: from the flat values for tensors, None for attributes.

        A list of tensors gets a tuple of values.
        """
        values = foreign.unflatten(self.operator.schema, self._described, flat)
        rows = zip(self.operator.schema.arguments, values, strict=True)
        return tuple(value if argument.type.is_tensor else None for argument, value in rows)

    def with_fixed_outputs(self, flat: Sequence[Any]) -> Site:
        """Return the site for these inputs.

        JAX caches what it learns of equal calls. So if the infer rule may answer differently the
        next time, its answer becomes part of the site and of the key. ``base`` is the site without.
        """
        if self.operator.infer.repeatable:
            return self
        fixed = copy.copy(self.base)
        fixed._outputs = tuple(self.base.kernel_outputs(flat))  # noqa: SLF001
        fixed._key = (*self.base._key, fixed._outputs)  # noqa: SLF001
        return fixed

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which JAX has 64-bit types if it had them when the call was made.

        A rule of a call runs later: in the reverse pass, in a transform of a traced program.
        """
        if bool(jax.config.jax_enable_x64) == self.wide:
            return contextlib.nullcontext()
        context: contextlib.AbstractContextManager[Any] = jax.enable_x64(self.wide)
        return context

    def in_mode(self, *, wide: bool) -> Site:
        """Return the site of the same call where JAX has 64-bit types, or has none."""
        if self.wide == wide:
            return self
        other = copy.copy(self.base)
        other.base, other.wide = other, wide
        other._key = (*self.base._key[:2], wide)  # noqa: SLF001
        return other

    def outputs(self, flat: Sequence[Any]) -> Sequence[Spec]:
        """Return the specs of all outputs as JAX has them; raises what the infer rule raises."""
        outputs = self.kernel_outputs(flat)
        return outputs if self.wide else tuple(map(narrowed, outputs))

    def narrows(self, flat: Sequence[Any]) -> bool:
        """Whether JAX has an output in fewer bits than the kernel writes."""
        return not self.wide and tuple(self.outputs(flat)) != tuple(self.kernel_outputs(flat))

    def kernel_outputs(self, flat: Sequence[Any]) -> Sequence[Spec]:
        """Return the specs of all outputs as the kernel writes them; raises what the infer rule raises."""
        if self._outputs is not None:
            return self._outputs
        arguments = specs(tensors, self.operator, self.unflatten(flat))
        return (*self.operator.infer(arguments), *foreign.written_tensors(self.operator.schema, arguments))

    def has_outputs(self, flat: Sequence[Any]) -> bool:
        """Whether a call has an output. The infer rule runs only if the schema does not tell."""
        schema = self.operator.schema
        if schema.fresh and not schema.returns_list:
            return True
        count = self.output_count(flat)
        return count is None or count > 0

    def output_count(self, flat: Sequence[Any]) -> int | None:
        """Return the number of all outputs for inputs, or specs; None if only a run on the data tells it."""
        schema = self.operator.schema
        if not schema.returns_list:
            arguments = self.by_argument(range(len(flat)))
            return len(schema.fresh) + len(foreign.written_tensors(schema, arguments))
        try:
            return len(self.outputs(flat))
        except InferError:
            if not self.bound.runs_on_data:
                raise
            return None

    def check(self, flat: Sequence[Any]) -> None:
        """Raise ``NoKernelError`` if no kernel accepts such arrays, on any device the program may run on."""
        arguments = specs(tensors, self.operator, self.unflatten(flat))
        inputs = tuple(arguments[i] for i in self.operator.schema.tensor_positions)
        need_somewhere(self.operator, inputs, tuple(self.kernel_outputs(flat)))

    def aliases(self, flat: Sequence[Any]) -> dict[int, int]:
        """Return which output reuses the memory of which input, as {input: output}."""
        written = foreign.written_tensors(self.operator.schema, self.by_argument(range(len(flat))))
        first = len(self.outputs(flat)) - len(written)
        return {number: first + k for k, number in enumerate(written)}

    def pack_outputs(self, outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return flat outputs as a call returns them: the schema's, then other arguments it wrote.

        JAX's arrays cannot be written, so an argument written in place is returned as a new array.
        """
        schema = self.operator.schema
        if self._plain or (schema.returns_list and not schema.returns[0].type.alias):
            return tuple(outputs)
        fresh = len(schema.fresh)
        new, written = iter(outputs[:fresh]), iter(outputs[fresh:])
        by_argument = {
            i: tuple(next(written) for _ in described) if isinstance(described, list) else next(written)
            for i, (argument, described) in enumerate(zip(schema.arguments, self._described, strict=True))
            if argument.type.writes and described
        }
        returned = [
            by_argument.pop(schema.alias_of(i), None) if result.type.alias else next(new)
            for i, result in enumerate(schema.returns)
        ]
        return (*returned, *by_argument.values())
