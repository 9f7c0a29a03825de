"""Loop kernels that polyop derives from another: the gradient of a loop kernel is itself a loop kernel.

    f  <-base-  f__backward  <-base-  f__backward__tangent

A :class:`Form` says what is particular to a gradient, a tangent or a batch; forms.py has a row for each. A
:class:`DerivedKernel` is a form of a base, and has what all forms share. Any loop kernel can be a base, also
a derived one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.derived_names import derived_name
from ...loops.ir.grammar import Kernel
from ...loops.ir.schedule import NOTHING
from ..base import Accepts
from .kernel import Attributes, Inputs, LoopKernel

if TYPE_CHECKING:
    from ...core.spec import Spec


@dataclass(frozen=True)
class Form:
    """A kind of derived kernels, such as gradients: what they take and return, and how they are derived.

    One takes its base's tensors, then those that the form adds, then attributes of its own, then those of the
    base. Functions get the derived kernel, and the inputs and attributes of a call of it.
    """

    suffix: str
    """It ends the names of the kernel and its operator, which exported programs hold: ``f__backward``. Its
    derivation and the table of its passes have this name, too (``loops/derive``)."""
    words: str
    """It begins the kernel's name in messages: "gradient of loop kernel f"."""
    kind: str
    """Its name in digests of operators, which exported programs hold, too."""
    typed: Callable[[DerivedKernel, Inputs, Attributes], Kernel]
    """Returns the IR for a call."""

    for_inputs: tuple[str, ...] = ()
    """The tensors that it adds for each tensor of the base, by name: ``t_{}`` is ``t_x`` for ``x``."""
    for_outputs: tuple[str, ...] = ()
    """The tensors that it adds for each output of the base, by name: ``d_out{}`` is ``d_out0`` at first."""
    key: str = ""
    """The name of an attribute of its own, a text: what the tensors of a call do not tell. A form without one
    is called in place of its base, with the same arguments."""
    numbers: tuple[str, ...] = ()
    """Further attributes of its own, which are integers; their names begin with that of the key."""
    results: Callable[[LoopKernel], int] = lambda base: base.results
    """Returns how many tensors it returns, beside temporaries."""
    linear: Callable[[LoopKernel], int] = lambda base: 0
    """Returns in how many of its last tensors it is linear by construction."""
    has_rules: bool = True
    """Whether a gradient, a tangent and a batch of its operator are derived in turn."""

    for_all_sizes: Callable[[DerivedKernel, Inputs, Attributes], Kernel] | None = None
    """Returns the IR that serves all sizes, where that for a call may depend on its sizes."""
    known_sizes: Callable[[DerivedKernel, Inputs, Attributes], Mapping[Any, Any]] | None = None
    """Returns the sizes that follow from those of other tensors."""
    check_tapes: Callable[[DerivedKernel, Inputs, Attributes], None] | None = None
    """Raises ``GradientError`` if the tapes of a call take more than ``tape_bytes``."""

    temporaries: int = 0
    """How many temporaries it returns behind its results: those of the dtypes that it serves."""
    omitted: tuple[int, ...] = ()
    """The numbers of the temporaries that it does not return, because ``tape_bytes`` does not allow it."""

    def added_tensors(self, inputs: Sequence[str], outputs: int) -> list[str]:
        """Return the names of the tensors that it adds, for the names of the base's tensors."""
        names = [pattern.format(name) for pattern in self.for_inputs for name in inputs]
        return names + [pattern.format(number) for pattern in self.for_outputs for number in range(outputs)]


@dataclass(eq=False)
class DerivedKernel(LoopKernel):
    """The form ``form`` of the loop kernel ``base``.

    It has the function and the options of its base. Its IR is derived once for each set of dtypes and ranks.
    """

    base: LoopKernel = field(kw_only=True)
    form: Form = field(kw_only=True)

    @classmethod
    def of(cls, base: LoopKernel, form: Form) -> DerivedKernel:
        """Return the kernel of a form of ``base``, for the same device."""
        options = (base.function, base.attributes, base.precise, base.debug, base.device)
        known, start = dict(base.derived_schedules), f"{form.suffix}__"
        rest = [(key.removeprefix(start), steps) for key, steps in known.items() if key.startswith(start)]
        return cls(
            *options,
            tape="none",
            tape_bytes=base.tape_bytes,
            schedule=base.schedule.for_derived(known.get(form.suffix, NOTHING)),
            derived_schedules=tuple(rest),
            base=base,
            form=form,
        )

    def __post_init__(self) -> None:
        self.outline = self.base.outline
        self.accepts = Accepts(self.device, self.base.accepts.dtypes)
        derived_name(self.name, self.form.suffix, self.base.name)  # the IR may be a cached one

    def __str__(self) -> str:
        """Return for example ``gradient of loop kernel f``."""
        return f"{self.form.words} of {self.base}"

    def on(self, device: str) -> DerivedKernel:
        """Return the same kernel for another device. Both share what was derived so far, and later."""
        kernel = self.of(self.base.on(device), self.form)
        kernel._cache, kernel._typed, kernel._lock = self._cache, self._typed, self._lock
        return kernel

    @property
    def author(self) -> LoopKernel:
        """The author's kernel, from which it is derived."""
        return self.base.author

    @property
    def kind(self) -> str:
        """The name of its form in digests."""
        return self.form.kind

    @property
    def name(self) -> str:
        """The base's name and the suffix."""
        return f"{self.base.name}__{self.form.suffix}"

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        added = self.form.added_tensors(("",) * self.base.tensors, self.base.results)
        return self.base.tensors + len(added)

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        return self.own_results + self.form.temporaries

    @property
    def own_results(self) -> int:
        """How many of them are not temporaries that are saved for a gradient; they come first."""
        return self.form.results(self.base)

    @property
    def linear_tensors(self) -> int:
        """In how many of its last tensors it is linear by construction."""
        return self.form.linear(self.base)

    @property
    def key_attribute(self) -> str:
        """The name of the key among its attributes; it has a number where a base has the same key."""
        depth, base = 1, self.base
        while isinstance(base, DerivedKernel):
            depth += base.form.key == self.form.key
            base = base.base
        return self.form.key if depth == 1 else f"{self.form.key}_{depth}"

    @property
    def number_attributes(self) -> tuple[str, ...]:
        """The names of its own attributes that are integers."""
        return tuple(f"{self.key_attribute}_{word}" for word in self.form.numbers)

    def typed(self, inputs: Inputs, attributes: Attributes) -> Kernel:
        """Return the kernel for these specs. Raises what deriving it raises, with the line at fault."""
        return self.form.typed(self, inputs, attributes)

    def for_all_sizes(self, inputs: Inputs, attributes: Attributes) -> Kernel:
        """Return the kernel that serves all sizes of tensors of these dtypes and ranks."""
        return (self.form.for_all_sizes or self.form.typed)(self, inputs, attributes)

    def known_sizes(self, inputs: Inputs, attributes: Attributes) -> Mapping[Any, Any]:
        """Return the sizes of this kernel's tensors that follow from those of others, for one call."""
        return {} if self.form.known_sizes is None else self.form.known_sizes(self, inputs, attributes)

    def launch(self, inputs: Inputs, outputs: tuple[Spec, ...], attributes: Attributes) -> Any:
        """Return the native launch for these specs.

        Raises ``GradientError`` if its tapes take more than ``tape_bytes``.
        """
        self.check_tapes(inputs, attributes)
        return super().launch(inputs, outputs, attributes)

    def check_tapes(self, inputs: Inputs, attributes: Attributes) -> None:
        """Raise ``GradientError`` if the kernel's tapes take more than ``tape_bytes`` for these specs."""
        if self.tape_bytes is not None and self.form.check_tapes is not None:
            self.form.check_tapes(self, inputs, attributes)

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
            return tuple(n in used for n in kernel.tensor_parameters)

        flags: tuple[bool, ...] = self.once(("tensors_read", id(kernel)), first)
        return flags

    def _numbers(self, attributes: Attributes) -> dict[str, Any]:
        return super()._numbers(attributes) | {name: attributes[name] for name in self.number_attributes}
