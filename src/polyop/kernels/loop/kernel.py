"""Loop kernels as kernels: compiled on first use for the dtypes that come, for all sizes."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.dtypes import dtype
from ...core.errors import ArgumentValueError, FallbackWarning, InferError, UninitialisedWarning
from ...core.spec import Spec
from ...loops.analysis.sizes import check_sizes, is_large, size_of
from ...loops.frontend.parse import Outline, outline, parse
from ...loops.ir.grammar import Buffer, Kernel
from ...loops.library.library import compiled, remarks, told
from ...loops.library.options import Options, exported
from ...loops.targets import isa
from ...loops.targets.cuda import CUDA
from .. import described
from ..base import Accepts, LoopKernelBase, flatten
from ..library import LibraryKernel

if TYPE_CHECKING:
    from ...loops.program import Program
    from ...loops.runner import Watch

Key = tuple[Any, ...]


@dataclass(eq=False)
class LoopKernel(LoopKernelBase):
    """The Python loop nest ``function``, compiled to native code.

    ``attributes`` are the names of the parameters that are numbers; all others are tensors.
    ``precise``: libm's functions instead of polyop's own. ``debug``: every index is checked
    and loops stay in their order (also with POLYOP_LOOPS_DEBUG=1). ``device`` "cuda": the kernel
    for GPUs, compiled by nvcc at its first launch. ``functional``: a tensor that the function writes in
    place is copied first, and the copy returned. ``tape``: which temporaries a call hands over to its
    derived gradient: "none", "all", or "auto", those of fewer dimensions than an input has; ``tape_bytes``:
    how many bytes of them, and of what the gradient tapes, there may be (None: any number).
    """

    function: Callable[..., Any]
    attributes: tuple[str, ...] = ()
    precise: bool = False
    debug: bool = False
    device: str = "cpu"
    functional: bool = False
    tape: str = "auto"
    tape_bytes: int | None = None
    native: bool = True
    has_infer_shape: bool = True
    has_infer_type: bool = True
    accepts: Accepts = field(default_factory=Accepts)
    _typed: dict[Key, Kernel] = field(default_factory=dict, repr=False)
    _libraries: dict[Any, LibraryKernel] = field(default_factory=dict, repr=False)
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.outline: Outline = outline(self.function)

    def __str__(self) -> str:
        """Return ``loop kernel name``."""
        return f"loop kernel {self.outline.name}{' in CUDA' if self.device == 'cuda' else ''}"

    def content(self) -> Iterator[bytes]:
        """Yield the function's source and its options."""
        yield from described.loop_kernel(self.function)
        taped = (self.tape, self.tape_bytes)
        yield repr((self.attributes, self.precise, self.debug, self.functional, *taped)).encode()

    def on(self, device: str) -> LoopKernel:
        """Return the kernel of the same function for another device; both know each other's dtypes."""
        given = (self.function, self.attributes, self.precise, self.debug, device, self.functional)
        found = LoopKernel(*given, self.tape, self.tape_bytes)
        found._typed, found._lock = self._typed, self._lock
        found.accepts = Accepts(device, self.accepts.dtypes)
        return found

    @property
    def name(self) -> str:
        """The function's name."""
        return self.outline.name

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        return sum(name not in self.attributes for name in self.outline.parameters)

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        return len(self.outline.outputs)

    @property
    def own_results(self) -> int:
        """How many of them are not temporaries that are saved for a gradient; they come first."""
        return self.results

    @property
    def where(self) -> str:
        """Where the function is defined."""
        return f"{self.outline.file}:{self.outline.line}"

    @property
    def is_typed(self) -> bool:
        """Whether there is a kernel for any specs yet."""
        return bool(self._typed)

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why ``dtypes=`` refuses these specs; what the function cannot take has its own error."""
        del outputs
        return self.accepts.refuse(inputs)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for the dtypes of these specs. Raises what the checks raise."""
        specs = [spec for spec in flatten(tuple(inputs)) if spec is not None]
        given = self._given(attributes)
        key = (
            tuple((s.dtype.name, len(s.shape)) for s in specs),
            tuple((n, type(v)) for n, v in given.items()),
        )
        with self._lock:
            if key not in self._typed:
                kernel = parse(self.function, list(key[0]), given)
                if self.functional:
                    from ...loops.derive.functional import functional

                    kernel = functional(kernel)
                self._typed[key] = kernel
            return self._typed[key]

    def form(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these dtypes that others are derived of: the same for all sizes."""
        return self.typed(inputs, attributes)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what ``make`` returned when it was first asked for under a key."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def infer_shapes(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int
    ) -> list[list[Any]]:
        """Return the shapes of the new outputs; sizes may be symbols. Raises ``InferError``."""
        kernel = self.typed(inputs, attributes)
        specs = dict(zip(tensors_of(kernel), flatten(tuple(inputs)), strict=True))
        del outputs
        given = self._given(attributes)
        return [[size_of(e, kernel, b, specs, given) for e in b.shape] for b in _fresh(kernel)]

    def infer_types(self, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int) -> list[Any]:
        """Return the dtypes of the new outputs."""
        del outputs
        return [dtype(b.dtype) for b in _fresh(self.typed(inputs, attributes))]

    def launch(self, inputs: Sequence[Any], outputs: tuple[Spec, ...], attributes: Mapping[str, Any]) -> Any:
        """Return the native launch for these specs; compiles at the first of their dtypes.

        Raises ``InferError`` for outputs that are not what the kernel writes.
        """
        kernel = self.typed(inputs, attributes)
        self._check(kernel, inputs, outputs, attributes)
        large = self._is_large(kernel, inputs, attributes)
        library = self._built(kernel, self.options._replace(checked=True)) if large else self.library(kernel)
        return library.launch(inputs, outputs, {**attributes, **self._given(attributes)})

    def library(self, kernel: Kernel) -> LibraryKernel:
        """Return the compiled library of a typed kernel."""
        return self._built(kernel, self.options)

    def _built(self, kernel: Kernel, options: Options) -> LibraryKernel:
        with self._lock:
            key = (id(kernel), options)
            if key not in self._libraries:
                path = compiled(kernel, options)
                self._libraries[key] = LibraryKernel(
                    path, exported(kernel), Accepts(self.device), label=str(self)
                )
                for text in remarks(path, exported(kernel), "warnings"):
                    _say_once(text)
                for text in remarks(path, exported(kernel), "fallback"):
                    warnings.warn(FallbackWarning(text), stacklevel=2)
            return self._libraries[key]

    @property
    def options(self) -> Options:
        """How it is compiled here and now."""
        debug = self.debug or os.environ.get("POLYOP_LOOPS_DEBUG", "") not in ("", "0")
        return Options(CUDA.name if self.device == "cuda" else isa.chosen(), self.precise, debug)

    def _is_large(self, kernel: Kernel, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> bool:
        """Whether 64 bits may be too few for what indices are computed of; warns of it."""
        specs = dict(zip(tensors_of(kernel), flatten(tuple(inputs)), strict=True))
        large = is_large(kernel, specs, self._given(attributes))
        if large:
            text = (
                f"{self}: sizes or attributes beyond 2**42: loops stay in order, and every index is checked"
            )
            warnings.warn(FallbackWarning(text), stacklevel=2)
        return large

    def source(self, inputs: Sequence[Any] = (), attributes: Mapping[str, Any] | None = None) -> str:
        """Return the C that is compiled for these specs (for those used last, without any)."""
        from ...loops.library.make import sources

        return "\n".join(sources(self._one(inputs, attributes), self.options))

    def scheduled(self, inputs: Sequence[Any] = (), attributes: Mapping[str, Any] | None = None) -> Program:
        """Return what the compiler decided for these specs (for those used last, without any)."""
        from ...loops.library.make import arranged

        return arranged(self._one(inputs, attributes), self.options)

    def compile_watched(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], watch: Watch, form: str = ""
    ) -> None:
        """Run the passes for these specs, whatever is cached; ``watch`` is given the program after each.

        ``form``: a derived form, a name of ``derive.pipelines.PIPELINES``. Its derivation runs first.
        """
        from ...loops.derive.forms import derive
        from ...loops.pipeline import schedule

        kernel: Kernel | None = self.typed(inputs, attributes)
        if form and kernel is not None:
            kernel = derive(kernel, form, self.tape, watch)
        if kernel is not None:
            schedule(kernel, watch=watch)

    def explain(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[str]:
        """Return what became of each loop, what was proved and what stood in the way, with the lines."""
        kernel = self.typed(inputs, attributes)
        options = self.options
        origin, notes = told(kernel, options)
        how = "libm's functions" if options.precise else "polyop's own functions"
        how = "CUDA's functions" if options.isa == CUDA.name else how
        lines = [f"compiled for {options.isa}, with {how}; sizes are symbols: one compile serves all"]
        lines += origin
        last = None
        for line, text in notes:
            if line != last and line in kernel.source:
                lines.append(f"{line:4}: {kernel.source[line].strip()}")
            lines.append(f"        {text}")
            last = line
        return lines

    def _one(self, inputs: Sequence[Any], attributes: Mapping[str, Any] | None) -> Kernel:
        if not inputs and not self.is_typed:
            rule = "nothing is compiled yet"
            raise ArgumentValueError(
                str(self), rule, where=self.where, hint="call it, or give tensors or specs"
            )
        if inputs:
            return self.typed(inputs, attributes or {})
        return next(reversed(self._typed.values()))

    def _given(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the numbers that the function takes, its own defaults among them."""
        own = {n: v for n, v in self.outline.defaults.items() if n not in self.outline.tensors}
        return own | {name: attributes[name] for name in self.attributes if name in attributes}

    def _check(
        self, kernel: Kernel, inputs: Sequence[Any], outputs: tuple[Spec, ...], attributes: Mapping[str, Any]
    ) -> None:
        specs = dict(zip(tensors_of(kernel), flatten(tuple(inputs)), strict=True))
        check_sizes(kernel, specs, self._given(attributes))
        fresh = _fresh(kernel)
        shapes = self.infer_shapes(inputs, attributes, len(fresh))
        for number, (buffer, shape, spec) in enumerate(zip(fresh, shapes, outputs, strict=True)):
            if tuple(shape) != tuple(spec.shape) or buffer.dtype != spec.dtype.name:
                ours = f"{buffer.dtype}{list(shape)}"
                rule = f"out_shape and out_dtype say {spec} of output {number}, and the kernel writes {ours}"
                hint = "leave out_shape and out_dtype out: they are derived from the kernel"
                raise InferError(str(self), rule, where=kernel.where(buffer.line), hint=hint)


_said: set[str] = set()


def _say_once(text: str) -> None:
    """Warn of a read before any write: once for each line, whatever dtypes and operators come."""
    if text not in _said:
        _said.add(text)
        file, line = text.split(": ", 1)[0].rsplit(":", 1)
        warnings.warn_explicit(text.split(": ", 1)[1], UninitialisedWarning, file, int(line))


def tensors_of(kernel: Kernel) -> list[str]:
    """Return the parameters that are tensors, in order."""
    return [name for name in kernel.parameters if name in kernel.buffers]


def _fresh(kernel: Kernel) -> list[Buffer]:
    return [kernel.buffers[name] for name in kernel.outputs if kernel.buffers[name].role == "output"]
