"""Threads, forks, memory, and the end of a process."""

import concurrent.futures
import pathlib
import threading

import numpy as np
import pytest

import polyop
from polyop.call import foreign

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

KERNELS = pathlib.Path(__file__).parents[2] / "sources" / "kernels.c"


def test_eight_threads(cube):
    barrier = threading.Barrier(8)

    def work(number):
        barrier.wait()
        for size in range(1, 8):
            x = jnp.arange(float(size)) + number
            np.testing.assert_array_equal(
                jax.jit(lambda x: cube(x, float(number)))(x), number * np.asarray(x) ** 3
            )
            np.testing.assert_array_equal(cube(x, float(size)), size * np.asarray(x) ** 3)
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_eight_threads_find_one_operator():
    for number in range(20):
        op = polyop.operator(f"jax_processes::one_{number}(Tensor x) -> Tensor", lambda x: x + 1, infer="x")
        barrier = threading.Barrier(8)

        def text(_, op=op, barrier=barrier):
            barrier.wait()
            return foreign.call_text(op, (np.ones(2),))

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(text, range(8)))) == 1


def test_python_kernels_in_threads_do_not_wait_for_each_other_forever():
    op = polyop.operator("jax_processes::python(Tensor x) -> Tensor", lambda x: np.sort(x) * 2, infer="x")
    run = jax.jit(lambda x: op(op(x) + op(x + 1)))
    x = np.arange(50_000.0)[::-1].copy()
    expected = np.sort(2 * np.sort(x) + 2 * np.sort(x + 1)) * 2

    def work(_):
        for _ in range(10):
            np.testing.assert_array_equal(run(x), expected)  # dispatched, then read: both with Python's lock
        return True

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_a_python_kernel_that_calls_jax_itself():
    op = polyop.operator(
        "jax_processes::nested(Tensor x) -> Tensor",
        lambda x: np.asarray(jnp.sin(x) + jax.jit(jnp.cos)(x)),
        infer="x",
    )
    x = jnp.arange(3.0)
    np.testing.assert_allclose(op(x), np.sin(x) + np.cos(x), rtol=1e-12)
    np.testing.assert_allclose(jax.jit(op)(x), np.sin(x) + np.cos(x), rtol=1e-12)


def test_an_error_in_one_thread_stays_there(kernels, cube):
    fails = polyop.operator(
        "jax_processes::fails(Tensor x) -> Tensor", kernels("fails_with_words"), infer="x"
    )
    x = jnp.ones(3)

    def work(number):
        for _ in range(20):
            if number % 2:
                with pytest.raises(Exception, match="needs a square matrix"):
                    jax.jit(fails)(x).block_until_ready()
            else:
                np.testing.assert_array_equal(jax.jit(cube)(x), np.ones(3))
        return True

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_an_operator_that_its_author_has_dropped_still_runs(kernels):
    def make():
        return polyop.Custom(lambda x: x + 1, lambda x: x, lambda x: x, "pyfunc")

    import gc

    compiled = jax.jit(lambda x: make()(x)).lower(jnp.ones(3)).compile()
    gc.collect()
    np.testing.assert_array_equal(compiled(jnp.ones(3)), 2 * np.ones(3))


@pytest.mark.slow(1)
@pytest.mark.parametrize("kind", ["pyfunc", "aot"])
def test_an_operator_goes_with_the_programs_that_call_it(sources, kind):
    import gc
    import weakref

    from polyop.hosts.jax.site import _sites

    x = 2 * jnp.ones(3, "float32")

    def make():
        # a Custom: PyTorch, where it is imported, keeps operators with a name
        op = polyop.Custom(function, lambda x: x, lambda x: x, kind)
        compiled = jax.jit(lambda x: op(x)).lower(x).compile()
        np.testing.assert_array_equal(compiled(x), 4 * np.ones(3))
        return compiled, weakref.ref(op)

    function = f"{sources / 'kernels.c'}:square" if kind == "aot" else lambda x: x * x
    compiled, reference = make()
    _sites._values.clear()
    jax.clear_caches()
    gc.collect()
    np.testing.assert_array_equal(compiled(x), 4 * np.ones(3))
    assert reference() is not None
    del compiled
    jax.clear_caches()
    gc.collect()
    assert reference() is None


def test_a_compiled_program_can_be_pickled(cube):
    from jax.experimental import serialize_executable

    compiled = jax.jit(cube).lower(jnp.ones(3)).compile()
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    np.testing.assert_array_equal(again(2 * jnp.ones(3)), 8 * np.ones(3))


def test_a_definition_that_is_run_again_is_used_at_once():
    program = (
        "op = polyop.operator('jax_processes::again(Tensor x) -> Tensor', lambda x: x + {n}, infer='x')\n"
        "out = (op(x), jax.jit(op)(x), jax.jit(lambda x: op(x))(x))\n"
    )
    space = {"polyop": polyop, "jax": jax, "x": jnp.zeros(2)}
    for n in (1, 2, 3):
        exec(compile(program.format(n=n), "<cell>", "exec"), space)
        assert [one.tolist() for one in space["out"]] == [[n, n]] * 3


DEFINE = f"""
import os, sys, resource, jax, jax.numpy as jnp, numpy as np, polyop
jax.config.update("jax_enable_x64", True)
cube = polyop.operator("processes::cube(Tensor x, float a=1.0) -> Tensor",
    polyop.source({str(KERNELS)!r}, function="cube"), infer="x", batch="elementwise")
python = polyop.operator("processes::python(Tensor x) -> Tensor", lambda x: x + 1, infer="x")
fails = polyop.operator("processes::fails(Tensor x) -> Tensor",
    polyop.source({str(KERNELS)!r}, function="fails_with_words"), infer="x")
x = jnp.arange(4.0)
"""


@pytest.mark.slow
def test_memory_stays_flat(process):
    process(DEFINE + """
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
import warnings
warnings.simplefilter("ignore", ResourceWarning)
jitted, other = jax.jit(cube), jax.jit(python)
def work(count):
    for i in range(count):
        jitted(x)
        cube(x)
        if i % 10 == 0:
            other(x).block_until_ready()
        if i % 100 == 0:
            try:
                fails(x).block_until_ready()
            except Exception:
                pass
    jitted(x).block_until_ready()
work(5_000)
before = resident()
work(100_000)
grown = resident() - before
assert grown < 8 << 20, grown
""")  # fmt: skip


@pytest.mark.slow
def test_attributes_that_keep_changing(process):
    process(DEFINE + """
from polyop.hosts.jax import primitive, site
assert site._sites.capacity == primitive._programs.capacity == 128
site._sites.capacity = primitive._programs.capacity = 8
for i in range(20):
    cube(x, float(i))
    np.testing.assert_array_equal(cube(x, 0.5), 0.5 * np.arange(4.0) ** 3)  # used all the time
assert len(site._sites) <= 8 and len(primitive._programs) <= 8
np.testing.assert_array_equal(cube(x, 3.0), 3 * np.arange(4.0) ** 3)
""")  # fmt: skip


def test_the_end_of_a_process_after_calls(process):
    printed = process(DEFINE + """
import time
def sleep(x):
    time.sleep(0.5)
    return x + 1
slow = polyop.operator("processes::slow(Tensor x) -> Tensor", sleep, infer="x")
print(jax.jit(cube)(x).tolist(), python(x).tolist())
jax.jit(slow)(x)
jax.jit(lambda x: slow(slow(x) * x))(jnp.ones((500, 500)))  # nobody waits for these
cube(jnp.ones((500, 500)))
""")  # fmt: skip
    assert printed == "[0.0, 1.0, 8.0, 27.0] [1.0, 2.0, 3.0, 4.0]\n"


def test_effects_that_nobody_waited_for_happen_before_the_end(process):
    printed = process(DEFINE + """
import time
def show(x):
    time.sleep(0.2)
    print("shown", float(x), flush=True)
show = polyop.operator("processes::show(Tensor x) -> ()", show, infer=lambda x: ())
run = jax.jit(lambda x: (show(x), x + 1)[1])
for i in range(5):
    run(jnp.float64(i))
""")  # fmt: skip
    assert sorted(printed.split("\n")) == ["", *(f"shown {i}.0" for i in range(5))]


@pytest.mark.slow
def test_a_fork_before_the_first_call(process):
    """JAX itself warns of forks after it has started threads; definitions alone start none."""
    printed = process(DEFINE.replace("x = jnp.arange(4.0)", "") + """
read, write = os.pipe()
child = os.fork()
if child == 0:
    out = cube(jnp.arange(4.0), 2.0)
    os.write(write, str(out.tolist()).encode())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(os.read(read, 100).decode(), cube(jnp.arange(2.0)).tolist())
""")  # fmt: skip
    assert printed == "[0.0, 2.0, 16.0, 54.0] [0.0, 1.0]\n"


def test_importing_the_host_starts_no_backend(process):
    process("""
import jax, polyop, polyop.hosts.jax
from jax._src import xla_bridge
assert not xla_bridge._backends, xla_bridge._backends
""")  # fmt: skip
