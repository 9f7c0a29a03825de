"""Indices that are pairs: values and errors are those of the loops, and proofs hold where the access is made."""

import numpy as np
import pytest

from polyop.core.errors import KernelError
from polyop.loops.analysis.bounds import is_inside, is_inside_in_loops
from polyop.loops.analysis.polyhedra import Model
from polyop.loops.analysis.session import IslSession
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import perfect
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa

PAIRS = """
def f(x, w, z):
    y = output_tensor(({size},), x.dtype)
    for g in range({groups}):
        for o in range({each}):
            {statement}
    return y, z
"""
PLAIN = "y[g * w.shape[0] + o] = x[g * w.shape[0] + o]"
TABLE = """
def f(x, w, z):
    y = output_tensor((6 * w.shape[0],), x.dtype)
    for g in range(2):
        for h in range(3):
            for o in range(w.shape[0]):
                y[(3 * g + h) * w.shape[0] + o] = x[(g + 2 * h) * w.shape[0] + o] * w[o]
    return y, z
"""
BOTH = """
def f(x, w, z):
    y = output_tensor((3 * w.shape[0],), x.dtype)
    for i in range(y.shape[0]):
        y[i] = x[i]
    for g in range(3):
        for o in range(w.shape[0]):
            y[g * w.shape[0] + o] += w[o]
    for i in range(1, y.shape[0]):
        y[i] += y[i - 1]
    return y, z
"""


def text(statement=PLAIN, groups="4", each="w.shape[0]", size="4 * w.shape[0]"):
    return PAIRS.format(statement=statement, groups=groups, each=each, size=size)


READ, HERE = "x[g * w.shape[0] + o]", "y[g * w.shape[0] + o]"
KERNELS = {
    "plain": text(),
    "reversed": text("y[(3 - g) * w.shape[0] + o] = x[g * w.shape[0] + w.shape[0] - 1 - o]"),
    "another extent": text("y[g * w.shape[0] + o] = x[g * z.shape[0] + o]"),
    "remainders longer than the extent": text(
        "y[g * w.shape[0] + o] += x[g * w.shape[0] + o]", each="w.shape[0] + 2", size="4 * w.shape[0] + 2"
    ),
    "negative remainders": text("y[g * w.shape[0] - o] = x[g * w.shape[0] + o]"),
    "negative quotients": text(f"y[(g - 1) * w.shape[0] + o] += {READ}"),
    "written in part": text(groups="1, 4", each="1, w.shape[0] - 1", size="z.shape[0]"),
    "some remainders": text(f"if o % 2 == 0: {PLAIN}"),
    "from the group before": text(f"{HERE} = y[(g - 1) * w.shape[0] + o] + {READ}", groups="1, 4"),
    "from the groups in reverse": text(f"{HERE} = y[(3 - g) * w.shape[0] + o] * 2 + {READ}"),
    "from the remainder before": text(f"{HERE} = y[g * w.shape[0] + o - 1] + {READ}", each="1, w.shape[0]"),
    "parts of a size": text(
        "y[g * (x.shape[0] // 4) + o] = x[o * 4 + g]", each="x.shape[0] // 4", size="x.shape[0]"
    ),
    "quotients of two loops": TABLE,
    "pairs and plain": BOTH,
}
UNDER = {  # a condition, an index that is inside a tensor of four groups where it holds, and how long o is
    "last group": ("g < 4", "g * w.shape[0] + o", "w.shape[0]"),
    "first group": ("g >= 4", "(g - 4) * w.shape[0] + o", "w.shape[0]"),
    "first remainder": ("o >= 1 and g < 4", "g * w.shape[0] + o - 1", "w.shape[0]"),
    "last remainder": ("o < w.shape[0] and g < 4", "(3 - g) * w.shape[0] + o", "w.shape[0] + 1"),
}


def typed(source, generate):
    return parse(generate.function_of(source), [("float32", 1)] * 3, {})


def samples():
    """Yield sizes of x, w and z that fit, and some that do not."""
    for extent in (0, 1, 2, 5, 17):
        for more, rest in ((0, 0), (1, 0), (-1, 3), (2 * extent, -1)):
            draw = np.random.default_rng(extent)
            sizes = (max(0, 4 * extent + more), extent, max(0, extent + rest))
            yield [draw.integers(-3, 4, size).astype("float32") for size in sizes]


@pytest.mark.parametrize("case", KERNELS)
def test_scheduled(case, generate):
    kernel = typed(KERNELS[case], generate)
    program, ran = schedule(kernel), 0
    for arrays in samples():
        try:
            expected = interpret(kernel, [a.copy() for a in arrays])
        except IndexError:
            with pytest.raises(IndexError):
                interpret(program.kernel, [a.copy() for a in arrays])
            continue
        ran += 1
        for one, other in zip(expected, interpret(program.kernel, arrays), strict=True):
            np.testing.assert_array_equal(other, one)
    assert ran


@pytest.mark.parametrize("case", UNDER)
def test_a_proof_under_a_condition_says_nothing_about_other_iterations(case, generate):
    condition, index, each = UNDER[case]
    kernel = typed(text(f"if {condition}: y[{index}] = w[0]", groups="8", each=each), generate)
    model = Model(kernel, IslSession())
    ((leaf, write),) = [(x, a) for x in model.leaves for a in x.accesses if a.target == "y"]
    assert write.pairs and is_inside(model, leaf, write)
    assert not is_inside_in_loops(model, leaf, write, 0, perfect(kernel.body[0]))


@pytest.mark.slow
@pytest.mark.parametrize("target", isa.available())
def test_compiled(target, generate, batch):
    kernels = [typed(source, generate) for source in KERNELS.values()]
    path = batch.build(batch.text(kernels, target), "-DPOLYOP_GRAIN=1")
    for place, (source, kernel) in enumerate(zip(KERNELS.values(), kernels, strict=True)):
        run = batch.bound(generate.function_of(source), [("float32", 1)] * 3, {}, path, place)
        for arrays in samples():
            for threads in (1, 3):
                with batch.threads(threads):
                    try:
                        expected = interpret(kernel, [a.copy() for a in arrays])
                    except IndexError:
                        with pytest.raises(KernelError, match="which has size"):
                            run(*(a.copy() for a in arrays))
                        continue
                    for one, other in zip(expected, run(*(a.copy() for a in arrays)), strict=True):
                        np.testing.assert_array_equal(other, one)
