"""``OperatorExtension`` and ``BuildExtension`` in a setup.py."""

import json
import re

import pytest
from wheel_tools import build, contents, install, run

from polyop.core.errors import ArgumentTypeError, ArgumentValueError
from polyop.wheel import BuildExtension, OperatorExtension

SETUP = """
import os
from setuptools import setup, find_packages
from polyop.wheel import BuildExtension, OperatorExtension

USE_NINJA = os.getenv('USE_NINJA') == '1'
exts = []
ext1 = OperatorExtension(
    name="custom_ops_lib",
    sources=["./csrc/extension_add.cpp", "./csrc/register.cpp"],
    extra_compile_args = [
        '-I' + os.path.join(os.getcwd(), "acl/inc"),
    ],
    MORE
)
exts.append(ext1)

setup(
    name="custom_ops",
    version='1.0',
    keywords='custom_ops',
    ext_modules=exts,
    packages=find_packages(),
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=USE_NINJA)},
)
"""
REGISTER = """
#include <polyop/library.h>
POLYOP_LIBRARY(custom_ops_ns, m) {
  m.def("my_op(Tensor self, int[2] size=[1, 2], str? how=None) -> Tensor[]");
  m.def("count(int n) -> Tensor");
}
"""
ADD = """
#include <polyop/library.h>
#include "acl_times.h"
using polyop::Tensor;
std::vector<Tensor> my_op(const Tensor& self, std::vector<int64_t> size, std::optional<std::string>) {
  Tensor y = polyop::empty_like(self);
  for (size_t i = 0; i < y.numel(); ++i) y.data_ptr<double>()[i] = ACL_TIMES * size[1] * self.data_ptr<double>()[i];
  return {y};
}
Tensor count(int64_t n) {
  Tensor y = polyop::empty({n}, polyop::kDouble);
  for (int64_t i = 0; i < n; ++i) y.data_ptr<double>()[i] = OFFSET + i;
  return y;
}
POLYOP_LIBRARY_IMPL(custom_ops_ns, CPU, m) { m.impl("my_op", &my_op); m.impl("count", &count); }
"""


def project(folder, more="", **changed):
    files = {
        "setup.py": SETUP.replace("MORE", more),
        "csrc/register.cpp": REGISTER,
        "csrc/extension_add.cpp": ADD,
        "acl/inc/acl_times.h": "#define ACL_TIMES 5\n",
        "custom_ops/add_custom.py": "import custom_ops_lib\n\ndef add_custom(self, other):\n"
        "    return custom_ops_lib.add_custom(self, other)\n",
        "custom_ops/__init__.py": "import custom_ops_lib\nfrom .add_custom import add_custom\n",
        **{name.replace("__", "/", 1) + ".cpp": text for name, text in changed.items()},
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def failure(folder):
    done = run("-W", "ignore", "setup.py", "-q", "build_ext", "--inplace", cwd=folder, check=False)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.slow
def test_a_setup_py_with_two_sources_and_names_of_its_own(tmp_path):
    more = 'names={"add_custom": "my_op"}, define_macros=[("OFFSET", "40")],'
    wheel = build(project(tmp_path / "p", more))
    assert wheel.name.startswith("custom_ops-1.0-py3-none-manylinux_")
    files = contents(wheel)
    assert "custom_ops_lib/libcustom_ops_lib.so" in files
    stubs = files["custom_ops_lib/__init__.pyi"].decode()
    assert (
        "def add_custom(self: _Tensor, size: Sequence[int] = (1, 2,), how: str | None = None) -> list[_Tensor]:"
        in stubs
    )
    assert "def count(n: int) -> Any:" in stubs
    operators = json.loads(files["custom_ops_lib/operators.json"])["operators"]
    assert [one["function"] for one in operators] == ["add_custom", "count"]
    program = """
import numpy as np, custom_ops, custom_ops_lib
[y] = custom_ops.add_custom(np.array([1.0, 2.0]), [0, 3])
assert y.tolist() == [15.0, 30.0] and custom_ops_lib.count(2).tolist() == [40.0, 41.0]
"""
    run("-c", program, PYTHONPATH=str(install(wheel, tmp_path / "t")))


@pytest.mark.slow
def test_an_extension_for_python_beside_it_keeps_the_tag_of_this_python(tmp_path):
    folder = project(tmp_path / "p", 'define_macros=[("OFFSET", "1")],')
    (folder / "plain.c").write_text(
        '#include <Python.h>\nstatic struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "plain", 0, -1, 0};\n'
        "PyMODINIT_FUNC PyInit_plain(void) { return PyModule_Create(&def); }\n"
    )
    text = (folder / "setup.py").read_text().replace("import setup,", "import Extension, setup,")
    text = text.replace("exts.append(ext1)", "exts += [ext1, Extension('plain', ['plain.c'])]")
    (folder / "setup.py").write_text(text)
    wheel = build(folder)
    assert re.match(r"custom_ops-1\.0-cp3\d+-cp3\d+-linux_", wheel.name)
    assert "custom_ops_lib/libcustom_ops_lib.so" in contents(wheel)
    run("-c", "import plain, custom_ops_lib", PYTHONPATH=str(install(wheel, tmp_path / "t")))


@pytest.mark.slow
def test_names_that_are_no_operators(tmp_path):
    more = 'names={"f": "my_opp"}, define_macros=[("OFFSET", "1")],'
    text = failure(project(tmp_path, more))
    assert "must name operators, but got 'my_opp'" in text and "there are custom_ops_ns::my_op" in text


@pytest.mark.slow
def test_a_schema_that_disagrees_fails_the_build(tmp_path):
    register = REGISTER.replace("count(int n)", "count(str n)")
    text = failure(project(tmp_path, 'define_macros=[("OFFSET", "1")],', csrc__register=register))
    assert "the schema and the C++ function for CPU disagree" in text
    assert "count(str n) -> Tensor" in text and "csrc/extension_add.cpp:" in text


PYTORCH = """
#include <torch/extension.h>
at::Tensor twice(const at::Tensor& x) { return x + x; }
TORCH_LIBRARY(wheel_tests, m) { m.def("twice(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(wheel_tests, CPU, m) { m.impl("twice", &twice); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add_custom", [](at::Tensor x, at::Tensor y) { return twice(x) + y; }); }
"""


@pytest.mark.slow
def test_sources_for_pytorch_become_a_module_for_one_python(tmp_path):
    folder = project(tmp_path / "p", csrc__register=PYTORCH, csrc__extension_add="// nothing here\n")
    wheel = build(folder)
    assert re.match(r"custom_ops-1\.0-cp3\d+-cp3\d+-linux_", wheel.name)
    program = """
import torch, custom_ops
x = torch.ones(2)
assert custom_ops.add_custom(x, x).tolist() == [3.0, 3.0]
assert torch.ops.wheel_tests.twice(x).tolist() == [2.0, 2.0]
"""
    run("-c", program, PYTHONPATH=str(install(wheel, tmp_path / "t")))
    metadata = contents(wheel)["custom_ops-1.0.dist-info/METADATA"].decode()
    version = ".".join(run("-c", "import torch; print(torch.__version__)").stdout.split(".")[:2])
    assert f"Requires-Dist: torch=={version}.*\n" in metadata
    run("-m", "polyop", "audit", wheel)
    for more, message in (
        ('docs={"f": "."},', "docs and dims are not for PyTorch's sources"),
        ('names={"f": "twice"},', "names are not for a module of Python, which names its own functions"),
    ):
        project(folder, more, csrc__register=PYTORCH, csrc__extension_add="// nothing here\n")
        assert message in failure(folder)


@pytest.mark.slow
def test_a_module_of_another_name_fails_the_build(tmp_path):
    wrong = PYTORCH.replace("TORCH_EXTENSION_NAME", "_C")
    text = failure(project(tmp_path, csrc__register=wrong, csrc__extension_add="// nothing here\n"))
    assert "its PYBIND11_MODULE must be called custom_ops_lib, which is imported, but got _C" in text
    assert "write PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)" in text


@pytest.mark.parametrize(
    ("arguments", "flags", "kind", "message"),
    [
        (("a-b", ["x.cpp"]), [], ArgumentValueError, "must be one that import takes, but got 'a-b'"),
        (("a", "x.cpp"), [], ArgumentTypeError, "OperatorExtension a: needs a list of sources"),
        (("a", []), [], ArgumentTypeError, "needs a list of sources"),
        (
            ("a", ["x.cpp"]),
            "-O2 -g",
            ArgumentTypeError,
            r"must be a list of flags, but got '-O2 -g'\n  write \['-O2', '-g'\]",
        ),
        (("a", ["x.cpp"]), {"gcc": []}, ArgumentValueError, "has the keys cxx and nvcc, but got 'gcc'"),
    ],
)
def test_arguments_that_are_refused(arguments, flags, kind, message):
    with pytest.raises(kind, match=message):
        OperatorExtension(*arguments, extra_compile_args=flags)


def test_flags():
    extension = OperatorExtension(
        "a",
        ["x.cpp"],
        extra_compile_args={"cxx": ["-O2"], "nvcc": ["-lineinfo"]},
        define_macros=[("A", "1"), ("B", None)],
        library_dirs=["lib"],
        libraries=["m"],
        extra_link_args=["-Wl,-z,now"],
    )
    assert extension.compile_flags() == ["-DA=1", "-DB", "-O2", "-lineinfo"]
    assert extension.link_flags() == ["-Llib", "-lm", "-Wl,-z,now"]


def test_options_of_the_command():
    assert BuildExtension.with_options(use_ninja=True) is BuildExtension
    with pytest.raises(ArgumentTypeError, match="takes use_ninja and no_python_abi_suffix, but got fast"):
        BuildExtension.with_options(fast=True)


USED = [
    "_polyop",
    "_pathlib",
    "polyop",
    "Any",
    "TypeVar",
    "Sequence",
    "_Tensor",
    "int",
    "list",
    "str",
    "float",
]
ARGUMENTS = (
    "Tensor _polyop, int int=2, str library='Any', Tensor? _Tensor=None, int[] self=[], *, float float=1"
)
TWICE = """
std::vector<Tensor> twice(const Tensor& x, int64_t n, std::string, std::optional<Tensor>, std::vector<int64_t>,
                          double) {
  Tensor y = polyop::empty_like(x);
  y.data_ptr<double>()[0] = n * x.data_ptr<double>()[0];
  return {y};
}
"""


@pytest.mark.slow
def test_names_that_the_package_needs_itself(tmp_path):
    defined = "".join(f'  m.def("{name}({ARGUMENTS}) -> Tensor[]");\n' for name in USED)
    added = "".join(f'  m.impl("{name}", &twice);\n' for name in USED)
    register = REGISTER.replace("  m.def", defined + "  m.def", 1)
    add = ADD.replace("Tensor count", TWICE + "Tensor count").replace("m.impl", added + "  m.impl", 1)
    folder = project(
        tmp_path / "p", 'define_macros=[("OFFSET", "1")],', csrc__register=register, csrc__extension_add=add
    )
    (folder / "custom_ops" / "__init__.py").write_text("")
    site = install(build(folder), tmp_path / "t")
    program = f"""
import numpy as np, custom_ops_lib
for name in {USED}:
    [y] = getattr(custom_ops_lib, name)(np.array([3.0]))
    assert y.tolist() == [6.0], name
    [y] = getattr(custom_ops_lib, name)(_polyop=np.array([3.0]), int=5, library="x", self=[1])
    assert y.tolist() == [15.0], name
assert custom_ops_lib.count(1).tolist() == [1.0]
"""
    run("-c", program, PYTHONPATH=str(site))
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "use.py").write_text(
        "import custom_ops_lib as ops\n"
        + "".join(f"good_{i}: list[bytes] = ops.{name}(b'', int=1)\n" for i, name in enumerate(USED))
        + "ops.int(b'', int='x')\n"
    )
    done = run("-m", "mypy", "--no-incremental", "use.py", cwd=tmp_path, check=False, MYPYPATH=str(site))
    assert re.findall(r"^(.*\.pyi?):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M) == [
        ("use.py", str(len(USED) + 2), "arg-type")
    ], done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lambda", "None", "library", "__file__", "a-b"])
def test_names_that_python_does_not_take(tmp_path, name):
    text = failure(project(tmp_path, f'names={{"{name}": "my_op"}}, define_macros=[("OFFSET", "1")],'))
    assert "custom_ops_ns::my_op: must have a Python name that is free: no keyword" in text
    assert f"but got '{name}'" in text and "csrc/register.cpp:4" in text
    assert "OperatorExtension(names={...}) gives it another" in text
