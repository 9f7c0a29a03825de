"""The digest of an operator: equal where the definitions are, in every process, and nowhere else."""

import functools
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import polyop
from polyop.core.spec import Spec
from polyop.kernels.content import digest

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


ALIKE = [
    ("lambdas", lambda: lambda x, a: x + 1),
    ("closures", lambda: adding(1)),
    ("instances", Adder),
    ("methods", lambda: Adder().other),
    ("partials", lambda: functools.partial(lambda k, x, a: x + k, 3)),
    ("ufuncs", lambda: np.add),
    ("sets", lambda: lambda x, a: x if a in {"some", "texts", "in", "a", "set"} else -x),
]


@pytest.mark.parametrize("make", [row[1] for row in ALIKE], ids=[row[0] for row in ALIKE])
def test_alike(make):
    assert of(make()) == of(make())


def test_different():
    found = [
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
        of(lambda x, a: x + 1, attributes={"k": 1}),
        of(lambda x, a: x + 1, attributes={"k": 1.0}),
    ]
    assert len(set(found)) == len(found)
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in found)


def test_a_library_counts_by_its_bytes(sources, tmp_path):
    source = tmp_path / "k.c"
    source.write_text((sources / "kernels.c").read_text())
    (tmp_path / "count.h").write_text((sources / "count.h").read_text())
    first, again = of(f"{source}:square"), of(f"{source}:square")
    assert first == again != of(f"{source}:copy")
    source.write_text(source.read_text().replace("x[i] * x[i]", "x[i] + x[i]"))
    assert of(f"{source}:square") != first


PROGRAM = """
import polyop
from polyop.kernels.content import digest
class Adder:
    def __call__(self, x):
        return x + 1
def f(x, k=frozenset({"a", "b", "c"})):
    return x if "z" in {"some", "texts", "in", "a", "set"} else -x
for number, kernel in enumerate((f, Adder(), lambda x: x)):
    print(digest(polyop.operator(f"c::o{number}(Tensor x) -> Tensor", kernel, infer="x").operator))
"""


def test_the_same_in_every_process():
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1 and len(set(found.pop().split())) == 3


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


def test_the_parts_of_a_modules_gradient_count_with_its_library(tmp_path):
    from polyop.define.builder import CustomOpBuilder

    def digests(text, name):
        path = tmp_path / name / "module.cpp"
        path.parent.mkdir()
        path.write_text(text)
        op = CustomOpBuilder(f"content_{name}", [str(path)], backend="CPU").load().twice
        rule = op.operator.gradient
        return [without_name(part.operator) for part in (op, rule.saving, rule.backward)]

    first = digests(MODULE, "first")
    assert len(set(first)) == 3
    changed = digests(MODULE.replace("grads[0], 2.0", "grads[0], 3.0"), "second")
    assert not set(first) & set(changed)
