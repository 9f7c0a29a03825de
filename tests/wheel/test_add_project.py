"""examples/14_add_wheel, installed beside polyop's wheel alone; and the operator in its original form."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import sysconfig

import pytest
from polyop_wheels import HERE, outside, pip, polyop_wheel
from wheel_tools import build, run

PROJECT = pathlib.Path(__file__).parents[2] / "examples" / "14_add_wheel"


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("add") / "project"
    unwanted = shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(PROJECT, folder, ignore=unwanted)
    return folder


@pytest.fixture(scope="session")
def fresh(project, tmp_path_factory):
    """The Python of a new environment with the two wheels; frameworks come from this environment."""
    python, polyop = polyop_wheel()
    folder = tmp_path_factory.mktemp("fresh") / "env"
    outside(python, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    new = folder / "bin" / "python"
    outside(*pip(HERE), "--python", new, "install", "-q", polyop, build(project), cwd=folder.parent)
    [site] = folder.glob("lib/python*/site-packages")
    (site / "frameworks.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")  # looked in last
    return new


@pytest.mark.slow
def test_numpy_pytorch_and_jax_call_it(fresh, project, without_compilers):
    for name in ("torch", "jax"):
        pytest.importorskip(name, reason=f"not run: {name} is not installed")
    command = ("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "test/test_add_custom.py")
    printed = outside(fresh, *command, cwd=project, **without_compilers)
    assert "3 passed" in printed and "skipped" not in printed, printed


@pytest.mark.slow
def test_only_the_wheels_are_used(fresh, project, without_compilers):
    program = (
        "import custom_ops, polyop, json, sys; lib = custom_ops.custom_ops_lib\n"
        "print(json.dumps([polyop.__file__, str(lib.library.path), lib.add_custom.name, list(sys.modules)]))"
    )
    at, library, name, modules = json.loads(outside(fresh, "-c", program, cwd=project, **without_compilers))
    environment = str(fresh.parents[1])
    assert at.startswith(environment) and library.startswith(environment)
    assert name == "myops::my_op"
    assert not {"torch", "jax", "mindspore", "setuptools"} & set(modules)


@pytest.mark.slow
def test_graph_mode(fresh, project, without_compilers):
    for name in ("torch", "jax"):
        pytest.importorskip(name, reason=f"not run: {name} is not installed")
    npu = os.environ.get("POLYOP_TORCH_NPU", "")
    here = npu or importlib.util.find_spec("torch_npu")
    variables = {"PYTHONPATH": npu, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = ("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "test/test_add_custom_graph.py")
    printed = outside(fresh, *command, cwd=project, **without_compilers, **variables)
    assert re.search(r"3 passed" if here else r"2 passed, 1 skipped", printed), printed
    if not here:
        assert "no graph is built: torchair: is part of torch-npu, which is not installed" in printed
        pytest.skip("not run: the GE graph; POLYOP_TORCH_NPU names no folder with torch-npu")


CHECKED = """
import json, sys
import {module}
from polyop.testing import check
report = check({operator}, hosts=["numpy", "torch"], raise_on_failure=False)
print("REPORT", json.dumps([[one.check, one.host, one.status, one.detail] for one in report.results]))
"""


def checked(module, operator, folder, **environment):
    program = CHECKED.format(module=module, operator=operator)
    done = run("-W", "ignore", "-c", program, cwd=folder, **environment)
    return json.loads(done.stdout.partition("REPORT ")[2])


def failures(results):
    return [tuple(one) for one in results if one[2] == "failed"]


@pytest.mark.slow
def test_check_passes(fresh, project):
    pytest.importorskip("torch", reason="not run: PyTorch is not installed")
    [site] = fresh.parents[1].glob("lib/python*/site-packages")
    results = checked("custom_ops_lib", "custom_ops_lib.add_custom", project, PYTHONPATH=str(site))
    assert not failures(results)
    ran = {tuple(one[:2]) for one in results if one[2] == "passed"}
    assert {("inputs unchanged", "numpy"), ("gradient", "torch"), ("opcheck", "torch")} <= ran


# The same operator as operator-wheel projects print it: the result is the input under another name.
PRINTED = """
at::Tensor my_op_impl_npu(const at::Tensor& self, const at::Tensor& other) {
  at::Tensor result = at::Tensor(self);
  EXEC_NPU_CMD(aclnnAddCustom, self, other, result);
  return result;
}
std::tuple<at::Tensor, at::Tensor> my_op_backward_impl_npu(const at::Tensor& self) {
  at::Tensor result = at::Tensor(self);
  return {result, result};
}
at::Tensor my_op_impl_meta(const at::Tensor& self, const at::Tensor& other) { return empty_like(self); }
"""
FOR_PYTORCH = f"""
#include <torch/extension.h>
#include "pytorch_npu_helper.hpp"
using at::empty_like;
{PRINTED}
TORCH_LIBRARY(printedops, m) {{
  m.def("my_op(Tensor self, Tensor other) -> Tensor");
  m.def("my_op_backward(Tensor self) -> (Tensor, Tensor)");
}}
TORCH_LIBRARY_IMPL(printedops, PrivateUse1, m) {{
  m.impl("my_op", &my_op_impl_npu);
  m.impl("my_op_backward", &my_op_backward_impl_npu);
}}
TORCH_LIBRARY_IMPL(printedops, Meta, m) {{ m.impl("my_op", &my_op_impl_meta); }}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("add_custom", &my_op_impl_npu, "x + y"); }}
"""
FOR_POLYOP = f"""
#include <polyop/library.h>
namespace at {{
using polyop::Tensor;
using polyop::empty_like;
}}
using at::empty_like;
static void add(const at::Tensor& x, const at::Tensor& y, at::Tensor& z) {{
  for (size_t i = 0; i < z.numel(); ++i) z.data_ptr<float>()[i] = x.data_ptr<float>()[i] + y.data_ptr<float>()[i];
}}
#define EXEC_NPU_CMD(name, ...) add(__VA_ARGS__)
{PRINTED}
POLYOP_LIBRARY(printedops, m) {{
  m.def("my_op(Tensor self, Tensor other) -> Tensor");
  m.def("my_op_backward(Tensor self) -> (Tensor, Tensor)");
}}
POLYOP_LIBRARY_IMPL(printedops, CPU, m) {{
  m.impl("my_op", &my_op_impl_npu);
  m.impl("my_op_backward", &my_op_backward_impl_npu);
}}
POLYOP_LIBRARY_IMPL(printedops, Meta, m) {{ m.impl("my_op", &my_op_impl_meta); }}
"""
UNDECLARED = "self: an input must not be written unless the schema says Tensor(a!) self, but got a write"


@pytest.mark.slow
def test_check_reports_the_printed_form_in_a_library(tmp_path):
    (tmp_path / "printed.cpp").write_text(FOR_POLYOP)
    (tmp_path / "printed.py").write_text("import polyop\nlib = polyop.load_library('printed.cpp')\n")
    failed = failures(checked("printed", "printed.lib.my_op", tmp_path))
    assert [one[3] for one in failed] == [UNDECLARED]
    mended = FOR_POLYOP.replace("result = at::Tensor(self);\n  EXEC", "result = empty_like(self);\n  EXEC")
    (tmp_path / "printed.cpp").write_text(mended)
    assert not failures(checked("printed", "printed.lib.my_op", tmp_path))


@pytest.mark.slow
def test_check_reports_the_printed_form_in_rehearsal(tmp_path):
    pytest.importorskip("torch", reason="not run: PyTorch is not installed")
    (tmp_path / "extension_add.cpp").write_text(FOR_PYTORCH)
    rehearse = {"POLYOP_ASCEND": "rehearse"}
    run("-m", "polyop", "build", "extension_add.cpp", "-o", "custom_lib.so", cwd=tmp_path, **rehearse)
    (tmp_path / "printed.py").write_text(
        "import torch, custom_lib, polyop\nmy_op = polyop.aten('printedops::my_op')\n"
    )
    failed = failures(checked("printed", "printed.my_op", tmp_path, **rehearse))
    assert failed == [("inputs unchanged", "numpy", "failed", UNDECLARED)]
