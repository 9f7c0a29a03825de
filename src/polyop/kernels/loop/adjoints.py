"""The kernels of a derived gradient: which of them a call gets, what they read, what their tapes take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import GradientError
from ...loops.analysis.sizes import bytes_of, size_of
from ...loops.ir.grammar import Kernel, Size, walk
from ...loops.ir.types import is_real
from ...loops.library.derivations import derivation
from ...loops.library.library import origin_and_notes
from ..base import flatten
from .derived import DerivedKernel
from .kernel import Attributes, Inputs, under_their_lines
from .temporaries import temporaries

if TYPE_CHECKING:
    from ...loops.derive.adjoint import Adjoint

Flags = tuple[bool, ...]


class Adjoints:
    """The adjoints of a loop kernel, for calls with these specs and attributes.

    There is one for each choice of output gradients that are ``present`` and input gradients that are
    ``wanted``; all of them, where that is empty. ``present`` has an entry for each output of the loop
    kernel, ``wanted`` one for each of its tensors.
    """

    def __init__(
        self, kernel: DerivedKernel, inputs: Inputs, attributes: Attributes, sizes: Inputs = ()
    ) -> None:
        """Derive nothing yet. ``kernel`` is the gradient, ``inputs`` are the specs of its base's tensors.

        ``sizes`` are specs of the gradient's tensors with sizes, if ``inputs`` have none.
        """
        self.kernel, self.base, self.attributes = kernel, kernel.base, attributes
        self.inputs = list(flatten(tuple(inputs)))
        self._sized = sizes or self.inputs

    @property
    def forward(self) -> Kernel:
        """The loop kernel that is differentiated."""
        return self.base.for_all_sizes(self.inputs, self.attributes)

    def adjoint(self, present: Flags = (), wanted: Flags = (), *, segments: bool = False) -> Adjoint:
        """Return the adjoint that serves all sizes; ``segments``: with checkpointing.

        Raises ``GradientError`` with the line that has no gradient.
        """
        forward = self.forward
        real = self._once("real", forward, lambda: tuple(is_real(forward, n) for n in forward.outputs))
        rows = zip(present or (True,) * len(real), real, strict=True)
        present = tuple(flag or not of_real for flag, of_real in rows)
        wanted = () if all(wanted) else wanted
        key = (id(forward), present, wanted, segments)

        def derived() -> Adjoint:
            residuals = self._known_residuals(forward)
            are_known = residuals is not None
            if residuals is None:  # the whole gradient tells
                is_whole = all(present) and not wanted and not segments
                residuals = frozenset() if is_whole else self._residuals()
            adjoint: Adjoint = derivation(
                "backward", forward, present, wanted, residuals, segments=segments, keeps_residuals=are_known
            )
            self.kernel._typed[key] = adjoint.kernel
            return adjoint

        adjoint: Adjoint = self.kernel.once(key, derived)
        return adjoint

    def within_limit(self, present: Flags = (), wanted: Flags = ()) -> Adjoint:
        """Return :meth:`adjoint`, with checkpointing if its tapes take more than ``tape_bytes`` without.

        It stays without if checkpointing does not make the tapes smaller.
        """
        limit, plain = self.kernel.tape_bytes, self.adjoint(present, wanted)
        taped = None if limit is None else self._taped(plain)
        if limit is None or taped is None or taped <= limit:
            return plain
        try:
            checkpointed = self.adjoint(present, wanted, segments=True)
        except GradientError:  # a loop inside a segment has no bound; the error names the plain one's tapes
            return plain
        less = self._taped(checkpointed)
        # hosts keep the tensors that the plain one reads
        same_reads = self.kernel.tensors_read(checkpointed.kernel) == self.kernel.tensors_read(plain.kernel)
        return checkpointed if less is not None and less < taped and same_reads else plain

    def check_tapes(self, adjoint: Adjoint) -> None:
        """Raise ``GradientError`` that names the largest tape, if all take more than ``tape_bytes``."""
        kernel, limit, sizes = adjoint.kernel, self.kernel.tape_bytes, self._tapes(adjoint)
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

    def _taped(self, adjoint: Adjoint) -> int | None:
        """Return how many bytes the tapes take, or None if a size is not known."""
        if any(type(n) is not int for spec in self._sized if spec is not None for n in spec.shape):
            return None
        return sum(self._tapes(adjoint).values())

    def _tapes(self, adjoint: Adjoint) -> dict[str, int]:
        """Return the bytes of each tape."""
        specs = dict(zip(adjoint.kernel.tensor_parameters, self._sized, strict=False))
        buffers, numbers = adjoint.kernel.buffers, self._with_defaults
        return {n: bytes_of(adjoint.kernel, buffers[n], specs, numbers) for n in adjoint.tapes}

    @property
    def _with_defaults(self) -> dict[str, Any]:
        return {**self.kernel.outline.defaults, **self.attributes}

    def _once(self, what: str, kernel: Kernel, make: Any) -> Any:
        """Return what is cached of a kernel."""
        return self.kernel.once((what, id(kernel)), make)

    def _known_residuals(self, forward: Kernel) -> frozenset[str] | None:
        """Return what is known without deriving the gradient; see :mod:`polyop.loops.derive.residuals`."""
        own = self.base.own_results
        found: frozenset[str] | None = self._once(
            "residuals", forward, lambda: derivation("residuals", forward, own)
        )
        return found

    def _residuals(self) -> frozenset[str]:
        """Return the tensors of the base, and its outputs, that the whole gradient reads."""
        names = self._known_residuals(self.forward)
        if names is None:
            whole = self.adjoint().kernel
            rows = zip(whole.tensor_parameters, self.kernel.tensors_read(whole), strict=True)
            names = frozenset(name for name, flag in rows if flag)
        return names

    def kept(self) -> Flags:
        """Return which tensors (inputs and outputs of the base) a framework keeps for the gradient."""
        names, forward = self._residuals(), self.forward
        return tuple(name in names for name in (*forward.tensor_parameters, *forward.outputs))

    def reads(self, present: Flags = (), wanted: Flags = ()) -> Flags:
        """Return for each input and output of the base whether an adjoint reads an element or its size."""
        kernel = self.adjoint(present, wanted).kernel
        return self.kernel.tensors_read(kernel)[: self.base.tensors + self.base.results]

    def differentiable_outputs(self) -> Flags:
        """Return which outputs of the base can have gradients.

        A saved temporary has one only if a gradient reads it. What a framework passes for any other is zero.
        """
        names, own = self._residuals(), self.base.own_results
        return tuple(k < own or name in names for k, name in enumerate(self.forward.outputs))

    def differentiable_inputs(self) -> Flags:
        """Return for each tensor of the base whether it can have a gradient: whether it has real numbers."""
        forward = self.forward
        flags: Flags = self._once(
            "differentiable_inputs",
            forward,
            lambda: tuple(is_real(forward, n) for n in forward.tensor_parameters),
        )
        return flags

    def shared_gradients(self, grads: Sequence[Any], present: Flags, wanted: Flags) -> tuple[int | None, ...]:
        """Return for each tensor of the base the output whose gradient it shares, or None.

        ``grads`` are the specs of the outputs' gradients. Sizes that are symbols cannot be
        compared, and then nothing is shared.
        """
        from ...loops.derive.shared_gradients import shared_gradients

        kernel = self.adjoint(present, wanted).kernel
        rows = self._once("shared", kernel, lambda: shared_gradients(kernel))
        shared: list[int | None] = [None] * self.base.tensors
        if not rows:
            return tuple(shared)
        names = kernel.tensor_parameters
        # an output has the shape of its gradient
        known = dict(zip(names, [*self.inputs, *grads, *grads], strict=True))
        for number, row in rows.items():
            buffer = kernel.buffers[kernel.outputs[number]]
            measured = {e.buffer for pair in row.equal for x in pair for e in walk(x) if isinstance(e, Size)}
            if any(known[name] is None for name in measured):
                continue
            sizes = [
                size_of(e, kernel, buffer, known, self._with_defaults) for pair in row.equal for e in pair
            ]
            if all(type(n) is int for n in sizes) and sizes[::2] == sizes[1::2]:
                shared[number] = names.index(row.source) - self.base.tensors - self.base.results
        return tuple(shared)

    def explain(self) -> list[str]:
        """Return for each line where the values that the gradient reads come from, and what tapes take."""
        adjoint = self.within_limit()
        kernel = adjoint.kernel
        lines = list(under_their_lines(kernel, ((note.line, note.text) for note in adjoint.notes)))
        taped, limit = self._taped(adjoint), self.kernel.tape_bytes
        tapes = "" if taped is None else f"; tapes take {taped} bytes while it runs"
        if taped is not None and limit is not None and taped > limit:
            tapes += f", which is an error: tape_bytes is {limit}"
        read = [n for n, flag in zip(kernel.tensor_parameters, self.reads(), strict=False) if flag]
        lines += self._explain_temporaries()
        lines += self._explain_schedule(kernel)
        kept = ", ".join(read) or "nothing"
        lines.append(f"keeps {kept} for the gradient{tapes}")
        return lines

    def _explain_schedule(self, kernel: Kernel) -> Iterator[str]:
        """Yield what the loops of the gradient became, as ``@polyop.kernel`` takes it."""
        suffix = self.kernel.name.removeprefix(f"{self.kernel.outline.name}__")
        _, notes = origin_and_notes(kernel, self.kernel.options)
        for text in (text.removeprefix("schedule=") for line, text in notes if not line):
            yield f'derived_schedules={{"{suffix}": {text}}}'

    def _explain_temporaries(self) -> Iterator[str]:
        """Yield which temporaries a framework's call saves, and which ``tape_bytes`` does not allow."""
        rows = temporaries(self.base, self.inputs, self.attributes)
        for fits, start in (
            (True, "saved by the forward, not recomputed:"),
            (False, f"recomputed, as tape_bytes is {self.kernel.tape_bytes}:"),
        ):
            texts = [f"{row.name} ({row.size} bytes)" for row in rows if row.fits is fits]
            if texts:
                yield f"{start} {', '.join(texts)}"
