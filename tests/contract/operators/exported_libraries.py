"""An operator of a library of ``polyop export``."""

import atexit
import pathlib
import tempfile

import numpy as np

import polyop
from polyop.export import export

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
original = polyop.operator(
    "contract::add_to_export(Tensor x, Tensor y) -> Tensor",
    f"{SOURCES / 'add.cc'}:CustomAdd",
    dims="..., ... -> ...",
    parallel="...",
    dtypes=["float32"],
)
folder = tempfile.TemporaryDirectory(prefix="polyop-contract-")
atexit.register(folder.cleanup)
export([original], f"{folder.name}/libcontract.so")
library = polyop.load_library(f"{folder.name}/libcontract.so", namespaces={"contract": "contract_exported"})
add = library.add_to_export
x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
polyop_samples = {original.name: (x, x + 1), add.name: (x, x + 1)}
