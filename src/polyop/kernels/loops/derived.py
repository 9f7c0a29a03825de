"""Loop kernels that polyop makes of an author's: the gradient of one is itself a loop kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.dtypes import dtype
from ...core.spec import Spec
from ..base import Accepts, flatten
from .ir import Kernel
from .kernel import LoopKernel, bytes_of

if TYPE_CHECKING:
    from .derive.adjoint import Adjoint


def described(specs: Sequence[Spec | None], wanted: Sequence[bool] = ()) -> str:
    """Return dtypes and numbers of dimensions as a text: of a tensor that is not kept they are all that is.

    A tensor whose gradient nobody wants has a mark.

    >>> described([Spec((2, 3), dtype("float32")), None], (False, True))
    'float32:2~ -'
    """
    marks = ["" if flag else "~" for flag in wanted] or [""] * len(specs)
    rows = zip(specs, marks, strict=True)
    return " ".join("-" if s is None else f"{s.dtype.name}:{len(s.shape)}{mark}" for s, mark in rows)


def specs_of(text: str) -> list[Spec | None]:
    """Return specs, of unknown sizes, for what :func:`described` wrote."""
    rows = (row.rstrip("~").partition(":") for row in text.split())
    return [None if name == "-" else Spec((0,) * int(rank), dtype(name)) for name, _, rank in rows]


def wanted_of(text: str) -> tuple[bool, ...]:
    """Return of which tensors gradients are wanted, as :func:`described` wrote it."""
    return tuple(not row.endswith("~") for row in text.split())


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
class BackwardKernel(LoopKernel):
    """The gradient of the loop kernel ``base``; see :func:`polyop.kernels.loops.derive.adjoint.adjoint`.

    Its tensors are those of ``base``, its outputs and their gradients, None for what it does not read.
    """

    base: Any = None
    _adjoints: dict[Any, Adjoint] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, base: LoopKernel) -> BackwardKernel:
        """Return the gradient of a kernel, for the same device."""
        return cls(
            base.function, base.attributes, base.precise, base.debug, base.device, tape="none", base=base
        )

    def __post_init__(self) -> None:
        self.outline = self.base.outline
        self.accepts = Accepts(self.device, self.base.accepts.dtypes)

    def __str__(self) -> str:
        """Return ``gradient of loop kernel name``."""
        return f"gradient of {self.base}"

    def on(self, device: str) -> BackwardKernel:
        """Return the same gradient for another device."""
        found = BackwardKernel.of(self.base.on(device))
        found._adjoints, found._lock = self._adjoints, self._lock
        return found

    @property
    def name(self) -> str:
        """The function's name and ``__backward``."""
        return f"{self.base.name}__backward"

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        found: int = self.base.tensors + 2 * self.base.results
        return found

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        found: int = self.base.tensors
        return found

    @property
    def told(self) -> str:
        """The attribute that tells what the tensors of ``base`` were: :func:`described`."""
        return own_attribute("polyop_tensors", self.base)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises ``GradientError`` with the line of what has none."""
        given = list(flatten(tuple(inputs)))
        present = tuple(spec is not None for spec in given[-self.base.results :])
        text = attributes[self.told]
        return self.adjoint(specs_of(text), attributes, present, wanted_of(text)).kernel

    def adjoint(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        present: tuple[bool, ...],
        wanted: tuple[bool, ...] = (),
    ) -> Adjoint:
        """Return the kernel for inputs of ``base``, and gradients of those outputs that are ``present``.

        ``wanted`` tells of which inputs a gradient is made; of all, where it is empty.
        """
        from .derive.adjoint import adjoint

        kernel = self.base.typed(inputs, attributes)
        real = (dtype(kernel.buffers[n].dtype).is_floating for n in kernel.outputs)
        present = tuple(there or not of for there, of in zip(present, real, strict=True))
        with self._lock:
            wanted = () if all(wanted) else wanted
            key = (id(kernel), present, wanted)
            if key not in self._adjoints:
                whole = all(present) and not wanted
                kept = frozenset() if whole else frozenset(self._kept(inputs, attributes))
                self._adjoints[key] = found = adjoint(kernel, present, wanted, kept)
                self._typed[key] = found.kernel
            return self._adjoints[key]

    def reads(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        present: tuple[bool, ...] = (),
        wanted: tuple[bool, ...] = (),
    ) -> tuple[bool, ...]:
        """Return of which tensors (inputs and outputs of ``base``) the kernel reads an element or a size."""
        from .derive.used import is_absent

        kernel = self.adjoint(inputs, attributes, present or (True,) * self.base.results, wanted).kernel
        names = [n for n in kernel.parameters if n in kernel.buffers]
        return tuple(not is_absent(kernel, n) for n in names[: self.base.tensors + self.base.results])

    def _kept(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[str]:
        """Return the tensors that the whole kernel takes: they are there for a kernel of a part of it too."""
        from .derive.used import is_absent

        kernel = self.adjoint(inputs, attributes, (True,) * self.base.results).kernel
        return [n for n in kernel.parameters if n in kernel.buffers and not is_absent(kernel, n)]

    def moves(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[bool, ...]:
        """Return of which tensors of ``base`` there are gradients: what ``base`` does not read is none."""
        kernel = self.base.typed(inputs, attributes)
        return tuple(
            dtype(kernel.buffers[n].dtype).is_floating for n in kernel.parameters if n in kernel.buffers
        )

    def explain_values(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[str]:
        """Return where each value that the gradient needs is from, with the lines, and what tapes take."""
        found = self.adjoint(inputs, attributes, (True,) * self.base.results)
        kernel, lines, last = found.kernel, [], None
        for line, text in found.told:
            if line != last and line in kernel.source:
                lines.append(f"{line:4}: {kernel.source[line].strip()}")
            lines.append(f"        {text}")
            last = line
        known = dict(zip([n for n in kernel.parameters if n in kernel.buffers], inputs, strict=False))
        taped = sum(bytes_of(kernel, kernel.buffers[name], known, attributes) for name in found.tapes)
        read = [n for n, flag in zip(kernel.parameters, self.reads(inputs, attributes), strict=False) if flag]
        lines.append(
            f"keeps {', '.join(read) or 'nothing'} for the gradient; tapes take {taped} bytes while it runs"
        )
        return lines
