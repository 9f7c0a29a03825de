"""One operator library, the same file, in every Python and with more than one PyTorch.

``POLYOP_OTHER_TORCH`` names a Python that has another PyTorch than the one that runs the tests:
an environment with ``pip install torch==2.10.0``, which brings CUDA's libraries along.
"""

import hashlib
import json
import os
import subprocess
import sys

import pytest
from polyop_wheels import outside, pip, polyop_wheel
from wheel_tools import contents, run

PYTHONS = ("3.10", "3.11", "3.13")  # the oldest, that of the tests, the newest: a core is compiled for each

IN_NUMPY = """
import hashlib, json, pathlib, sys
import numpy as np
import polyop, vecops
x, y = np.array([1.0, -2.0, 0.5]), np.array([0.5, 4.0, 8.0], np.float64)
out, pull = vecops.add_custom.vjp(x, y, alpha=0.25)
try:
    vecops.add_custom(x, y[:2])
except polyop.PolyopError as problem:
    refusal = str(problem)
facts = {
    "python": "%d.%d" % sys.version_info[:2],
    "polyop": polyop.__file__,
    "hash": hashlib.sha256(pathlib.Path(vecops.library.path).read_bytes()).hexdigest(),
    "values": vecops.add_custom(x, y, alpha=2.0).tolist(),
    "gradients": [each.tolist() for each in pull(np.ones(3))[:2]],
    "refusal": refusal,
}
"""
IN_TORCH = """
import torch
a, b = (torch.tensor(each, requires_grad=True) for each in (x, y))
vecops.add_custom(a, b, alpha=3.0).sum().backward()
step = torch.compile(lambda a: torch.ops.vecops.add_custom(a, a * a, alpha=0.5), fullgraph=True, backend="aot_eager")
[through] = torch.autograd.grad(step(a).sum(), a)
facts |= {
    "torch": torch.__version__,
    "backward": [a.grad.tolist(), b.grad.tolist()],
    "compiled": through.tolist(),
    "checked": torch.autograd.gradcheck(vecops.add_custom, (a, b)),
}
"""
PRINT_FACTS = "print('FACTS', json.dumps(facts))"


def facts_of(python, version, wheels, program, folder):
    """Install the wheels, and what they require, into a folder; return the facts that the program prints."""
    outside(*pip(version), "install", "-q", "--target", folder, *wheels, cwd=folder.parent)
    paths = {"PYTHONPATH": str(folder), "POLYOP_CACHE_DIR": str(folder / "cache")}
    facts = json.loads(outside(python, "-c", program, cwd=folder.parent, **paths).partition("FACTS ")[2])
    assert facts["polyop"].startswith(str(folder))
    return facts


def library_hash(wheel):
    return hashlib.sha256(contents(wheel)["vecops/_ops/libops.so"]).hexdigest()


@pytest.mark.slow(more=6)
@pytest.mark.parametrize("version", PYTHONS)
def test_every_python_loads_the_same_file(version, wheel, tmp_path):
    python, polyop = polyop_wheel(version)
    facts = facts_of(python, version, [polyop, wheel], IN_NUMPY + PRINT_FACTS, tmp_path / "site")
    assert facts["python"] == version
    assert facts["hash"] == library_hash(wheel)
    assert facts["values"] == [2.0, 6.0, 16.5]
    assert facts["gradients"] == [[1.0, 1.0, 1.0], [0.25, 0.25, 0.25]]
    assert "add_custom takes tensors of one shape" in facts["refusal"]


def right_with_torch(facts, wheel):
    assert facts["hash"] == library_hash(wheel)
    assert facts["backward"] == [[1.0, 1.0, 1.0], [3.0, 3.0, 3.0]]
    assert facts["compiled"] == [2.0, -1.0, 1.5]  # 1 + x
    assert facts["checked"] is True


@pytest.mark.slow(more=2)
def test_the_pytorch_that_is_installed_loads_it(wheel, installed):
    torch = pytest.importorskip("torch", reason="not run: PyTorch is not installed")
    done = run("-c", IN_NUMPY + IN_TORCH + PRINT_FACTS, PYTHONPATH=str(installed))
    facts = json.loads(done.stdout.partition("FACTS ")[2])
    assert facts["torch"] == torch.__version__
    right_with_torch(facts, wheel)


def test_another_pytorch_loads_the_same_file(wheel, tmp_path):
    python = os.environ.get("POLYOP_OTHER_TORCH")
    if not python:
        pytest.skip("not run: POLYOP_OTHER_TORCH names no Python with another PyTorch, such as 2.10")
    ask = "import sys, torch; print('%d.%d' % sys.version_info[:2], torch.__version__)"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    version, other = done.stdout.split()
    if "torch" in sys.modules:
        assert other != sys.modules["torch"].__version__
    facts = facts_of(
        python,
        version,
        [polyop_wheel(version)[1], wheel],
        IN_NUMPY + IN_TORCH + PRINT_FACTS,
        tmp_path / "site",
    )
    assert facts["torch"] == other
    right_with_torch(facts, wheel)
