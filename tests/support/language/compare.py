"""Compare the compiled forms of a random kernel with its plain Python function."""

import ctypes
import traceback
from dataclasses import dataclass, field

import islpy
import numpy as np

import polyop
from abi_structures import Attribute, Extra
from language import traced
from loop_samples import batch
from polyop.core.errors import ArgumentValueError, GradientError, PolyopError, ScheduleError
from polyop.loops.derive.forms import adjoint, batched, tangent
from polyop.loops.derive.functional import functional
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.interpret import _Machine, interpret
from polyop.loops.pipeline import original, schedule

ABSENT = np.zeros((), bool)
SLACK = 4
"""Times the bound of the error: a bound is that of one order of the operations, not of all."""
STEP = 1e-5

ERRORS, VALUES, ALIVE = [], {}, []


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Attribute))
def read_attribute(_, name, place):
    """Give a kernel the value of a number."""
    value, attribute = VALUES[name.decode()], place.contents
    attribute.kind, attribute.depth, attribute.count = (3 if isinstance(value, float) else 2), 0, 1
    attribute.floats, attribute.ints = (ctypes.c_double * 1)(value), (ctypes.c_int64 * 1)(int(value))
    ALIVE.append(attribute)
    return 0


SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(lambda _, text: ERRORS.append(text))
FUNCTIONS = (ctypes.c_void_p * 6)(
    ctypes.cast(read_attribute, ctypes.c_void_p), *[None] * 4, ctypes.cast(SET_ERROR, ctypes.c_void_p)
)
EXTRA = Extra(1, ctypes.sizeof(Extra), ctypes.addressof(FUNCTIONS), None)


class Refused(Exception):
    """A compiled kernel returned an error."""


class SizesDiffer(Exception):
    """A kernel takes rows of one size, and broadcasts a size that is 1 in the text only, as the guide says."""


@dataclass
class Forms:
    """The typed kernels of a program by mode, the same scheduled, and what was refused, by message."""

    program: object
    kernels: dict
    scheduled: list = field(default_factory=list)
    refused: list = field(default_factory=list)
    axes: list = field(default_factory=list)


def message(error):
    """Return the rule that an error names, without what is the kernel's own."""
    first = str(error).split("\n")[0]
    return f"{type(error).__name__}: {first.split(': ', 2)[-1][:100]}"


def schedule_of(program):
    steps = polyop.Schedule()
    for word, *arguments in program.steps:
        steps = getattr(steps, word)(*arguments)
    return steps.deterministic() if program.deterministic else steps


def forms_of(program, draw):
    """Return the forms of a program. Raises ``PolyopError`` for one that the front end refuses."""
    typed = parse(program.function(), program.types, program.attributes)
    forms = Forms(program, {"values": typed})
    is_inplace = any(buffer.role == "inplace" for buffer in typed.buffers.values())
    out = functional(typed) if is_inplace else typed
    tensors = [n for n in out.parameters if n in out.buffers]
    forms.axes = [draw.choice((0, 0, None)) if a is not None else None for a in program.types]
    if forms.axes and forms.axes[0] is None:
        forms.axes[0] = 0
    derived = {"batch": lambda: batched(out, forms.axes)}
    if program.palette == "double" and not is_inplace:
        real = [out.buffers[n].dtype == "float64" and n not in program.absent for n in tensors]
        present = [out.buffers[n].dtype == "float64" for n in out.outputs]
        derived["tangent"] = lambda: tangent(out, real)
        derived["gradient"] = lambda: adjoint(out, present).kernel
    for mode, form in derived.items():
        try:
            forms.kernels[mode] = form()
        except (GradientError, PolyopError) as error:  # noqa: PERF203 - three of them
            forms.refused.append(f"{mode}: {message(error)}")
    for mode, kernel in forms.kernels.items():
        forms.scheduled.append(scheduled(forms, kernel, schedule_of(program) if mode == "values" else None))
    return forms


def scheduled(forms, kernel, steps):
    """Return a kernel after all passes, without the author's steps if they are illegal."""
    try:
        return schedule(kernel, steps=steps) if steps else schedule(kernel)
    except ScheduleError as error:
        forms.refused.append(f"schedule: {message(error)}")
        return scheduled(forms, kernel, None)
    except islpy.Error as problem:
        return original(kernel, fallback=str(problem))


def compiled(library, number, kernel, arrays, attributes):
    """Return the outputs of a compiled kernel. Raises ``Refused`` with its error."""
    names = [n for n in kernel.parameters if n in kernel.buffers]
    inputs = [given(kernel.buffers[n], array) for n, array in zip(names, arrays, strict=True)]
    try:
        machine = _Machine(kernel, inputs, attributes)
    except ArgumentValueError as error:  # a demand on the sizes of a call
        raise Refused(str(error)) from None
    new = [n for n in kernel.outputs if kernel.buffers[n].role == "output"]
    tensors = [
        machine.arrays[n] if kernel.buffers[n].role == "inplace" else a
        for n, a in zip(names, inputs, strict=True)
    ]
    tensors += [machine.arrays[n] for n in new]
    pointers = (ctypes.c_void_p * len(tensors))(*(a.ctypes.data for a in tensors))
    sizes = [(ctypes.c_int64 * max(1, a.ndim))(*a.shape) for a in tensors]
    shapes = (ctypes.c_void_p * len(tensors))(*map(ctypes.addressof, sizes))
    function = ctypes.CDLL(str(library))[batch.symbol(number)]
    ERRORS.clear()
    ALIVE.clear()
    VALUES.clear()
    VALUES.update(attributes)
    if function(len(tensors), pointers, None, shapes, None, None, ctypes.byref(EXTRA)):
        raise Refused(ERRORS[0].decode())
    return [outer(kernel.buffers[n], machine.arrays[n]) for n in kernel.outputs]


def given(buffer, array):
    """Return an array as a kernel takes it; a kernel that does not read a tensor takes a bool."""
    if array is None or buffer.absent:
        return ABSENT
    return np.ascontiguousarray(array).reshape(array.shape)


def outer(buffer, array):
    return array.view(np.dtype(buffer.outer_dtype))[..., 0] if buffer.pairs else array


class Comparison:
    """One program with tensors: the plain results with their bounds, and those of the library."""

    def __init__(self, library, first, forms, seed):
        self.library, self.first, self.forms, self.program = library, first, forms, forms.program
        self.smooth = self.program.palette == "double" or seed % 2 == 1
        self.samples = [self.program.arrays(seed + k, smooth=self.smooth) for k in (0, 1000)]
        self.function = self.program.function()
        self.draw = np.random.default_rng(seed)

    def run(self, mode, arrays):
        number = self.first + list(self.forms.kernels).index(mode)
        attributes = {
            n: v for n, v in self.program.attributes.items() if n in self.forms.kernels[mode].attributes
        }
        return compiled(self.library, number, self.forms.kernels[mode], arrays, attributes)

    def compare(self):
        """Compare all modes. Return "compared", or why there is nothing to compare."""
        try:
            plain_results = [traced.run(self.function, s, self.program.attributes) for s in self.samples[:1]]
        except traced.Undecided as reason:
            return f"undecided: {str(reason)[:30]}"
        except (ArithmeticError, TypeError, IndexError, ValueError) as error:
            return self.raises(error)
        values, bounds, wraps = plain_results[0]
        if wraps and any(name in self.program.counts for name in JOINED):
            return "a promoted integer wraps"
        try:
            results = self.got("values", self.samples[0])
        except SizesDiffer:
            return "plain broadcasts a size that is 1 in this call"
        close("values", results, values, bounds)
        if self.program.deterministic:
            self.threads(results)
        if "batch" in self.forms.kernels:
            self.batch(values, bounds)
        if "tangent" in self.forms.kernels:
            self.slopes()
        return "compared"

    def got(self, mode, arrays):
        try:
            return self.run(mode, arrays)
        except Refused as error:
            if "rows of different sizes are combined" in str(error):
                raise SizesDiffer from None
            raise AssertionError(f"{mode}: refused at run time, plain Python is not: {error}") from None

    def raises(self, error):
        """What plain Python refuses, the kernel refuses too, but for what the guide says."""
        what = f"{type(error).__name__}: {error}"
        for kind, words in DIFFERENT:
            if isinstance(error, kind) and words in str(error):
                return f"plain raises {type(error).__name__}"
        try:
            self.plain(self.samples[0])
        except (IndexError, ValueError, TypeError):
            pass
        else:
            return f"only the traced run raises {what[:60]}"
        try:
            self.run("values", self.samples[0])
        except Refused:
            return f"both refuse: {type(error).__name__}"
        raise AssertionError(f"values: plain Python raises {what}, the kernel does not")

    def threads(self, results):
        """A deterministic kernel gives the same bits on any number of threads."""
        with batch.threads(1):
            alone = self.got("values", self.samples[0])
        for one, other in zip(results, alone, strict=True):
            if one.tobytes() != other.tobytes():
                raise AssertionError(f"deterministic: one thread gives {other}, three give {one}")

    def batch(self, values, bounds):
        """Two samples, of which the second one may be refused."""
        second = [
            one if axis is None else other
            for axis, one, other in zip(self.forms.axes, *self.samples, strict=True)
        ]
        try:
            others, more, wraps = traced.run(self.function, second, self.program.attributes)
        except (traced.Undecided, ArithmeticError, TypeError, IndexError, ValueError):
            return
        if wraps and any(name in self.program.counts for name in JOINED):
            return
        stacked = [
            one if axis is None else np.stack([one, other])
            for axis, one, other in zip(self.forms.axes, self.samples[0], second, strict=True)
        ]
        rows = [np.stack(pair) for pair in zip(values, others, strict=True)]
        close(
            "batch",
            self.got("batch", stacked),
            rows,
            [np.stack(pair) for pair in zip(bounds, more, strict=True)],
        )

    def plain(self, arrays):
        results = plain(self.function)(
            *(None if a is None else a.copy() for a in arrays), **self.program.attributes
        )
        return results if isinstance(results, tuple) else (results,)

    def slopes(self):
        """The tangent is a quotient of differences; the gradient is its transpose."""
        arrays = self.samples[0]
        real = [a is not None and a.dtype == np.float64 for a in arrays]
        along = [
            self.draw.uniform(-1, 1, a.shape) if is_real else None
            for a, is_real in zip(arrays, real, strict=True)
        ]

        def moved(by):
            return self.plain([a if v is None else a + by * v for a, v in zip(arrays, along, strict=True)])

        try:
            here, plus, minus, half = (moved(by) for by in (0, STEP, -STEP, STEP / 2))
        except (IndexError, ValueError, ArithmeticError, TypeError):
            return
        pushed = self.got("tangent", [*arrays, *(ABSENT if v is None else v for v in along)])
        smooth = True
        for name, a, b, c, d, tangents in zip(
            self.forms.kernels["values"].outputs, here, plus, minus, half, pushed, strict=True
        ):
            if a.dtype != np.float64:
                smooth = smooth and np.array_equal(a, b) and np.array_equal(a, c)
                continue
            with np.errstate(all="ignore"):
                right, left, near = (b - a) / STEP, (a - c) / STEP, (d - a) * 2 / STEP
                most = 1 + np.abs(right) + np.abs(a)
                agree = (np.abs(right - left) < 1e-3 * most) & (np.abs(right - near) < 1e-3 * most)
                agree &= np.abs(a) < 1e6
                wrong = agree & ~(np.abs(tangents - (right + left) / 2) < 1e-3 * most)
            smooth = smooth and bool(np.all(agree))
            if np.any(wrong) and not any(mark in self.program.counts for mark in MARKS):
                raise AssertionError(f"tangent: of {name} {tangents}, differences give {(right + left) / 2}")
        if smooth and "gradient" in self.forms.kernels:
            self.transposed(arrays, along, here, pushed)

    def transposed(self, arrays, along, outputs, pushed):
        weights = [self.draw.uniform(-1, 1, o.shape) if o.dtype == np.float64 else None for o in outputs]
        filled = [ABSENT if w is None else w for w in weights]
        pulled = self.got("gradient", [*arrays, *outputs, *filled])
        left = sum(float((w * t).sum()) for w, t in zip(weights, pushed, strict=True) if w is not None)
        terms = [(g * v) for g, v in zip(pulled, along, strict=True) if v is not None]
        right = sum(float(t.sum()) for t in terms)
        most = 1 + sum(float(np.abs(t).sum()) for t in terms)
        if np.isfinite(left) and not abs(left - right) < 1e-6 * most:
            raise AssertionError(f"gradient: {right}, the tangent gives {left}")


JOINED = (
    "conditional of mixed dtypes", "scalar of mixed dtypes in branches", "scalar reassigned with another type",
    "scalar updated", "reduction", "two names at once", "max and min", "scalar in both branches", "scalar multiplied",
    "division with =", "while", "counted while", "counted while by steps", "counted while that breaks",
    "while of two counters", "helper with branches", "helper of several results",
)  # fmt: skip
"""Constructs whose integers the guide promotes, which plain Python does not: there they do not wrap."""


DIFFERENT = (
    (
        ArithmeticError,
        "",
    ),  # "Compiled code raises no ZeroDivisionError or OverflowError; the values are NumPy's."
    (ValueError, "negative shift count"),  # "A shift by a negative count ... shifts all bits out"
    (ValueError, "must not be zero"),  # "A step of 0, range(0, n, 0), has no iterations"
)
"""The errors of plain Python that a compiled kernel does not raise, by the guide."""


MARKS = ("stop_gradient", "with_gradient")
"""What gives a derivative that is not that of the values."""


def close(mode, results, expected, bounds):
    """Raise ``AssertionError`` where a result is further from the plain one than rounding explains."""
    for number, (one, other, bound) in enumerate(zip(results, expected, bounds, strict=True)):
        if one.dtype != other.dtype or one.shape != other.shape:
            what = f"{one.dtype}{list(one.shape)}, wanted {other.dtype}{list(other.shape)}"
            raise AssertionError(f"{mode}: output {number} is {what}")
        a, b = traced.wide(one), traced.wide(other)
        with np.errstate(all="ignore"):
            same = (one == other) | ((one != one) & (other != other)) | (bound == np.inf)
            wrong = ~(same | (np.abs(a - b) <= SLACK * bound)) if one.dtype.kind not in "biu" else ~same
        if np.any(wrong):
            raise AssertionError(
                f"{mode}: output {number} is {one!r}, wanted {other!r}, bound {bound.max():.2g}"
            )


def stage(program, arrays, results):
    """Return whether the interpreter agrees with plain Python: what is wrong is behind the front end then."""
    try:
        typed = parse(program.function(), program.types, program.attributes)
        given = [ABSENT if a is None else a for a in arrays]
        seen = interpret(typed, given, {n: v for n, v in program.attributes.items() if n in typed.attributes})
        close("interpreter", seen, results, [np.full(r.shape, 1e-3) for r in results])
    except AssertionError:
        return "the interpreter has it too: the front end"
    except Exception:
        return f"the interpreter raises: {traceback.format_exc(limit=-1)}"
    return "the interpreter has it not: passes or printing"
