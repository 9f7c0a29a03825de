"""Loop kernels that polyop derives from another: the gradient of a loop kernel is itself a loop kernel.

    LoopKernel f  <-base-  BackwardKernel f__backward  <-base-  TangentKernel f__backward__tangent

Any loop kernel can be a base, also a derived one. A derived kernel has the function and the options of its
base. Its IR is derived once for each set of dtypes and ranks, and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ...core.derived_names import derived_name
from ...core.errors import GradientError
from ...core.spec import Spec
from ...core.spec_key import SpecKey
from ...loops.analysis.sizes import bytes_of, size_of
from ...loops.ir.grammar import Kernel, Size, walk
from ...loops.ir.schedule import NOTHING
from ...loops.ir.types import is_real
from ...loops.library.derivations import derivation
from ...loops.library.library import origin_and_notes
from ..base import Accepts, flatten
from .kernel import LoopKernel, tensors_of
from .temporaries import temporaries

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...loops.derive.gradient_kernel import Adjoint


def own_attribute(name: str, base: Any) -> str:
    """Return a name for an attribute of a kernel derived from ``base`` that no kernel it derives from has.

    >>> own_attribute("polyop_samples", None)
    'polyop_samples'
    """
    depth = 1
    while base is not None:
        depth += str(getattr(base, "key_attribute", "")).startswith(name)
        base = getattr(base, "base", None)
    return name if depth == 1 else f"{name}_{depth}"


@dataclass(eq=False)
class DerivedKernel(LoopKernel):
    """A kernel that polyop derives from the loop kernel ``base``.

    ``SUFFIX`` ends its name, and ``WHAT`` begins its name in messages: "gradient of loop kernel f".
    """

    base: Any = None
    SUFFIX: ClassVar[str] = ""
    WHAT: ClassVar[str] = ""

    @classmethod
    def of(cls, base: Any, **more: Any) -> Self:
        """Return the kernel derived from ``base``, for the same device; ``more`` are fields of the class."""
        options = (base.function, base.attributes, base.precise, base.debug, base.device)
        known, start = dict(base.derived_schedules), f"{cls.SUFFIX}__"
        rest = [(key.removeprefix(start), steps) for key, steps in known.items() if key.startswith(start)]
        return cls(
            *options,
            tape="none",
            tape_bytes=base.tape_bytes,
            schedule=base.schedule.for_derived(known.get(cls.SUFFIX, NOTHING)),
            derived_schedules=tuple(rest),
            base=base,
            **more,
        )

    def __post_init__(self) -> None:
        self.outline = self.base.outline
        self.accepts = Accepts(self.device, self.base.accepts.dtypes)

    def __str__(self) -> str:
        """Return for example ``gradient of loop kernel f``."""
        return f"{self.WHAT} of {self.base}"

    def on(self, device: str) -> Self:
        """Return the same kernel for another device. Both share what was derived so far, and later."""
        kernel = self.of(self.base.on(device))
        kernel._cache, kernel._typed, kernel._lock = self._cache, self._typed, self._lock
        return kernel

    @property
    def name(self) -> str:
        """The function's name and the suffix."""
        return derived_name(f"{self.base.name}__{self.SUFFIX}", self.SUFFIX, self.base.name)

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        return int(self.base.tensors)

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        return int(self.base.results)

    def launch(self, inputs: Sequence[Any], outputs: tuple[Spec, ...], attributes: Mapping[str, Any]) -> Any:
        """Return the native launch for these specs.

        Raises ``GradientError`` if its tapes take more than ``tape_bytes``.
        """
        if self.tape_bytes is not None:
            self.check_tapes(inputs, attributes)
        return super().launch(inputs, outputs, attributes)

    def check_tapes(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        """Raise ``GradientError`` if the kernel's tapes take more than ``tape_bytes`` for these specs."""

    def derived(self, key: Any, make: Callable[[], Kernel]) -> Kernel:
        """Return the kernel that is cached under a key; the first request makes it."""

        def first() -> Kernel:
            self._typed[key] = kernel = make()
            return kernel

        kernel: Kernel = self.once(key, first)
        return kernel

    def tensors_read(self, kernel: Kernel) -> tuple[bool, ...]:
        """Return for each tensor of a kernel whether the kernel reads an element or a size of it."""
        from ...loops.derive.dead_inputs import used_buffers

        def first() -> tuple[bool, ...]:
            used = used_buffers(kernel)
            return tuple(n in used for n in tensors_of(kernel))

        flags: tuple[bool, ...] = self.once(("tensors_read", id(kernel)), first)
        return flags


class _Call(NamedTuple):
    """A call of a gradient.

    ``arguments`` are its tensors, and ``specs`` those of ``base``, without sizes. ``present``: which output
    gradients there are. ``wanted``: which input gradients to compute.
    """

    arguments: list[Any]
    specs: list[Spec | None]
    present: tuple[bool, ...]
    wanted: tuple[bool, ...]


@dataclass(eq=False)
class BackwardKernel(DerivedKernel):
    """The gradient of the loop kernel ``base``; see :func:`polyop.loops.derive.adjoint.adjoint`.

    Its tensors are those of ``base``, the outputs of ``base``, and their gradients. One that it does not read
    is None.
    """

    SUFFIX: ClassVar[str] = "backward"
    WHAT: ClassVar[str] = "gradient"

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        return int(self.base.tensors + 2 * self.base.results)

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        return int(self.base.tensors)

    @property
    def key_attribute(self) -> str:
        """The name of an attribute whose value is a ``SpecKey`` as text: the specs of ``base``'s tensors."""
        return own_attribute("polyop_tensors", self.base)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises ``GradientError`` with the line that has no gradient."""
        return self._adjoint_of_call(inputs, attributes).kernel

    def form(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel without checkpointing: kernels for all sizes are derived from it."""
        _, specs, present, wanted = self._call(inputs, attributes)
        return self.adjoint(specs, attributes, present, wanted).kernel

    def _adjoint_of_call(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Adjoint:
        arguments, specs, present, wanted = self._call(inputs, attributes)
        return self.adjoint_within_limit(specs, attributes, present, wanted, arguments)

    def _call(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> _Call:
        arguments = list(flatten(tuple(inputs)))
        key = SpecKey.parse(attributes[self.key_attribute])
        present = tuple(spec is not None for spec in arguments[-self.base.results :])
        return _Call(arguments, key.specs, present, key.needs_gradient)

    def adjoint_within_limit(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        present: tuple[bool, ...],
        wanted: tuple[bool, ...] = (),
        sizes: Sequence[Any] = (),
    ) -> Adjoint:
        """Return :meth:`adjoint`, with checkpointing if its tapes take more than ``tape_bytes`` without.

        It stays without if checkpointing does not make the tapes smaller. ``sizes`` are specs with sizes, if
        ``inputs`` have none.
        """
        sizes = sizes or inputs
        plain = self.adjoint(inputs, attributes, present, wanted)
        taped = None if self.tape_bytes is None else self._taped(plain, sizes, attributes)
        if self.tape_bytes is None or taped is None or taped <= self.tape_bytes:
            return plain
        try:
            checkpointed = self.adjoint(inputs, attributes, present, wanted, segments=True)
        except GradientError:  # a loop inside a segment has no bound; the error names the plain one's tapes
            return plain
        less = self._taped(checkpointed, sizes, attributes)
        # hosts keep the tensors that the plain one reads
        same_reads = self.tensors_read(checkpointed.kernel) == self.tensors_read(plain.kernel)
        return checkpointed if less is not None and less < taped and same_reads else plain

    def _taped(self, adjoint: Adjoint, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> int | None:
        """Return how many bytes the tapes take, or None if a size is not known."""
        if any(type(n) is not int for spec in inputs if spec is not None for n in spec.shape):
            return None
        return sum(self._tapes(adjoint, inputs, attributes).values())

    def check_tapes(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        """Raise ``GradientError`` that names the largest tape, if all take more than ``tape_bytes``."""
        adjoint = self._adjoint_of_call(inputs, attributes)
        kernel, limit = adjoint.kernel, self.tape_bytes
        sizes = self._tapes(adjoint, list(flatten(tuple(inputs))), attributes)
        if limit is None or sum(sizes.values()) <= limit:
            return
        name = max(sizes, key=lambda n: sizes[n])
        line = kernel.buffers[name].line
        rule = (
            f"{adjoint.tapes[name]} changes after this line reads it, and to keep its values takes too much"
        )
        seen = f"{sizes[name]} bytes, all that is taped {sum(sizes.values())}, and tape_bytes is {limit}"
        text = kernel.source.get(line, "").strip()
        hint = "allow more in compile_attrs, call it on less at once, or give bprop="
        raise GradientError(kernel.name, rule, seen, where=f"{kernel.where(line)}\n    {text}", hint=hint)

    def _tapes(
        self, adjoint: Adjoint, inputs: Sequence[Any], attributes: Mapping[str, Any]
    ) -> dict[str, int]:
        """Return the bytes of each tape."""
        specs = dict(zip(tensors_of(adjoint.kernel), inputs, strict=False))
        numbers = {**self.outline.defaults, **attributes}
        buffers = adjoint.kernel.buffers
        return {n: bytes_of(adjoint.kernel, buffers[n], specs, numbers) for n in adjoint.tapes}

    def adjoint(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        present: tuple[bool, ...],
        wanted: tuple[bool, ...] = (),
        *,
        segments: bool = False,
    ) -> Adjoint:
        """Return the kernel for inputs of ``base``, and gradients of those outputs that are ``present``.

        ``wanted`` tells of which inputs a gradient is made; of all, where it is empty. ``segments``: see
        :func:`polyop.loops.derive.adjoint.adjoint`.
        """
        kernel = self.base.form(inputs, attributes)
        real = self.once(("real", id(kernel)), lambda: tuple(is_real(kernel, n) for n in kernel.outputs))
        present = tuple(there or not of for there, of in zip(present, real, strict=True))
        wanted = () if all(wanted) else wanted
        key = (id(kernel), present, wanted, segments)

        def first() -> Adjoint:
            kept = self._known_residuals(kernel)
            sure = kept is not None
            if kept is None:  # the whole gradient tells
                whole = all(present) and not wanted and not segments
                kept = frozenset() if whole else self._residuals(inputs, attributes)
            found: Adjoint = derivation(
                "adjoint", kernel, present, wanted, kept, segments=segments, keeps_residuals=sure
            )
            self._typed[key] = found.kernel
            return found

        made: Adjoint = self.once(key, first)
        return made

    def _known_residuals(self, kernel: Kernel) -> frozenset[str] | None:
        """Return what is known without deriving the gradient; see :mod:`polyop.loops.derive.residuals`."""
        found: frozenset[str] | None = self.once(
            ("residuals", id(kernel)), lambda: derivation("residuals", kernel, self.base.own_results)
        )
        return found

    def _residuals(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> frozenset[str]:
        """Return the tensors of ``base``, and its outputs, that the whole gradient reads."""
        names = self._known_residuals(self.base.form(inputs, attributes))
        if names is None:
            whole = self.adjoint(inputs, attributes, (True,) * self.base.results).kernel
            names = frozenset(
                n for n, flag in zip(tensors_of(whole), self.tensors_read(whole), strict=True) if flag
            )
        return names

    def differentiable_outputs(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any]
    ) -> tuple[bool, ...]:
        """Return which outputs of ``base`` can have gradients.

        A saved temporary has one only if a gradient reads it. What a framework passes for any other is zero.
        """
        names = self._residuals(inputs, attributes)
        outputs = self.base.form(inputs, attributes).outputs
        return tuple(k < self.base.own_results or name in names for k, name in enumerate(outputs))

    def saved_for_backward(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[bool, ...]:
        """Return which tensors (inputs and outputs of ``base``) a framework keeps for the gradient."""
        names = self._residuals(inputs, attributes)
        kernel = self.base.form(inputs, attributes)
        return tuple(name in names for name in (*tensors_of(kernel), *kernel.outputs))

    def reads(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        present: tuple[bool, ...] = (),
        wanted: tuple[bool, ...] = (),
    ) -> tuple[bool, ...]:
        """Return for each input and output of ``base`` whether the kernel reads an element or its size."""
        kernel = self.adjoint(inputs, attributes, present or (True,) * self.base.results, wanted).kernel
        return self.tensors_read(kernel)[: self.base.tensors + self.base.results]

    def differentiable_inputs(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[bool, ...]:
        """Return for each tensor of ``base`` whether it can have a gradient: whether it has real numbers."""
        kernel = self.base.form(inputs, attributes)
        flags: tuple[bool, ...] = self.once(
            ("differentiable_inputs", id(kernel)),
            lambda: tuple(is_real(kernel, n) for n in tensors_of(kernel)),
        )
        return flags

    def shared_gradients(
        self,
        inputs: Sequence[Any],
        grads: Sequence[Any],
        attributes: Mapping[str, Any],
        present: tuple[bool, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[int | None, ...]:
        """Return for each tensor of ``base`` the output whose gradient it shares, or None.

        ``grads`` are the specs of the outputs' gradients. Sizes that are symbols cannot be
        compared, and then nothing is shared.
        """
        from ...loops.derive.shared_gradients import shared_gradients

        kernel = self.adjoint(inputs, attributes, present, wanted).kernel
        rows = self.once(("shared", id(kernel)), lambda: shared_gradients(kernel))
        shared: list[int | None] = [None] * self.base.tensors
        if not rows:
            return tuple(shared)
        names = tensors_of(kernel)
        # an output has the shape of its gradient
        known = dict(zip(names, [*inputs, *grads, *grads], strict=True))
        numbers = {**self.outline.defaults, **attributes}
        for number, row in rows.items():
            buffer = kernel.buffers[kernel.outputs[number]]
            measured = {e.buffer for pair in row.equal for x in pair for e in walk(x) if isinstance(e, Size)}
            if any(known[name] is None for name in measured):
                continue
            sizes = [size_of(e, kernel, buffer, known, numbers) for pair in row.equal for e in pair]
            if all(type(n) is int for n in sizes) and sizes[::2] == sizes[1::2]:
                shared[number] = names.index(row.source) - self.base.tensors - self.base.results
        return tuple(shared)

    def explain_values(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[str]:
        """Return for each line where the values that the gradient reads come from, and what tapes take."""
        present = (True,) * self.base.results
        adjoint = self.adjoint_within_limit(inputs, attributes, present)
        kernel, lines, last = adjoint.kernel, [], None
        for note in adjoint.notes:
            if note.line != last and note.line in kernel.source:
                lines.append(f"{note.line:4}: {kernel.source[note.line].strip()}")
            lines.append(f"        {note.text}")
            last = note.line
        taped = self._taped(adjoint, inputs, attributes) or 0
        allowed = taped if self.tape_bytes is None else self.tape_bytes
        more = f", which is an error: tape_bytes is {allowed}" if taped > allowed else ""
        read = [
            n for n, flag in zip(tensors_of(kernel), self.reads(inputs, attributes), strict=False) if flag
        ]
        lines += self._explain_temporaries(inputs, attributes)
        lines += self._explain_schedule(kernel)
        kept = ", ".join(read) or "nothing"
        lines.append(f"keeps {kept} for the gradient; tapes take {taped} bytes while it runs{more}")
        return lines

    def kernel_and_sizes(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any]
    ) -> tuple[Kernel, Callable[[], Mapping[Any, Any]]]:
        """Return the gradient of all outputs for specs of ``base``, and what is known of its sizes."""
        from ...loops.dims.derive import sizes_from_forward

        kernel = self.adjoint(inputs, attributes, (True,) * self.base.results).kernel
        forward = self.base.form(inputs, attributes)
        return kernel, lambda: sizes_from_forward(forward, kernel)

    def known_sizes(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Mapping[Any, Any]:
        """Return the sizes that follow from those of others: an output's gradient has its shape."""
        from ...loops.dims.derive import sizes_from_forward

        forward = self.base.form(self._call(inputs, attributes).specs, attributes)
        return sizes_from_forward(forward, self.form(inputs, attributes))

    @property
    def linear_tensors(self) -> int:
        """The gradients of the outputs, which come last."""
        return int(self.base.results)

    def _explain_schedule(self, kernel: Kernel) -> Iterator[str]:
        """Yield what the loops of the gradient became, as ``@polyop.kernel`` takes it."""
        suffix = self.name.removeprefix(f"{self.outline.name}__")
        _, notes = origin_and_notes(kernel, self.options)
        for text in (text.removeprefix("schedule=") for line, text in notes if not line):
            yield f'derived_schedules={{"{suffix}": {text}}}'

    def _explain_temporaries(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Iterator[str]:
        """Yield which temporaries a framework's call saves, and which ``tape_bytes`` does not allow."""
        rows = temporaries(self.base, inputs, attributes)
        for fits, start in (
            (True, "saved by the forward, not recomputed:"),
            (False, f"recomputed, as tape_bytes is {self.tape_bytes}:"),
        ):
            texts = [f"{row.name} ({row.size} bytes)" for row in rows if row.fits is fits]
            if texts:
                yield f"{start} {', '.join(texts)}"
