"""``dims=`` of operators in an installed wheel: shapes, refusals, ``vmap``, and what explain and audit show."""

import json

import numpy as np
import pytest
from wheel_tools import build, contents, install, run

from polyop.core.errors import ArgumentTypeError, SchemaError
from polyop.core.parse import parse
from polyop.wheel.information import Described, with_dims
from polyop.wheel.wrappers import module

SETUP = """
from setuptools import find_packages, setup
from polyop.wheel import BuildExtension, LoopExtension, OperatorExtension

setup(
    name="dimops",
    version="1.0",
    packages=find_packages(),
    ext_modules=[
        OperatorExtension(
            name="dimops._ops",
            sources=["ops.cpp"],
            names={"times": "scale"},
            docs={"rows": "Return the sums of rows."},
            dims={
                "rows": {"dims": "m n -> m", "parallel": "m", "sum": "n", "infer": "float64"},
                "steps": {"dims": "n -> n-width", "halo": {"n": (0, "width")}},
                "times": "... -> ...",
            },
        ),
        LoopExtension("dimops.kernels", {"outer": "T[:], T[:]"}, dtypes=["float64"]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""
OPERATORS = """
#include <polyop/library.h>
using polyop::Tensor;

POLYOP_LIBRARY(dimops, m) {
  m.def("rows(Tensor x) -> Tensor");
  m.def("steps(Tensor x, int width=1) -> Tensor");
  m.def("scale(Tensor x, float by=2.0) -> Tensor");
}

Tensor rows(const Tensor& x) {
  Tensor y = polyop::empty({x.size(0)}, polyop::kDouble);
  polyop::launch("rows", {x}, {y}, [&] {
    for (int64_t i = 0; i < x.size(0); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < x.size(1); ++j) sum += x.data_ptr<float>()[i * x.size(1) + j];
      y.data_ptr<double>()[i] = sum;
    }
  });
  return y;
}
Tensor steps(const Tensor& x, int64_t width) {
  Tensor y = polyop::empty({x.size(0) - width}, x.dtype());
  polyop::launch("steps", {x}, {y}, [&] {
    for (int64_t i = 0; i < y.size(0); ++i) {
      y.data_ptr<float>()[i] = x.data_ptr<float>()[i + width] - x.data_ptr<float>()[i];
    }
  });
  return y;
}
Tensor scale(const Tensor& x, double by) {
  Tensor y = polyop::empty_like(x);
  polyop::launch("scale", {x}, {y}, [&] {
    for (size_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = x.data_ptr<float>()[i] * float(by);
  });
  return y;
}
POLYOP_LIBRARY_IMPL(dimops, CPU, m) { m.impl("rows", &rows); m.impl("steps", &steps); m.impl("scale", &scale); }
"""
KERNELS = """
import polyop

@polyop.kernel
def outer(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c

product = polyop.operator("dimloops::outer(Tensor a, Tensor b) -> Tensor", outer, dims="m, n -> m n", parallel="m n")
"""
FILES = {
    "setup.py": SETUP,
    "ops.cpp": OPERATORS,
    "dimops/kernels.py": KERNELS,
    "dimops/__init__.py": "from ._ops import rows, steps, times\nfrom .kernels import outer, product\n",
}
CALLS = """
import warnings
import numpy as np, dimops, polyop, torch
from polyop.call.explain import explain
from polyop.testing import check

warnings.simplefilter("error", polyop.FallbackWarning)
x = np.arange(6, dtype=np.float32).reshape(2, 3)
assert dimops.rows(x).tolist() == [3.0, 12.0] and dimops.rows(x).dtype == np.float64
assert dimops.steps(x[0], width=2).tolist() == [2.0]
try:
    dimops.rows(x[0])
except polyop.PolyopError as problem:
    text = str(problem)
assert "dimops::rows: argument x has 1 dimension (3,), but its entry 'm n' has 2" in text, text
assert "_ops/__init__.py" in text, text  # where the package says so

t = torch.arange(12.0).reshape(2, 2, 3)
assert torch.vmap(dimops.rows)(t).tolist() == t.sum(2).tolist()
assert torch.vmap(dimops.times)(t[0]).tolist() == (2 * t[0]).tolist()
step = torch.compile(dimops.rows, dynamic=True, fullgraph=True, backend="eager")
with torch._dynamo.config.patch(error_on_recompile=True):
    for m, n in [(2, 3), (4, 5)]:
        assert step(torch.ones(m, n)).tolist() == [n] * m

assert 'dims="n -> n-width", halo={"n": (0, "width")}' in explain(dimops.steps), explain(dimops.steps)
rows = {row[0]: row[2] for row in check(dimops.rows, x, hosts=["numpy"]).rows}
assert rows["dims, parallel"] == rows["dims, reductions"] == rows["dims, shapes"] == "passed", rows
halo = {row[0]: row[2] for row in check(dimops.steps, np.ones(8, np.float32), 2, hosts=["numpy"]).rows}
assert halo["dims, halo"] == "passed", halo

a = np.arange(3.0)
assert dimops.product(a, a).tolist() == np.outer(a, a).tolist()
for call, words in {
    lambda: dimops.product(a, x.astype(float)): "argument b has 2 dimensions (2, 3), but its entry 'n' has 1",
    lambda: torch.vmap(dimops.product)(t.double()[0], t.double()[0]): "outer__batched: needs a compiler",
}.items():
    try:
        call()
    except polyop.PolyopError as problem:
        text = str(problem)
    assert words in text, text
spec = polyop.Spec((3,), "float64")
text = explain(dimops.product, [spec, spec])
assert 'dims="m, n -> m n", parallel="m n"' in text, text
print(text)
"""


@pytest.fixture(scope="session")
def dims_wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dims") / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return build(folder)


@pytest.mark.slow
def test_an_installed_package_has_shapes_refusals_vmap_and_claims(dims_wheel, tmp_path, without_compilers):
    folder = install(dims_wheel, tmp_path / "installed")
    done = run("-c", CALLS, PYTHONPATH=str(folder), **without_compilers)
    slices = next(line for line in done.stdout.splitlines() if line.startswith("  slices"))
    assert "none" not in slices  # proved from the loops of the module's text


@pytest.mark.slow
def test_the_files_and_audit_show_dimensions(dims_wheel):
    files = contents(dims_wheel)
    operators = {one["function"]: one for one in json.loads(files["dimops/_ops/operators.json"])["operators"]}
    assert operators["rows"]["dims"] == {"dims": "m n -> m", "parallel": "m", "sum": "n", "infer": "float64"}
    assert operators["steps"]["dims"]["halo"] == {"n": [0, "width"]}
    stubs = files["dimops/_ops/__init__.pyi"].decode()
    assert '``dims="m n -> m", parallel="m", sum="n"``' in stubs
    done = run("-m", "polyop", "audit", dims_wheel)
    assert 'dims="n -> n-width", halo={"n": [0, "width"]}' in done.stdout


def test_the_module_gives_dimensions_to_the_library():
    operators = [Described(parse("ns::op(Tensor x) -> Tensor"), "my_op", {}, "ops.cpp:1")]
    text = module(
        "libops.so", with_dims(operators, {"my_op": {"dims": "n -> n", "infer": np.dtype("int8")}}), {}
    )
    assert "dims={'ns::op': {'dims': 'n -> n', 'infer': 'int8'}})" in text
    assert "dims" not in module("libops.so", with_dims(operators, None), {})


REFUSED = {
    "an unknown function": (
        {"f": "n -> n"},
        SchemaError,
        "must name functions over tensors: my_op, but got 'f'",
    ),
    "dimensions that do not fit": (
        {"my_op": "n -> k"},
        SchemaError,
        "has the size 'k', which no argument gives",
    ),
    "no mapping": ("n -> n", ArgumentTypeError, "must be a mapping from functions to their dimensions"),
}


@pytest.mark.parametrize(("dims", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_fails_the_build(dims, error, message):
    operators = [Described(parse("ns::op(Tensor x) -> Tensor"), "my_op", {}, "ops.cpp:1")]
    with pytest.raises(error, match=message):
        with_dims(operators, dims)
