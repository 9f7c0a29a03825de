"""What the compiler emits gives what the interpreter gives, however it is compiled and run."""

import functools

import numpy as np
import pytest

from polyop.kernels.loops import isa
from polyop.kernels.loops.interpret import interpret
from polyop.kernels.loops.parse import parse

BEST = isa.available()[0]
MODES = {name: {"isa": name} for name in isa.available()}
MODES |= {"checked": {"isa": BEST, "checked": True}, "precise": {"isa": BEST, "precise": True}}


@functools.cache
def typed(program):
    tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
    return parse(program.function, tensors, program.attributes)


@functools.cache
def expected(program, index):
    arrays = program.arrays(program.sizes()[index])
    return interpret(typed(program), arrays, program.attributes)


@pytest.fixture(scope="session")
def compiled(batch, programs):
    """Return a function that gives a program as an operator; each mode is compiled once."""

    @functools.cache
    def library(mode):
        # so small a grain that every loop which may have threads has them
        return batch.build(batch.text(map(typed, programs.PROGRAMS), **MODES[mode]), "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(program, mode):
        number = programs.PROGRAMS.index(program)
        return batch.bound(program.function, program.rows, program.attributes, library(mode), number)

    return of


def close(wanted, seen, rough, where):
    assert seen.shape == wanted.shape, where
    assert seen.dtype == wanted.dtype, where
    if rough:
        wanted, seen = wanted.astype(np.float64), seen.astype(np.float64)
        np.testing.assert_allclose(seen, wanted, rough, rough, err_msg=where)
    else:
        np.testing.assert_array_equal(seen, wanted, err_msg=where)


@pytest.mark.parametrize("mode", MODES)
def test_compiled_is_interpreted(program, mode, compiled, batch):
    run = compiled(program, mode)
    for index, sizes in enumerate(program.sizes()):
        wanted = expected(program, index)
        bits = []
        for threads in (1, 3, 3):
            with batch.threads(threads):
                found = run(*(a.copy() for a in program.arrays(sizes)))
            for one, other in zip(wanted, found, strict=True):
                close(one, other, program.rough, f"{sizes} on {threads} threads")
            bits.append([a.tobytes() for a in found])
        assert bits[1] == bits[2], f"{sizes}: another result the second time"


def test_under_pytorch(program, compiled):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    run = compiled(program, BEST)
    for index in (3, -1):
        arrays = program.arrays(program.sizes()[index])
        if any(a.dtype.name in ("bfloat16", "uint32", "uint64") for a in arrays):
            continue  # torch.from_numpy takes none of these
        wanted = interpret(typed(program), arrays, program.attributes)
        found = run(*(torch.from_numpy(a.copy()) for a in arrays))
        for one, other in zip(wanted, found, strict=True):
            assert isinstance(other, torch.Tensor)
            close(one, other.numpy(), program.rough, str(program.sizes()[index]))
