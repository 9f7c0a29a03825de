"""Prebuilt libraries, opened like any other's: one output, two with inference in C++, a symbol of ctypes."""

import ctypes
import pathlib

import numpy as np

import polyop
from polyop.build import build

SOURCES = pathlib.Path(__file__).parents[2] / "sources"


def prebuilt(name, function):
    """Return a kernel of a library that polyop opens as a prebuilt one."""
    return polyop.prebuilt(build([SOURCES / name], language="c++"), function)


add = polyop.operator(
    "contract::add(Tensor x, Tensor y) -> Tensor",
    prebuilt("add.cc", "CustomAdd"),
    infer="x",
    gradient=lambda x, y, out, dout: (dout, dout),
    batch="elementwise",
    reference=np.add,
)
row_max = polyop.operator(
    "contract::row_max(Tensor x, bool keepdims=False) -> (Tensor, Tensor)",
    prebuilt("two_outputs.cc", "RowMax"),
    reference=lambda x, keepdims: (x.max(1, keepdims=keepdims), x.argmax(1, keepdims=keepdims)),
)
pointer_of_add = ctypes.CDLL(str(build([SOURCES / "add.cc"], language="c++"))).CustomAdd
add_by_pointer = polyop.operator(
    "contract::add_by_pointer(Tensor x, Tensor y) -> Tensor",
    pointer_of_add,
    infer="x",
    gradient=lambda x, y, out, dout: (dout, dout),
    batch="elementwise",
    reference=np.add,
)
polyop_samples = {"contract::row_max": (np.array([[1, 5, 2], [7, 0, 7]], np.float32), True)}
