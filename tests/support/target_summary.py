"""The line at the end of a run which says for which targets kernels were compiled, and on which they ran.

A test records a property ``target`` whose value is "neon: ran", "cuda: compiled", or "neon: not run: ..." with
the reason.
"""

from collections import defaultdict

from polyop.loops.targets.table import TARGETS

ORDER = [*TARGETS, "hip"]
LEVELS = ("not", "compiled", "ran")
OUTCOMES = ("passed", "skipped")


def print_targets(terminalreporter):
    """Print the line, if a test recorded something."""
    reports = [report for outcome in OUTCOMES for report in terminalreporter.stats.get(outcome, [])]
    recorded = (pair for one in reports for pair in getattr(one, "user_properties", ()))  # none of collecting
    if text := line([value for name, value in recorded if name == "target"]):
        terminalreporter.write_line(f"targets: {text}")


def line(records):
    """Return what is known of each target: the most that any test did, or why it did not.

    >>> line(["neon: compiled", "avx2: ran", "neon: not run: there is no qemu-aarch64", "avx2: compiled"])
    'avx2 ran, neon compiled (not run: there is no qemu-aarch64)'
    """
    found = defaultdict(lambda: defaultdict(set))
    for record in records:
        target, _, text = record.partition(": ")
        found[target][LEVELS.index(text.split()[0])].add(text)
    shown = []
    for target in sorted(found, key=ORDER.index):
        most = max(found[target])
        reasons = found[target][0] if 0 < most < len(LEVELS) - 1 else ()
        shown.append(f"{target} {' and '.join(sorted(found[target][most]))}")
        shown[-1] += f" ({'; '.join(sorted(reasons))})" if reasons else ""
    return ", ".join(shown)
