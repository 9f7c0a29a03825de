"""Each gradient that the benchmarks time equals PyTorch's at small sizes; so do its peers."""

import dataclasses
import pathlib
import sys

import numpy as np
import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))

pytest.importorskip("torch", reason="the gradients are compared with PyTorch's")

import narrow  # noqa: E402 - beside the benchmarks
from gradients import PROGRAMS, compare, contestants  # noqa: E402 - same

from polyop.loops.frontend.plain import plain  # noqa: E402 - after the path
from polyop.loops.targets import isa  # noqa: E402 - same

WRITTEN = [name for name, program in PROGRAMS.items() if program.written]
LISTED = {
    "stencil", "iterated stencil", "scan", "gather", "scatter", "layer norm", "dgamma", "RMS norm", "softmax",
    "gelu with bias", "matmul", "attention scores", "conv2d", "max pool", "flash attention", "largest of a row",
    "conv2d into its result", "clamped border", "embedding",
}  # fmt: skip


def small(name, dtype="float64"):
    return PROGRAMS[name].arguments(PROGRAMS[name].small, dtype)


def expected(name, dtype="float64"):
    run = contestants.through_torch(PROGRAMS[name], small(name, dtype), ours=False)
    return [np.asarray(gradient) for gradient in run()]


def check(results, references, tolerance=1e-11):
    assert len(results) == len(references) > 0
    for one, other in zip(results, references, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_the_measured_programs():
    assert set(PROGRAMS) == LISTED
    assert WRITTEN == ["stencil", "dgamma"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kernel_computes_what_the_torch_peer_computes(name):
    import torch

    result = plain(PROGRAMS[name].kernel)(*small(name))
    check([np.asarray(result)], [PROGRAMS[name].torch(*map(torch.from_numpy, small(name))).numpy()])


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_derived_gradient_equals_torch(name):
    run = contestants.through_torch(PROGRAMS[name], small(name), ours=True)
    check([np.asarray(gradient) for gradient in run()], expected(name))


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_jax_peer_equals_torch(name):
    pytest.importorskip("jax", reason="the peer needs JAX")
    run = contestants.through_jax(PROGRAMS[name], small(name))
    check([np.asarray(gradient) for gradient in run()], expected(name))


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kernel_alone_equals_torch(name):
    """The kernel takes only the operands that it reads, as in the comparison with C and the compile time."""
    program, arguments = PROGRAMS[name], small(name)
    results = (np.asarray(plain(program.kernel)(*arguments)),)
    direct = contestants.Direct(program, arguments, results)
    direct()
    check([direct.outputs[i] for i in program.smooth(arguments)], expected(name))


@pytest.mark.parametrize("name", WRITTEN)
def test_the_gradient_written_in_c_equals_torch(name):
    program = PROGRAMS[name]
    for sizes in (program.small, {key: value + 4 for key, value in program.small.items()}):
        arguments = program.arguments(sizes)
        run = contestants.through_torch(program, arguments, ours=False)
        written = contestants.Written(
            program, arguments, (np.asarray(program.torch(*arguments_of(arguments))),)
        )
        written()
        check(written.outputs, [np.asarray(gradient) for gradient in run()], 1e-5)


def arguments_of(arguments):
    import torch

    return map(torch.from_numpy, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_all_contestants_have_the_same_number_of_turns(name):
    program = dataclasses.replace(PROGRAMS[name], bench=PROGRAMS[name].small)
    written, frameworks = (
        measure(program, 3) for measure in (compare.beside_written, compare.beside_frameworks)
    )
    assert {who: len(times) for who, times in written.seconds.items()} == {"polyop": 3, "C": 3}
    contestants = {"polyop", "PyTorch", "JAX"} - set(frameworks.missing)
    assert {who: len(times) for who, times in frameworks.seconds.items()} == dict.fromkeys(contestants, 3)


@pytest.mark.slow
@pytest.mark.skipif(narrow.NAME not in isa.available(), reason="this machine has no AVX2")
def test_a_process_with_avx2_only():
    found = narrow.call("loops.compare", "compare_program", "syrk", False)
    assert {"polyop", "NumPy"} <= set(found["seconds"])
    assert {len(times) for times in found["seconds"].values()} == {9}


def test_gradients_that_differ_are_not_timed():
    pair = [np.ones(3)], [np.array([1.0, 1.0, 1.1])]
    with pytest.raises(RuntimeError, match=r"^stencil: the gradient of JAX is off by 9\.1e-02$"):
        compare.agree(PROGRAMS["stencil"], "JAX", *pair)
    with pytest.raises(RuntimeError, match="off by nan"):
        compare.agree(PROGRAMS["stencil"], "JAX", [np.array([np.nan])], [np.ones(1)])
