"""A package of AOTInductor with an exported operator runs in processes that cannot import polyop."""

import subprocess
import sys

import pytest

from polyop.export import export

from . import exported_operators
from .exported_operators import SIGNATURES

pytestmark = pytest.mark.slow

COMPILED = """
import sys
import torch, torch._inductor
import polyop
library = polyop.load_library(sys.argv[1])
assert library.scale.name == "exported::scale"

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ops.exported.scale(x + 1, 3.0) * 2

rows = torch.export.Dim("rows", min=2, max=64)
program = torch.export.export(Model(), (torch.ones(4, 3),), dynamic_shapes={"x": {0: rows}})
torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[2])
"""

LOADED = """
import sys
sys.modules["polyop"] = None  # cannot be imported
import torch, torch._inductor
torch.ops.load_library(sys.argv[1])
model = torch._inductor.aoti_load_package(sys.argv[2])
for rows in (4, 7):
    x = torch.rand(rows, 3)
    torch.testing.assert_close(model(x), 6 * (x + 1) ** 2)
print("ran")
"""


def test_a_package(tmp_path):
    pytest.importorskip("torch")
    library, package = tmp_path / "libexported.so", tmp_path / "model.pt2"
    export([exported_operators.scale], library, signatures={"exported::scale": SIGNATURES["exported::scale"]})
    for program, words in ((COMPILED, ""), (LOADED, "ran\n")):
        done = subprocess.run(
            [sys.executable, "-c", program, str(library), str(package)],
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(words)
