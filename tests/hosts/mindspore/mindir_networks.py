"""Networks with operators of polyop, written to MindIR files by one process and run from them by another.

python mindir_networks.py write FOLDER     writes FOLDER/<name>.mindir and the results, FOLDER/<name>.npz
python mindir_networks.py run FOLDER       loads them, and compares the results
python mindir_networks.py bare FOLDER      the same without a definition of the operators
"""
# ruff: noqa: F821 - the words of the loop language

import pathlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def networks():
    import polyop

    add = polyop.operator(
        "mindir::add(Tensor x, Tensor y) -> Tensor", f"{SOURCES / 'add.cc'}:CustomAdd", infer="x"
    )
    scaled = polyop.operator(
        "mindir::scaled(Tensor x, float a=1.0, str how='up') -> Tensor",
        lambda x, a, how: (x * a if how == "up" else x / a).astype(x.dtype),
        infer="x",
        gradient=lambda x, a, how, out, dout: (a * dout, None, None),
    )
    both = polyop.operator(
        "mindir::both(Tensor[] xs) -> (Tensor, Tensor)",
        lambda xs: (sum(xs), xs[0] * 1),
        infer=lambda xs: (xs[0], xs[0]),
    )
    write = polyop.operator("mindir::add_(Tensor(a!) x, Tensor y) -> ()", lambda x, y: x.__iadd__(y))
    module = polyop.CustomOpBuilder(
        "mindir_module", [str(SOURCES / "module_gradients.cpp")], backend="CPU"
    ).load()

    @polyop.kernel(name="mindir::scan")
    def scan(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            total = 0.0
            for j in range(x.shape[1]):
                total = 0.5 * total + x[i, j] * x[i, j]
                y[i, j] = total
        return y

    class Compiled(nn.Cell):
        def construct(self, x):
            return add(scan(x), scaled(x, 3.0, how="up"))

    class Several(nn.Cell):
        def construct(self, x):
            total, first = both([x, x * 2, x])
            return total - first

    class Module(nn.Cell):
        def construct(self, x):
            return module.sigmoid(x)

    class Written(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = Parameter(Tensor(np.zeros((2, 3), np.float32)), name="count", requires_grad=False)

        def construct(self, x):
            write(self.count, x)
            return self.count * 1

    class Gradient(nn.Cell):
        def construct(self, x):
            return ms.grad(lambda x: (scan(x) * scaled(x, 2.0)).sum())(x)

    return {
        "compiled": Compiled,
        "several": Several,
        "module": Module,
        "written": Written,
        "gradient": Gradient,
    }


def main(what, folder):
    folder = pathlib.Path(folder)
    found = networks() if what != "bare" else dict.fromkeys(["compiled"])
    for name, network in found.items():
        path = folder / f"{name}.mindir"
        if what == "write":
            ms.export(network(), Tensor(X), file_name=str(path), file_format="MINDIR")
            np.savez(folder / f"{name}.npz", network()(Tensor(X)).asnumpy())
        else:
            result = nn.GraphCell(ms.load(str(path)))(Tensor(X)).asnumpy()
            np.testing.assert_allclose(result, np.load(folder / f"{name}.npz")["arr_0"], rtol=1e-6)


main(*sys.argv[1:])
