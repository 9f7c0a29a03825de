"""Limits of a kernel's text: beyond them an error names the line and the limit; at them it is compiled."""

import linecache
import sys

import numpy as np
import pytest

from polyop import Custom
from polyop.core.errors import GradientError, PolyopError, UnsupportedError
from polyop.loops.frontend.parse import run_static_checks


def kernel(*lines):
    """Return ``f(x)`` with an output ``y`` and these lines; the first of them is line 3."""
    head = ["def f(x):", "    y = output_tensor(x.shape, x.dtype)"]
    text = "\n".join([*head, *(f"    {line}" for line in lines), "    return y", ""])
    file = f"<limits {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {}
    exec(compile(text, file, "exec"), names)
    return names["f"]


LOOP = "for i in range(x.shape[0]):"


def statements(count):
    """A loop around ``count`` statements; with its other lines the kernel has four more."""
    return [LOOP, "    y[i] = 0.0", *(f"    y[i] = x[i] * {k}.0 + y[i]" for k in range(count))]


def nest(depth):
    """Loops of two iterations inside one another."""
    heads = [f"{'    ' * k}for i{k} in range(2):" for k in range(depth)]
    clear = ["for i in range(2):", "    y[i] = 0.0"]
    return [*clear, *heads, f"{'    ' * depth}y[i0] = y[i0] + x[i0]"]


def total(terms):
    """A sum in one line."""
    return [LOOP, "    y[i] = " + " + ".join(f"x[i] * {k}.0" for k in range(terms))]


def cases(count):
    """A chain of elif."""
    return [LOOP, *(f"    {'el' * (k > 0)}if x[i] < {k}:\n            y[i] = {k}" for k in range(count))]


def both(count):
    """A condition of many parts."""
    return [LOOP, f"    if {' and '.join(f'x[i] > {-k}' for k in range(count))}:", "        y[i] = 1"]


def greatest(count):
    """One call of ``max`` with many inputs."""
    return [LOOP, f"    y[i] = max({', '.join(f'x[i] * {k}' for k in range(count))})"]


BEYOND = [
    (statements(1000), 258, "a kernel has at most 256 statements, but got 257"),
    (nest(20), 21, "loops are at most 16 deep, but got 17"),
    (total(900), 4, "an expression is at most 128 operators deep, but got 901"),
    (total(2000), 4, "an expression is at most 128 operators deep, but got 2001"),
    (cases(300), None, "conditions, elif among them, are at most 64 deep, but got 65"),
    (both(200), 4, "an expression is at most 128 operators deep, but got"),
    (greatest(200), 4, "an expression is at most 128 operators deep, but got"),
]


@pytest.mark.parametrize(("lines", "line", "words"), BEYOND, ids=[row[2][:40] for row in BEYOND])
def test_beyond_a_limit_the_error_names_the_line_and_the_limit(lines, line, words):
    function = kernel(*lines)
    with pytest.raises(UnsupportedError, match=words) as caught:
        run_static_checks(function)
    text = str(caught.value)
    assert line is None or f">:{line}\n" in text
    assert len(text.splitlines()) == 4, "the way out is in the last line"
    assert len(text) < 600, "a line of thousands of characters is not shown whole"


def test_a_text_nested_too_deep_for_the_parser_of_python_is_an_error():
    function = kernel(*total(900))

    def deeper(calls):
        if calls:
            deeper(calls - 1)
        else:
            run_static_checks(function)

    with pytest.raises(PolyopError, match="too deep for Python's own parser|128 operators deep"):
        deeper(sys.getrecursionlimit() - 200)


WITHIN = {
    "statements": (statements(100), sum(range(100))),
    "loops": (nest(16), 2**15),
    "operators": (total(127), sum(range(127))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHIN)
def test_a_kernel_at_a_limit_is_compiled_and_right(name):
    lines, factor = WITHIN[name]
    x = np.array([1.0, 2.0])
    y = Custom(kernel(*lines), func_type="hybrid")(x)
    np.testing.assert_allclose(y, factor * x)


def test_a_derivative_that_grows_with_the_cube_of_a_line_is_refused_with_the_line_and_the_way_out():
    def gradient(count):
        _, pull = Custom(kernel(*greatest(count)), func_type="hybrid").vjp(np.array([1.0, 2.0]))
        return pull(np.ones(2))[0]

    with pytest.raises(GradientError, match="line 4 of the loop kernel: the parts of its gradient .* 10000"):
        gradient(64)
    np.testing.assert_array_equal(gradient(6), [5, 5])
