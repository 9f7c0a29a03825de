# ruff: noqa: F821 - kernels, whose words are no names here
"""Floats of one byte: bit for bit as ml_dtypes on each instruction set, in float32 in between, in each host."""

import functools

import ml_dtypes
import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentTypeError
from polyop.core.spec import Spec
from polyop.loops.frontend.parse import parse
from polyop.loops.targets import isa

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
E8M0, E2M1 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn
FLOAT8 = (E4M3, E5M2)
DTYPES = (*FLOAT8, E8M0, E2M1)


def decoded(x):
    y = output_tensor(x.shape, "float32")
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


def encoded_e4m3(x):
    y = output_tensor(x.shape, "float8_e4m3fn")
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


def encoded_e5m2(x):
    y = output_tensor(x.shape, "float8_e5m2")
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


def encoded_e8m0(x):
    y = output_tensor(x.shape, "float8_e8m0fnu")
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


def encoded_e2m1(x):
    y = output_tensor(x.shape, "float4_e2m1fn")
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


ENCODED = dict(zip(DTYPES, (encoded_e4m3, encoded_e5m2, encoded_e8m0, encoded_e2m1), strict=True))


def rounded(x):
    y = output_tensor((x.shape[0], 4), "float32")
    for i in range(x.shape[0]):
        y[i, 0] = float8_e4m3fn(x[i])
        y[i, 1] = float8_e5m2(x[i])
        y[i, 2] = float8_e8m0fnu(x[i])
        y[i, 3] = float4_e2m1fn(x[i])
    return y


WORDS = np.arange(256, dtype=np.uint8)
ROWS = (
    *((decoded, t.__name__) for t in DTYPES),
    *((f, t) for f in (*ENCODED.values(), rounded) for t in ("float32", "float64")),
)


def numbers():
    """Return all float16, the numbers of both dtypes, halfway and beside it, and random words as float32."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    found = [halves]
    for of in DTYPES:
        own = np.unique(WORDS.view(of).astype(np.float32))
        own = own[np.isfinite(own)]
        middle = np.concatenate([(own[1:] + own[:-1]) / 2, [464, -464, 61440, -61440, 3 * 2.0**126]])
        middle = middle.astype(np.float32)
        up, down = (np.nextafter(middle, np.float32(to)) for to in (np.inf, -np.inf))
        found += [own, middle, up, down]
    random = np.random.default_rng(0).integers(0, 2**32, 100_003, np.uint32)
    all_of_them = np.concatenate([*found, random.view(np.float32)])
    if np.float32(2.0**-127 * 1.25).astype(E8M0) == np.float32(2.0**-127).astype(E8M0):
        return all_of_them
    # before 0.7 ml_dtypes rounded what is a little larger than the least power of 2 up to the next one
    return all_of_them[(all_of_them <= 2.0**-127) | (all_of_them >= 1.5 * 2.0**-127) | np.isnan(all_of_them)]


NUMBERS = numbers()


@functools.cache
def kernels():
    return [parse(f, [(t, 1)], {}) for f, t in ROWS]


@pytest.fixture(scope="session", params=[*isa.available(), "cuda"])
def run(request, batch, emulate):
    """A function that runs a row of ROWS as the target compiles it; CUDA's text runs in the emulation."""
    cuda = request.param == "cuda"
    text = emulate.text(kernels()) if cuda else batch.text(kernels(), request.param)
    library = emulate.build(text) if cuda else batch.build(text)

    @functools.cache
    def called(function, of):
        number = ROWS.index((function, of))
        return batch.bound(function, [(of, ["n"], "")], {}, library, number)

    def result(function, x, *shape):
        number = ROWS.index((function, x.dtype.name))
        of = kernels()[number].buffers["y"].dtype
        y = np.zeros((*x.shape, *shape), getattr(ml_dtypes, of, of))
        if cuda:
            (y,) = called(function, x.dtype.name)(x)
        else:
            batch.call(library, number, [x], [y])
        return y

    return result


def bits(array):
    return array.view({1: np.uint8, 4: np.uint32}[array.dtype.itemsize])


@pytest.mark.parametrize("of", DTYPES)
def test_every_word_is_decoded(of, run):
    for n in (256, 253, 1):  # vectors, and what is left over
        words = WORDS[-n:].view(of)
        np.testing.assert_array_equal(bits(run(decoded, words)), bits(words.astype(np.float32)))


@pytest.mark.slow(1)
@pytest.mark.parametrize("of", DTYPES)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_numbers_are_rounded_as_ml_dtypes_rounds(of, run):
    function = ENCODED[of]
    expected = bits(NUMBERS.astype(of))
    np.testing.assert_array_equal(bits(run(function, NUMBERS)), expected)
    each = NUMBERS[::997]
    short = np.concatenate([bits(run(function, each[k : k + 1])) for k in range(len(each))])
    np.testing.assert_array_equal(short, expected[::997])


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_the_words_round_a_number(run):
    expected = np.stack([NUMBERS.astype(of).astype(np.float32) for of in DTYPES], 1)
    np.testing.assert_array_equal(run(rounded, NUMBERS, 4), expected)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast", "ignore:invalid value encountered in cast")
def test_a_float64_is_rounded_to_float32_first(run):
    wide = np.array([1.0625 + 2.0**-40, -1.125 - 2.0**-40, 1e300, 3.0e-7])
    for of, function in ENCODED.items():
        expected = bits(wide.astype(np.float32).astype(of))
        np.testing.assert_array_equal(bits(run(function, wide)), expected)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(bits(polyop.kernel(function).python(wide)), expected)


@polyop.kernel
def language(x, z):
    y = output_tensor(x.shape, x.dtype)
    row = output_tensor(x.shape, z.dtype)
    totals = output_tensor((x.shape[0], 4), "float32")
    own = allocate(x.shape, "float8_e5m2")
    for i in range(x.shape[0]):
        best = x[i, 0]
        for j in range(x.shape[1]):
            best = max(best, x[i, j])
            own[i, j] = x[i, j] * 1.3
            y[i, j] = x[i, j] * x[i, j] if x[i, j] > 0 else own[i, j]
            y[i, j] += 0.25
        row[i] = x[i] * z[i] + 1
        totals[i, 0] = best * best
        totals[i, 1] = sum(x[i] * x[i])
        totals[i, 2] = max(z[i]) + where(x[i, 0] > z[i, 0], x[i, 0], z[i, 0])
        totals[i, 3] = abs(x[i, 0]) * 300 + 1 if x.dtype == "float8_e4m3fn" else 7
    return y, row, totals


@pytest.mark.slow
def test_arithmetic_is_in_float32_as_in_plain_python():
    random = np.random.default_rng(1)
    x = (random.integers(-32, 33, (5, 37)) * 0.5).astype(E4M3)
    z = random.integers(-8, 9, (5, 37)).astype(E5M2)
    results, reference = language(x, z), language.python(x, z)
    for one, other in zip(results, reference, strict=True):
        assert type(other) is np.ndarray
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.astype(np.float32), other.astype(np.float32))
    wide, least = x.astype(np.float32), results[2][:, 1]
    np.testing.assert_array_equal(least, (wide * wide).sum(1))  # beyond 448: in float8 it would be NaN
    assert least.max() > 448


@polyop.kernel
def product(a, b, scale):
    c = output_tensor((a.shape[0], b.shape[1]), "float32")
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = float32(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total * scale[i]
    return c


def operands(of=E4M3):
    random = np.random.default_rng(2)
    a, b = (random.integers(-6, 7, shape).astype(of) for shape in ((5, 33), (33, 19)))
    return a, b, (random.integers(1, 9, 5) / 4).astype(np.float32)


def expected_gradient(a, b, scale):
    del a
    return np.broadcast_to(scale[:, None] * b.astype(np.float32).sum(1), (5, 33))


@pytest.mark.parametrize("of", FLOAT8)
def test_under_pytorch(of):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a, b, scale = operands(of)
    expected = a.astype(np.float32) @ b.astype(np.float32) * scale[:, None]
    kind = getattr(torch, of.__name__)
    tensors = [torch.from_numpy(t.view(np.uint8)).view(kind) for t in (a, b)]
    np.testing.assert_array_equal(product(a, b, scale), expected)
    np.testing.assert_array_equal(product(*tensors, torch.from_numpy(scale)).numpy(), expected)
    tensors[0].requires_grad_()
    product(*tensors, torch.from_numpy(scale)).sum().backward()
    assert tensors[0].grad.dtype == kind
    wanted = expected_gradient(a, b, scale).astype(of)  # summed in float32, rounded once
    np.testing.assert_array_equal(tensors[0].grad.float().numpy(), wanted.astype(np.float32))


WORDS_AND_NUMBERS = np.concatenate([np.arange(512, dtype=np.float32) / 8 - 32, [np.nan, np.inf, 2.0**-127]])


def test_scales_under_pytorch_and_jax():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    decode, encode = polyop.kernel(decoded), polyop.kernel(encoded_e8m0)
    scales, x = WORDS.view(E8M0), WORDS_AND_NUMBERS.astype(np.float32)
    expected = scales.astype(np.float32), encode.python(x)
    tensor = torch.from_numpy(WORDS).view(torch.float8_e8m0fnu)
    np.testing.assert_array_equal(decode(tensor).numpy(), expected[0])
    given = encode(torch.from_numpy(x))
    assert given.dtype == torch.float8_e8m0fnu
    np.testing.assert_array_equal(bits(given.view(torch.uint8).numpy()), bits(expected[1]))
    np.testing.assert_array_equal(jax.jit(decode)(scales), expected[0])
    assert np.asarray(jax.jit(encode)(x)).tobytes() == expected[1].tobytes()


@polyop.kernel
def scaled(x, scale):
    y = output_tensor(x.shape, "float32")
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale[i, j // 32]
    return y


def test_a_row_of_float4_with_a_scale_for_each_32():
    random = np.random.default_rng(3)
    x = WORDS[random.integers(0, 16, (5, 64))].view(E2M1)
    scale = random.integers(120, 134, (5, 2), np.uint8).view(E8M0)
    expected = x.astype(np.float32) * np.repeat(scale.astype(np.float32), 32, 1)
    np.testing.assert_array_equal(scaled(x, scale), expected)
    np.testing.assert_array_equal(scaled.python(x, scale), expected)


def test_packed_float4_is_refused_by_name():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    packed = torch.from_numpy(WORDS).view(torch.float4_e2m1fn_x2)
    rule = "must have an element of its own in each item, and float4_e2m1fn_x2 packs two into a byte"
    with pytest.raises(
        ArgumentTypeError, match=rf"decoded: argument x: dtype: {rule}.*\n.*\n  pass the bytes"
    ):
        polyop.kernel(decoded)(packed)
    nibbles = polyop.kernel(unpacked)(packed.view(torch.uint8))
    np.testing.assert_array_equal(bits(nibbles.numpy()), np.stack([WORDS & 15, WORDS >> 4], 1).view(np.uint8))


def unpacked(x):
    y = output_tensor((x.shape[0], 2), "uint8")
    for i in range(x.shape[0]):
        y[i, 0] = x[i] & 15
        y[i, 1] = x[i] >> 4
    return y


def test_float4_is_refused_where_a_framework_has_it_packed_alone():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    from polyop.hosts.torch import tensors

    decode, encode = polyop.kernel(decoded), polyop.kernel(encoded_e2m1)
    with pytest.raises(TypeError, match="output: this PyTorch has no dtype float4_e2m1fn"):
        encode(torch.ones(3))
    with pytest.raises(
        ArgumentTypeError, match="array: must have a dtype of PyTorch .*, but got float4_e2m1fn"
    ):
        tensors.from_numpy(WORDS.view(E2M1), torch.device("cpu"))
    rule = "must be one whose elements XLA leaves in bytes of their own, but got float4_e2m1fn"
    for call in (decode, jax.jit(decode)):
        with pytest.raises(ArgumentTypeError, match=f"argument x: dtype: {rule}.*\n.*\n.*float8_e4m3fn"):
            call(jax.numpy.asarray(WORDS.view(E2M1)))
    with pytest.raises(ArgumentTypeError, match=f"the dtype of an output: {rule}"):
        encode(jax.numpy.ones(3))


@pytest.mark.slow
def test_under_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    a, b, scale = map(jax.numpy.asarray, operands())
    expected = product(*operands())
    np.testing.assert_array_equal(jax.jit(product)(a, b, scale), expected)
    gradient = jax.grad(lambda a: product(a, b, scale).sum())(a)
    assert gradient.dtype == E4M3
    np.testing.assert_array_equal(gradient, expected_gradient(*operands()).astype(E4M3))
    batched = jax.vmap(product, in_axes=(0, None, None))(jax.numpy.stack([a, a]), b, scale)
    np.testing.assert_array_equal(batched, np.stack([expected, expected]))


def test_under_paddle():
    paddle = pytest.importorskip("paddle", reason="Paddle is not installed")
    a, b, scale = operands()
    tensors = [paddle.to_tensor(t.astype(np.float32)).astype("float8_e4m3fn") for t in (a, b)]
    result = product(*tensors, paddle.to_tensor(scale))
    np.testing.assert_array_equal(result.numpy(), product(a, b, scale))


CONSTANT = E4M3(2)


def reads_a_constant(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * CONSTANT
    return y


def test_a_number_of_float8_from_outside_is_refused():
    rule = r"a number from outside the function must have one of the dtypes bool.*complex128, but got"
    with pytest.raises(ArgumentTypeError, match=rule):
        polyop.kernel(reads_a_constant)(np.ones(2, np.float32))


def add_rows(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = z[i]
        y[i] += 2 * x[i]
    return y


def test_a_row_that_is_added_to_in_place_is_rounded_once():
    """In plain Python as compiled: the product and the sum are float32."""
    values = np.linspace(-3, 3, 20, dtype=np.float32).reshape(4, 5)
    x, z = values.astype(E5M2), (values / 3).astype(E5M2)
    expected = (z.astype(np.float32) + 2 * x.astype(np.float32)).astype(E5M2)
    op = polyop.kernel(add_rows, name="float8::add_rows")
    assert op(x, z).tobytes() == expected.tobytes()
    assert op.python(x, z).tobytes() == expected.tobytes()


def added(x, y):
    for i in range(x.shape[0]):
        y[i] += x[i]
    return y


def added_in_columns(x, y):
    for k in range(x.shape[0]):
        for i in range(x.shape[1]):
            y[i] += x[k, i]
    return y


def scattered(x, at, y):
    for i in range(x.shape[0]):
        y[at[i]] += x[i]
    return y


@pytest.mark.parametrize("of", [t.__name__ for t in DTYPES])
def test_sums_in_memory_keep_their_order_only_where_an_element_has_several(of):
    def line(function, *specs):
        lines = polyop.kernel(function).operator.kernels[0].explain(specs, {})
        return next(text.strip() for text in lines if text.strip().startswith("loop "))

    y, x, many = (
        Spec(shape, polyop.dtype(t)) for shape, t in (((9,), of), ((9,), "float32"), ((9, 9), "float32"))
    )
    assert line(added, x, y) == "loop i: parallel: on all threads"
    assert (
        line(added_in_columns, many, y) == "loop k: in order on all threads, each with its own part of loop i"
    )
    at = Spec((9,), polyop.dtype("int64"))
    number = scattered.__code__.co_firstlineno + 2
    assert line(scattered, x, at, y) == f"loop i: in order: line {number} both writes and reads y"
