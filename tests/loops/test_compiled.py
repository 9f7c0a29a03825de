# ruff: noqa: F821 - kernels, whose words are no names here
"""Compiled kernels give the results of the interpreter, in every mode and on any number of threads."""

import functools
import inspect
import re

import numpy as np
import pytest

import polyop
from loop_samples.reference import cases, expected, typed
from polyop.core.errors import KernelError
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.types import BYTE_FLOATS
from polyop.loops.pipeline import PIPELINE
from polyop.loops.targets import isa

BEST = isa.available()[0]  # the others: emit/test_targets.py
MODES = {BEST: {}, "checked": {"checked": True}, "precise": {"precise": True}}
SKIPPED = {
    "plain text": [one.name for one in PIPELINE if ".vectors." in one.run.__module__],
    "plain loops": [one.name for one in PIPELINE if not one.needed],
}
"""By mode, the passes that are left out: what vectors do, and all that may be."""


@pytest.fixture(scope="session")
def compiled(batch, programs):
    """Return a function from a program to its operator; each mode is compiled once."""

    @functools.cache
    def library(mode):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("POLYOP_SKIP_PASSES", ",".join(SKIPPED.get(mode, ())))
            text = batch.text(map(typed, programs.PROGRAMS), BEST, **MODES.get(mode, {}))
        # so small a grain that every loop which may have threads has them
        return batch.build(text, "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(program, mode):
        number = programs.PROGRAMS.index(program)
        return batch.bound(program.function, program.rows, program.attributes, library(mode), number)

    return of


def close(reference, actual, rough, where):
    assert actual.shape == reference.shape, where
    assert actual.dtype == reference.dtype, where
    if rough:
        reference, actual = reference.astype(np.float64), actual.astype(np.float64)
        np.testing.assert_allclose(actual, reference, rough, rough, err_msg=where)
    else:
        np.testing.assert_array_equal(actual, reference, err_msg=where)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*MODES, *SKIPPED])
def test_compiled_is_interpreted(program, mode, compiled, batch):
    run = compiled(program, mode)
    for sizes, reference in cases(program):
        bits = []
        for threads in (1, 3, 3):
            with batch.threads(threads):
                results = run(*(a.copy() for a in program.arrays(sizes)))
            for one, other in zip(reference, results, strict=True):
                close(one, other, program.rough, f"{sizes} on {threads} threads")
            bits.append([a.tobytes() for a in results])
        assert bits[1] == bits[2], f"{sizes}: another result the second time"


@pytest.mark.slow
def test_under_pytorch(program, compiled):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    run = compiled(program, BEST)
    for index in (3, len(program.sizes()) - 1):
        arrays = program.arrays(program.sizes()[index])
        if any(a.dtype.name in ("bfloat16", "uint32", "uint64", *BYTE_FLOATS) for a in arrays):
            continue  # torch.from_numpy takes none of these
        reference = expected(program, index)
        results = run(*(torch.from_numpy(a.copy()) for a in arrays))
        for one, other in zip(reference, results, strict=True):
            assert isinstance(other, torch.Tensor)
            close(one, other.numpy(), program.rough, str(program.sizes()[index]))


def taken(x, at):
    y = output_tensor((at.shape[0],), x.dtype)
    for i in range(at.shape[0]):
        y[i] = x[at[i]]
    return y


def spread(x, at):
    y = output_tensor(x.shape, x.dtype)
    for i in range(at.shape[0]):
        y[at[i]] += 1
    return y


def beside(x, at):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + at[i]
    return y


def after(x, at):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i + 1] if at[i] > 0 else x[i]
    return y


OUTSIDE = [  # kernel, indices, what the error says
    (taken, [0, 3, 1], "index 3 is outside dimension 0 of x, which has size 3"),
    (taken, [0, -4, 1], "index -4 is outside dimension 0 of x, which has size 3"),
    (spread, [0, 0, 5], "index 5 is outside dimension 0 of y, which has size 3"),
    (beside, [0, 0], "dimension 0 of at"),
    (after, [0, 0, 1], "index 3 is outside dimension 0 of x, which has size 3"),
]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(("function", "indices", "words"), OUTSIDE)
def test_an_index_outside_is_an_error_with_the_line(function, indices, words, debug):
    kernel = LoopKernel(function, debug=debug)
    run = polyop.operator(
        f"loops_outside::{function.__name__}{debug}{len(words)}(Tensor x, Tensor at) -> Tensor", kernel
    )
    x, at = np.arange(3, dtype=np.float32), np.array(indices)
    line = next(n for n, text in enumerate(inspect.getsourcelines(function)[0]) if "[i]" in text)
    line += function.__code__.co_firstlineno
    with pytest.raises(KernelError, match=re.escape(words)) as caught:
        run(x, at)
    assert f"line {line}" in str(caught.value) or f":{line}" in str(caught.value)
    np.testing.assert_array_equal(x, np.arange(3))


@pytest.mark.parametrize("function", [taken, after])
def test_an_index_that_a_condition_guards_is_no_error(function):
    run = polyop.Custom(function, func_type="hybrid")
    x, at = np.arange(3, dtype=np.float32), np.array([0, -1, 0])
    np.testing.assert_array_equal(
        run(x, at), interpret(parse(function, [("float32", 1), ("int64", 1)], {}), [x, at])[0]
    )


def double(x):
    y = output_tensor(x.shape, x.dtype)
    for index in range(x.shape[0]):
        y[index] = x[index] * 2
    return y


def remove(free):
    memset = output_tensor(free.shape, free.dtype)
    for int32_t in range(free.shape[0]):
        NULL = free[int32_t]
        memset[int32_t] = NULL * 2
    return memset


def run(k):
    self = output_tensor(k.shape, k.dtype)
    for begin in range(k.shape[0]):
        restrict = k[begin]
        self[begin] = restrict + restrict
    return self


@pytest.mark.parametrize("function", [double, remove, run])
def test_a_name_may_mean_something_in_c(function):
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(polyop.Custom(function, func_type="hybrid")(x), 2 * x)
