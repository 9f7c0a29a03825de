"""What each release saved is loaded by this polyop, with the right value: a folder per release, made by make.py.

MindIR files are not among them: such a file names polyop's core by its path (docs/hosts/mindspore.md).
"""

import json
import pathlib
import platform
import subprocess
import sys

import pytest

from polyop.loops.library.shipped import MEANING

HERE = pathlib.Path(__file__).parent
RELEASES = sorted(path.parent for path in HERE.glob("*/made-with.json"))
START = """
import pathlib, sys, numpy as np
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, {here!r})
from make import inputs, value
x, w, gain = inputs()
outputs, gradient = value(x, w, gain)
same = lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6)
"""
PROGRAMS = {
    "exported library": """
import polyop
ops = polyop.load_library(next(folder.glob("libreleased-*.so")))
op = ops.smooth_rows
same(op(x, w, gain), outputs)
y, pull = op.vjp(x, w, gain)
same(pull(np.ones_like(y))[0], gradient)
""",
    "wheel": """
import zipfile
unpacked = pathlib.Path(sys.argv[2])
zipfile.ZipFile(next(folder.glob("*.whl"))).extractall(unpacked)
sys.path.insert(0, str(unpacked))
import released_ops
op = released_ops.smooth_rows
same(op(x, w, gain), outputs)
y, pull = op.vjp(x, w, gain)
same(pull(np.ones_like(y))[0], gradient)
""",
    "program of JAX": """
import jax.export, polyop, released_operators
polyop.jax_export_checks()
again = jax.export.deserialize(bytearray((folder / "program.jax").read_bytes()))
total, found = again.call(x, w)
same(total, outputs.sum())
same(found, gradient)
""",
    "program of PyTorch": """
import torch, polyop, released_operators
again = torch.export.load(folder / "program.pt2").module()
same(again(torch.tensor(x), torch.tensor(w)), outputs)
""",
}


def test_there_is_a_release():
    assert RELEASES


OTHER_LEVEL = {
    "program of JAX": "made with another definition of the operator",
    "wheel": "by another polyop, at level",
}
"""What is said where the meaning of loop kernels has changed since: an error of the program, a warning of the wheel."""


@pytest.mark.slow(1, more=3)
@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_what_a_release_saved_works(release, kind, tmp_path):
    if kind in ("exported library", "wheel") and platform.machine() != "x86_64":
        pytest.skip(f"not run: the files of {release.name} are for x86_64")
    program = START.format(here=str(HERE)) + PROGRAMS[kind]
    command = [sys.executable, "-c", program, str(release), str(tmp_path / "unpacked")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    made_with = json.loads((release / "made-with.json").read_text())
    is_other = made_with["level of loop kernels"] != MEANING
    works = kind != "program of JAX" or not is_other
    assert (done.returncode == 0) == works, done.stderr
    assert (OTHER_LEVEL.get(kind, "") in done.stderr) == (is_other or kind not in OTHER_LEVEL), done.stderr
