"""``check`` on the devices of a mesh: what holds passes, and a false claim is named with its placement."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec
from polyop.sharding.of_call import sharding_rule
from polyop.testing import check
from polyop.testing.mesh import placements

SUPPORT = pathlib.Path(__file__).parents[1] / "support"
PROGRAM = """
import json, sys, numpy as np, polyop
from polyop.testing import check, mesh
sys.modules["polyop.testing.check"].CHECKS = mesh.CHECKS
from twelve_operators import twelve_operators

def neighbours(x, width):
    y = 0 * x
    y[width:-width] = x[:-2 * width] + x[2 * width:]
    return y

def define(name, kernel, schema="(Tensor x) -> Tensor", **claims):
    return polyop.operator(f"meshes_check::{name}{schema}", kernel, **claims)

two = "(Tensor x, Tensor b) -> Tensor"
operators = {
    "rows": define("rows", lambda x: x.cumsum(-1), dims="m n -> m n", parallel="m"),
    "columns": define("columns", lambda x: x.cumsum(-1), dims="m n -> m n", parallel="m n"),
    "total": define("total", lambda x: x.sum(0), dims="m n -> n", parallel="n", sum="m"),
    "bias": define("bias", lambda x, b: x.sum(0) + b, two, dims="m n, n -> n", parallel="n", sum="m"),
    "largest": define("largest", lambda x: x.max(0), dims="m n -> n", parallel="n", max="m"),
    "smallest": define("smallest", lambda x: x.max(0), dims="m n -> n", parallel="n", min="m"),
    "near": define("near", lambda x: neighbours(x, 1), dims="n -> n", halo={"n": (1, 1)}),
    "far": define("far", lambda x: neighbours(x, 2), dims="n -> n", halo={"n": (1, 1)}),
    "gradient": define("gradient", lambda x: x * 2, dims="m n -> m n", parallel="m n",
                       gradient=lambda x, y, d: (d * 2,)),
    "unclaimed": define("unclaimed", lambda x: x * 2, infer="x"),
    "uncut": define("uncut", lambda x: x * 2, dims="m n -> m n"),
}
loops = {s.name: s for s in twelve_operators() if s.name in ("embedding", "window")}
operators |= {name: sample.operator for name, sample in loops.items()}
vector = np.arange(12.0, dtype=np.float32) + 1
for name, operator in operators.items():
    inputs = (vector,) if name in ("near", "far") else loops[name].inputs if name in loops else ()
    report = check(operator, *inputs, hosts=HOSTS, raise_on_failure=False)
    print("ROW", json.dumps([name, {r.host: [r.status, r.detail] for r in report.results if r.check == "mesh"}]))
"""
CASES = {  # status and words by operator; {} is the number of devices
    "rows": ("passed", "placements on"),
    "columns": ("failed", r'on \d devices with x S\(1\) \(parallel="n"\): output 0\[0, \d\]: the plain call'),
    "total": ("passed", "placements on"),
    "bias": ("failed", r'on \d devices with x S\(0\), b R \(sum="m"\): output 0\[0\]: the plain call gives'),
    "largest": ("passed", "placements on"),
    "smallest": ("failed", r'on \d devices with x S\(0\) \(min="m"\): output 0'),
    "near": ("passed", "placements on"),
    "far": ("failed", r'on \d devices with x S\(0\) \(halo=\{"n": \(1, 1\)\}\): output 0'),
    "gradient": ("passed", "placements on"),
    "embedding": ("passed", "placements on"),  # the gradient of an index is of 64 bits
    "window": ("passed", "placements on"),  # its gradient's slices know their place
    "unclaimed": ("not run", "nothing is known of its dimensions: dims= says it"),
    "uncut": ("not run", "no dimension may be split"),
}


@pytest.fixture(scope="session")
def rows():
    """What the rows "mesh" say of each operator, by framework."""
    hosts = ["numpy", *(h for h in ("torch", "jax") if importlib.util.find_spec(h) is not None)]
    done = subprocess.run(
        [sys.executable, "-c", f"HOSTS = {hosts}\n{PROGRAM}"],
        capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=3",
             "PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("ROW "))


@pytest.mark.slow(8)
@pytest.mark.parametrize("host", ["torch", "jax"])
@pytest.mark.parametrize("name", CASES)
def test_claims_on_a_mesh(rows, name, host):
    pytest.importorskip(host, reason=f"{host} is not installed")
    status, detail = rows[name][host]
    expected, words = CASES[name]
    assert status == expected, detail
    assert re.search(words, detail), detail


def test_without_devices_the_reason_is_given():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if len(jax.devices("cpu")) > 1:
        pytest.skip("this process has several devices")
    double = polyop.operator("meshes_check::double(Tensor x) -> Tensor", lambda x: x * 2, batch="elementwise")
    report = check(double, hosts=["numpy", "jax"])
    row = next(r for r in report.results if (r.check, r.host) == ("mesh", "jax"))
    assert row.status == "not run"
    assert "start Python with XLA_FLAGS=--xla_force_host_platform_device_count=3" in row.detail


def test_each_tensor_gets_each_placement():
    linear = polyop.operator(
        "meshes_check::linear(Tensor x, Tensor w) -> Tensor",
        lambda x, w: x @ w, dims="b i, i o -> b o", parallel="b o", sum="i",
    )  # fmt: skip
    rule = sharding_rule(linear.operator, (Spec((2, 3), dtype("float32")), Spec((3, 4), dtype("float32"))))
    assert [" ".join(map(str, row)) for row in placements(rule)] == [
        "R R", "S(0) R", "S(1) R", "R S(0)", "R S(1)", "S(1) S(0)",
    ]  # fmt: skip


def test_a_kernel_of_loops_is_checked_too():
    pytest.importorskip("torch", reason="PyTorch is not installed")

    def doubled(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            y[i] = 2.0 * x[i]
        return y

    report = check(polyop.kernel(doubled), np.ones(4, np.float32), hosts=["numpy", "torch"])
    row = next(r for r in report.results if (r.check, r.host) == ("mesh", "torch"))
    assert (row.status, row.detail) == ("passed", "3 placements on 3 devices")  # whole, split, addends
