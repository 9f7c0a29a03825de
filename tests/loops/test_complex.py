# ruff: noqa: F821 - kernels, whose words are no names here
"""Complex numbers in loop kernels: beside plain Python, the interpreter and whole arrays of NumPy."""

import numpy as np
import pytest

import polyop
from loop_samples import complex_kernels
from polyop.core.errors import PolyopError
from polyop.core.spec import Spec
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import schedule

IDS = [row.kernel.__name__ for row in complex_kernels.ROWS]
TOLERANCE = {"complex64": 2e-5, "complex128": 1e-12}


def operator(row):
    return polyop.kernel(row.kernel)


def several(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.slow(4)
@pytest.mark.parametrize("of", TOLERANCE)
@pytest.mark.parametrize("row", complex_kernels.ROWS, ids=IDS)
def test_values_beside_plain_python_and_whole_arrays(row, of):
    arrays = complex_kernels.inputs(row, of)
    op = operator(row)
    rtol = TOLERANCE[of]
    python, ours = several(op.python(*arrays)), several(op(*arrays))
    native = several(row.native(np, *arrays))
    kernel = parse(row.kernel, [(a.dtype.name, a.ndim) for a in arrays], {})
    assert violations(kernel) == []
    default = dict.fromkeys(kernel.attributes, 6)
    by_interpreter = interpret(kernel, arrays, default)
    for one, other, third, fourth in zip(ours, python, native, by_interpreter, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape) == (fourth.dtype, fourth.shape)
        np.testing.assert_allclose(one, other, rtol, rtol)
        np.testing.assert_allclose(one, third, rtol, rtol)
        np.testing.assert_allclose(fourth, other, rtol, rtol)


SLOW = ("functions", "rows")


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(r, marks=[pytest.mark.slow] * (n in SLOW))
        for n, r in zip(IDS, complex_kernels.ROWS, strict=True)
    ],
    ids=IDS,
)
def test_the_gradient_is_the_direction_in_which_a_real_loss_grows(row):
    """The real inner product of gradient and direction is the loss's difference along the direction."""
    op, arrays = operator(row), complex_kernels.inputs(row)
    random = np.random.default_rng(1)
    out, pull = op.vjp(*arrays)
    weights = [_like(random, one) for one in several(out)]
    gradients = several(pull(*weights) if len(weights) == 1 else pull(tuple(weights)))
    direction = [_like(random, one) for one in arrays]

    def loss(step):
        moved = [a + step * d for a, d in zip(arrays, direction, strict=True)]
        return sum(_inner(w, one) for w, one in zip(weights, several(op(*moved)), strict=True))

    step = 1e-6
    expected = (loss(step) - loss(-step)) / (2 * step)
    pairs = zip(gradients, direction, strict=False)  # an attribute has no gradient
    found = sum(_inner(g, d) for g, d in pairs)
    np.testing.assert_allclose(found, expected, rtol=2e-6)


def _like(random, value):
    noise = random.normal(size=value.shape)
    noise = noise + 1j * random.normal(size=value.shape) if value.dtype.kind == "c" else noise
    return np.asarray(noise, value.dtype)


def _inner(one, other):
    return np.sum(one.real * other.real) + np.sum(one.imag * other.imag)


def mixed(z, n):
    y = output_tensor((z.shape[0], 6), "complex128")
    for i in range(z.shape[0]):
        y[i, 0] = n[i]
        y[i, 1] = n[i] * 1j + z[i]
        y[i, 2] = complex64(z[i]) * 2.5
        y[i, 3] = complex(n[i], -1)
        y[i, 4] = stop_gradient(z[i]) if z[i] == 1j or z[i] != z[i] else -z[i]
        y[i, 5] = np.conjugate(z[i]) + STEP
    return y


STEP = 0.5 - 2j


@pytest.mark.slow(7)
@pytest.mark.parametrize("number", ["int8", "int32", "uint64", "bool", "float16", "float32", "float64"])
@pytest.mark.parametrize("of", TOLERANCE)
def test_promotion_is_numpys(of, number):
    z = np.array([1j, 2 - 1j, 0.25, -3j, -0.5], of)
    n = np.array([1, 0, 1, 1, 0], number)
    np.testing.assert_allclose(polyop.kernel(mixed)(z, n), plain(mixed)(z, n), 1e-6)


def asked(z):
    y = output_tensor(z.shape, "int64")
    for i in range(z.shape[0]):
        y[i] = isnan(z[i]) + isfinite(z[i]) * 2 + isinf(z[i]) * 4 + (z[i] == 1j) * 8 + (z[i] != z[0]) * 16
    return y


def test_tests_of_a_number():
    z = np.array([complex(a, b) for a in (0, 1, np.nan, np.inf) for b in (0, 1, np.nan, -np.inf)])
    np.testing.assert_array_equal(polyop.kernel(asked)(z), plain(asked)(z))


def swapped(z):
    """Each store reads what the other part of its target was."""
    for i in range(z.shape[0]):
        z[i] = z[i] * 1j + z[0] * z[i]
        z[i] += z[z.shape[0] - 1 - i] * z[i]
    return z


def test_a_store_does_not_read_its_own_first_part():
    z = np.array([1 + 2j, -3 + 0.5j, 0.25 - 1j])
    np.testing.assert_allclose(polyop.kernel(swapped)(z.copy()), plain(swapped)(z.copy()), 1e-13)


EDGES = [0.0, -0.0, 1.0, -1.0, 1e-300, -1e-300, 1e300, -1e300, 0.7, -2.5]


def edges(z):
    y = output_tensor((z.shape[0], 3), z.dtype)
    for i in range(z.shape[0]):
        y[i, 0] = sqrt(z[i])
        y[i, 1] = abs(z[i])
        y[i, 2] = 1 / z[i] if z[i] != 0 else 0j
    return y


def test_large_and_small_numbers_and_signs_of_zeros():
    z = np.array([complex(a, b) for a in EDGES for b in EDGES])
    found, expected = polyop.kernel(edges)(z), plain(edges)(z)
    np.testing.assert_allclose(found.real, expected.real, 1e-13)
    np.testing.assert_allclose(found.imag, expected.imag, 1e-13)
    np.testing.assert_array_equal(np.signbit(found[:, 0].imag), np.signbit(expected[:, 0].imag))


def test_the_gradient_of_abs_at_zero_is_zero():
    def size(z):
        y = output_tensor(z.shape, "float64")
        for i in range(z.shape[0]):
            y[i] = abs(z[i])
        return y

    _, pull = polyop.kernel(size).vjp(np.array([0j, 3 + 4j]))
    np.testing.assert_allclose(pull(np.ones(2))[0], [0, 0.6 + 0.8j])


def refused(text):
    """Return a kernel with one statement."""
    scope = {}
    source = f"def kernel(z, x, k=1):\n    y = output_tensor(x.shape, x.dtype)\n    n = z.shape[0]\n    {text}\n    return y\n"
    import linecache

    name = f"<refused {text}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), {"np": np}, scope)
    return scope["kernel"]


PARTS_ALONE = "with_gradient takes real numbers, but got complex128"
EACH_PART = r"give each part its own: complex\(with_gradient\(z.real, x, slope\), with_gradient\(z.imag"
REFUSED = [
    ("y[0] = 1 if z[0] < z[1] else 0", "< of complex numbers is not compiled.*compare abs"),
    ("y[0] = abs(max(z[0], z[1]))", "max of complex numbers is not compiled.*compare abs"),
    ("y[0] = abs(floor(z[0]))", "floor of complex numbers is not compiled"),
    ("y[0] = abs(z[0] // 2)", "// of complex numbers is not compiled"),
    ("y[0] = abs(z[0] ** 2.5)", "exponent is a constant int of at most 64, but got 2.5.*:4.*exp.w . log.z"),
    (
        "y[0] = abs(z[0] ** 2.0)",
        r"exponent is a constant int of at most 64, but got 2.0.*:4.*write z \*\* 2$",
    ),
    ("y[0] = abs(z[0] ** -3.0)", r"exponent is a constant int of at most 64, but got -3.0.*write z \*\* -3$"),
    ("y[0] = abs(z[0] ** np.float64(0.5))", r"constant int of at most 64, but got 0.5.*write sqrt\(z\)$"),
    ("y[0] = abs(z[0] ** -0.5)", r"constant int of at most 64, but got -0.5.*write 1 / sqrt\(z\)$"),
    ("y[0] = abs(z[0] ** 65)", "constant int of at most 64, but got 65.*exp.w . log.z"),
    ("y[0] = abs(z[0] ** k)", "constant int of at most 64, but got int.*exp.w . log.z"),
    ("y[0] = abs(2.0 ** z[0])", "constant int of at most 64, but got complex128.*exp.w . log.z"),
    ("y[0] = abs(tanh(z[0]))", "tanh of complex numbers is not compiled.*sinh.z. / cosh"),
    ("y[0] = z[0]", "a complex number is not converted to float64.*real.z"),
    ("y[0] = float(z[0])", "a complex number is not converted to float.*real.z"),
    ("y[0] = x[int(z[0])]", "a complex number is not converted to int.*real.z"),
    ("y[0] = 1j", "a complex number is not converted to float64.*real.z"),
    ("y[0] = abs(complex(z[0], 1))", "complex takes real numbers"),
    ("y[0] = abs(with_gradient(z[0], x[0], 1.0))", f"{PARTS_ALONE}.*:4.*{EACH_PART}"),
    ("y[0] = with_gradient(x[0], z[0], 1.0)", f"{PARTS_ALONE}.*:4.*{EACH_PART}"),
    (
        "y[0] = with_gradient(x[0], x[0], 1j)",
        f"with_gradient takes real numbers, but got complex.*{EACH_PART}",
    ),
    ("y[0] = z.real[0]", r"real\(z\) is not a tensor and has no elements.*:4.*write z\[0\]\.real$"),
    ("y[0] = np.imag(z)[n - 1]", r"imag\(z\) is not a tensor.*write z\[n - 1\]\.imag$"),
    ("y[0] = abs(z.conj()[0])", r"conj\(z\) is not a tensor.*write z\[0\]\.conj\(\)$"),
    ("y[0] = np.exp(x)[0]", r"exp\(x\) is not a tensor.*write exp\(x\[0\]\)$"),
    ("z.real[0] = 1.0", r"is not a tensor.*the whole number: z\[0\] = complex\(re, z\[0\]\.imag\)$"),
    ("z[0].imag = 1.0", r"can be assigned.*the whole number: z\[0\] = complex\(z\[0\]\.real, im\)$"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_refused(text, message):
    with pytest.raises(PolyopError, match=f"(?s){message}"):
        parse(refused(text), [("complex128", 1), ("float64", 1)], {})


def test_an_attribute_is_no_complex_number():
    def scaled(z, k=1.0):
        y = output_tensor(z.shape, z.dtype)
        for i in range(z.shape[0]):
            y[i] = z[i] * k
        return y

    with pytest.raises(PolyopError, match=r"(?s)attributes are numbers.*write complex\(re, im\)"):
        parse(scaled, [("complex64", 1)], {"k": 1j})


def test_dimensions_are_those_that_callers_see():
    row = complex_kernels.ROWS[0]
    kernel = operator(row).operator.kernels[0]
    specs = [Spec(a.shape, polyop.dtype(a.dtype)) for a in complex_kernels.inputs(row)]
    lines = kernel.explain_dims(specs, {})
    assert lines[0] == "x[j], w[i, j] -> y[i]"
    assert "parallel i" in lines


def test_both_parts_of_a_sum_in_memory_are_scalars_so_that_it_has_vector_lanes():
    program = schedule(parse(complex_kernels.product, [("complex64", 1), ("complex64", 2)], {}))
    assert program.plan.vector == {"j"}


def lazy_power(z):
    y = output_tensor(z.shape, "int32")
    for i in range(z.shape[0]):
        y[i] = 0
        if real(z[i]) > 0 and abs(z[i] ** 31) > 1:
            y[i] = 1
    return y


def named_power(z):
    y = output_tensor(z.shape, "int32")
    for i in range(z.shape[0]):
        p = z[i] ** 31
        y[i] = 1 if real(z[i]) > 0 and abs(p) > 1 else 0
    return y


def test_a_large_power_that_may_not_be_computed_has_a_line_of_its_own():
    z = np.array([2, -2, 0.5 + 0.1j])
    with pytest.raises(polyop.PolyopError, match=r"is at most 8(.|\n)*a line of its own"):
        polyop.kernel(lazy_power)(z)
    np.testing.assert_array_equal(polyop.kernel(named_power)(z), [1, 0, 0])
