"""Write the files that a program saved with this polyop: python make.py FOLDER, before a release is tagged.

FOLDER is tests/released/VERSION; the files are committed, and later versions load them (test_released.py).
"""

import json
import pathlib
import platform
import subprocess
import sys

import jax.export
import numpy as np
import released_operators
import torch

import polyop
from polyop.loops.library.shipped import MEANING

HERE = pathlib.Path(__file__).parent
SETUP = """\
from setuptools import setup
from polyop.wheel import BuildExtension, LoopExtension

loops = LoopExtension("released_ops", {"smooth_rows": "float32[:,:], float32[:], float"}, gradients=["smooth_rows"])
setup(name="released-ops", version="1", py_modules=["released_ops"], ext_modules=[loops],
      cmdclass={"build_ext": BuildExtension})
"""


def inputs():
    """Return the tensors and the attribute of the call that each file is asked for."""
    draw = np.random.default_rng(7)
    return draw.uniform(-2, 2, (5, 6)).astype("float32"), draw.uniform(0.5, 2, 6).astype("float32"), 1.5


def value(x, w, gain):
    """Return the outputs and the gradient of their sum with respect to x, of what the operator means."""
    return gain * x * w / (1 + abs(x)), gain * w / (1 + abs(x)) ** 2


def exported_library(folder):
    """``polyop export``: one library without Python."""
    target = folder / f"libreleased-{platform.machine()}.so"
    signature = "released_operators::smooth_rows=float32[:,:], float32[:], float"
    words = ["export", HERE / "released_operators.py", "--signature", signature, "-o", target]
    subprocess.run([sys.executable, "-m", "polyop", *map(str, words)], check=True)
    for beside in (*folder.glob("*.h"), *folder.glob("*.cmake")):
        beside.unlink()


def wheel(folder):
    """A wheel of the loop kernel, compiled ahead of time."""
    project = folder / "project"
    project.mkdir()
    (project / "setup.py").write_text(SETUP)
    (project / "released_ops.py").write_text((HERE / "released_operators.py").read_text())
    words = ["wheel", str(project), "--no-deps", "--no-build-isolation", "-q", "-w", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    subprocess.run(["rm", "-r", str(project)], check=True)


def of_jax(folder):
    """``jax.export``: the operator and its gradient."""
    x, w, gain = inputs()
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # no paths of this checkout
    both = jax.jit(jax.value_and_grad(lambda x, w: released_operators.smooth_rows(x, w, gain).sum()))
    made = jax.export.export(both, disabled_checks=polyop.jax_export_checks())(x, w)
    (folder / "program.jax").write_bytes(made.serialize())


def of_torch(folder):
    """``torch.export``: the operator in a module."""

    class Module(torch.nn.Module):
        def forward(self, x, w):
            return released_operators.smooth_rows(x, w, inputs()[2])

    x, w, _ = map(torch.tensor, inputs())
    program = torch.export.export(Module(), (x, w))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it has the paths of this checkout
    torch.export.save(program, folder / "program.pt2")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir()
    for make in (exported_library, wheel, of_jax, of_torch):
        make(folder)
    facts = {"polyop": polyop.__version__, "torch": torch.__version__, "jax": jax.__version__}
    facts["level of loop kernels"] = MEANING
    (folder / "made-with.json").write_text(json.dumps(facts, indent=2) + "\n")
