"""``check`` and ``polyop explain`` on C++ modules: crashes, written arguments, missing samples."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from polyop.call.explain import explain
from polyop.define.module.builder import CustomOpBuilder
from polyop.testing import check

SOURCE = """
#include "ms_extension.h"
namespace mindspore::pynative {
using P = BaseTensorPtr;

P New(const P &x) { return std::make_shared<BaseTensor>(x->data_type(), x->shape()); }

P SquareOfMatrix(const P &x) {
  if (x->shape().size() != 2) __builtin_trap();  // as an index out of range ends it
  auto out = New(x);
  custom::CustomLaunchAclnn("aclnnMul", {x, x}, {out});
  return out;
}

P SquareOfSmall(const P &x) {
  if (x->shape()[0] > 3) __builtin_trap();
  auto out = New(x);
  custom::CustomLaunchAclnn("aclnnMul", {x, x}, {out});
  return out;
}

P Crash(const P &x) { __builtin_trap(); }

P Increment(const P &x) {
  custom::CustomLaunchAclnn("aclnnInplaceAdds", {x, MakeValue<int64_t>(1), MakeValue<int64_t>(1)}, {});
  return x;
}

P Scaled(const P &x, double factor) {
  auto out = New(x);
  custom::CustomLaunchAclnn("aclnnMuls", {x, MakeValue(factor)}, {out});
  return out;
}

P Product(const P &x, const P &y) {
  auto out = New(x);
  custom::CustomLaunchAclnn("aclnnMul", {x, y}, {out});
  return out;
}
}  // namespace mindspore::pynative

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  using namespace mindspore::pynative;
  m.def("square_of_matrix", &SquareOfMatrix);
  m.def("square_of_small", &SquareOfSmall);
  m.def("crash", &Crash);
  m.def("increment", &Increment);
  m.def("increment_explained", &Increment);
  m.def("scaled", &Scaled, pybind11::arg("x"), pybind11::arg("factor"));
  m.def("product", &Product, pybind11::arg("x"), pybind11::arg("y"));
}
"""
LOADS = """
from polyop.define.module.builder import CustomOpBuilder
module = CustomOpBuilder("checked_ops", "ops.cpp").load()
scaled, product, increment = module.scaled, module.product, module.increment
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with the module's source, and a file that loads it."""
    path = tmp_path_factory.mktemp("checked")
    (path / "ops.cpp").write_text(SOURCE)
    (path / "loads.py").write_text(LOADS)
    return path


@pytest.fixture(scope="session")
def ops(folder):
    return CustomOpBuilder("checked_ops", str(folder / "ops.cpp")).load()


def result(report, name, host="numpy"):
    return next(r for r in report.results if (r.check, r.host) == (name, host))


def failures(report):
    return {(r.check, r.host) for r in report.results if r.status == "failed"}


def test_a_crash_for_other_ranks_fails_and_names_the_inputs(ops):
    report = check(ops.square_of_matrix, hosts=["numpy"], reference=lambda x: x * x, raise_on_failure=False)
    assert failures(report) == {("0-dimensional", "numpy")}
    detail = result(report, "0-dimensional").detail
    assert "must refuse inputs with an error, and not crash" in detail
    assert "when called with (float32[])" in detail


def test_a_crash_for_other_sizes_fails_and_stops_the_rest(ops):
    report = check(ops.square_of_small, hosts=["numpy"], raise_on_failure=False)
    assert failures(report) == {("inferred specs", "numpy")}
    assert "when called with (float32[5, 7])" in result(report, "inferred specs").detail
    assert result(report, "layouts").status == "not run"


def test_a_crash_for_the_sample_is_reported(ops):
    report = check(ops.crash, raise_on_failure=False)
    assert failures(report) == {("no crash", "native")}


def test_an_in_place_function_is_checked_before_its_first_call(ops):
    def reference(x):
        x += 1

    report = check(ops.increment, reference=reference)
    assert result(report, "inferred specs").status == "passed"
    assert result(report, "declared writes").status == "passed"
    assert str(ops.increment.schema) == "checked_ops::increment(Tensor(a!) arg0) -> Tensor(a!)"


def test_explain_learns_which_arguments_are_written(ops):
    from polyop.core.dtypes import dtype
    from polyop.core.spec import Spec

    text = explain(ops.increment_explained, (Spec((2,), dtype("float32")),))
    assert text.startswith("checked_ops::increment_explained(Tensor(a!) arg0) -> Tensor(a!)\n")
    assert "outputs     none\n" in text
    x = np.zeros(2, np.float32)
    ops.increment_explained(x)
    assert x.tolist() == [1, 1]


def run(folder, *arguments):
    command = [sys.executable, "-m", "polyop", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("scaled", "--input", "float32[2]"),
            "needs the attribute 'factor' (Tensor x, float factor) -> Tensor",
        ),
        (("scaled", "--input", "float32[2]"), "give its value, as --attribute factor=VALUE"),
        (("scaled", "--input", "float32[2]", "--attribute", "factor=2"), "outputs     float32[2]\n"),
        (("scaled", "--input", "float32[2]", "--attribute", "factor=two"), "argument factor"),
        (("product", "--input", "float32[2]"), "needs the input 'y' (Tensor x, Tensor y) -> Tensor"),
        (("product", "--input", "float32[2]"), "give a spec for each tensor, in order, as --input"),
        (("product", *["--input", "float32[2]"] * 3), "takes 2 tensors (Tensor x, Tensor y) -> Tensor, but got 3"),
        (("product", "--attribute", "factor=2"), "--attribute: must name an attribute: there are none"),
        (("scaled", "--attribute", "factor"), "--attribute: must look like factor=2.0, but got 'factor'"),
    ],
)  # fmt: skip
def test_explain_names_missing_and_wrong_arguments(folder, arguments, message):
    name, *rest = arguments
    done = run(folder, "explain", "loads.py", f"checked_ops::{name}", *rest)
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_check_says_how_to_give_a_required_attribute_and_goes_on(folder):
    done = run(folder, "check", "loads.py", "--host", "numpy")
    assert done.returncode == 1
    assert "checked_ops::scaled: needs a value for its attribute 'factor'" in done.stderr
    assert 'polyop_samples = {"checked_ops::scaled": {"factor": ...}}' in done.stderr
    assert "checked_ops::square_of_small" in done.stdout  # which comes after it
    (folder / "sampled.py").write_text(
        f'{LOADS}polyop_samples = {{"checked_ops::scaled": {{"factor": 2.0}}}}\n'
    )
    done = run(folder, "check", "sampled.py:scaled", "--host", "numpy")
    assert done.returncode == 0, done.stdout + done.stderr
