"""The code of docs/hosts/dlpack.md."""

# [first]
import array_api_strict as xp  # a library that polyop has no host for
import numpy as np

import polyop

softmax = polyop.operator(
    "page::softmax(Tensor x) -> Tensor",
    lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    dims="... n -> ... n",
)
result = softmax(xp.asarray([[0.0, 1.0], [2.0, 2.0]]))
print(type(result))  # an array of array_api_strict
# [/first]

assert type(result) is type(xp.asarray(0.0))
np.testing.assert_allclose(np.from_dlpack(result).sum(1), 1)
