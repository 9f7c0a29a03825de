"""A C++ kernel with an attribute, a workspace, and its own shape and dtype inference."""

# [use]
import pathlib

import numpy as np

import polyop

source = pathlib.Path(__file__).parent / "row_softmax.cc"

softmax = polyop.operator(
    "attributes::row_softmax(Tensor x, *, float temperature=1.0) -> Tensor",
    f"{source}:RowSoftmax",
    reference=lambda x, temperature=1.0: _reference(x / np.float32(temperature)),
)


def _reference(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


x = np.array([[1, 2, 3], [0, 0, 0]], np.float32)
print(softmax(x))
print(softmax(x, temperature=0.5))

try:
    softmax(x[0])
except polyop.PolyopError as problem:
    print(problem)
# [/use]

np.testing.assert_allclose(softmax(x), _reference(x), rtol=1e-6)
np.testing.assert_allclose(softmax(x, temperature=0.5), _reference(x * 2), rtol=1e-6)
