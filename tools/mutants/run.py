"""Run the mutants of list.txt and the bugs of past/, each with the tests that cover it.

    python tools/mutants/run.py --name now                       all; goes on where an earlier run stopped
    python tools/mutants/run.py --name now --only 'core-*'       some
    python tools/mutants/run.py --name before --tree ../before   sources and tests of another checkout
    python tools/mutants/run.py --name more --survivors-of now --scale 4   with more of their tests

It needs the database of a run of the tests under coverage, and the report of that run: `make mutants` makes
both. The results are lines of build/mutants/NAME.jsonl. At the end each test that killed a mutant runs
without one: if it fails, it is left out (NAME.unfit.txt), and its mutants are tried again.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import threading
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from covering import Tests, function_of
from listing import Mutant, mutants, past
from places import mutated_texts
from report import KILLED, rows_of
from trial import Place, Plan, run, tried

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "mutants"
ROUNDS = 3  # of checks, and of trials where a test is too slow


class Run:
    """A run: where its results are, and with which tests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.tree, self.scale = options.tree.resolve(), options.scale
        self.file = RESULTS / f"{options.name}.jsonl"
        self.unfit = RESULTS / f"{options.name}.unfit.txt"
        self.cache = options.cache or self.tree / "build" / "test-cache"
        self.tests = Tests(self.tree, options.database, options.report)
        self.tests.leave_out(lines_of(self.unfit))
        self.lock = threading.Lock()
        self.folders = [RESULTS / "work" / f"{options.name}-{k}" for k in range(options.jobs)]

    def rows(self) -> list[dict[str, Any]]:
        """Return the results so far."""
        return [json.loads(line) for line in lines_of(self.file)]

    def try_all(self, which: Sequence[Mutant]) -> None:
        """Try the mutants that have no result yet."""
        done = {row["name"] for row in self.rows()}
        left = [one for one in which if one.name not in done]
        print(f"{len(left)} of {len(which)} mutants to try", flush=True)
        with ThreadPoolExecutor(len(self.folders)) as pool:
            for _ in pool.map(self.try_one, left):
                pass

    def try_one(self, mutant: Mutant) -> None:
        """Try a mutant, and keep the result."""
        with self.lock:
            folder = self.folders.pop()
        try:
            row = self.result(mutant, Place(self.tree, self.cache, folder))
        except (LookupError, RuntimeError) as problem:  # it is tried again when the run goes on
            print(f"no result   {mutant.name}: {problem}", flush=True)
            return
        finally:
            self.folders.append(folder)
        with self.lock, self.file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        tests = f"{row['ran']:3} of {row['chosen']:3} tests"
        print(
            f"{row['result']:11} {row['name']:34} {row['seconds']:5.1f} s {tests}  {row.get('by', '')}",
            flush=True,
        )

    def result(self, mutant: Mutant, place: Place) -> dict[str, Any]:
        """Try a mutant, again without a test that is too slow also without the mutant."""
        row: dict[str, Any] = {"name": mutant.name, "room": mutant.room, "kind": mutant.kind}
        texts = mutated_texts(mutant.changes, self.tree / "src" / "polyop")
        for _ in range(ROUNDS):
            with self.lock:
                tests, covering, reaching = self.tests.chosen(mutant, self.scale)
            row |= {"chosen": len(tests), "covering": covering, "reaching": reaching}
            if not tests:
                return {**row, "result": "not covered", "ran": 0, "seconds": 0.0}
            found = tried(texts, tests, place, self.scale)
            if found["result"] != "too slow":
                break
            self.leave_out([found["by"]], "too slow")
        result = found["result"]
        if result == "too slow":  # nothing is known
            found["result"] = "survived"
        if result == "survived" and not covering:
            found["result"] = "not covered"
        return {**row, **found}

    def leave_out(self, tests: Sequence[str], why: str) -> None:
        """Use some tests no longer, in this run and when it goes on."""
        names = sorted(set(map(function_of, tests)))
        print(f"left out, {why} without a mutant too:", *names, sep="\n    ", flush=True)
        with self.lock:
            self.tests.leave_out(names)
            with self.unfit.open("a") as file:
                file.write("".join(f"{name}\n" for name in names))

    def check(self) -> bool:
        """Run the tests that killed without a mutant; if one fails, forget its kills and return False."""
        tests = sorted({row["by"] for row in self.rows() if row.get("by")})  # some are files
        if not tests:
            return True
        print(f"{len(tests)} tests that killed run without a mutant", flush=True)
        plan = Plan(tests, {}, stop=False, scale=20)
        failed = {one["test"] for one in run(plan, Place(self.tree, self.cache, self.folders[0])).failures()}
        if failed:
            kept = [row for row in self.rows() if row.get("by") not in failed]
            self.file.write_text("".join(json.dumps(row) + "\n" for row in kept))
            self.leave_out(sorted(failed), "as they fail")
        return not failed


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file, none of one that is not there."""
    return path.read_text().splitlines() if path.exists() else []


def options_given() -> argparse.Namespace:
    """Read the options."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--name", default="now", help="of the results")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose sources and tests run")
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--survivors-of", metavar="NAME", help="those that an earlier run did not kill")
    parser.add_argument("--scale", type=int, default=1, help="times as many tests, and as much time")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--database", type=Path, help="of coverage; TREE/build/mutants/coverage.db")
    parser.add_argument("--report", type=Path, help="of the same run; TREE/build/mutants/tests.xml")
    parser.add_argument("--cache", type=Path, help="the build cache to copy; TREE/build/test-cache")
    options = parser.parse_args()
    options.database = options.database or options.tree / "build" / "mutants" / "coverage.db"
    options.report = options.report or options.tree / "build" / "mutants" / "tests.xml"
    for path in (options.database, options.report):
        if not path.exists():
            sys.exit(f"{path} is missing: `make mutants` makes it")
    return options


def main() -> None:
    """Run."""
    options = options_given()
    RESULTS.mkdir(parents=True, exist_ok=True)
    which = [one for one in (*mutants(), *past()) if not one.equivalent]
    which = [one for one in which if any(fnmatch.fnmatch(one.name, pattern) for pattern in options.only)]
    if options.survivors_of:
        rows = rows_of(RESULTS / f"{options.survivors_of}.jsonl")
        which = [one for one in which if one.name in rows and rows[one.name]["result"] not in KILLED]
    which.sort(key=lambda one: zlib.crc32(one.name.encode()))  # so that a part is a sample of the whole
    files = {options.tree / "src" / "polyop" / change.file for one in which for change in one.changes}
    edited = [str(path) for path in files if path.stat().st_mtime > options.database.stat().st_mtime]
    if edited:
        print(
            "edited since the tests were measured, so they may run other lines:",
            *sorted(edited),
            sep="\n    ",
        )
    this = Run(options)
    for _ in range(ROUNDS):
        this.try_all(which)
        if this.check():
            break


if __name__ == "__main__":
    main()
