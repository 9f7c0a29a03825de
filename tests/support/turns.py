"""Which exhaustive tests run on one worker one after another, and which come first.

With ``--dist loadfile`` a worker takes a group of tests at a time. Tests of one file share fixtures that compile for
minutes: were they spread over the workers, each worker would make the fixtures, or wait for the other's compiler.
So a file is a group, and the files of GROUPS that share more are one. xdist's own mark for that, ``xdist_group``,
is without effect under pytest 9.2: xdist 3.8 writes it into a name that pytest does not read.

A long group that comes last runs alone. So those of seconds.txt come first, the longest before the others.
After `make exhaustive-main`, ``python tests/support/turns.py build/exhaustive.xml`` writes that table.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "wheels": (  # polyop's wheel is built in build/wheels
        "packages/test_polyop_wheel wheel/test_new_readme wheel/test_same_binary wheel/test_add_project"
    ),
    "libtorch": (  # PyTorch's headers are precompiled once, with all processors
        "test_site build/test_build_real_sources build/test_libtorch build/test_precompiled build/test_torch_extension"
    ),
    "programs": "loops/test_compiled loops/emit/test_cuda",  # the interpreter runs each program once for both
}
NAMES = {f"tests/{file}.py": name for name, files in GROUPS.items() for file in files.split()}
TABLE = Path(__file__).with_name("seconds.txt")
HEADER = """# How many seconds the longest groups of exhaustive tests take together: see turns.py, which writes this table.
"""
LEAST = 20
"""Seconds from which a group has a row."""


def group_of(nodeid):
    """Return the group of a test: a name of GROUPS, or its file."""
    file = nodeid.split("::")[0]
    return NAMES.get(file, file)


class Scheduler(LoadScopeScheduling):
    """Gives a worker one group after another."""

    def _split_scope(self, nodeid):
        return group_of(nodeid)


def read(text):
    """Return group -> its seconds."""
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {group: int(seconds) for seconds, group in rows}


def sort(items):
    """Put the longest groups first; the others stay as they are."""
    seconds = read(TABLE.read_text())
    items.sort(key=lambda item: -seconds.get(group_of(item.nodeid), 0))


def measured(results):
    """Return the table of the results of a run."""
    total = Counter()
    for case in ET.parse(results).iter("testcase"):
        total[group_of(f"{case.get('classname').replace('.', '/')}.py")] += float(case.get("time"))
    rows = [f"{round(seconds)} {name}\n" for name, seconds in total.most_common() if seconds >= LEAST]
    return HEADER + "".join(rows)


if __name__ == "__main__":
    TABLE.write_text(measured(sys.argv[1]))
