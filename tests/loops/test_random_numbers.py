# ruff: noqa: F821 - kernels in the language, whose words are no names here
"""Random numbers in loop kernels: published words, and the same bits wherever a kernel runs."""

import hashlib
import linecache
import os
import pathlib
import random as python_random
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import polyop
from polyop.core.errors import PolyopError
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.random_numbers import random as one_number
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.philox import philox
from polyop.loops.targets import isa

ONES = 2**32 - 1
PUBLISHED = [  # counter, key, words: those that the authors of Philox publish with their code
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@polyop.kernel
def uniform(counters, key):
    """The numbers of rows of four counters, alternately in vectors and one by one."""
    y = output_tensor((counters.shape[0],), float32)
    z = output_tensor((counters.shape[0],), float64)
    for i in range(counters.shape[0]):
        y[i] = random(key, counters[i, 0], counters[i, 1], counters[i, 2], counters[i, 3])
    for i in serial(counters.shape[0]):
        z[i] = random(key, counters[i, 0], counters[i, 1], counters[i, 2], counters[i, 3], dtype="float64")
    return y, z


def plain_draws(x, key):
    """Numbers of every kind."""
    u = output_tensor(x.shape, float32)
    v = output_tensor(x.shape, float64)
    w = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        u[i] = random(key, i)
        v[i] = random(key, i - 5, -i, dtype="float64")
        w[i] = random(key, i, 1, i * 3, dtype=x.dtype) - 0.5
    return u, v, w


draws = polyop.kernel(plain_draws)


@polyop.kernel
def normals(x, key):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = random_normal(key, i, dtype=x.dtype)
    return y


@polyop.kernel
def dropout(x, key, rate: float = 0.5):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if random(key, i, j) >= rate:
                y[i, j] = x[i, j] / (1.0 - rate)
    return y


KEY = np.array([7, 2**32 - 5], np.uint32)


def digest(arrays):
    return hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in arrays)).hexdigest()


@pytest.mark.parametrize(("counter", "key", "words"), PUBLISHED)
def test_the_published_words(counter, key, words):
    assert philox(counter, key) == words
    u, v = uniform(np.full((9, 4), counter, np.uint32), np.array(key, np.uint32))
    np.testing.assert_array_equal(u, np.float32((words[0] & 2**24 - 1) * 2.0**-24))
    np.testing.assert_array_equal(v, ((words[0] | words[1] << 32) & 2**53 - 1) * 2.0**-53)


def test_one_and_two_counters_have_64_bits():
    @polyop.kernel
    def wide(i, key):
        y = output_tensor((2,), float32)
        y[0] = random(key, i[0])
        y[1] = random(key, i[0], i[1])
        return y

    first, second = 2**40 + 3, -2
    words = [
        philox((3, 2**8, 0, 0), (7, 2**32 - 5))[0],
        philox((3, 2**8, 2**32 - 2, 2**32 - 1), (7, 2**32 - 5))[0],
    ]
    expected = [np.float32((w & 2**24 - 1) * 2.0**-24) for w in words]
    np.testing.assert_array_equal(wide(np.array([first, second]), KEY), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_interpreter_and_plain_python_give_the_same_bits(dtype):
    x = np.zeros(203, dtype)
    results = [
        draws(x, KEY),
        draws.python(x, KEY),
        interpret(parse(plain_draws, [(dtype, 1), ("uint32", 1)], {}), [x, KEY]),
    ]
    assert len({digest(arrays) for arrays in results}) == 1


@pytest.mark.parametrize("dtype", ["int32", "uint64", "int64"])
def test_a_key_of_another_integer_dtype(dtype):
    key = KEY.astype(dtype)
    assert digest(draws(np.zeros(20), key)) == digest(draws(np.zeros(20), KEY))


def test_threads():
    x, seen, before = np.zeros(300_007), set(), polyop.get_num_threads()
    try:
        for threads in (1, 2, 3):
            polyop.set_num_threads(threads)
            seen.add(digest([*draws(x, KEY), normals(x, KEY)]))
    finally:
        polyop.set_num_threads(before)
    assert len(seen) == 1


PROGRAM = """
import sys
sys.path[:0] = {path!r}
import numpy as np
from test_random_numbers import KEY, digest, draws, normals
x = np.zeros(1003, np.float32)
print(digest(draws(x, KEY)))
print(normals(x, KEY).tobytes().hex())
"""


@pytest.mark.slow
def test_instruction_sets(tmp_path):
    bits, normal = set(), []
    for name in isa.available():
        settings = {"POLYOP_LOOPS_ISA": name, "POLYOP_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", PROGRAM.format(path=[str(pathlib.Path(__file__).parent)])]
        done = subprocess.run(
            command, env={**os.environ, **settings}, capture_output=True, text=True, check=True
        )
        one, other = done.stdout.split()
        bits.add(one)
        normal.append(np.frombuffer(bytes.fromhex(other), np.float32))
    assert len(bits) == 1
    for other in normal:  # with and without fused multiply-add the last bits differ
        np.testing.assert_allclose(other, normal[0], rtol=1e-5, atol=1e-6)


def test_hosts():
    x = np.zeros(100, np.float32)
    expected = draws(x, KEY)[0]
    np.testing.assert_array_equal(draws(torch.tensor(x), torch.tensor(KEY.astype(np.int64)))[0], expected)
    with jax.enable_x64(True):
        of_jax = jax.jit(draws)(jnp.asarray(x), jnp.asarray(KEY))[0]
        np.testing.assert_array_equal(of_jax, expected)
        key = jax.random.key(3)
        own = draws(x, np.asarray(jax.random.key_data(key)))[0]
        np.testing.assert_array_equal(draws(jnp.asarray(x), jax.random.key_data(key))[0], own)


def test_batches_of_inputs_and_of_keys():
    x = np.ones((3, 4, 5), np.float32)
    keys = np.arange(6, dtype=np.uint32).reshape(3, 2)
    one_key = [dropout(a, KEY) for a in x]
    np.testing.assert_array_equal(jax.vmap(dropout, (0, None))(jnp.asarray(x), jnp.asarray(KEY)), one_key)
    of_torch = torch.vmap(dropout, (0, None))(torch.tensor(x), torch.tensor(KEY.astype(np.int64)))
    np.testing.assert_array_equal(of_torch, one_key)
    several = [dropout(a, k) for a, k in zip(x, keys, strict=True)]
    np.testing.assert_array_equal(jax.vmap(dropout)(jnp.asarray(x), jnp.asarray(keys)), several)


def test_the_gradient_draws_the_same_numbers():
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    key = torch.tensor([3, 4])
    assert torch.autograd.gradcheck(lambda a: dropout(a, key, 0.25), (x,))
    y = dropout(x, key, 0.25)
    (slope,) = torch.autograd.grad(y.sum(), x)
    np.testing.assert_array_equal(slope != 0, y.detach() != 0)
    gradient = jax.grad(lambda a: jnp.sum(dropout(a, jnp.asarray(KEY))))(jnp.ones((3, 4)))
    np.testing.assert_array_equal(gradient, dropout(np.ones((3, 4), np.float32), KEY))


def test_a_normal_number_beside_a_parameter_has_the_gradient_of_the_parameter():
    @polyop.kernel
    def sampled(mean, deviation, key):
        y = output_tensor(mean.shape, mean.dtype)
        for i in range(mean.shape[0]):
            y[i] = mean[i] + deviation[i] * random_normal(key, i, dtype=mean.dtype)
        return y

    mean, deviation = (torch.rand(9, dtype=torch.float64, requires_grad=True) for _ in range(2))
    key = torch.tensor([3, 4])
    assert torch.autograd.gradcheck(lambda m, d: sampled(m, d, key), (mean, deviation))


@pytest.mark.parametrize(("dtype", "error"), [("float32", 2e-6), ("float64", 4e-15)])
def test_normal_numbers(dtype, error):
    x = np.zeros(200_000, dtype)
    y = normals(x, KEY).astype(np.float64)
    moments = [np.mean(y**power) for power in (1, 2, 3, 4)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.05)
    assert np.mean(np.abs(y) < 1) == pytest.approx(0.6827, abs=0.005)
    np.testing.assert_allclose(y[:500], normals.python(x[:500], KEY), error, error)


def test_uniform_numbers():
    u, v, _ = draws(np.zeros(200_000), KEY)
    for one in (u, v):
        assert one.min() >= 0 and one.max() < 1
        counts = np.histogram(one, 64, (0, 1))[0]
        assert np.sum((counts - counts.mean()) ** 2 / counts.mean()) < 120  # 63 degrees of freedom
    assert abs(np.corrcoef(u, v)[0, 1]) < 0.01 and abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.01


def test_a_row_of_keys_and_the_module_random():
    def helped(keys, i):
        return random(keys[i], i)

    @polyop.kernel
    def each(keys):
        y = output_tensor(keys.shape[:1], float32)
        for i in range(keys.shape[0]):
            y[i] = helped(keys, i)
        return y

    keys = np.arange(20, dtype=np.uint32).reshape(10, 2)
    words = [philox((i, 0, 0, 0), tuple(keys[i].tolist()))[0] for i in range(10)]
    expected = [np.float32((word & 2**24 - 1) * 2.0**-24) for word in words]
    np.testing.assert_array_equal(each(keys), expected)
    assert python_random.random  # the module keeps its meaning


def wrong(expression):
    """Return a kernel with this expression, in a file of its own."""
    lines = [
        "y = output_tensor(x.shape, float32)",
        f"y[0] = {expression}",
        "y[1] = x[0] + key[0]",
        "return y",
    ]
    text = "\n    ".join(["def f(x, key):", *lines, ""])
    file = f"<random {expression}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {}
    exec(compile(text, file, "exec"), names)
    return names["f"]


ERRORS = [
    ("random(x, 1)", "a key must be uint32, int32, uint64 or int64.*float32.*np.array"),
    ("random(key, 0.5)", "a counter must be an integer.*int"),
    ("random(key)", r"two to five inputs, but got 1.*write random\(key, i\)"),
    ("random(key, 1, 2, 3, 4, 5)", "two to five inputs, but got 6.*one to four integers"),
    ("random(key[0], 1)", "a key of one dimension.*a number.*np.array"),
    ("random(key, 1, seed=3)", "takes no keyword arguments.*seed"),
    ('random(key, 1, dtype="float16")', r"float32 or float64.*float16\(random\(key, i\)\)"),
    ('random_normal(key, 1, dtype="int32")', "float32 or float64"),
]


@pytest.mark.parametrize(("expression", "words"), ERRORS)
def test_errors_name_the_line_and_the_way_out(expression, words):
    with pytest.raises(PolyopError) as caught:
        parse(wrong(expression), [("float32", 1), ("uint32", 1)], {})
    text = str(caught.value).replace("\n", " ")
    assert ":3" in text
    assert re.search(words, text), text


def test_a_key_of_one_item_is_followed_by_zero():
    x = np.zeros(50)
    one, two = np.array([7], np.uint32), np.array([7, 0], np.uint32)
    np.testing.assert_array_equal(normals(x, one), normals(x, two))
    np.testing.assert_array_equal(normals.python(x, one), normals.python(x, two))
    assert one_number(one, 3) == one_number(two, 3)


@pytest.mark.parametrize("size", [0, 3])
def test_a_key_of_another_size(size):
    with pytest.raises(PolyopError, match=r"line \d+: the key key must have one or two items, as np.array"):
        normals(np.zeros(3), np.zeros(size, np.uint32))
