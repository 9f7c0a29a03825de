"""The code of docs/coming-from/mindspore.md: a C function as MindSpore's Custom, and as polyop's.

Without MindSpore only polyop's half runs.
"""

import importlib.util
import pathlib
import tempfile

import numpy as np

import polyop
from polyop.build import build

source = pathlib.Path(tempfile.mkdtemp()) / "twice.c"
source.write_text(r"""
#include <stdint.h>
int twice(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream,
          void *extra) {
  const float *x = params[0];
  float *y = params[1];
  for (int64_t i = 0; i < shapes[0][0]; ++i) y[i] = 2 * x[i];
  return 0;
}
""")
library = str(build([source]))


def theirs():
    # [theirs]
    import mindspore as ms
    from mindspore import ops

    twice = ops.Custom(
        f"{library}:twice",
        out_shape=lambda x: x,
        out_dtype=lambda x: x,
        func_type="aot",
        bprop=lambda x, out, dout: (2 * dout,),
    )
    out = twice(ms.Tensor(np.ones(3, np.float32)))
    # [/theirs]
    return out.asnumpy()


# [ours]
import polyop

twice = polyop.Custom(
    f"{library}:twice",
    out_shape=lambda x: x,
    out_dtype=lambda x: x,
    func_type="aot",
    bprop=lambda x, out, dout: (2 * dout,),
)
out = twice(np.ones(3, np.float32))  # and tensors of MindSpore, PyTorch, JAX
# [/ours]

assert out.tolist() == [2.0, 2.0, 2.0]
if importlib.util.find_spec("mindspore"):
    assert theirs().tolist() == [2.0, 2.0, 2.0]
    print("both agree")
else:
    print("MindSpore is not installed: its half was not run")
