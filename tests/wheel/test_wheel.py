"""A project of ``polyop new``: the wheel, its content, and its use without a compiler."""

import ast
import hashlib
import json
import platform
import re
import zipfile

import pytest
from wheel_tools import build, contents, install, run

CALLS = """
import sys, numpy as np, vecops
x, y = np.array([1.0, -2.0]), np.array([0.5, 4.0])
assert vecops.add_custom(x, y, alpha=2.0).tolist() == [2.0, 6.0]
assert not {"torch", "jax", "mindspore", "setuptools"} & set(sys.modules)
import torch
a, b = (torch.tensor(v, requires_grad=True) for v in (x, y))
vecops.add_custom(a, b, alpha=3.0).sum().backward()
assert a.grad.tolist() == [1.0, 1.0] and b.grad.tolist() == [3.0, 3.0]
import jax
grad = jax.jit(jax.grad(lambda v: vecops.add_custom(v, v * v, alpha=0.5).sum()))
assert grad(jax.numpy.asarray([1.0, -2.0])).tolist() == [2.0, -1.0]
print(vecops.library.path)
"""


@pytest.mark.slow
def test_one_wheel_for_every_python(wheel):
    assert re.fullmatch(r"vecops-0\.1\.0-py3-none-manylinux_2_\d+_\w+\.whl", wheel.name)
    files = set(contents(wheel))
    assert {name for name in files if ".dist-info" not in name} == {
        "vecops/__init__.py",
        "vecops/graph.py",
        "vecops/_ops/__init__.py",
        "vecops/_ops/__init__.pyi",
        "vecops/_ops/libops.so",
        "vecops/_ops/operators.json",
        "vecops/_ops/py.typed",
    }
    assert b"Requires-Dist: polyop\n" in contents(wheel)["vecops-0.1.0.dist-info/METADATA"]
    assert b"Root-Is-Purelib: false" in contents(wheel)["vecops-0.1.0.dist-info/WHEEL"]


@pytest.mark.slow
def test_it_runs_with_no_compiler(installed, without_compilers):
    done = run("-c", CALLS, PYTHONPATH=str(installed), **without_compilers)
    assert done.stdout.strip() == str(installed / "vecops" / "_ops" / "libops.so")


@pytest.mark.slow
def test_its_own_tests_pass_with_no_compiler(project, installed, without_compilers):
    done = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider",
        cwd=project, PYTHONPATH=str(installed), **without_compilers,
    )  # fmt: skip
    assert re.search(r"^7 passed", done.stdout, re.M), done.stdout


def test_setup_py_and_pip_give_the_same_library(project, wheel):
    before = contents(wheel)
    run("-W", "ignore", "setup.py", "-q", "build", "bdist_wheel", "-d", "again", cwd=project)
    [again] = (project / "again").iterdir()
    assert again.name == wheel.name
    assert contents(again)["vecops/_ops/libops.so"] == before["vecops/_ops/libops.so"]


def test_a_platform_of_the_command_line_is_used_and_audited(project, wheel):
    options = ["bdist_wheel", "-d", "asked", "--plat-name", f"manylinux_2_5_{platform.machine()}"]
    run("-W", "ignore", "setup.py", "-q", *options, cwd=project)
    [other] = (project / "asked").iterdir()
    assert other.name == f"vecops-0.1.0-py3-none-manylinux_2_5_{platform.machine()}.whl" != wheel.name
    done = run("-m", "polyop", "audit", other, check=False)
    assert done.returncode == 1 and "promises that 2.5 is enough" in done.stderr


def test_no_folder_of_the_builder_is_in_it(project, wheel):
    for name, content in contents(wheel).items():
        assert str(project).encode() not in content, name


def test_information(wheel):
    files = contents(wheel)
    record = json.loads(files["vecops/_ops/operators.json"])
    assert record["abi"] == 1 and record["library"] == "libops.so"
    assert record["sha256"] == hashlib.sha256(files["vecops/_ops/libops.so"]).hexdigest()
    first, second = record["operators"]
    assert first["schema"] == "vecops::add_custom(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor"
    assert set(first["implementations"]) == {"CPU", "Meta", "Autograd"} and first["gradient"]
    assert all(re.fullmatch(r"csrc/ops\.cpp:\d+", place) for place in first["implementations"].values())
    assert second["function"] == "add_custom_backward" and not second["gradient"]


def test_stubs_have_names_defaults_and_docstrings(wheel):
    tree = ast.parse(contents(wheel)["vecops/_ops/__init__.pyi"])
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert list(functions) == ["add_custom", "add_custom_backward"]
    add = functions["add_custom"]
    assert ast.unparse(add.args) == "x: _Tensor, y: _Tensor, *, alpha: float=1.0"
    assert ast.unparse(add.returns) == "_Tensor"
    assert ast.get_docstring(add).startswith("Return x + alpha * y, for tensors of one shape.\n\n``vecops::")
    assert ast.unparse(functions["add_custom_backward"].returns) == "tuple[_Tensor, _Tensor]"


def test_docstrings_are_there_at_run_time(installed):
    program = (
        "import sys, vecops, polyop; print(vecops.add_custom.__doc__)\n"
        "from polyop.call.explain import explain; print(explain(vecops.add_custom))\n"
        "vecops.add_custom.update(vecops.add_custom.operator); print(vecops.add_custom.__doc__)\n"
    )
    lines = run("-c", program, PYTHONPATH=str(installed)).stdout.splitlines()
    first = "Return x + alpha * y, for tensors of one shape."
    assert lines[0] == lines[-1] == first
    assert f"  about       {first}" in lines


def test_type_checkers_read_the_stubs(installed, tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "use.py").write_text(
        "import vecops\n"
        "good: list[int] = vecops.add_custom([1], [2], alpha=0.5)\n"
        "vecops.add_custom([1], [2], 0.5)\n"
        "vecops.add_custom([1], [2], alpha='x')\n"
    )
    site = {"MYPYPATH": str(installed)}
    done = run("-m", "mypy", "--no-incremental", "use.py", cwd=tmp_path, check=False, **site)
    errors = re.findall(r"^use\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M)
    assert errors == [("3", "call-arg"), ("4", "arg-type")], done.stdout


@pytest.mark.slow
def test_two_versions_in_one_process(project, wheel, installed, tmp_path):
    newer = tmp_path / "newer"
    newer.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "csrc/ops.cpp", "src/vecops/__init__.py"):
        (newer / name).parent.mkdir(parents=True, exist_ok=True)
        text = (project / name).read_text().replace("0.1.0", "0.2.0")
        (newer / name).write_text(text.replace("T(alpha) * b[i]", "T(alpha) * b[i] + 100"))
    second = install(build(newer), tmp_path / "second")
    program = f"""
import numpy as np, polyop, vecops, torch
old = polyop.load_library({str(installed / "vecops/_ops/libops.so")!r}, namespaces={{"vecops": "vecops_v1"}})
x = np.ones(2)
assert vecops.add_custom(x, x).tolist() == [102.0, 102.0]
assert old.add_custom(x, x).tolist() == [2.0, 2.0]
t = torch.ones(2, requires_grad=True)
torch.ops.vecops_v1.add_custom(t, t, alpha=4.0).sum().backward()
assert t.grad.tolist() == [5.0, 5.0]
"""
    run("-c", program, PYTHONPATH=str(second))


@pytest.mark.slow
@pytest.mark.parametrize("order", ["vecops, torch", "torch, vecops"])
def test_pytorch_has_the_operators_in_any_order_of_imports(installed, order):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    program = (
        f"import {order}; x = torch.ones(2); print(torch.ops.vecops.add_custom(x, x, alpha=2.0).tolist())"
    )
    assert run("-c", program, PYTHONPATH=str(installed)).stdout.strip() == "[3.0, 3.0]"


@pytest.mark.slow
def test_in_place(project, tmp_path):
    copy = tmp_path / "copy"
    for path in sorted(project.rglob("*")):
        if path.is_file() and path.relative_to(project).parts[0] in (
            "src",
            "csrc",
            "setup.py",
            "pyproject.toml",
            "README.md",
        ):
            target = copy / path.relative_to(project)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    run("-W", "ignore", "setup.py", "-q", "build_ext", "--inplace", cwd=copy)
    assert (copy / "src/vecops/_ops/libops.so").is_file()
    run("-c", "import vecops", cwd=copy, PYTHONPATH=str(copy / "src"))


def test_a_damaged_library_is_named(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "vecops/_ops/libops.so").write_bytes(b"no library")
    done = run("-c", "import vecops", PYTHONPATH=str(tmp_path), check=False)
    assert done.returncode == 1 and "LibraryError" in done.stderr and "libops.so" in done.stderr
