"""Add a dtype: a row, in a copy of polyop, and what is generated from the rows."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from polyop import _core

ROOT = pathlib.Path(__file__).parents[2]
COPIED = ("src/polyop", "include", "tools/dtypes_header.py")

# [row]
#     name               DLPack          kind       C         tolerance  TypeId  torch  CANN  ONNX  XLA
ROW = """
DType("float8_e3m4",     (7, 8),         "float",   "f8e3m4", 0.1,           0,    -1,   -1,   -1,  29),
"""
# [/row]

PROGRAM = """
# [kernel]
import ml_dtypes
import numpy as np

import polyop


@polyop.kernel
def decoded(x):
    y = output_tensor(x.shape, "float32")
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


@polyop.kernel
def encoded(x):
    y = output_tensor(x.shape, "float8_e3m4")
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


words = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e3m4)
assert decoded(words).tobytes() == words.astype(np.float32).tobytes()
numbers = np.random.default_rng(0).integers(0, 2**32, 100_000, np.uint32).view(np.float32)
with np.errstate(all="ignore"):
    assert encoded(numbers).tobytes() == numbers.astype(ml_dtypes.float8_e3m4).tobytes()
print(encoded(np.array([0.1, 1 / 3, 15.5, 100], np.float32)))
# [/kernel]
"""


def run(folder, *command):
    """Run Python with the copy; without site, which finds the polyop that is installed."""
    paths = (folder / "src", pathlib.Path(np.__file__).parents[1])
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    subprocess.run([sys.executable, "-S", *command], check=True, cwd=folder, env=variables)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for part in COPIED:
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)
    shutil.copy(_core.__file__, folder / "src" / "polyop")
    table = folder / "src" / "polyop" / "core" / "dtypes.py"
    table.write_text(table.read_text().replace("\n)  # fmt: skip", f"{ROW})  # fmt: skip", 1))
    run(folder, "tools/dtypes_header.py")
    header = (folder / "include" / "polyop" / "dtypes.h").read_text()
    print(*(line.strip("\\ ") for line in header.splitlines() if "f8e3m4" in line), flush=True)
    (folder / "program.py").write_text(PROGRAM)
    run(folder, "program.py")
