"""The digest of an operator: equal where the definitions are, in every process, and nowhere else."""

import functools
import importlib.util
import os
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

import polyop
from polyop.call.pickled import digest
from polyop.core.spec import Spec

COUNT = iter(range(1000))


def of(function, schema="(Tensor x, float a=1.0) -> Tensor", **more):
    """The digest of an operator, with its name taken out of it."""
    operator = polyop.operator(
        f"contents::o{next(COUNT)}{schema}", function, infer=lambda x, *a: Spec(x.shape, x.dtype), **more
    ).operator
    return without_name(operator)


def without_name(operator):
    return digest(replace(operator, schema=replace(operator.schema, namespace="c", name="same")))


def adding(n):
    return lambda x, a: x + n


class Adder:
    def __call__(self, x, a):
        return x + a

    def other(self, x, a):
        return x - a


class Scale:
    def __init__(self, k):
        self.k = k

    def __call__(self, x, a):
        return self.times(x)

    def times(self, x, a=1):
        return x * self.k


class Halved(Scale):
    def times(self, x, a=1):
        return x * self.k / 2


class Slotted:
    __slots__ = ("k", "later")

    def __init__(self, k):
        self.k = k

    def __call__(self, x, a):
        return x * self.k


def holding(value):
    return lambda x, a: x * value


def product(k, x, a):
    return x * k


def calling(helper):
    return functools.wraps(helper)(lambda *args: helper(*args))


def cycle(n):
    cycle = [n]
    cycle.append({"self": cycle})
    return cycle


ALIKE = [
    ("lambdas", lambda: lambda x, a: x + 1),
    ("closures", lambda: adding(1)),
    ("instances", Adder),
    ("methods", lambda: Adder().other),
    ("partials", lambda: functools.partial(lambda k, x, a: x + k, 3)),
    ("ufuncs", lambda: np.add),
    ("states", lambda: Scale(np.arange(3.0))),
    ("slots", lambda: Slotted([1, 2])),
    ("cached", lambda: functools.lru_cache(lambda x, a: x)),
    ("vectorised", lambda: np.vectorize(lambda x, a: x)),
    ("cycles", lambda: holding(cycle(1))),
    ("objects that say nothing", lambda: holding(object())),
    ("locks", lambda: holding(threading.Lock())),
    ("sets", lambda: lambda x, a: x if a in {"some", "texts", "in", "a", "set"} else -x),
]


@pytest.mark.parametrize("make", [row[1] for row in ALIKE], ids=[row[0] for row in ALIKE])
def test_alike(make):
    assert of(make()) == of(make())


def test_different():
    digests = [
        of(lambda x, a: x + 1),
        of(lambda x, a: x + 2),
        of(lambda x, a: x + 1.0),
        of(lambda x, a: np.sin(x)),
        of(lambda x, a: np.cos(x)),
        of(lambda x, a, b=1: x + b),
        of(lambda x, a, b=2: x + b),
        of(lambda x, a, *, b=2: x + b),
        of(adding(1)),
        of(adding(2)),
        of(Adder()),
        of(Adder().other),
        of(functools.partial(lambda k, x, a: x + k, 3)),
        of(functools.partial(lambda k, x, a: x + k, 4)),
        of(np.add),
        of(np.subtract),
        of(lambda x, a: sum(x + y for y in (1, 2))),
        of(lambda x, a: sum(x + y for y in (1, 3))),
        of(lambda x, a: x + 1, "(Tensor x, float a=2.0) -> Tensor"),
        of(lambda x, a, k: x + 1, attributes={"k": 1}),
        of(lambda x, a, k: x + 1, attributes={"k": 1.0}),
    ]
    assert len(set(digests)) == len(digests)
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in digests)


PAIRS = [
    # what differs, one, the other
    ("an array's values", holding(np.arange(3.0)), holding(np.arange(3.0) + 1)),
    ("an array's dtype", holding(np.zeros(2, "f4")), holding(np.zeros(1, "f8"))),
    ("an array's shape", holding(np.zeros((2, 3))), holding(np.zeros((3, 2)))),
    ("an array of objects", holding(np.array([1, None])), holding(np.array([2, None]))),
    ("a NumPy number", holding(np.float32(2)), holding(np.float64(2))),
    ("a list", holding([1, [2]]), holding([1, [3]])),
    ("how a list is nested", holding([1, [2]]), holding([1, 2])),
    ("a dictionary", holding({"k": [1]}), holding({"k": [2]})),
    ("a set", holding({1, "a"}), holding({1, "b"})),
    ("a cycle", holding(cycle(1)), holding(cycle(2))),
    ("a function in a cell", holding(lambda x: x + 1), holding(lambda x: x + 2)),
    ("a function in a cell of one in a cell", holding(holding(adding(1))), holding(holding(adding(2)))),
    ("a wrapped function", calling(lambda x, a: x + 1), calling(lambda x, a: x + 2)),
    ("a cached function", functools.lru_cache(lambda x, a: x), functools.lru_cache(lambda x, a: -x)),
    ("a vectorised function", np.vectorize(lambda x, a: x), np.vectorize(lambda x, a: -x)),
    ("a partial's function", functools.partial(adding(1)), functools.partial(adding(2))),
    ("a partial's array", functools.partial(product, np.ones(1)), functools.partial(product, np.ones(2))),
    ("a method's state", Scale(2).times, Scale(3).times),
    ("a state", Scale(np.ones(2)), Scale(np.zeros(2))),
    ("a state in slots", Slotted(2), Slotted(3)),
    ("another method", Scale(2), Halved(2)),
    ("a class in a cell", holding(Scale), holding(Halved)),
    ("a method of a builtin", [1].insert, [2].insert),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), [row[1:] for row in PAIRS], ids=[row[0] for row in PAIRS])
def test_what_a_function_holds(one, other):
    assert of(one) == of(one) != of(other)


def test_calls_leave_no_mark():
    for function in (np.vectorize(lambda x, a: x + 1.0), functools.lru_cache(lambda x, a: x)):
        before = of(function)
        function(1.0, 1.0)
        assert of(function) == before


LOOPS = """
import math
import polyop


K = 2.0
STEPS = [1, 2]
RATE = 0.5

def decayed(v, depth=3):
    return v * RATE ** depth

@polyop.kernel
def kernel(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for k in STEPS:
            y[i] = x[i] * 2.0 + K * k + math.pi + other(x[i])
    return y

def other(v):
    return decayed(v) - 1
"""
CHANGED = [
    ("the body", "x[i] * 2.0", "x[i] + 40.0"),
    ("a variable of the module", "K = 2.0", "K = 3.0"),
    ("its type", "K = 2.0", "K = 2"),
    ("a number of a module", "math.pi", "math.e"),
    ("a list of the module", "[1, 2]", "[1, 3]"),
    ("a helper", "decayed(v) - 1", "decayed(v) - 2"),
    ("a helper of a helper", "v * RATE", "v / RATE"),
    ("a number that a helper reads", "RATE = 0.5", "RATE = 0.25"),
    ("a default of a helper", "depth=3", "depth=4"),
]


def loop_kernel(text, tmp_path, name):
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.slow(2)
@pytest.mark.parametrize(("old", "new"), [row[1:] for row in CHANGED], ids=[row[0] for row in CHANGED])
def test_loop_kernels(tmp_path, old, new):
    def digest_of(name, text):
        op = polyop.operator(
            f"contents::loop{next(COUNT)}(Tensor x) -> Tensor", loop_kernel(text, tmp_path, name)
        )
        return without_name(op.operator)

    assert old in LOOPS
    first = digest_of("one", LOOPS)
    assert first == digest_of("two", LOOPS + "\n\ni = OTHER = 1\n")
    assert first != digest_of("three", LOOPS.replace(old, new))


def test_a_library_counts_by_its_bytes(sources, tmp_path):
    source = tmp_path / "k.c"
    source.write_text((sources / "kernels.c").read_text())
    (tmp_path / "count.h").write_text((sources / "count.h").read_text())
    first, again = of(f"{source}:square"), of(f"{source}:square")
    assert first == again != of(f"{source}:copy")
    source.write_text(source.read_text().replace("x[i] * x[i]", "x[i] + x[i]"))
    assert of(f"{source}:square") != first


PROGRAM = """
import numpy as np, polyop
from polyop.call.pickled import digest
class Adder:
    def __call__(self, x):
        return x + 1
def f(x, k=frozenset({"a", "b", "c"})):
    return x if "z" in {"some", "texts", "in", "a", "set"} else -x
class Scale:
    def __init__(self):
        self.held = [np.arange(3), {"k": {"some", "texts"}}, self, f, object()]
    def __call__(self, x):
        return x
for number, kernel in enumerate((f, Adder(), lambda x: x, Scale())):
    print(digest(polyop.operator(f"c::o{number}(Tensor x) -> Tensor", kernel, infer="x").operator))
"""


def test_the_same_in_every_process():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1 and len(set(outputs.pop().split())) == 4


MODULE = """
#include "ms_extension/api.h"
struct Twice : ms::Function<Twice> {
  static ms::Tensor Forward(ms::AutogradContext *, const ms::Tensor &x) {
    ms::Tensor out(x.data_type(), x.shape());
    polyop::launch_aclnn("aclnnMuls", x, 2.0, out);
    return out;
  }
  static std::vector<ms::Tensor> Backward(ms::AutogradContext *, std::vector<ms::Tensor> grads) {
    ms::Tensor out(grads[0].data_type(), grads[0].shape());
    polyop::launch_aclnn("aclnnMuls", grads[0], 2.0, out);
    return {out};
  }
};
ms::Tensor twice(const ms::Tensor &x) { return Twice::Apply(x); }
PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("twice", &twice); }
"""


@pytest.mark.slow
def test_the_parts_of_a_modules_gradient_count_with_its_library(tmp_path):
    from polyop.define.module.builder import CustomOpBuilder

    def digests(text, name):
        path = tmp_path / name / "module.cpp"
        path.parent.mkdir()
        path.write_text(text)
        op = CustomOpBuilder(f"content_{name}", [str(path)], backend="CPU").load().twice
        rule = op.operator.gradient
        return [without_name(part.operator) for part in (op, rule.saving_part, rule.backward)]

    first = digests(MODULE, "first")
    assert len(set(first)) == 3
    changed = digests(MODULE.replace("grads[0], 2.0", "grads[0], 3.0"), "second")
    assert not set(first) & set(changed)
