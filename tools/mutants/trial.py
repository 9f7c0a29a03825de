"""Run tests on a mutant in a process of its own, and say what became of it.

    killed        a test failed, or the process died: ``by`` which, and ``why``
    timeout       a test did not end, and does without the mutant: a kill as well
    survived      all tests passed, or all that began before the time was up
    not covered   the same, and no test in the test process reaches the lines: tests near to them ran

The mutant gets a copy of the build cache, by links to its files: it finds what is compiled already, and what
it compiles itself is found by no other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clock import Watched

HOOK = Path(__file__).resolve().parent / "hook"
BEGIN_S, LIMIT_S = 45, 60  # seconds of work after which no test begins, and the process is ended
NOT_COPIED = shutil.ignore_patterns("locks", "in-use", "work", "*.lock")  # processes would share the locks
COMPILED = ("core", "loops")  # rooms that decide what the loop compiler prints
OPTIONS = ("-q", "--tb=short", "-p", "no:cacheprovider", "-p", "inside", "--hypothesis-seed=0")
PLAIN = "--assert=plain"  # pytest itself would read a file whose doctests it runs, without the mutant
PYTEST = ("-m", "pytest", PLAIN, *OPTIONS)


class Place(NamedTuple):
    """The tree whose tests run, the build cache that is copied, and a folder for the files of the trial."""

    tree: Path
    cache: Path
    work: Path


class Plan(NamedTuple):
    """What runs: tests in their order, with mutated texts by the paths of their files.

    ``digest`` is mixed into that of the loop compiler, unless it is empty. ``stop``: at the first failure.
    ``scale`` multiplies the time that all tests have together.
    """

    tests: Sequence[str]
    texts: Mapping[str, str]
    digest: str = ""
    stop: bool = True
    scale: int = 1


class Outcome(NamedTuple):
    """What happened: the exit status, None for a process that was ended, and the notes of the plugin.

    Seconds are those of :mod:`clock`, without the last half.
    """

    status: int | None
    notes: list[dict[str, Any]]
    seconds: float
    output: str

    @property
    def ended(self) -> int:
        """How many tests came to their end."""
        return sum(one["event"] == "ended" for one in self.notes)

    def failures(self) -> list[dict[str, Any]]:
        """Return the notes of failures; a process that died fails the test that ran, or its import."""
        failed = [one for one in self.notes if one["event"] == "failed"]
        running = [one["test"] for one in self.notes if one["event"] == "started"]
        running = running[self.ended :]  # one at a time
        is_over = self.ended and not running  # only the end of the process takes long
        if not failed and self.status not in (0, 1, 2, 5) and not is_over:
            why = "Timeout" if self.status is None else f"exit status {self.status}: {self.output[-200:]}"
            failed.append({"test": running[0] if running else "", "why": why})
        return failed


def digest_of(texts: Mapping[str, str]) -> str:
    """Return the digest of the mutated texts if they decide what the loop compiler prints, else ""."""
    if not any(f"/polyop/{room}/" in path for path in texts for room in COMPILED):
        return ""
    return hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:12]


def tried(texts: Mapping[str, str], tests: Sequence[str], place: Place, scale: int = 1) -> dict[str, Any]:
    """Run tests with mutated texts until one fails, and return the result as columns of a row."""
    plan = Plan(tests, texts, digest_of(texts), scale=scale)
    outcome = run(plan, place)
    row = {"ran": outcome.ended, "seconds": round(outcome.seconds, 1)}
    if failures := outcome.failures():
        first = failures[0]
        hangs = "Timeout" in first["why"]
        if hangs and first["test"] and not ends(first["test"], plan, place):
            return {**row, "result": "too slow", "by": first["test"]}
        result = "timeout" if hangs else "killed"
        return {**row, "result": result, "by": first["test"], "why": first["why"]}
    if not outcome.ended:
        raise RuntimeError(f"no test ran: {outcome.output[-2000:]}")
    return {**row, "result": "survived"}


def ends(test: str, plan: Plan, place: Place) -> bool:
    """Whether a test ends in time without the mutant, in a cache that lacks the same libraries."""
    outcome = run(plan._replace(tests=[test], texts={}), place)
    return outcome.ended == 1 and not outcome.failures()


def run(plan: Plan, place: Place) -> Outcome:
    """Run tests, and return what happened."""
    shutil.rmtree(place.work, ignore_errors=True)
    place.work.mkdir(parents=True)
    if place.cache.exists():
        with contextlib.suppress(shutil.Error):  # a file that another process has removed meanwhile
            shutil.copytree(place.cache, place.work / "cache", copy_function=os.link, ignore=NOT_COPIED)
    files = sorted({test.partition("::")[0] for test in plan.tests})
    command = [str(place.tree / ".venv" / "bin" / "python"), *PYTEST]
    command += ["-x", *files] if plan.stop else files
    with tempfile.TemporaryDirectory(prefix="polyop-mutant-", ignore_cleanup_errors=True) as temporary:
        environment = {**written(plan, place), "TMPDIR": temporary}
        with (place.work / "output.txt").open("w") as output:
            process = subprocess.Popen(
                command,
                cwd=place.tree,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
            limits = (LIMIT_S * plan.scale, place.work / "stop", BEGIN_S * plan.scale)
            watched = Watched(process, *limits)
            status = watched.status()
    notes = place.work / "notes.jsonl"
    lines = notes.read_text().splitlines() if notes.exists() else []
    text = (place.work / "output.txt").read_text(errors="replace")
    return Outcome(status, [json.loads(line) for line in lines], watched.seconds, text)


def written(plan: Plan, place: Place) -> dict[str, str]:
    """Write the files of the hook and of the plugin, and return the variables of a process."""
    texts = {os.path.realpath(path): text for path, text in plan.texts.items()}
    (place.work / "mutant.json").write_text(json.dumps({"texts": texts, "digest": plan.digest}))
    tests = {
        "tests": list(plan.tests),
        "notes": str(place.work / "notes.jsonl"),
        "stop": str(place.work / "stop"),
    }
    (place.work / "tests.json").write_text(json.dumps(tests))
    variables = dict(os.environ)
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return {
        **variables,
        "PYTHONPATH": str(HOOK),
        "POLYOP_MUTANT": str(place.work / "mutant.json"),
        "POLYOP_MUTANT_TESTS": str(place.work / "tests.json"),
        "POLYOP_CACHE_DIR": str(place.work / "cache"),
        "POLYOP_TORCH_NPU": str(place.tree / "build" / "npu"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(place.work / "hypothesis"),
    }
