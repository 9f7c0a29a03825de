"""Which cases of the slow tests run, and in which order all tests do.

``@pytest.mark.slow`` marks a test of which no case runs for every change, ``@pytest.mark.slow(5)`` one of which
five do. A run has one number: ``--more N`` adds N cases of each, ``--more all`` runs everything. A test whose cases
find different faults has a larger share: ``slow(5, more=3)`` adds three times as many.

    make test       --more 0       for every change
    make test-all   --more 0.5     one case more of every second slow test, drawn by its name
    make sweep      --more all

A test without the mark always runs. The order is random: of the files, of the tests of a file, of the cases of a
test. ``--order SEED`` repeats one. Files with slow tests come first: such a one would run alone at the end.
"""

import random
import zlib
from collections import defaultdict

ALL = 1 << 30


def add_options(parser):
    """Add ``--more`` and ``--order`` to pytest."""
    count = lambda text: ALL if text == "all" else float(text)  # noqa: E731
    parser.addoption("--more", type=count, default=0, help="so many more cases of each slow test; or all")
    parser.addoption("--order", type=int, help="the seed of the random order; 0 is the order of the files")


def seed_of_order(config):
    """Return the seed, and draw one if none was given; the workers of a run have one seed."""
    if config.option.order is None:
        given = getattr(config, "workerinput", {}).get("order")
        config.option.order = random.SystemRandom().randrange(1, 10**6) if given is None else given
    return config.option.order


def select(config, items):
    """Deselect the cases of slow tests that do not run, and put the others into a random order."""
    left_out = more_than_asked_for(items, config.option.more)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
    if seed := seed_of_order(config):
        shuffle(items, seed)


def more_than_asked_for(items, more):
    """Return the cases of slow tests beyond those that the marks keep and ``more``."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out = set()
    for name, its_cases in cases.items():
        count = number_of(its_cases[0].get_closest_marker("slow"), more, chance(name))
        left_out |= {its_cases[k] for k in evenly(len(its_cases))[count:]}
    return left_out


def number_of(mark, more, chance):
    """Return how many cases of a test with this mark run; a part of a case is one or none, by chance from 0 to 1.

    >>> import pytest
    >>> number_of(pytest.mark.slow(5, more=3).mark, 2, 0.9)
    11
    >>> [number_of(pytest.mark.slow.mark, 0.5, chance) for chance in (0.3, 0.7)]
    [0, 1]
    """
    return sum(mark.args) + int(mark.kwargs.get("more", 1) * more + chance)


def chance(name):
    """Return a number from 0 to 1, the same for a name each time."""
    return zlib.crc32(name.encode()) / 2**32


def evenly(count):
    """Return the numbers below ``count`` in an order of which any beginning is spread evenly (van der Corput).

    >>> evenly(8)
    [0, 4, 2, 6, 1, 5, 3, 7]
    """
    bits = max(1, (count - 1).bit_length())
    return sorted(range(count), key=lambda k: f"{k:0{bits}b}"[::-1])


def shuffle(items, seed):
    """Sort tests by hashes of their names, so that a subset of them keeps its order."""
    slow_files = {item.path for item in items if item.get_closest_marker("slow")}

    def place(item):
        test, _, _ = item.nodeid.partition("[")
        names = (str(item.path), test, item.nodeid)
        return (item.path not in slow_files, *(zlib.crc32(f"{seed} {name}".encode()) for name in names))

    items.sort(key=place)
