"""Random kernels of the whole documented language, compiled, against the plain Python function.

    python tests/loops/fuzz_language.py --seed 7 --count 1000 [--minutes 30] [--construct while]

Where fuzz.py knows loops over float64 and exact derivatives, these kernels have every dtype and every construct of
the guide (tests/support/language/constructs.py has a row for each). Values, batches, tangents, gradients, schedules
and deterministic sums are compared. Kernels run in a process of their own: a crash or a hang is a finding. Prints each
finding as a program, how often each construct was drawn, what the front end refused by message, and the counts;
exits with 1 where there are findings.
"""

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from fuzz_process import run, say, within
from language import compare, draw, shrink
from language.constructs import EXPRESSIONS, STATEMENTS
from language.contractions import FORMS
from language.program import Program
from loop_samples import batch
from polyop.core.errors import PolyopError
from polyop.loops.targets import isa

EACH = 15
"""Kernels in one library."""
MAKING, RUNNING = 120, 90
"""The most seconds of CPU for the passes of a kernel, and for its runs; more is a hang."""


def child(options):
    """Make, compile and compare programs; print a line of JSON for each step."""
    import polyop

    polyop.set_num_threads(3)
    warnings.simplefilter("ignore")
    seed, programs, made = options["seed"], {}, []
    for number in options["numbers"]:
        say(step="making", number=number)
        within(MAKING)
        try:
            program = given(options) or draw.program(seed, number)
            forms = compare.forms_of(program, random.Random(f"{seed} {number}"))
            programs[number] = forms, len(made)
            made += forms.scheduled
        except PolyopError as error:
            say(step="refused", number=number, what=compare.message(error), counts=program.counts)
        except Exception:
            say(step="finding", number=number, what=traceback.format_exc(limit=-4))
    within(0)
    target = isa.available()[options["target"] % len(isa.available())]
    say(step="compiling", number=-1)
    library = batch.build(batch.text(made, target), "-DPOLYOP_GRAIN=1") if made else None
    for number, (forms, position) in programs.items():
        say(step="running", number=number)
        within(RUNNING)
        for sample in range(2):
            comparison = compare.Comparison(library, position, forms, number + sample)
            try:
                result = comparison.compare()
            except Exception as error:
                what = traceback.format_exc(limit=-2)
                if isinstance(error, AssertionError) and options.get("stage"):
                    what += stage(comparison)
                say(step="finding", number=number, what=what, sample=sample)
                result = "finding"
            say(step="done", number=number, result=result, refused=forms.refused, counts=forms.program.counts)
            if result == "finding":
                break
    within(0)


def stage(comparison):
    try:
        results = comparison.plain(comparison.samples[0])
    except Exception:
        return ""
    return compare.stage(comparison.program, comparison.samples[0], results)


def given(options):
    """Return the program that is given as JSON, or None."""
    row = options.get("program")
    if row is None:
        return None
    row = {
        **row,
        "counts": Counter(row["counts"]),
        "tensors": {n: (d, tuple(a)) for n, (d, a) in row["tensors"].items()},
    }
    return Program(**row)


class Run:
    """All kernels of a seed: the findings and the counts."""

    def __init__(self, seed, tries):
        self.seed, self.tries = seed, tries
        self.results, self.refused, self.constructs = Counter(), Counter(), Counter()
        self.findings, self.seen, self.target = 0, Counter(), 0

    def group(self, numbers):
        """Run some kernels in one process; after a crash the others in another one."""
        numbers = list(numbers)
        while numbers:
            self.target = numbers[0] // EACH
            lines, end = run(__file__, self.options(numbers))
            at, step = (lines[-1]["number"], lines[-1]["step"]) if lines else (-1, "starting")
            if end and step == "compiling" and len(numbers) > 1:  # of which kernel?
                middle = len(numbers) // 2
                self.group(numbers[:middle])
                self.group(numbers[middle:])
                return
            lines = lines if not end or step == "running" else []  # they come again
            self.read(lines)
            if not end:
                return
            at = numbers[0] if at < 0 else at
            self.finding(at, f"{step}: {end}")
            known = {line["number"] for line in lines if line["step"] in ("done", "refused", "finding")}
            numbers = [n for n in numbers if n not in known | {at}]

    def options(self, numbers):
        """Return what a child is told: each group of kernels is for the next instruction set."""
        return {"seed": self.seed, "numbers": numbers, "target": self.target}

    def read(self, lines):
        for line in lines:
            if line["step"] == "finding":
                self.finding(line["number"], line["what"], line.get("sample", 0))
            elif line["step"] == "refused":
                self.results["refused by the front end"] += 1
                self.refused[line["what"]] += 1
            elif line["step"] == "done":
                self.results[line["result"]] += 1
                self.refused.update(line["refused"])
                if line["result"] == "compared":
                    self.constructs.update(line["counts"].keys())

    def finding(self, number, what, sample=0):
        self.findings += 1
        program = draw.program(self.seed, number)
        key = symptom(what)
        self.seen[key] += 1
        if self.seen[key] <= 3:
            program, what = self.smallest(program, number, what)
        print(f"\nfinding: seed {self.seed}, kernel {number}: {what}", flush=True)
        arrays = program.arrays(
            number + sample, smooth=program.palette == "double" or (number + sample) % 2 == 1
        )
        print(shrink.runnable(program, arrays, what), flush=True)

    def smallest(self, program, number, what):
        found = {"what": what}

        def fails(other):
            row = {**vars(other), "counts": dict(other.counts)}
            options = {**self.options([number]), "target": self.target, "program": row, "stage": True}
            lines, end = run(__file__, options)
            texts = [line["what"] for line in lines if line["step"] == "finding"]
            texts += [f"{lines[-1]['step'] if lines else ''}: {end}"] if end else []
            alike = [text for text in texts if symptom(text) == symptom(what)]
            if alike:
                found["what"] = alike[0]
            return bool(alike)

        return shrink.shrunk(program, fails, self.tries), found["what"]


def symptom(what):
    """Return what two findings alike have in common."""
    last = [line for line in what.splitlines() if line and not line.startswith((" ", "the interpreter"))]
    text = next((line for line in last if "Error" in line or "exit status" in line or "hang" in line), "")
    if text.startswith("AssertionError: "):
        return text[:26]
    return text[:60]


def report(done, seconds):
    """Print what was drawn and compared, what was not, and the counts."""
    print("\nrefused by the front end, or a form or a step of a schedule:")
    for text, count in done.refused.most_common(40):
        print(f"  {count:5} {text}")
    names = dict.fromkeys(row.construct for row in (*EXPRESSIONS, *STATEMENTS, *FORMS))
    missing = [name for name in names if not done.constructs[name]]
    print(f"\nconstructs in a kernel that was compared: {len(names) - len(missing)} of {len(names)}")
    print(f"  never: {', '.join(missing)}" if missing else "")
    print(", ".join(f"{count} {text}" for text, count in done.results.most_common()))
    print(f"{done.results['compared']} samples compared, {done.findings} findings, {seconds / 60:.1f} minutes, "
          f"seed {done.seed}")  # fmt: skip


def numbers_of(seed, options):
    """Yield the numbers of kernels; of a construct those that have it."""
    for number in itertools.count(options.first):
        if not options.construct or draw.program(seed, number).counts[options.construct]:
            yield number


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=None, help="the same seed makes the same kernels")
    parser.add_argument("--first", type=int, default=0, help="the first kernel")
    parser.add_argument("--count", type=int, default=10**9, help="how many kernels")
    parser.add_argument("--minutes", type=float, default=1e9, help="no new kernels after this time")
    parser.add_argument("--construct", help="only kernels that have this construct")
    parser.add_argument("--shrink", type=int, default=60, help="tries to make a finding smaller")
    parser.add_argument("--show", action="store_true", help="print the texts of the kernels, and run none")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(json.loads(options.child))
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    numbers = itertools.islice(numbers_of(seed, options), options.count)
    if options.show:
        for number in numbers:
            print(draw.program(seed, number).text)
        return 0
    print(f"seed {seed}", flush=True)
    begin, done = time.monotonic(), Run(seed, options.shrink)
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("POLYOP_CACHE_DIR", cache)
        while time.monotonic() - begin < 60 * options.minutes and (
            some := [*itertools.islice(numbers, EACH)]
        ):
            done.group(some)
    report(done, time.monotonic() - begin)
    return 1 if done.findings else 0


if __name__ == "__main__":
    sys.exit(main())
