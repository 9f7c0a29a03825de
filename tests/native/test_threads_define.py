"""Threads that define and call operators at the same time, and forks meanwhile."""
# ruff: noqa: F821 - names of the loop language

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import polyop
from in_threads import in_threads
from polyop.call import registry
from polyop.core.errors import SchemaError

X = np.arange(6.0)
numbers = itertools.count()


def of_default_name(value: int) -> Any:
    @polyop.kernel
    def shifted(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] + value
        return y

    return shifted


def of_one_name(value: int) -> Any:
    @polyop.kernel(name="threads_define::shifted")
    def shifted(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] + value
        return y

    return shifted


def of_own_name(value: int) -> Any:
    schema = f"threads_define::own{next(numbers)}(Tensor x) -> Tensor"
    return polyop.operator(schema, lambda x: x + value, infer="x", gradient=lambda x, y, grad: (grad,))


def of_a_library(value: int) -> Any:
    library = polyop.Library(f"threads_define_{next(numbers)}")
    library.define("shifted(Tensor x) -> Tensor")(lambda x: x + value)
    library.fake("shifted", lambda x: x)
    return library.shifted


def custom(value: int) -> Any:
    return polyop.Custom(lambda x: x + value, lambda x: x, lambda x: x, "pyfunc")


FACTORIES = [of_default_name, of_one_name, of_own_name, of_a_library, custom]


@pytest.mark.slow(1)
@pytest.mark.parametrize("make", FACTORIES)
def test_a_factory_in_threads(make: Callable[[int], Any]) -> None:
    def work(number: int) -> None:
        for value in range(5):
            operator = make(value)
            np.testing.assert_array_equal(operator(X), X + value)
            assert operator.name.split("::")[1]

    in_threads(work)


@pytest.mark.slow(1)
@pytest.mark.parametrize("make", [of_default_name, of_one_name, of_own_name, of_a_library])
def test_a_factory_in_threads_with_gradients(make: Callable[[int], Any]) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    def work(number: int) -> None:
        for value in range(8):
            operator = make(value)
            x = torch.arange(6.0, dtype=torch.float64, requires_grad=True)
            if make is of_a_library:
                with torch.no_grad():
                    assert torch.equal(operator(x), x + value)
                continue
            y = operator(x)
            y.sum().backward()
            assert torch.equal(y, x + value)
            assert torch.equal(x.grad, torch.ones_like(x))

    in_threads(work)


@pytest.mark.slow
def test_one_object_is_called_first_in_many_threads() -> None:
    for value in range(5):
        for make in (of_default_name, of_one_name):
            operator = make(value)
            in_threads(lambda number, op=operator, v=value: np.testing.assert_array_equal(op(X), X + v))


def test_a_name_that_is_found_is_whole() -> None:
    """Look-ups by name run while operators of these names are defined."""
    names = [f"threads_define::found{i}" for i in range(40)]

    def work(number: int) -> None:
        for name in names:
            if number == 0:
                polyop.operator(f"{name}(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
            else:
                found = registry.known(name)
                assert found is None or (found(X) == X * 2).all()
                registry.operators()
                list(polyop.BoundOperator.alive())

    in_threads(work)


def test_one_library_in_many_threads() -> None:
    """Parts of one operator are registered by several threads; each registration is whole or refused."""
    library = polyop.Library("threads_define_shared")
    library.define("f(Tensor x) -> Tensor")(lambda x: x * 3)
    library.fake("f", lambda x: x)
    refused: list[int] = []

    def work(number: int) -> None:
        assert (library.f(X) == X * 3).all()
        try:
            library.gradient("f", lambda x, y, grad: (grad * 3,))
        except SchemaError:
            refused.append(number)
        assert (library.f(X) == X * 3).all()
        _, pull = library.f.vjp(X)
        assert (pull(np.ones(6))[0] == 3).all()

    in_threads(work)
    assert len(refused) == 7


def test_operators_of_pytorch_in_many_threads() -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    names = ["aten::atan2", "aten::logaddexp", "aten::hypot", "aten::copysign"]
    found: dict[str, set[int]] = {name: set() for name in names}

    def work(number: int) -> None:
        for name in names:
            operator = polyop.aten(name)
            found[name].add(id(operator))
            operator(X, X + 1)
            operator.gradient.operator

    in_threads(work)
    assert all(len(ids) == 1 for ids in found.values())


def test_first_calls_from_jax_in_many_threads(run_python: Callable[[str], str]) -> None:
    """The first call registers the handler with XLA."""
    pytest.importorskip("jax", reason="needs JAX")
    code = """
import sys, threading, os, jax.numpy as jnp, polyop
sys.setswitchinterval(1e-5)
op = polyop.operator("threads_define::twice(Tensor x) -> Tensor", os.environ["LIBRARY"] + ":twice", infer="x")
wait, right = threading.Barrier(6), []
def call(n):
    wait.wait()
    right.append(bool((op(jnp.full(n, 2, jnp.float32)) == 4).all()))
threads = [threading.Thread(target=call, args=(n + 1,)) for n in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
from polyop.hosts.jax.emit import refusal
print(right == [True] * 6, repr(refusal()))
"""
    assert run_python(code) == "True ''\n"


FORKS = """
import faulthandler, itertools, linecache, os, random, signal, threading, time, traceback, warnings
import numpy as np, numpy.testing  # loaded: a thread must not be in an import of its own
import polyop
warnings.simplefilter("ignore")
x = np.arange(8.0)
numbers = itertools.count()
TEXT = '''
def f(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * factor
    return y
'''
linecache.cache["f.py"] = len(TEXT), None, TEXT.splitlines(True), "f.py"
def function(factor):
    scope = {"factor": factor, "__name__": "forks"}
    exec(compile(TEXT, "f.py", "exec"), scope)
    return scope["f"]
def fork_while(work, turns=12, first=0.3):
    stop = threading.Event()
    def run():
        while not stop.is_set():
            work()
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads: thread.start()
    time.sleep(first)
    codes = []
    for turn in range(turns):
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(90)  # a child that hangs says where
            signal.alarm(100)
            try:
                work()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(3)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if codes[-1]:
            break
        time.sleep(random.random() * 0.02)
    stop.set()
    for thread in threads: thread.join()
    assert not any(codes), codes
    print("all")
"""
WORK = {
    "loop kernels": """
def work():
    factor = random.randrange(4)
    name = random.choice([None, "forks::one", f"forks::f{next(numbers)}"])
    op = polyop.kernel(name=name)(function(factor)) if name else polyop.kernel(function(factor))
    assert (op(x) == x * factor).all()
    assert (op.vjp(x)[1](np.ones(8))[0] == factor).all()
fork_while(work)
""",
    "the first compilation": """
os.environ["POLYOP_CACHE_DIR"] = __import__("tempfile").mkdtemp()
def work():
    op = polyop.kernel(function(7))
    assert (op(x) == x * 7).all()
fork_while(work, turns=8, first=0)
""",
    "Python operators": """
def work():
    op = polyop.operator(f"forks::f{next(numbers)}_{os.getpid()}(Tensor x) -> Tensor", lambda x: x * 3, infer="x")
    assert (op(x) == x * 3).all()
    library = polyop.Library(f"forks_{next(numbers)}_{os.getpid()}")
    library.define("f(Tensor x) -> Tensor")(lambda x: x * 5)
    library.fake("f", lambda x: x)
    assert (library.f(x) == x * 5).all()
    custom = polyop.Custom(lambda x: x + 1, lambda x: x, lambda x: x, "pyfunc")
    assert (custom(x) == x + 1).all()
fork_while(work, turns=30)
""",
    "registrations in PyTorch": """
import torch
torch.set_num_threads(1)
def work():
    factor = random.randrange(4)
    op = polyop.kernel(name=f"forks::f{next(numbers)}_{os.getpid()}")(function(factor))
    t = torch.ones(3, requires_grad=True, dtype=torch.float64)
    op(t).sum().backward()
    assert (t.grad == factor).all()
    assert (op.torch(t.detach()) == factor).all()
work()
fork_while(work, turns=30)
""",
    "PyTorch's operators": """
import torch
torch.set_num_threads(1)
names = itertools.cycle("hypot atan2 logaddexp copysign maximum fmod sinh cosh asinh erf".split())
def work():
    name = next(names)
    op = polyop.aten(f"aten::{name}")
    one = [torch.from_numpy(x + 1)] * len(op.schema.tensor_positions)
    np.testing.assert_array_equal(op(*[x + 1] * len(one)), getattr(torch, name)(*one).numpy())
fork_while(work, first=0)
""",
    "seeded operators": """
import torch
torch.set_num_threads(1)
torch.manual_seed(5)
dropout, key = polyop.aten("aten::bernoulli"), np.array([1, 2], np.uint32)
want = dropout(np.full(1000, 0.5), generator=key)
state = torch.random.get_rng_state()
def work():
    assert (dropout(np.full(1000, 0.5), generator=key) == want).all()
    if threading.current_thread() is threading.main_thread():
        assert torch.equal(torch.random.get_rng_state(), state), "the child has a seed of the parent's thread"
fork_while(work, turns=30)
""",
}


@pytest.mark.parametrize("name", WORK)
def test_a_fork_while_threads_define(run_python: Callable[[str], str], name: str) -> None:
    if "import torch" in WORK[name]:
        pytest.importorskip("torch", reason="needs PyTorch")
    assert "all" in run_python(FORKS + WORK[name])


def test_a_call_is_found_while_generators_hide_its_callers(monkeypatch) -> None:
    """Other threads go on while their frames are looked at: a generator that is left has no caller then."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from polyop.hosts.torch import leaving

    inside, proceed, suspended, leave = (threading.Event() for _ in range(4))

    def steps() -> Iterator[None]:
        inside.set()
        proceed.wait(60)
        yield

    def kernel(x: Any) -> Any:
        for _ in steps():
            suspended.set()
            leave.wait(60)
        return x * 2

    operator = polyop.operator(
        f"threads_define::hidden{next(numbers)}(Tensor x) -> Tensor", kernel, infer="x"
    )
    overload = operator.torch
    registration = leaving.Registration(operator, overload, vars(operator)["torch_library"])
    thread = threading.Thread(target=lambda: overload(torch.ones(2)))

    class Functions(dict):
        """CALLERS, which lets the thread go on as soon as a frame of ``steps`` is looked at."""

        def __contains__(self, code: Any) -> bool:
            if code is steps.__code__:
                proceed.set()
                assert suspended.wait(60)
            return super().__contains__(code)

    monkeypatch.setattr(leaving, "CALLERS", Functions(leaving.CALLERS))
    assert registration.threads() == set()
    thread.start()
    assert inside.wait(60)
    found = registration.threads()
    leave.set()
    thread.join()
    assert found == {thread.ident}
    assert registration.threads() == set()


def test_the_end_of_a_replaced_registration_leaves_the_new_one() -> None:
    """PyTorch's finaliser of a library runs at any time, also when its names are those of a new operator."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    first = of_one_name(1)
    assert (first.torch(torch.ones(2)) == 2).all()
    library = vars(first)["torch_library"]
    second = of_one_name(2)
    assert (second(X) == X + 2).all()
    packet = second.torch.overloadpacket
    assert torch.ops.threads_define.shifted is packet
    del first
    alive = weakref.ref(library)
    del library
    gc.collect()
    assert alive() is None
    assert vars(torch.ops.threads_define)["shifted"] is packet
    assert "threads_define::shifted" in torch.library._defs


def test_a_name_is_defined_again_while_another_thread_calls_other_operators() -> None:
    """Which operator another thread calls is not known: it is waited for until it was outside once."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    busy = polyop.operator(
        f"threads_define::busy{next(numbers)}(Tensor x) -> Tensor", lambda x: x + 1, infer="x"
    )
    overload, stop = busy.torch, threading.Event()

    def call() -> None:
        while not stop.is_set():
            overload(torch.ones(2))

    thread = threading.Thread(target=call)
    thread.start()
    try:
        for value in range(20):
            x = torch.ones(3, dtype=torch.float64, requires_grad=True)
            assert torch.equal(of_one_name(value).torch(x), x + value)
    finally:
        stop.set()
        thread.join()
