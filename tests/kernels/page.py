"""The code of docs/guides/function-pointers.md."""

# [numba]
import numpy as np
from numba import carray, cfunc, types

import polyop

pointer = types.CPointer
kernel_type = types.int32(
    types.int32,  # nparam
    pointer(pointer(types.float32)),  # params: inputs, then outputs
    pointer(types.int32),  # ndims
    pointer(pointer(types.int64)),  # shapes
    pointer(types.voidptr),  # dtypes
    types.voidptr,  # stream
    types.voidptr,  # extra
)


@cfunc(kernel_type)
def running_maximum(nparam, params, ndims, shapes, dtypes, stream, extra):
    shape = (shapes[0][0], shapes[0][1])
    x, out = carray(params[0], shape), carray(params[1], shape)
    for i in range(shape[0]):
        largest = x[i, 0]
        for j in range(shape[1]):
            largest = max(largest, x[i, j])
            out[i, j] = largest
    return 0


maximum = polyop.operator(
    "page::running_maximum(Tensor x) -> Tensor",
    running_maximum,
    dims="b n -> b n",
    parallel="b",
    dtypes=["float32"],
)
print(maximum(np.array([[1, 3, 2], [5, 4, 6]], np.float32)))
# [/numba]

assert maximum(np.array([[1, 3, 2]], np.float32)).tolist() == [[1, 3, 3]]
