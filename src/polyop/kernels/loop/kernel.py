"""The kind of kernel that is a Python loop nest.

It is compiled at the first call for its dtypes and ranks. The compiled code serves all sizes.
"""

from __future__ import annotations

import copy
import functools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ...core import locks
from ...core.dtypes import dtype
from ...core.errors import ArgumentValueError, FallbackWarning, InferError, ScheduleError
from ...core.origin import place
from ...core.spec import Spec
from ...loops.analysis.sizes import check_sizes, is_large, size_of
from ...loops.frontend.parse import Outline, outline, parse
from ...loops.ir.grammar import Buffer, Kernel
from ...loops.ir.schedule import NOTHING, Schedule
from ...loops.library import shipped, tuned
from ...loops.library.library import (
    compiled,
    origin_and_notes,
    remarks,
    schedule_or_original,
    source_text,
)
from ...loops.library.options import Options, exported, warn_at_line, warn_once
from ...loops.library.tuned import Found
from ...loops.targets import isa
from .. import described
from ..base import Accepts, flatten
from ..library import LibraryKernel
from .defined import DefinedOnce
from .passed import SPECIALIZED, passed

if TYPE_CHECKING:
    from ...loops.dims.derive import Slicing
    from ...loops.dims.linear import Linear
    from ...loops.program import Program
    from ...loops.runner import Watch

Inputs = Sequence[Any]
"""The specs of a call's tensors; None for an absent one."""
Attributes = Mapping[str, Any]
Key = tuple[Any, ...]
T = TypeVar("T")
_lock_of_forms = functools.partial(locks.own, "forms of a kernel", locks.Level.DERIVE)
_lock_of_libraries = functools.partial(locks.own, "libraries of a kernel", locks.Level.COMPILE)


@dataclass(eq=False)
class LoopKernel(DefinedOnce):
    """The Python loop nest ``function``, compiled to native code.

    * ``attributes``: the names of the parameters that are numbers; all others are tensors.
    * ``precise``: call libm's functions instead of polyop's own.
    * ``debug``: check every index, and keep loops in their order (also with POLYOP_LOOPS_DEBUG=1).
    * ``device``: "cuda" is the kernel for GPUs, compiled by nvcc or hipcc at its first launch; "opencl" for
      devices of OpenCL, whose drivers compile it.
    * ``functional``: copy a tensor that the function writes in place, and return the copy.
    * ``tape``: which temporaries a call saves for its derived gradient: "none", "all", or
      "auto", those of fewer dimensions than an input has.
    * ``tape_bytes``: how many bytes these temporaries may take, and how many the gradient's tapes (None:
      any number).
    * ``schedule``: steps for its loops; ``derived_schedules``: for derived kernels, by suffix.
    * ``takes_tuned``: a schedule that ``polyop tune`` has kept comes before the compiler's choice.
    * ``for_all_values``: compile no value of an attribute into the code, as for a package.
    """

    function: Callable[..., Any]
    attributes: tuple[str, ...] = ()
    precise: bool = False
    debug: bool = False
    device: str = "cpu"
    functional: bool = False
    tape: str = "auto"
    tape_bytes: int | None = None
    schedule: Schedule = NOTHING
    derived_schedules: tuple[tuple[str, Schedule], ...] = ()
    for_all_values: bool = False
    takes_tuned: bool = True
    native: bool = True
    has_infer_shape: bool = True
    has_infer_type: bool = True
    accepts: Accepts = field(default_factory=Accepts)
    _typed: dict[Key, Kernel] = field(default_factory=dict, repr=False)
    _libraries: dict[Any, LibraryKernel] = field(default_factory=dict, repr=False)
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=_lock_of_forms, repr=False)
    _compiling: Any = field(default_factory=_lock_of_libraries, repr=False)

    def __post_init__(self) -> None:
        self.outline: Outline = outline(self.function)

    def __str__(self) -> str:
        """Return ``loop kernel name``."""
        return f"loop kernel {self.outline.name}{'' if self.device == 'cpu' else f' for {self.device}'}"

    def content(self) -> Iterator[bytes]:
        """Yield the function's source, its options, and the meaning of both in this polyop."""
        yield from described.loop_kernel(self.function)
        taped = (self.tape, self.tape_bytes)
        options = (self.attributes, self.precise, self.debug, self.functional, *taped)
        yield repr((shipped.MEANING, *options)).encode()
        if self.schedule or self.derived_schedules:
            yield repr((self.schedule, self.derived_schedules)).encode()

    def on(self, device: str) -> LoopKernel:
        """Return the kernel of the same function for another device. Both share their typed kernels."""
        options = (self.function, self.attributes, self.precise, self.debug, device, self.functional)
        more = (self.tape, self.tape_bytes, self.schedule, self.derived_schedules, self.for_all_values)
        kernel = LoopKernel(*options, *more)
        kernel._typed, kernel._lock = self._typed, self._lock
        kernel.accepts = Accepts(device, self.accepts.dtypes)
        return kernel

    def of_all_values(self) -> LoopKernel:
        """Return the kernel of the same function that no value of an attribute is compiled into."""
        kernel = copy.copy(self)
        kernel.for_all_values, kernel._typed, kernel._libraries, kernel._cache = True, {}, {}, {}
        return kernel

    @property
    def author(self) -> LoopKernel:
        """The author's kernel, from which it is derived; itself, if it is the author's."""
        return self

    @property
    def name(self) -> str:
        """The function's name."""
        return self.outline.name

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        return sum(name not in self.attributes for name in self.outline.parameters)

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """The number of dimensions of each tensor; None where its uses in the loops do not tell it."""
        return tuple(map(self.outline.ranks.get, self.outline.parameters[: self.tensors]))

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
        return place(self.outline.file, self.outline.line)

    @property
    def is_typed(self) -> bool:
        """Whether the function was typed for any specs yet."""
        return bool(self._typed)

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why ``dtypes=`` refuses these specs. :meth:`typed` raises what the function cannot take."""
        del outputs
        return self.accepts.refuse(inputs)

    def typed(self, inputs: Inputs, attributes: Attributes) -> Kernel:
        """Return the IR for the dtypes and ranks of these specs. Raises what the front end's checks raise."""
        self.warn_of_changes()
        specs = flatten(tuple(inputs))
        numbers = self._numbers(attributes)
        key = (
            tuple(None if s is None else (s.dtype.name, len(s.shape)) for s in specs),
            tuple((n, v if isinstance(v, str) else type(v)) for n, v in numbers.items()),
        )
        with self._lock:
            if key not in self._typed:
                kernel = parse(self.function, list(key[0]), numbers)
                if self.functional:
                    from ...loops.derive.functional import functional

                    kernel = functional(kernel)
                self._typed[key] = kernel
            return self._specialized(key, numbers)

    def _specialized(self, key: Key, numbers: Mapping[str, Any]) -> Kernel:
        """Return the typed kernel under a key, for the values of the attributes that it cannot prove with.

        What a package ships serves all values, so its kernels stay as they are. Gives a ``FallbackWarning``
        where there are too many values.
        """
        from ...loops.derive.specialize import (
            MAX_SPECIALIZED,
            SPECIAL_VALUES,
            attributes_to_specialize,
            specialize,
        )

        kernel = self._typed[key]
        names = self.once(
            (SPECIALIZED, key),
            lambda: frozenset() if self.is_for_all_values(kernel) else attributes_to_specialize(kernel),
        )
        values = {n: v for n, v in numbers.items() if n in names and type(v) is int and v in SPECIAL_VALUES}
        if not values:
            return kernel
        special = (*key, tuple(values.items()))
        if special not in self._typed:
            made = [k for k in self._typed if k[:2] == key and len(k) > 2]
            if len(made) >= MAX_SPECIALIZED:
                own = f"compiled for {MAX_SPECIALIZED} values of {', '.join(values)}"
                text = f"{self}: {own}; others share code that is slower"
                self.once(("warned", key), lambda: warnings.warn(FallbackWarning(text), stacklevel=4))
                return kernel
            self._typed[special] = specialize(kernel, values)
        return self._typed[special]

    def passed(self, inputs: Inputs, attributes: Attributes) -> frozenset[str]:
        """Return the attributes that the code reads in each call, and that decide neither it nor a size."""
        return passed(self, self.typed(inputs, attributes))

    def is_for_all_values(self, kernel: Kernel) -> bool:
        """Whether one library serves all values of the attributes, as those that packages ship."""
        return self.for_all_values or shipped.lists(kernel)

    def for_all_sizes(self, inputs: Inputs, attributes: Attributes) -> Kernel:
        """Return the IR that serves all sizes: gradients, tangents and saving forms are derived from it."""
        return self.typed(inputs, attributes)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the value that is cached under a key; the first request calls ``make`` for it."""
        with self._lock:
            if key not in self._cache:
                self._cache[key] = make()
            return self._cache[key]

    def infer_shapes(self, inputs: Inputs, attributes: Attributes, outputs: int) -> list[list[Any]]:
        """Return the shapes of the new outputs; sizes may be symbols. Raises ``InferError``."""
        kernel = self.typed(inputs, attributes)
        del outputs
        specs, numbers = specs_of(kernel, inputs), self._numbers(attributes)
        return [[size_of(e, kernel, b, specs, numbers) for e in b.outer_shape] for b in _new_outputs(kernel)]

    def infer_types(self, inputs: Inputs, attributes: Attributes, outputs: int) -> list[Any]:
        """Return the dtypes of the new outputs."""
        del outputs
        return [dtype(b.outer_dtype) for b in _new_outputs(self.typed(inputs, attributes))]

    def launch(self, inputs: Inputs, outputs: tuple[Spec, ...], attributes: Attributes) -> Any:
        """Return the native launch for these specs. The first launch for their dtypes and ranks compiles.

        Raises ``InferError`` if ``outputs`` are not the specs that the kernel writes.
        """
        kernel = self.typed(inputs, attributes)
        self._check(kernel, inputs, outputs, attributes)
        large = self.is_large(kernel, inputs, attributes)
        if large:
            text = "sizes or attributes beyond 2**42: loops stay in order, and every index is checked"
            warnings.warn(FallbackWarning(f"{self}: {text}"), stacklevel=2)

        def built(options: Options, found: Found | None) -> LibraryKernel:
            return self._built(kernel, options) if found else self.library(kernel)

        checked = self.options._replace(checked=True)
        library = self._built(kernel, checked) if large else self.with_best_schedule(kernel, inputs, built)
        return self.launch_of(library, inputs, outputs, attributes)

    def launch_of(
        self,
        library: LibraryKernel,
        inputs: Inputs,
        outputs: tuple[Spec, ...],
        attributes: Attributes,
    ) -> Any:
        """Return the native launch of a library of this kernel; absent attributes have their defaults."""
        return library.launch(inputs, outputs, {**attributes, **self._numbers(attributes)})

    def symbols(self, name: str) -> set[int]:
        """Return the addresses of a symbol in the libraries that were opened so far."""
        return {library.symbol(name) for library in list(self._libraries.values())} - {0}

    def library(self, kernel: Kernel) -> LibraryKernel:
        """Return the compiled library of a typed kernel."""
        return self._built(kernel, self.options)

    def tuned(self, kernel: Kernel, inputs: Inputs) -> Found | None:
        """Return the schedule that ``polyop tune`` found for tensors of these sizes, or None."""
        shapes = [None if spec is None else spec.shape for spec in flatten(tuple(inputs))]
        return tuned.find(kernel, self.options, shapes) if self.takes_tuned else None

    def with_best_schedule(
        self, kernel: Kernel, inputs: Inputs, use: Callable[[Options, Found | None], T]
    ) -> T:
        """Return what ``use`` makes of the options of a call, with the tuned schedule if there is one.

        If the compiler refuses that, as one that another version found, a ``FallbackWarning`` says so, once.
        """
        found = self.tuned(kernel, inputs)
        if found is not None:
            try:
                return use(self.options._replace(schedule=found.entry.schedule), found)
            except ScheduleError as problem:
                warn_once(f"{found.path}: the schedule of {kernel.name} is not used: {problem}")
        return use(self.options, None)

    def _built(self, kernel: Kernel, options: Options) -> LibraryKernel:
        """Return the library of a typed kernel with these options; the first request compiles it."""
        with self._compiling:
            key = (id(kernel), options)
            if key not in self._libraries:
                path = compiled(kernel, options)
                self._libraries[key] = LibraryKernel(
                    path, exported(kernel), Accepts(self.device), label=str(self)
                )
                for text in remarks(path, exported(kernel), "warnings"):
                    warn_at_line(text)
                for text in remarks(path, exported(kernel), "fallback"):
                    warnings.warn(FallbackWarning(text), stacklevel=2)
            return self._libraries[key]

    @property
    def options(self) -> Options:
        """How a launch in this process compiles the kernel."""
        debug = self.debug or os.environ.get("POLYOP_LOOPS_DEBUG", "") not in ("", "0")
        return Options(
            isa.chosen() if self.device == "cpu" else self.device, self.precise, debug, self.schedule
        )

    def is_large(self, kernel: Kernel, inputs: Inputs, attributes: Attributes) -> bool:
        """Whether 64 bits may be too few to compute an index."""
        return is_large(kernel, specs_of(kernel, inputs), self._numbers(attributes))

    def source(self, inputs: Inputs = (), attributes: Attributes | None = None) -> str:
        """Return the C that is compiled for these specs; without specs, for those typed last."""
        kernel = self._typed_or_last(inputs, attributes)
        if not inputs:
            return source_text(kernel, self.options)
        return self.with_best_schedule(kernel, inputs, lambda options, _: source_text(kernel, options))

    def scheduled(self, inputs: Inputs = (), attributes: Attributes | None = None) -> Program:
        """Return the program after all passes for these specs; without specs, for those typed last."""
        kernel = self._typed_or_last(inputs, attributes)
        if not inputs:
            return schedule_or_original(kernel, self.options)
        return self.with_best_schedule(
            kernel, inputs, lambda options, _: schedule_or_original(kernel, options)
        )

    def compile_watched(
        self, inputs: Inputs, attributes: Attributes, watch: Watch, form: str = ""
    ) -> Schedule | None:
        """Run the passes for these specs, whatever is cached; return what was chosen.

        ``watch`` is given the program after each pass. None: the form would save nothing.

        ``form``: a derived form, a name of ``derive.pipelines.PIPELINES``. Its derivation runs first.
        """
        from ...loops.derive.forms import derive
        from ...loops.pipeline import schedule
        from ...loops.schedule.chosen import chosen

        kernel: Kernel | None = self.typed(inputs, attributes)
        if form and kernel is not None:
            kernel = derive(kernel, form, self.tape, watch)
        if kernel is None:
            return None
        derived = self.schedule.for_derived(dict(self.derived_schedules).get(form, NOTHING))
        steps = derived if form else self.schedule
        return chosen(schedule(kernel, watch=watch, steps=steps))

    def explain(self, inputs: Inputs, attributes: Attributes) -> list[str]:
        """Return for each line what the passes decided and proved, and what they could not prove."""
        from ...loops.derive.specialize import describe_values

        kernel = self.typed(inputs, attributes)
        options, found, origin, notes = self.with_best_schedule(
            kernel, inputs, lambda options, found: (options, found, *origin_and_notes(kernel, options))
        )
        how = "libm's functions" if options.precise else "polyop's own functions"
        how = "the device's functions" if self.device != "cpu" else how
        fixed = {n: v for n, v in self._numbers(attributes).items() if n not in kernel.attributes}
        subject = " and ".join([options.isa, *[f"{name}={value}" for name, value in fixed.items()]])
        lines = [f"compiled for {subject}, with {how}; sizes are symbols: one compile serves all"]
        lines += describe_values(kernel, self._numbers(attributes), self.is_for_all_values(kernel))
        lines += [*origin, *([str(found)] if found is not None else [])]
        return [*lines, *under_their_lines(kernel, notes)]

    def slicings(self, inputs: Inputs, attributes: Attributes) -> tuple[Kernel, list[Slicing]]:
        """Return the IR for a call, and what is proved of slices along each of its dimensions."""
        from ...loops.dims.derive import derive_slicing

        kernel = self.for_all_sizes(inputs, attributes)
        return kernel, self.once(
            ("slicings", id(kernel)), lambda: derive_slicing(kernel, self.known_sizes(inputs, attributes))
        )

    def known_sizes(self, inputs: Inputs, attributes: Attributes) -> Mapping[Any, Any]:
        """Return the sizes of this kernel's tensors that follow from those of others, for one call."""
        del inputs, attributes
        return {}

    def linear_of_call(self, inputs: Inputs, attributes: Attributes) -> list[Linear]:
        """Return the sets of tensors of a call in which the kernel is linear."""
        from ...loops.dims.linear import find_linear

        kernel = self.for_all_sizes(inputs, attributes)
        rows: list[Linear] = self.once(("linear", id(kernel)), lambda: find_linear(kernel))
        return rows

    def explain_dims(self, inputs: Inputs, attributes: Attributes) -> list[str]:
        """Return the dimensions of the tensors, what is proved of slices, and why others are whole."""
        from ...loops.dims.notation import describe

        return list(describe(*self.slicings(inputs, attributes)))

    def explain_bits(self, inputs: Inputs, attributes: Attributes) -> str:
        """Return whether rows have the same bits in any batch; empty if no dimension is a batch.

        Nothing is said of a kernel for a device: how it divides sums depends on the sizes.
        """
        from ...loops.dims.same_bits import describe_bits

        if self.device != "cpu":
            return ""
        kernel, slicings = self.slicings(inputs, attributes)
        entries = [found.entry for found in tuned.in_use(kernel, self.options)] if self.takes_tuned else []
        for entry in entries:
            if entry.values != tuned.SAME_BITS:
                return f"depend on the sizes: the schedule tuned for {entry.inputs} adds in another order"

        def described(steps: Schedule) -> str:
            program = schedule_or_original(kernel, self.options._replace(schedule=steps))
            return describe_bits(program, slicings)

        steps = {self.schedule: None, **{entry.schedule: None for entry in entries}}
        texts: list[str] = [
            self.once(("bits", id(kernel), one), functools.partial(described, one)) for one in steps
        ]
        said = next((text for text in texts if not text.startswith("the same")), texts[0])
        if said.startswith("the same") and self.tape_bytes is not None:
            return "may differ with the sizes: for each, tape_bytes decides what a gradient computes again"
        return said

    def _typed_or_last(self, inputs: Inputs, attributes: Attributes | None) -> Kernel:
        """Return the typed kernel for these specs; without specs, the one that was typed last."""
        if not inputs and not self.is_typed:
            rule = "nothing is compiled yet"
            raise ArgumentValueError(
                str(self), rule, where=self.where, hint="call it, or give tensors or specs"
            )
        if inputs:
            return self.typed(inputs, attributes or {})
        return next(reversed(self._typed.values()))

    def _numbers(self, attributes: Attributes) -> dict[str, Any]:
        """Return the values of the parameters that are numbers; those that are absent have their defaults."""
        defaults = {n: v for n, v in self.outline.defaults.items() if n not in self.outline.tensors}
        return defaults | {name: attributes[name] for name in self.attributes if name in attributes}

    def _check(
        self, kernel: Kernel, inputs: Inputs, outputs: tuple[Spec, ...], attributes: Attributes
    ) -> None:
        """Raise an error unless the sizes are allowed, and the kernel writes such outputs."""
        check_sizes(kernel, specs_of(kernel, inputs), self._numbers(attributes))
        new_outputs = _new_outputs(kernel)
        shapes = self.infer_shapes(inputs, attributes, len(new_outputs))
        for number, (buffer, shape, spec) in enumerate(zip(new_outputs, shapes, outputs, strict=True)):
            if tuple(shape) != tuple(spec.shape) or buffer.outer_dtype != spec.dtype.name:
                ours = f"{buffer.outer_dtype}{list(shape)}"
                rule = f"its definition says {spec} of output {number}, and the kernel writes {ours}"
                hint = "leave out_shape, out_dtype, infer= and dims= out: the kernel itself says it"
                raise InferError(str(self), rule, where=kernel.where(buffer.line), hint=hint)


def specs_of(kernel: Kernel, inputs: Inputs) -> dict[str, Any]:
    """Return the specs of a call's tensors, by parameter."""
    return dict(zip(kernel.tensor_parameters, flatten(tuple(inputs)), strict=True))


def under_their_lines(kernel: Kernel, notes: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Yield the texts of notes, each behind the source line that it is about."""
    last = None
    for line, text in notes:
        if line != last and line in kernel.source:
            yield f"{line:4}: {kernel.source[line].strip()}"
        yield f"        {text}"
        last = line


def _new_outputs(kernel: Kernel) -> list[Buffer]:
    """Return the outputs that are no inputs written in place."""
    return [kernel.buffers[name] for name in kernel.outputs if kernel.buffers[name].role == "output"]
