"""The rows of the table of programs that have derivatives, in double precision."""

import dataclasses

import numpy as np
import pytest

from derive_samples import kernels
from loop_samples import programs
from polyop.loops.derive.functional import functional
from polyop.loops.frontend.parse import parse

LENGTHS = (3, 5, 4, 2)
ABSENT = np.zeros((), bool)


def _smooth(rows):
    """Return each function with a real input once, its real inputs as float64."""
    found = {}
    for row in rows:
        tensors = ", ".join(
            " ".join(
                ["float64" if dtype.startswith(("float", "bfloat")) else dtype, *axes, *["<" + b] * (b > "")]
            )
            for dtype, axes, b in row.rows
        )
        if "float64" in tensors:
            key = (row.function.__name__, tensors, repr(row.attributes))
            found.setdefault(key, dataclasses.replace(row, tensors=tensors))
    return list(found.values())


def pytest_generate_tests(metafunc):
    """Give ``smooth`` every row that has a derivative."""
    if "smooth" in metafunc.fixturenames:
        rows = _smooth(programs.PROGRAMS)
        metafunc.parametrize("smooth", rows, ids=[f"{row.name}-{k}" for k, row in enumerate(rows)])


class Helpers:
    """What the tests of derived kernels do with a row of the table."""

    @staticmethod
    def sizes(program, shift=0):
        """Return a different small size for each symbol."""
        axes = [a for _, own, below in program.rows for a in (*own, below) if a and not a.isdigit()]
        symbols = list(dict.fromkeys(axes))
        least = max(program.least, 1)
        return {s: max(least, LENGTHS[(k + shift) % 4]) for k, s in enumerate(symbols)}

    @staticmethod
    def arrays(program, sizes, seed=0):
        """Return inputs: random reals that are not equal, whole numbers as the table has them."""
        random = np.random.default_rng(seed)
        found = program.arrays(sizes, seed)
        for k, array in enumerate(found):
            if array.dtype.kind == "f":
                found[k] = (
                    random.uniform(0.5, 2, array.shape)
                    if program.positive
                    else random.normal(size=array.shape)
                )
        return found

    @staticmethod
    def typed(program, arrays):
        """Return the typed kernel, one that writes no input."""
        found = parse(program.function, [(a.dtype.name, a.ndim) for a in arrays], dict(program.attributes))
        return functional(found) if any(b.role == "inplace" for b in found.buffers.values()) else found

    @staticmethod
    def given(kernel, arrays):
        """Return tensors in the form that the interpreter takes: a token for what is not read."""
        names = [n for n in kernel.parameters if n in kernel.buffers]
        rows = zip(names, arrays, strict=True)
        return [ABSENT if kernel.buffers[n].absent else a for n, a in rows]

    @staticmethod
    def real(array):
        """Whether an array holds real numbers."""
        return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


@pytest.fixture(scope="session")
def helpers():
    """See the class."""
    return Helpers


@pytest.fixture(scope="session")
def cases():
    """Kernels with inputs."""
    return kernels.CASES
