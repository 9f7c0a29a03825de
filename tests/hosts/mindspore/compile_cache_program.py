"""A program whose graph MindSpore keeps on disk (``enable_compile_cache``), run by test_compile_cache.py.

python compile_cache_program.py FOLDER CACHE    prints the value and the gradient of FOLDER/defined.py's operator
"""

import sys

sys.path.insert(0, sys.argv[1])  # before MindSpore: it does not look for changes in what is installed

import mindspore as ms
import numpy as np
from defined import op
from mindspore import Tensor, nn

ms.set_context(mode=ms.GRAPH_MODE, enable_compile_cache=True, compile_cache_path=sys.argv[2])


class Net(nn.Cell):
    def construct(self, x):
        return op(x)


class Gradient(nn.Cell):
    def construct(self, x):
        return ms.grad(lambda x: op(x).sum())(x)


x = Tensor(np.array([1, 2, 3], np.float32))
network = Gradient() if "gradient" in sys.argv else Net()
print(network(x).asnumpy().tolist())
