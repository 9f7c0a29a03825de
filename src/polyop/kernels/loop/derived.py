"""Loop kernels that polyop makes of an author's: the gradient of one is itself a loop kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ...core.errors import GradientError
from ...core.spec import Spec
from ...core.spec_key import SpecKey
from ...loops.analysis.sizes import bytes_of, size_of
from ...loops.ir.grammar import Kernel, Size, walk
from ...loops.ir.types import is_real
from ..base import Accepts, flatten
from .kernel import LoopKernel, tensors_of
from .saved import handed_over

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...loops.derive.adjoint import Adjoint


def own_attribute(name: str, base: Any) -> str:
    """Return the name of an attribute of a kernel made of ``base`` that no kernel below has.

    >>> own_attribute("polyop_samples", None)
    'polyop_samples'
    """
    depth = 1
    while base is not None:
        depth += any(str(getattr(base, row, "")).startswith(name) for row in ("told", "where_samples"))
        base = getattr(base, "base", None)
    return name if depth == 1 else f"{name}_{depth}"


@dataclass(eq=False)
class DerivedKernel(LoopKernel):
    """What all kernels share that polyop makes of a loop kernel ``base``; ``SUFFIX`` ends their names."""

    base: Any = None
    SUFFIX: ClassVar[str] = ""
    WHAT: ClassVar[str] = ""

    @classmethod
    def of(cls, base: Any, **more: Any) -> Self:
        """Return the kernel made of another, for the same device."""
        given = (base.function, base.attributes, base.precise, base.debug, base.device)
        return cls(*given, tape="none", tape_bytes=base.tape_bytes, base=base, **more)

    def __post_init__(self) -> None:
        self.outline = self.base.outline
        self.accepts = Accepts(self.device, self.base.accepts.dtypes)

    def __str__(self) -> str:
        """Return what it is of which loop kernel."""
        return f"{self.WHAT} of {self.base}"

    def on(self, device: str) -> Self:
        """Return the same kernel for another device; what is derived is derived once for both."""
        found = self.of(self.base.on(device))
        found._made, found._typed, found._lock = self._made, self._typed, self._lock
        return found

    @property
    def name(self) -> str:
        """The function's name and the suffix."""
        return f"{self.base.name}__{self.SUFFIX}"

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        return int(self.base.tensors)

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        return int(self.base.results)

    def launch(self, inputs: Sequence[Any], outputs: tuple[Spec, ...], attributes: Mapping[str, Any]) -> Any:
        """Return the native launch for these specs. Raises ``GradientError`` for tapes beyond the limit."""
        if self.tape_bytes is not None:
            self.check_tapes(inputs, attributes)
        return super().launch(inputs, outputs, attributes)

    def check_tapes(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        """Raise ``GradientError`` where what the kernel tapes for these specs is beyond the limit."""

    def derived(self, key: Any, make: Callable[[], Kernel]) -> Kernel:
        """Return the kernel under a key, made when it is first asked for."""

        def first() -> Kernel:
            self._typed[key] = made = make()
            return made

        found: Kernel = self.once(key, first)
        return found

    def takes(self, kernel: Kernel) -> tuple[bool, ...]:
        """Return of which of its tensors a kernel reads an element or a size."""
        from ...loops.derive.dead_inputs import taken

        def first() -> tuple[bool, ...]:
            there = taken(kernel)
            return tuple(n in there for n in tensors_of(kernel))

        found: tuple[bool, ...] = self.once(("takes", id(kernel)), first)
        return found


class _Call(NamedTuple):
    """What a gradient is called with: tensors, those of the kernel by their key, what is there and wanted."""

    given: list[Any]
    specs: list[Spec | None]
    present: tuple[bool, ...]
    wanted: tuple[bool, ...]


@dataclass(eq=False)
class BackwardKernel(DerivedKernel):
    """The gradient of the loop kernel ``base``; see :func:`polyop.loops.derive.adjoint.adjoint`.

    Its tensors are those of ``base``, its outputs and their gradients, None for what it does not read.
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
    def told(self) -> str:
        """The attribute that tells what the tensors of ``base`` were: a ``SpecKey`` as text."""
        return own_attribute("polyop_tensors", self.base)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises ``GradientError`` with the line of what has none."""
        return self._asked(inputs, attributes).kernel

    def form(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel that tapes as much as there is."""
        _, specs, present, wanted = self._call(inputs, attributes)
        return self.adjoint(specs, attributes, present, wanted).kernel

    def _asked(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Adjoint:
        given, specs, present, wanted = self._call(inputs, attributes)
        return self.chosen(specs, attributes, present, wanted, given)

    def _call(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> _Call:
        given = list(flatten(tuple(inputs)))
        key = SpecKey.parse(attributes[self.told])
        present = tuple(spec is not None for spec in given[-self.base.results :])
        return _Call(given, key.specs, present, key.needs_gradient)

    def chosen(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        present: tuple[bool, ...],
        wanted: tuple[bool, ...] = (),
        sizes: Sequence[Any] = (),
    ) -> Adjoint:
        """Return :meth:`adjoint`; in segments, where tapes are beyond ``tape_bytes`` and are less so.

        ``sizes`` are the specs that have sizes, where ``inputs`` do not.
        """
        sizes = sizes or inputs
        plain = self.adjoint(inputs, attributes, present, wanted)
        taped = None if self.tape_bytes is None else self._taped(plain, sizes, attributes)
        if self.tape_bytes is None or taped is None or taped <= self.tape_bytes:
            return plain
        try:
            found = self.adjoint(inputs, attributes, present, wanted, segments=True)
        except GradientError:  # a loop inside a segment has no limit: said is what the plain one takes
            return plain
        less = self._taped(found, sizes, attributes)
        alike = self.takes(found.kernel) == self.takes(plain.kernel)  # hosts keep what the plain one takes
        return found if less is not None and less < taped and alike else plain

    def _taped(self, found: Adjoint, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> int | None:
        """Return how many bytes are taped, or None where a size is not known."""
        if any(type(n) is not int for spec in inputs if spec is not None for n in spec.shape):
            return None
        return sum(self._tapes(found, inputs, attributes).values())

    def check_tapes(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        """Raise ``GradientError`` that names the largest, where all tapes take more than ``tape_bytes``."""
        found = self._asked(inputs, attributes)
        kernel, limit = found.kernel, self.tape_bytes
        sizes = self._tapes(found, list(flatten(tuple(inputs))), attributes)
        if limit is None or sum(sizes.values()) <= limit:
            return
        name = max(sizes, key=lambda n: sizes[n])
        line = kernel.buffers[name].line
        rule = f"{found.tapes[name]} changes after this line reads it, and to keep its values takes too much"
        seen = f"{sizes[name]} bytes, all that is taped {sum(sizes.values())}, and tape_bytes is {limit}"
        text = kernel.source.get(line, "").strip()
        hint = "allow more in compile_attrs, call it on less at once, or give bprop="
        raise GradientError(kernel.name, rule, seen, where=f"{kernel.where(line)}\n    {text}", hint=hint)

    def _tapes(self, found: Adjoint, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> dict[str, int]:
        known = dict(zip(tensors_of(found.kernel), inputs, strict=False))
        given = {**self.outline.defaults, **attributes}
        buffers = found.kernel.buffers
        return {n: bytes_of(found.kernel, buffers[n], known, given) for n in found.tapes}

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
        from ...loops.derive.adjoint import PATIENCE, adjoint

        kernel = self.base.form(inputs, attributes)
        real = self.once(("real", id(kernel)), lambda: tuple(is_real(kernel, n) for n in kernel.outputs))
        present = tuple(there or not of for there, of in zip(present, real, strict=True))
        wanted = () if all(wanted) else wanted
        key = (id(kernel), present, wanted, segments)

        def first() -> Adjoint:
            kept = self._known_residuals(kernel)
            patience = 1 if kept is None else PATIENCE
            if kept is None:  # the whole gradient tells
                whole = all(present) and not wanted and not segments
                kept = frozenset() if whole else self._residuals(inputs, attributes)
            found = adjoint(kernel, present, wanted, kept, segments=segments, patience=patience)
            self._typed[key] = found.kernel
            return found

        made: Adjoint = self.once(key, first)
        return made

    def _known_residuals(self, kernel: Kernel) -> frozenset[str] | None:
        """Return what is known without deriving the gradient; see :mod:`polyop.loops.derive.residuals`."""
        from ...loops.derive.residuals import residuals

        found: frozenset[str] | None = self.once(
            ("residuals", id(kernel)), lambda: residuals(kernel, self.base.own_results)
        )
        return found

    def _residuals(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> frozenset[str]:
        """Return the tensors of ``base``, and its outputs, that the whole gradient reads."""
        names = self._known_residuals(self.base.form(inputs, attributes))
        if names is None:
            whole = self.adjoint(inputs, attributes, (True,) * self.base.results).kernel
            names = frozenset(n for n, flag in zip(tensors_of(whole), self.takes(whole), strict=True) if flag)
        return names

    def differentiated(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[bool, ...]:
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
        """Return of which tensors (inputs and outputs of ``base``) the kernel reads an element or a size."""
        kernel = self.adjoint(inputs, attributes, present or (True,) * self.base.results, wanted).kernel
        return self.takes(kernel)[: self.base.tensors + self.base.results]

    def moves(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[bool, ...]:
        """Return of which tensors of ``base`` there are gradients: what ``base`` does not read is none."""
        kernel = self.base.form(inputs, attributes)
        found: tuple[bool, ...] = self.once(
            ("moves", id(kernel)), lambda: tuple(is_real(kernel, n) for n in tensors_of(kernel))
        )
        return found

    def passed(
        self,
        inputs: Sequence[Any],
        grads: Sequence[Any],
        attributes: Mapping[str, Any],
        present: tuple[bool, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[int | None, ...]:
        """Return for each tensor of ``base`` of which output the gradient is its own as well, or None.

        ``grads`` are the specs of the outputs' gradients; sizes that are symbols are not compared.
        """
        from ...loops.derive.passed import passed

        kernel = self.adjoint(inputs, attributes, present, wanted).kernel
        rows = self.once(("passed", id(kernel)), lambda: passed(kernel))
        found: list[int | None] = [None] * self.base.tensors
        if not rows:
            return tuple(found)
        names = tensors_of(kernel)
        known = dict(zip(names, [*inputs, *grads, *grads], strict=True))  # outputs are of their shapes
        given = {**self.outline.defaults, **attributes}
        for number, row in rows.items():
            buffer = kernel.buffers[kernel.outputs[number]]
            measured = {e.buffer for pair in row.equal for x in pair for e in walk(x) if isinstance(e, Size)}
            if any(known[name] is None for name in measured):
                continue
            sizes = [size_of(e, kernel, buffer, known, given) for pair in row.equal for e in pair]
            if all(type(n) is int for n in sizes) and sizes[::2] == sizes[1::2]:
                found[number] = names.index(row.source) - self.base.tensors - self.base.results
        return tuple(found)

    def explain_values(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[str]:
        """Return where each value that the gradient needs is from, with the lines, and what tapes take."""
        present = (True,) * self.base.results
        found = self.chosen(inputs, attributes, present)
        kernel, lines, last = found.kernel, [], None
        for note in found.notes:
            if note.line != last and note.line in kernel.source:
                lines.append(f"{note.line:4}: {kernel.source[note.line].strip()}")
            lines.append(f"        {note.text}")
            last = note.line
        taped = self._taped(found, inputs, attributes) or 0
        allowed = taped if self.tape_bytes is None else self.tape_bytes
        more = f", which is an error: tape_bytes is {allowed}" if taped > allowed else ""
        read = [
            n for n, flag in zip(tensors_of(kernel), self.reads(inputs, attributes), strict=False) if flag
        ]
        lines += self._handed(inputs, attributes)
        kept = ", ".join(read) or "nothing"
        lines.append(f"keeps {kept} for the gradient; tapes take {taped} bytes while it runs{more}")
        return lines

    def _handed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Iterator[str]:
        """Yield what a framework's call hands over to be read instead, and what is beyond the limit."""
        rows = handed_over(self.base, inputs, attributes)
        for fits, start in (
            (True, "handed over by the forward, not recomputed:"),
            (False, f"recomputed, beyond the {self.tape_bytes} of tape_bytes:"),
        ):
            named = [f"{row.name} ({row.size} bytes)" for row in rows if row.fits is fits]
            if named:
                yield f"{start} {', '.join(named)}"
