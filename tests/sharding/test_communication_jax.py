"""``op.communication`` beside the collectives in the programs that JAX compiles."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

from measured_operators import CASES, MESHES, ON_TWO_AXES

pytest.importorskip("jax", reason="JAX is not installed")
ROOT = pathlib.Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
PERMUTE = "collective-permute"


@functools.cache
def rows(devices):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "sources" / "jax_communication.py"), str(devices)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]),
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("devices", MESHES)
@pytest.mark.parametrize("name", [*CASES, *ON_TWO_AXES])
def test_bytes(devices, name):
    row = rows(devices)[name]
    for model, measured in zip(row["model"], row["measured"], strict=True):
        edges, exchanged = model.pop("permute", 0), measured.pop(PERMUTE, 0)
        assert edges == exchanged
        if name != "norm along its row":
            assert model == measured
    if name == "norm along its row":  # XLA redistributes x once for the call and its gradient
        (forward, both), (forward_measured, both_measured) = row["model"], row["measured"]
        assert forward == forward_measured
        again = forward["all-to-all"]
        assert both == {**both_measured, "all-to-all": both_measured["all-to-all"] + again}
