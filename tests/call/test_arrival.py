"""Operators are in ``torch.ops`` when PyTorch is imported after them; each program is a process of its own."""

import subprocess
import sys

import pytest

DEFINE = """
import sys, threading, warnings
import numpy as np
import polyop

def waiting():  # for PyTorch; Paddle and DTensors, which a program imports later, are waited for as well
    names = [f._name for f in sys.meta_path if type(f).__name__ == "Arrival"]
    return [name for name in names if name not in ("torch.distributed.tensor", "paddle")]

def define(name):
    return polyop.operator(f"{name}(Tensor x) -> Tensor", lambda x: x * 2, infer="x", batch="elementwise",
                           gradient=lambda x, out, dout: (dout * 2,))

op = define("arrival::double")
"""
CALL = "print(torch.ops.arrival.double(torch.ones(2)).tolist())\n"


def run(program, *options, folder=None):
    command = [sys.executable, *options, "-c", DEFINE + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines(), done.stderr


@pytest.mark.slow
def test_an_operator_is_in_torch_ops_before_any_call():
    lines, _ = run(f"""
print(waiting())
import torch
print(waiting(), torch.__spec__.loader is torch.__loader__, sorted(vars(torch.__loader__)))
{CALL}
x = torch.ones(2, requires_grad=True)
torch.ops.arrival.double(x).sum().backward()
print(x.grad.tolist())
print(torch.compile(torch.ops.arrival.double, fullgraph=True, backend="aot_eager")(torch.ones(1)).tolist())
""")
    assert lines == ["['torch']", "[] True ['name', 'path']", "[2.0, 2.0]", "[2.0, 2.0]", "[2.0]"]


@pytest.mark.slow
def test_a_library_by_schema(tmp_path):
    (tmp_path / "ops.cpp").write_text("""
#include "polyop/library.h"
static polyop::Tensor twice(const polyop::Tensor &x) {
  auto out = polyop::empty_like(x);
  for (int64_t i = 0; i < static_cast<int64_t>(x.numel()); ++i) out.data<float>()[i] = 2 * x.data<float>()[i];
  return out;
}
POLYOP_LIBRARY(vecops, m) { m.def("twice(Tensor x) -> Tensor"); }
POLYOP_LIBRARY_IMPL(vecops, CPU, m) { m.impl("twice", &twice); }
""")
    lines, _ = run(f"""
polyop.load_library({str(tmp_path / "ops.cpp")!r})
import torch
print(torch.ops.vecops.twice(torch.ones(2)).tolist())
""")
    assert lines == ["[2.0, 2.0]"]


@pytest.mark.slow
def test_looking_for_a_framework_changes_nothing():
    lines, _ = run(f"""
import importlib.util
plain = importlib.machinery.PathFinder.find_spec("torch")
for _ in range(2):
    spec = importlib.util.find_spec("torch")
print(type(spec.loader) is type(plain.loader), spec.origin == plain.origin, spec.loader.is_package("torch"))
print("torch" in sys.modules, "polyop.hosts.torch" in sys.modules, waiting())
import torch
{CALL}""")
    assert lines == ["True True True", "False False ['torch']", "[2.0, 2.0]"]


@pytest.mark.slow
def test_a_module_that_is_loaded_when_it_is_first_used():
    lines, _ = run(f"""
import importlib.util
spec = importlib.util.find_spec("torch")
spec.loader = importlib.util.LazyLoader(spec.loader)
torch = importlib.util.module_from_spec(spec)
sys.modules["torch"] = torch
spec.loader.exec_module(torch)
print("torch.nn" in sys.modules, waiting())
{CALL}print(waiting())
""")
    assert lines == ["False ['torch']", "[2.0, 2.0]", "[]"]


@pytest.mark.slow
def test_no_operators_no_host():
    lines, _ = run("""
del op
polyop.call.registry._named.clear()
import torch
print("polyop.hosts.torch" in sys.modules, waiting())
define("arrival::late")
print(torch.ops.arrival.late(torch.ones(1)).tolist())
""")
    assert lines == ["False []", "[2.0]"]


@pytest.mark.slow
def test_a_framework_that_was_there_before_is_not_waited_for():
    program = "import sys, torch, polyop; print([f._name for f in sys.meta_path if hasattr(f, '_name')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout.replace("torch.distributed.tensor", "")


@pytest.mark.slow
def test_threads_that_import_and_define():
    lines, _ = run("""
operators, failed, go = [], [], threading.Barrier(8)

def guarded(function):
    def run(k):
        try:
            go.wait()
            function(k)
        except BaseException as problem:
            failed.append(problem)
    return run

@guarded
def imports(k):
    import torch
    assert torch.ops.arrival.double(torch.ones(1)).item() == 2  # the import ends when the names are there

@guarded
def defines(k):
    for i in range(300):
        operators.append(define(f"arrival::f{k}_{i}"))
        assert operators[-1](np.ones(1)).item() == 2

threads = [threading.Thread(target=f, args=(k,), daemon=True) for k in range(4) for f in (imports, defines)]
for thread in threads: thread.start()
for thread in threads: thread.join(200)
print([thread.is_alive() for thread in threads].count(True), failed)
import torch
missing = [m.name for m in operators if not hasattr(torch.ops.arrival, m.schema.name)]
print(len(operators), missing, waiting())
""")
    assert lines == ["0 []", "1200 [] []"]


@pytest.mark.slow
@pytest.mark.parametrize("position", [0, 1])
def test_two_who_follow_the_same_import(position):
    lines, _ = run(f"""
import importlib.util
class Other:  # as other packages do it
    busy = False
    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.busy:
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        loader, run = spec.loader, spec.loader.exec_module
        def exec_module(module):
            run(module)
            print("other")
        loader.exec_module = exec_module
        return spec

sys.meta_path.insert({position}, Other())
import torch
{CALL}print(waiting())
""")
    assert lines == ["other", "[2.0, 2.0]", "[]"]


@pytest.mark.slow
def test_an_import_that_fails_is_waited_for_again(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('no such library')\n")
    lines, _ = run(
        f"""
sys.path.insert(0, {str(tmp_path)!r})
try:
    import torch
except OSError as problem:
    print(problem, waiting())
sys.path.remove({str(tmp_path)!r})
import torch
{CALL}""",
        folder=tmp_path.parent,
    )
    assert lines == ["no such library ['torch']", "[2.0, 2.0]"]


@pytest.mark.parametrize("options", [(), ("-W", "error")])
def test_an_error_of_polyop_is_a_warning(tmp_path, options):
    (tmp_path / "torch.py").write_text("__version__ = '0.1'\nclass Tensor: pass\n")
    lines, errors = run(
        f"""
sys.path.insert(0, {str(tmp_path)!r})
import torch
print(torch.__version__, waiting(), op(np.ones(1)))
""",
        *options,
    )
    assert lines == ["0.1 [] [2.]"]
    warning = "RuntimeWarning: polyop: its operators are not in torch yet: "
    assert (warning in errors) == (not options), errors


def test_without_pytorch(tmp_path):
    lines, _ = run("""
sys.path[:] = [p for p in sys.path if "site-packages" not in p]
sys.path_importer_cache.clear()
import importlib.util
print(importlib.util.find_spec("torch"))
try:
    import torch
except ModuleNotFoundError as problem:
    print(problem, problem.name, waiting())
print(op(np.ones(1)))
""")
    assert lines == ["None", "No module named 'torch' torch ['torch']", "[2.]"]


REFUSED = """
lib = polyop.Library("arrival_refused")
lib.define("f(Tensor x, str[] n=[]) -> Tensor")
lib.impl("f", lambda x, n: x + 1)
lib.fake("f", "x")
"""
WORDS = (
    "arrival_refused::f(Tensor x, str[] n=[]) -> Tensor: PyTorch does not take this schema: "
    "lists are only supported for float, int and complex types"
)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["REFUSED", "import torch"])
def test_a_schema_that_pytorch_refuses_is_refused_for_pytorch_alone(first):
    pytest.importorskip("jax", reason="JAX is not installed")
    parts = [REFUSED, "import torch\n"]
    lines, _ = run(
        "".join(parts if first == "REFUSED" else parts[::-1])
        + """
import jax.numpy as jnp
from polyop.call.explain import explain
print(lib["f"](np.ones(2)), lib["f"](jnp.ones(2)))
for ask in (lambda: lib["f"](torch.ones(2)), lambda: lib["f"].torch):
    try:
        ask()
    except ValueError as problem:
        print(str(problem).splitlines()[0])
print(hasattr(torch.ops.arrival_refused, "f"))
print(next(line for line in explain(lib["f"]).splitlines() if line.startswith("  torch")))
print(lib["f"](np.zeros(1)), torch.ops.arrival.double(torch.ones(1)).tolist())
"""
    )
    reason = WORDS.rpartition(": ")[2]
    no_torch = f"  torch       none: it does not take this schema: {reason}"
    assert lines == ["[2. 2.] [2. 2.]", WORDS, WORDS, "False", no_torch, "[1.] [2.0]"]
