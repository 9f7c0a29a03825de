"""Whole scripts as users write them, each in a new process."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

SOURCES = pathlib.Path(__file__).parents[1] / "sources"


@pytest.fixture
def run(tmp_path):
    for name in ("add.cc", "count.h", "kernels.c", "module_functions.cpp"):
        shutil.copy(SOURCES / name, tmp_path)

    def script(text, **variables):
        (tmp_path / "net.py").write_text(textwrap.dedent(text))
        environment = {**os.environ, **variables}
        done = subprocess.run(
            [sys.executable, "net.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return script


@pytest.mark.slow
def test_a_module_with_a_gradient(run):
    out = run("""
        import numpy as np
        import polyop.mindspore as ms
        from polyop.mindspore import Tensor, Parameter, nn
        from polyop.mindspore.ops import CustomOpBuilder

        class MyNet(nn.Cell):
            def __init__(self):
                super().__init__()
                self.p = Parameter(2.0, requires_grad=True)
                self.my_ops = CustomOpBuilder("script_ops", ["./module_functions.cpp"], backend="CPU").load()

            def construct(self, x, y):
                z = self.my_ops.mul(x, y)
                return self.my_ops.mul(z, self.p)

        x = Tensor(1.0, ms.float32) * 2
        y = Tensor(1.0, ms.float32) * 3
        for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
            ms.set_context(mode=mode)
            net = MyNet()
            grad_op = ms.value_and_grad(net, grad_position=(0, 1), weights=net.trainable_params())
            out, grads = grad_op(x, y)
            print("out:", out)
            print("grads[0]:", grads[0])
            print("grads[1]:", grads[1])
    """)
    once = (
        "out: 12.0\n"
        "grads[0]: (Tensor(shape=[], dtype=Float32, value= 6), Tensor(shape=[], dtype=Float32, value= 4))\n"
        "grads[1]: (Tensor(shape=[], dtype=Float32, value= 6),)\n"
    )
    assert out.endswith(once * 2)


@pytest.mark.slow
def test_an_aot_operator_with_a_bprop_in_graph_mode(run):
    out = run("""
        import numpy as np
        import polyop.mindspore as ms
        from polyop.mindspore import context, Tensor
        from polyop.mindspore.nn import Cell
        import polyop.mindspore.ops as ops

        context.set_context(mode=ms.GRAPH_MODE, device_target="CPU")

        class Net(Cell):
            def __init__(self):
                super(Net, self).__init__()
                grad = ops.Custom("./kernels.c:square_grad", lambda x, o, d: x, lambda x, o, d: x, "aot")

                def bprop(x, out, dout):
                    return (grad(x, out, dout),)

                self.op = ops.Custom("./kernels.c:square", lambda x: x, lambda x: x, "aot", bprop=bprop)

            def construct(self, x):
                return self.op(self.op(x))

        x = np.array([1.0, 4.0, 9.0]).astype(np.float32)
        print(Net()(Tensor(x)))
        print(ms.grad(Net())(Tensor(x)))
    """)
    assert out.splitlines()[-2:] == ["[1.000e+00 2.560e+02 6.561e+03]", "[   4.  256. 2916.]"]


@pytest.mark.slow
def test_a_function_in_python_and_a_loop(run):
    out = run("""
        import numpy as np
        import polyop.mindspore as ms
        from polyop.mindspore import Tensor, nn, ops

        def kernel(x):
            return np.sin(x)

        ms.set_seed(1)
        sin = ops.Custom(kernel, lambda x: x, lambda x: x, "pyfunc", bprop=lambda x, out, dout: (ops.cos(x) * dout,))
        net = nn.SequentialCell(nn.Dense(2, 8), nn.Tanh(), nn.Dense(8, 1))
        x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
        y = Tensor(x[:, :1] * x[:, 1:])

        def forward(data, label):
            return ops.mse_loss(sin(net(data)), label)

        optimizer = nn.Adam(net.trainable_params(), learning_rate=0.05)
        step = ms.value_and_grad(forward, None, optimizer.parameters)
        losses = []
        for _ in range(150):
            loss, grads = step(Tensor(x), y)
            optimizer(grads)
            losses.append(float(loss))
        print(losses[-1] < losses[0] / 4)
        print(np.allclose(sin(Tensor([0.0, 1.0, 0.2, 0.3, 0.4])).asnumpy(), [0, 0.841471, 0.198669, 0.29552, 0.389418]))
    """)
    assert out == "True\nTrue\n"
