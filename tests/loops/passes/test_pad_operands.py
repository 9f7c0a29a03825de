"""Sums that read a padded copy of an operand: what an iteration beyond the condition must not do."""

import numpy as np
import pytest

from polyop.core.errors import KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.printing import expression, shown
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa

FILTER = """
def f(x, w, u):
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for i in range(x.shape[1]):
            total = 0.0
            for c in range({channels}):
                for p in range({taps}):
                    if {condition}:
                        total += {product}
            y[o, i] = total
    return y
"""
CONDITION, PRODUCT = "0 <= i + p - 1 < x.shape[1]", "x[c, i + p - 1] * w[o, c, p]"
SIZES = {"x": (3, 10), "w": (4, 3, 3), "u": (3,)}


def text(channels="x.shape[0]", taps="w.shape[2]", condition=CONDITION, product=PRODUCT):
    return FILTER.format(channels=channels, taps=taps, condition=condition, product=product)


SCATTERED = (
    text()
    .replace("y[o, i] = total", "y[o, i] += 0")
    .replace("total += x", "y[o, (i + p - 1) * (i + p - 1) // 9] += x")
)
BAND = """
def f(x, w, u):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            total = 0.0
            for j in range(max(0, i - 1), min(x.shape[0], i + 2)):
                total += w[i, 0, j - i + 1] * x[j, c]
            y[i, c] = total
    return y
"""
ROWS = """
def f(x, w, u):
    y = output_tensor((w.shape[0], x.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                for p in range(w.shape[1]):
                    if 0 <= i + p - 1 and i + p - 1 < x.shape[0]:
                        y[o, i, j] += x[i + p - 1, j] * w[o, p, 0]
    return y
"""
LIMITED = """
def f(x, w, u):
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    limit = int64(0)
    for o in range(w.shape[0]):
        limit += int64(u[o % 3])
        for i in range(x.shape[1]):
            for c in range(x.shape[0]):
                for p in range(w.shape[2]):
                    if 0 <= i + p - 1 < limit:
                        y[o, i] += x[c, i + p - 1] * w[o, c, p]
    return y
"""
OUTLIVES = """
def f(x, w, u):
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    z = output_tensor((1,), x.dtype)
    last = float32(0)
    for o in range(w.shape[0]):
        for i in range(x.shape[1]):
            for c in range(x.shape[0]):
                for p in range(w.shape[2]):
                    if 0 <= i + p - 1 and i + p - 1 < x.shape[1]:
                        y[o, i] += x[c, i + p - 1] * w[o, c, p]
            last = y[o, i]
    z[0] = last
    return y, z
"""
CASES = {
    "plain": (text(), {}),
    "a scalar that outlives the nest": (OUTLIVES, {}),
    "window over the filter": (
        text(taps="3", product="x[c, i + p - 1] * w[o, c, i + p - 1]"),
        {"w": (4, 3, 10)},
    ),
    "half of the index": (
        text(taps="3", product="x[c, i + p - 1] * w[o, c, (i + p - 1) // 2]"),
        {"w": (4, 3, 5)},
    ),
    "condition narrower than taps": (text(taps="9", condition=f"{CONDITION} and p < 3"), {}),
    "store under the condition": (SCATTERED, {}),
    "band": (BAND, {"x": (20, 5), "w": (20, 1, 3)}),
    "band of most": (BAND, {"x": (3, 5), "w": (3, 1, 3)}),
    "rows": (ROWS, {"x": (20, 5), "w": (4, 3, 1)}),
    "limit from data": (LIMITED, {}),
    "no filter, too few channels": (text("w.shape[1]"), {"w": (0, 5, 3)}),
    "no taps, too few channels": (text("w.shape[1]"), {"w": (2, 5, 0)}),
    "fewer channels": (text("w.shape[1]"), {"w": (2, 2, 3)}),
    "only pads": (text(), {"x": (3, 1), "w": (4, 3, 1)}),
    "no pixels": (text(), {"x": (3, 0)}),
    "filter longer than rows": (text(), {"x": (3, 2), "w": (4, 3, 9)}),
}
VALUES = {
    "plain": (PRODUCT, {}),
    "infinite filter": (PRODUCT, {"w": np.inf}),
    "infinite image": (PRODUCT, {"x": np.inf}),
    "no number": (PRODUCT, {"w": np.nan}),
    "infinite product": ("w[o, c, p] * u[p] * x[c, i + p - 1]", {"w": 1e30, "u": 1e30}),
    "infinite constant": ("x[c, i + p - 1] * w[o, c, p] * 1e300", {}),
    "infinite after a cast": ("x[c, i + p - 1] * float32(float16(w[o, c, p]))", {"w": 1e6}),
}


def scheduled(source, generate):
    kernel = parse(generate.function_of(source), [("float32", 2), ("float32", 3), ("float32", 1)], {})
    return kernel, schedule(kernel)


def numbers(sizes):
    draw = np.random.default_rng(3)
    return {name: draw.integers(1, 4, shape).astype("float32") for name, shape in (SIZES | sizes).items()}


@pytest.mark.parametrize("case", CASES)
def test_iterations_without_the_condition_are_inside(case, generate):
    source, sizes = CASES[case]
    kernel, program = scheduled(source, generate)
    arrays = [*numbers(sizes).values()]
    for expected, result in zip(interpret(kernel, arrays), interpret(program.kernel, arrays), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("case", VALUES)
def test_zeros_stay_zeros(case, generate):
    product, values = VALUES[case]
    kernel, program = scheduled(text(product=product), generate)
    given = numbers({})
    for name, value in values.items():
        given[name].flat[-1 if value != value else slice(None)] = value
    arrays = [*given.values()]
    for expected, result in zip(interpret(kernel, arrays), interpret(program.kernel, arrays), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_a_scalar_that_outlives_the_nest_keeps_its_value(generate):
    kernel, program = scheduled(OUTLIVES, generate)
    given = numbers({})
    given["w"].flat[-1] = np.inf
    for expected, result in zip(
        interpret(kernel, [*given.values()]), interpret(program.kernel, [*given.values()]), strict=True
    ):
        np.testing.assert_array_equal(result, expected)


def test_a_copy_has_no_more_than_some_times_the_operand(generate):
    """A band around a diagonal would become a matrix, and its product as slow as that of a matrix."""
    _, program = scheduled(BAND, generate)
    sizes = {"x": (1000, 2), "w": (1000, 1, 3), "u": (3,)}
    band = [size for b in program.kernel.buffers.values() if b.role == "local" for size in b.shape]
    known = {f"{name}.shape[{axis}]": n for name, shape in sizes.items() for axis, n in enumerate(shape)}
    lengths = [eval_size(expression(size), known) for size in band]
    assert lengths and np.prod(lengths) <= 4 * 3 * 1000


def test_a_condition_on_an_outer_axis_is_a_bound_of_the_sum(generate):
    """Lanes do not run along that axis, so it needs no zeros, and the excluded iterations take no time."""
    _, program = scheduled(ROWS, generate)
    assert not [b for b in program.kernel.buffers.values() if b.role == "local"]
    assert "for p in range(max(0, -(i - 1)), min(w.shape[1], x.shape[0] - i + 1)):" in shown(program.kernel)
    assert {lanes: tile.row for lanes, tile in program.plan.tiles.items()} == {"j": "o"}


def eval_size(shown, known):
    """Return the value of a size as it is printed."""
    for name, n in known.items():
        shown = shown.replace(name, str(n))
    return eval(shown, {"min": min, "max": max})


@pytest.mark.slow
@pytest.mark.parametrize("target", isa.available())
def test_compiled(target, generate, batch):
    sources = [*(source for source, _ in CASES.values()), *(text(product=p) for p, _ in VALUES.values())]
    pairs = [scheduled(source, generate) for source in sources]
    path = batch.build(batch.text([program for _, program in pairs], target), "-DPOLYOP_GRAIN=1")
    types = [("float32", 2), ("float32", 3), ("float32", 1)]
    for place, (source, (kernel, _)) in enumerate(zip(sources, pairs, strict=True)):
        run = batch.bound(generate.function_of(source), types, {}, path, place)
        sizes = [one for other, one in CASES.values() if other == source] or [{}]
        for arrays in ([*numbers(one).values()] for one in sizes):
            expected = interpret(kernel, arrays)
            for threads in (1, 3):
                with batch.threads(threads):
                    np.testing.assert_array_equal(run(*arrays)[0], expected[0])
    run = batch.bound(
        generate.function_of(text("w.shape[1]")), types, {}, path, sources.index(text("w.shape[1]"))
    )
    with pytest.raises(KernelError, match="dimension 0 of x, which has size 3"):
        run(*numbers({"w": (2, 5, 3)}).values())
