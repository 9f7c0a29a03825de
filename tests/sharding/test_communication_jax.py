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


@pytest.mark.slow(1)
@pytest.mark.parametrize("devices", MESHES)
@pytest.mark.parametrize("name", [*CASES, *ON_TWO_AXES])
def test_bytes(devices, name):
    row = rows(devices)[name]
    for model, measured in zip(row["model"], row["measured"], strict=True):
        model[PERMUTE] = model.pop("permute", 0)
        assert model == {PERMUTE: 0, **measured}
