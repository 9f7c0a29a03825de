"""Random loop kernels, compiled, against exact dual numbers run as plain Python.

    python tests/loops/fuzz.py --seed 7 --count 1000 [--minutes 30] [--jobs 2]

Values, gradients, tangents and batches of each kernel are compared. Many kernels share one library, so that a
thousand take minutes. They run in a process of their own: a crash or a hang is a finding, not the end. Prints
the seed, each finding with the kernel's text, and the counts; exits with 1 where there are findings.
"""

import argparse
import ctypes
import json
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import islpy
import numpy as np

from abi_structures import Extra
from fuzz_process import run, say, within
from loop_samples import batch, dual, generate, python_forms
from polyop.core.errors import GradientError
from polyop.loops.derive.forms import adjoint, batched, saving, tangent
from polyop.loops.derive.functional import functional
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import _Machine
from polyop.loops.pipeline import original, schedule
from polyop.loops.targets import isa

EACH = 20
"""Kernels in one library."""
MAKING, RUNNING = 120, 60
"""The most seconds of CPU for the passes of a kernel, and for its runs; more is a hang."""
SAMPLES = 2
ROUGH = 1e-10
LARGEST = 1e7
"""Larger intermediate values lose too many digits to compare."""
NOISE = 1e-14
"""Errors of functions that must not change a result: a recurrence may magnify them at each step."""
ABSENT = np.zeros((), bool)

ERRORS = []
SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(lambda _, text: ERRORS.append(text))
FUNCTIONS = (ctypes.c_void_p * 6)(*[None] * 5, ctypes.cast(SET_ERROR, ctypes.c_void_p))
EXTRA = Extra(1, ctypes.sizeof(Extra), ctypes.addressof(FUNCTIONS), None)


@dataclass
class Program:
    """A random kernel, its form for each mode, and the reasons of those that are refused.

    ``axes``: which axis of each input counts samples in a batch, or None. ``present``: which outputs have a
    gradient where only a part of them has one.
    """

    source: generate.Generator
    kernels: dict
    refused: dict
    axes: list
    present: list


def source_of(seed, number):
    """Return the source of kernel ``number`` of a seed; each fourth has helpers, exits and rows."""
    draw = random.Random(f"{seed} {number}")
    return python_forms.PythonForms(draw) if number % 4 == 3 else generate.Generator(draw, real=True)


def program(seed, number):
    """Return kernel ``number`` of a seed."""
    source = source_of(seed, number)
    typed = functional(parse(source.function(), source.types, {}))
    real = [typed.buffers[n].dtype == "float64" for n in typed.parameters]
    present = [typed.buffers[n].dtype == "float64" for n in typed.outputs]
    axes = [source.pick((0, 0, None, 1)[: 3 + bool(rank)]) for _, rank in source.types]
    axes[0] = axes[0] or 0
    part = [there and source.chance(0.5) for there in present]
    forms = {
        "values": lambda: typed,
        "gradient": lambda: adjoint(typed, present).kernel,
        "tangent": lambda: tangent(typed, real),
        "batch": lambda: batched(typed, axes),
    }
    saved = saving(typed, "all") if number % 3 == 0 else None
    if saved:
        absent = [False] * (len(saved.outputs) - len(present))
        forms["saving"] = lambda: saved
        forms["gradient of saved"] = lambda: adjoint(saved, [*present, *absent]).kernel
    if number % 3 == 1:
        forms["gradient in segments"] = lambda: adjoint(typed, present, segments=True).kernel
    if number % 3 == 2 and any(part):
        forms["gradient of a part"] = lambda: adjoint(typed, part).kernel
    kernels, refused = {}, {}
    for mode, form in forms.items():
        try:
            kernels[mode] = form()
        except GradientError as error:  # noqa: PERF203 - four of them
            refused[mode] = str(error)
    return Program(source, kernels, refused, axes, part)


def compiled(library, number, kernel, arrays):
    """Return the outputs of a compiled kernel. Raises ``IndexError`` for an index out of range."""
    names = [n for n in kernel.parameters if n in kernel.buffers]
    absent = {n for n in names if kernel.buffers[n].absent}
    inputs = [ABSENT if n in absent else np.ascontiguousarray(a) for n, a in zip(names, arrays, strict=True)]
    machine = _Machine(kernel, inputs, {})
    outputs = [machine.arrays[n] for n in kernel.outputs]
    tensors = [*inputs, *outputs]
    pointers = (ctypes.c_void_p * len(tensors))(*(a.ctypes.data for a in tensors))
    sizes = [(ctypes.c_int64 * max(1, a.ndim))(*a.shape) for a in tensors]
    shapes = (ctypes.c_void_p * len(tensors))(*map(ctypes.addressof, sizes))
    function = ctypes.CDLL(str(library))[batch.symbol(number)]
    ERRORS.clear()
    if function(len(tensors), pointers, None, shapes, None, None, ctypes.byref(EXTRA)):
        raise IndexError(ERRORS[0].decode())
    return outputs


class Comparison:
    """One program with inputs, its results by dual numbers and by the library."""

    def __init__(self, library, first, program, draw, *, ragged):
        self.library, self.first, self.program, self.draw = library, first, program, draw
        whole = program.source.arrays(ragged=ragged)
        self.samples = [[self.real(a) for a in whole] for _ in range(SAMPLES)]
        for k, axis in enumerate(program.axes):
            if axis is None:
                self.samples[1][k] = self.samples[0][k]
        self.along = [
            draw.uniform(-1, 1, a.shape) if a.dtype == np.float64 else None for a in self.samples[0]
        ]

    def real(self, array):
        return self.draw.uniform(-1.5, 1.5, array.shape) if array.dtype == np.float64 else array

    def run(self, mode, arrays):
        """Return the results of the library in a mode; raise if it fails where Python does not."""
        kernels = self.program.kernels
        number = self.first + list(kernels).index(mode)
        try:
            return compiled(self.library, number, kernels[mode], arrays)
        except IndexError as error:
            raise AssertionError(f"{mode}: an index is refused that Python takes: {error}") from None

    def compare(self):
        """Compare all modes. Return whether there was something to compare."""
        try:
            results = [dual.run(self.program.source.text, s, self.along) for s in self.samples]
        except IndexError:
            self.refuses()
            return False
        except (dual.Kink, OverflowError):
            return False
        values, tangents = results[0]
        if dual.Dual.largest > LARGEST or self.is_chaotic(results[0]):
            return False
        self.close("values", self.run("values", self.samples[0]), values)
        if "tangent" in self.program.kernels:
            pushed = self.run("tangent", [*self.samples[0], *self.along])
            self.close("tangent", pushed, tangents)
        self.transposed(values, tangents)
        rows = zip(self.program.axes, *self.samples, strict=True)
        stacked = [one if axis is None else np.stack([one, other], axis) for axis, one, other in rows]
        expected = [np.stack(rows) for rows in zip(*(v for v, _ in results), strict=True)]
        self.close("batch", self.run("batch", stacked), expected)
        return True

    def is_chaotic(self, results):
        """Whether another rounding of sines and exponentials would change the results."""
        largest = dual.Dual.largest
        try:
            noisy = dual.run(self.program.source.text, self.samples[0], self.along, NOISE)
            for part, other in zip(results, noisy, strict=True):
                self.close("rounding", other, part)
        except (AssertionError, IndexError, dual.Kink, OverflowError):
            return True
        finally:
            dual.Dual.largest = largest
        return False

    def refuses(self):
        """An index that Python refuses is refused by the kernel for one of the samples."""
        number = self.first + list(self.program.kernels).index("values")
        for sample in self.samples:
            try:
                compiled(self.library, number, self.program.kernels["values"], sample)
            except IndexError:  # noqa: PERF203 - two of them
                return
        raise AssertionError("values: an index that Python refuses is taken")

    def transposed(self, values, tangents):
        """<w, J v> by dual numbers is <J^T w, v> by each derived gradient."""
        for mode in [m for m in self.program.kernels if m.startswith("gradient")]:
            outputs, none = values, [t is None for t in tangents]
            if mode == "gradient of a part":
                none = [not there for there in self.program.present]
            if mode == "gradient of saved":
                outputs = self.run("saving", self.samples[0])
                self.close("saving", outputs[: len(values)], values)
                none += [True] * (len(outputs) - len(values))
            weights = [np.zeros_like(v) if absent else self.draw.uniform(-1, 1, v.shape)
                       for v, absent in zip(outputs, none, strict=True)]  # fmt: skip
            gradients = self.run(mode, [*self.samples[0], *outputs, *weights])
            pairs = zip(weights, tangents, strict=False)
            expected = sum(float((w * t).sum()) for w, t in pairs if t is not None)
            pairs = zip(gradients, self.along, strict=True)
            result = sum(float((g * v).sum()) for g, v in pairs if v is not None)
            self.close(mode, [np.array(result)], [np.array(expected)])

    @staticmethod
    def close(mode, results, expected):
        most = ROUGH * dual.Dual.largest
        for one, other in zip(results, expected, strict=True):
            if other is not None:
                np.testing.assert_allclose(one, other, rtol=ROUGH, atol=most, err_msg=mode)


def scheduled_or_original(kernel):
    """Return a kernel scheduled, or in the author's order if it exceeds the quota of isl."""
    try:
        return schedule(kernel)
    except islpy.Error as problem:
        return original(kernel, fallback=str(problem))


def child(seed, first, last, skipped):
    """Compare kernels ``first`` to ``last`` except ``skipped``; print a line of JSON for each step."""
    import polyop

    polyop.set_num_threads(3)
    programs, scheduled = {}, []
    warnings.simplefilter("error", polyop.FallbackWarning)
    for number in (n for n in range(first, last) if n not in skipped):
        say(step="making", number=number)
        within(MAKING)
        try:
            sample = program(seed, number)
            scheduled += [scheduled_or_original(kernel) for kernel in sample.kernels.values()]
            programs[number] = sample
        except Exception:
            say(step="finding", number=number, what=traceback.format_exc(limit=-4))
    within(0)
    target = isa.available()[(first // EACH) % len(isa.available())]
    say(step="compiling", number=-1)
    library = batch.build(batch.text(scheduled, target), "-DPOLYOP_GRAIN=1") if scheduled else None
    position = 0
    for number, sample in programs.items():
        say(step="running", number=number)
        within(RUNNING)
        draw = np.random.default_rng([seed % 2**32, number])
        compared = 0
        try:
            for ragged in (False, False, True):
                compared += Comparison(library, position, sample, draw, ragged=ragged).compare()
        except Exception:
            say(step="finding", number=number, what=traceback.format_exc(limit=-2))
        slow = [one.fallback for one in scheduled[position : position + len(sample.kernels)] if one.fallback]
        position += len(sample.kernels)
        say(step="done", number=number, compared=compared, refused=sample.refused, slow=len(slow))
    within(0)


def text_of(seed, number):
    try:
        return source_of(seed, number).text
    except Exception as problem:
        return f"no text: {problem!r}"


def batch_of(seed, first, last):
    """Run kernels in child processes until all are done.

    Return (kernels compared, refused, in the author's order, findings).
    """
    skipped, findings = [], []
    while True:
        lines, end = run(__file__, [seed, first, last, skipped])
        if not end:
            findings += [(line["number"], line["what"]) for line in lines if line["step"] == "finding"]
            rows = [line for line in lines if line["step"] == "done"]
            counts = (sum(bool(row[word]) for row in rows) for word in ("compared", "refused", "slow"))
            return (*counts, findings)
        at, step = (lines[-1]["number"], lines[-1]["step"]) if lines else (-1, "starting")
        if step == "compiling" and last - first > 1:  # of which kernel?
            middle = (first + last) // 2
            halves = batch_of(seed, first, middle), batch_of(seed, middle, last)
            return tuple(one + other for one, other in zip(*halves, strict=True))
        findings.append((first if step == "compiling" else at, f"{step}: {end}"))
        if at < 0 or at in skipped:
            return 0, 0, 0, findings
        skipped.append(at)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=None, help="the same seed makes the same kernels")
    parser.add_argument("--count", type=int, default=10**9, help="how many kernels")
    parser.add_argument("--minutes", type=float, default=1e9, help="no new kernels after this time")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*json.loads(options.child))
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    begin, counts = time.monotonic(), [0, 0, 0, 0, 0]

    def one(first):
        if time.monotonic() - begin > 60 * options.minutes:
            return
        last = min(first + EACH, options.count)
        *numbers, findings = batch_of(seed, first, last)
        for number, what in findings:
            print(f"\nfinding: seed {seed}, kernel {number}: {what}\n{text_of(seed, number)}", flush=True)
        for index, more in enumerate((last - first, *numbers, len(findings))):
            counts[index] += more

    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(options.jobs) as pool:
        os.environ.setdefault("POLYOP_CACHE_DIR", cache)
        first = 0
        while first < options.count and time.monotonic() - begin < 60 * options.minutes:
            list(pool.map(one, range(first, min(options.count, first + EACH * options.jobs), EACH)))
            first += EACH * options.jobs
    minutes = (time.monotonic() - begin) / 60
    print(f"{counts[0]} kernels, {counts[1]} compared, {counts[2]} with a refused derivative, "
          f"{counts[3]} in the author's order, {counts[4]} findings, {minutes:.1f} minutes, seed {seed}")  # fmt: skip
    return 1 if counts[4] else 0


if __name__ == "__main__":
    sys.exit(main())
