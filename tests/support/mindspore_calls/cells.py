"""Layers, losses, optimisers, cells, parameters and transforms. Weights are set, because initial ones are random."""

from __future__ import annotations

from .calls import Program, Row

FILL = "np.sin(np.arange(int(np.prod(shape)))).reshape(shape).astype(np.float32)"
START = f"""
def values(*shape):
    return Tensor({FILL})

def filled(net):
    for p in net.get_parameters():
        p.set_data(values(*p.shape) * 0.5 + 0.75)
    return net

def with_gradient(net, *inputs):
    filled(net)
    weights = net.trainable_params()
    def loss(*tensors):
        out = net(*tensors)
        return (out * values(*out.shape)).sum()
    value, (dx, dw) = ms.value_and_grad(loss, 0, weights)(*inputs)
    return net(*inputs), dx, [(p.name, g) for p, g in zip(weights, dw)]

def trained(optimiser, steps=4):
    net = nn.Dense(3, 2, weight_init=values(2, 3), bias_init=values(2))
    optimiser = optimiser(net.trainable_params())
    step = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimiser.parameters)
    losses = []
    for _ in range(steps):
        loss, grads = step(values(4, 3), values(4, 2))
        optimiser(grads)
        losses.append(loss)
    return losses, list(net.get_parameters())
"""


def layers(name: str, *forms: str, shape: str) -> list[Program]:
    """Return a layer's programs: value, gradients and the names of its parameters, for each constructor."""
    return [
        Program(name, f"{START}\nresult = with_gradient({name}({form}), values({shape}))") for form in forms
    ]


def optimiser(name: str, *forms: str) -> list[Program]:
    """Return an optimiser's programs: the losses of four steps, and the weights after them."""
    return [Program(name, f"{START}\nresult = trained(lambda p: {name}({form}))") for form in forms]


def programs(name: str, *texts: str) -> list[Program]:
    """Return programs that begin with ``START``."""
    return [Program(name, f"{START}\n{text}") for text in texts]


WINDOWS = (
    "kernel_size=2",
    "kernel_size=2, stride=2",
    "3, 2, pad_mode='same'",
    "kernel_size=3, stride=2, pad_mode='valid'",
)

ROWS: list[Row | Program] = [
    Row(
        "nn.ReLU() nn.ReLU6() nn.Sigmoid() nn.Tanh() nn.SiLU() nn.Mish() nn.HSwish() nn.HSigmoid() nn.LogSigmoid()"
        " nn.Softsign() nn.LeakyReLU() nn.LeakyReLU(0.1) nn.LeakyReLU(alpha=0.3) nn.ELU() nn.ELU(1.0) nn.Softmax()"
        " nn.Softmax(0) nn.LogSoftmax() nn.LogSoftmax(axis=0) nn.GELU() nn.GELU(False) nn.GELU(approximate=False)"
        " nn.Identity() nn.Dropout() nn.Dropout(p=0.3)",
        "x",
        dtypes="float32 float16",
    ),
    Row("nn.Flatten() nn.Flatten(start_dim=0) nn.Flatten(1,2)", "x", shapes="2x3x4"),
    Row(
        "nn.MSELoss() nn.MSELoss('sum') nn.MSELoss(reduction='none') nn.L1Loss() nn.L1Loss('none') nn.BCELoss()"
        " nn.BCELoss(reduction='sum')",
        "x, y",
        "x y",
        kind="probability",
        shapes="4x3",
    ),
    Row(
        "nn.CrossEntropyLoss() nn.CrossEntropyLoss(reduction='sum') nn.SoftmaxCrossEntropyWithLogits()"
        " nn.SoftmaxCrossEntropyWithLogits(reduction='mean')",
        "x, y",
        "x y:float32:4x3:simplex",
        shapes="4x3",
    ),
    Row(
        "nn.CrossEntropyLoss() nn.CrossEntropyLoss(label_smoothing=0.1) nn.CrossEntropyLoss(ignore_index=1)"
        " nn.SoftmaxCrossEntropyWithLogits(sparse=True) nn.SoftmaxCrossEntropyWithLogits(True,'mean')",
        "x, i",
        "x i:int32:4:below3",
        shapes="4x3",
    ),
    *layers(
        "nn.Dense",
        "3, 2",
        "3, 2, has_bias=False",
        "3, 2, activation='relu'",
        "3, 2, activation=nn.Tanh()",
        shape="4, 3",
    ),
    *layers(
        "nn.Conv2d",
        "2, 4, 3",
        "2, 4, 3, stride=2",
        "2, 4, 3, pad_mode='valid', has_bias=True",
        "2, 4, 3, pad_mode='pad', padding=1",
        "2, 4, (3, 2), dilation=2",
        "2, 4, 3, group=2, has_bias=True",
        shape="2, 2, 6, 7",
    ),
    *layers("nn.MaxPool2d", *WINDOWS, shape="2, 2, 6, 7"),
    *layers("nn.AvgPool2d", *WINDOWS, shape="2, 2, 6, 7"),
    *layers("nn.LayerNorm", "(3,)", "[3], epsilon=1e-5", "(2, 3), 1, 1", shape="4, 2, 3"),
    *layers("nn.GroupNorm", "2, 4", "4, 4, eps=1e-3", "1, 4, affine=False", shape="3, 4, 2, 3"),
    *layers("nn.BatchNorm1d", "3", "3, momentum=0.5, eps=1e-3", shape="4, 3"),
    *layers("nn.BatchNorm2d", "2", "2, affine=True", shape="3, 2, 4, 5"),
    *programs(
        "nn.BatchNorm2d",
        "net = filled(nn.BatchNorm2d(2)).set_train()\nout = net(values(3, 2, 4, 5))\nresult = out, list(net.get_parameters())",
        "net = filled(nn.BatchNorm2d(2)).set_train(False)\nnet.set_train(True)\nnet(values(3, 2, 4, 5))\nnet.set_train(False)\nresult = net(values(3, 2, 4, 5))",
    ),
    *programs(
        "nn.BatchNorm2d",
        "net = nn.SequentialCell(nn.Conv2d(2, 2, 3), nn.BatchNorm2d(2))\n"
        "result = list(net.parameters_dict()), [p.name for p in net.get_parameters()]",
    ),
    *programs(
        "nn.BatchNorm1d",
        "net = nn.BatchNorm1d(3).set_train()\nresult = net(values(4, 3)), net(values(4, 3)), list(net.get_parameters())",
    ),
    *programs(
        "nn.Embedding",
        "net = filled(nn.Embedding(5, 3))\nresult = net(Tensor([[1, 4], [0, 1]], ms.int32)), list(net.get_parameters())",
    ),
    *programs(
        "nn.Dropout",
        "x = nn.Dropout(p=0.5).set_train()(Tensor(np.ones(2000, np.float32))).asnumpy()\nresult = sorted(set(x.tolist())), bool(abs(x.mean() - 1) < 0.2)",
    ),
    *programs(
        "nn.SequentialCell",
        "net = filled(nn.SequentialCell(nn.Dense(3, 2), nn.ReLU(), nn.Dense(2, 1)))\nresult = net(values(4, 3)), len(net), [p.name for p in net.get_parameters()]",
        "net = filled(nn.SequentialCell([nn.Dense(3, 2), nn.Tanh()]))\nresult = net(values(4, 3)), net[0](values(4, 3)), len(net[:1])",
    ),
    *programs(
        "nn.CellList",
        "cells = nn.CellList([nn.Dense(3, 3), nn.Dense(3, 3)])\ncells.append(nn.ReLU())\nresult = len(cells), [type(c).__name__ for c in cells], [p.name for p in cells.get_parameters()]",
    ),
    *optimiser(
        "nn.SGD",
        "p",
        "p, 0.1",
        "p, 0.1, momentum=0.9",
        "p, 0.1, 0.9, 0.2",
        "p, 0.1, weight_decay=0.1",
        "p, 0.1, momentum=0.9, nesterov=True",
        "p, [0.1, 0.05, 0.2, 0.01]",
        "p, 0.1, loss_scale=2.0",
    ),
    *optimiser(
        "nn.Momentum",
        "p, 0.1, 0.9",
        "p, 0.1, 0.9, weight_decay=0.1",
        "p, learning_rate=[0.1, 0.05, 0.2, 0.01], momentum=0.5",
        "p, 0.1, 0.9, loss_scale=2.0",
    ),
    *optimiser(
        "nn.Adam",
        "p",
        "p, 0.1",
        "p, 0.1, 0.8, 0.9, 1e-3",
        "p, 0.1, weight_decay=0.1",
        "p, [0.1, 0.05, 0.2, 0.01]",
        "p, 0.1, use_nesterov=True",
        "p, 0.1, loss_scale=2.0",
    ),
    *programs(
        "nn.TrainOneStepCell",
        "net = nn.Dense(3, 2, weight_init=values(2, 3), bias_init=values(2))\n"
        "step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))\n"
        "result = [step(values(4, 3), values(4, 2)) for _ in range(3)], list(net.get_parameters())",
    ),
    *programs(
        "nn.WithLossCell",
        "net = filled(nn.Dense(3, 2))\nresult = nn.WithLossCell(net, nn.L1Loss())(values(4, 3), values(4, 2))",
    ),
    *programs(
        "nn.Cell",
        """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(3, 2)
        self.rest = nn.SequentialCell(nn.ReLU(), nn.Dense(2, 2))
        self.scale = Parameter(Tensor([2.0]), name="factor")
        self.frozen = Parameter(Tensor([1.0]), requires_grad=False)

    def construct(self, x):
        return self.rest(self.first(x)) * self.scale + self.frozen

net = filled(Net())
result = (
    net(values(4, 3)), [p.name for p in net.trainable_params()], [p.name for p in net.untrainable_params()],
    list(net.parameters_dict()), [n for n, _ in net.parameters_and_names()], list(net.name_cells()), net.training,
    [n for n, _ in net.cells_and_names()], net.set_train().training, len(list(net.cells())),
)
""",
        """
class Double(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (dout * 7,)

result = Double()(values(3)), ms.grad(Double())(values(3))
""",
    ),
    # parameters
    *programs(
        "ms.Parameter",
        "p = Parameter(2.0, name='a')\nresult = p, Parameter(Tensor([1, 2]), name='b', requires_grad=False), p + 1, p.set_data(Tensor(3.0)), p.shape, str(p.dtype)",
        "p = Parameter(Tensor([1.0, 2.0]), name='w')\nresult = p.requires_grad_(False), p.requires_grad, p.requires_grad_(), p.requires_grad, p.device",
        "result = Tensor([1, 2]).requires_grad_(), Tensor([1.0]).requires_grad_(False), Tensor([1.0]).requires_grad_(1)",
        "p = Parameter(Tensor([1.0, 2.0]), name='w')\nresult = repr(p), str(p), p.clone(), p.name, p.asnumpy()",
    ),
    *programs(
        "ms.ParameterTuple",
        "t = ms.ParameterTuple([Parameter(1.0, name='a'), Parameter(2.0, name='b')])\nresult = t, t.clone('moments', init='zeros'), len(t)",
    ),
    *programs(
        "ms.Tensor",
        *(
            f"result = Tensor({form})"
            for form in (
                "1.5",
                "2",
                "True",
                "[1.0, 2.0]",
                "[1, 2]",
                "[[True, False]]",
                "np.ones((2, 2))",
                "[1, 2], ms.float16",
                "Tensor([1.0]), ms.int32",
                "np.float32(1.5)",
                "(1, 2.5)",
            )
        ),
    ),
    *programs("ms.tensor", "result = ms.tensor([1.0, 2.0]), ms.tensor(3), ms.tensor([1, 2], ms.float32)"),
    *programs("ms.is_tensor", "result = ms.is_tensor(Tensor(1)), ops.is_tensor(3)"),
    *programs("ops.is_tensor", "result = ops.is_tensor(Tensor(1)), ops.is_tensor(3)"),
    *programs(
        "initializer",
        *(
            f"result = initializer({form})"
            for form in ("'zeros', (2, 3)", "'ones', [2], ms.int32", "2.5, (2,)", "'zeros', (2,), ms.float16")
        ),
    ),
    *programs(
        "initializer",
        *(
            f"x = initializer('{name}', (40, 50)).init_data().asnumpy()\nresult = x.shape, str(x.dtype), round(float(x.std()) / {std}, 0)"
            for name, std in (
                ("normal", 0.01),
                ("uniform", 0.04),
                ("xavier_uniform", 0.149),
                ("he_uniform", 0.2),
            )
        ),
    ),
    # assignments
    *programs(
        "ops.assign",
        "p = Parameter(Tensor([1.0, 2.0]), name='p')\nresult = ops.assign(p, Tensor([3.0, 4.0])) * 1, p",
    ),
    *programs(
        "ops.Assign",
        "p = Parameter(Tensor([1.0, 2.0]), name='p')\nresult = ops.Assign()(p, Tensor([3.0, 4.0])) * 1, p",
    ),
    *(
        row
        for name in ("assign_add", "assign_sub")
        for row in programs(
            f"ops.{name}",
            f"p = Parameter(Tensor([1.0, 2.0]), name='p')\nresult = ops.{name}(p, Tensor([3.0, 4.0])) * 1, p",
        )
    ),
    *(
        row
        for name in ("AssignAdd", "AssignSub")
        for row in programs(
            f"ops.{name}",
            f"p = Parameter(Tensor([1.0, 2.0]), name='p')\nresult = ops.{name}()(p, Tensor([3.0, 4.0])) * 1, p",
        )
    ),
    *programs(
        "Tensor.assign_value", "x = Tensor([1.0, 2.0])\nresult = x.assign_value(Tensor([3.0, 4.0])), x"
    ),
    *programs("ops.depend", "result = ops.depend(values(3), values(2))"),
    *programs("ops.Depend", "result = ops.Depend()(values(3), values(2))"),
    *programs("ops.stop_gradient", "result = ms.grad(lambda x: (x * ops.stop_gradient(x)).sum())(values(3))"),
    *programs("ops.Identity", "result = ops.Identity()(values(3))"),
    *programs("ops.Print", "result = ops.Print().name"),
    *programs("ops.Primitive", "result = isinstance(ops.Add(), ops.Primitive), ops.Add().name"),
    # random numbers: shapes and dtypes
    *programs("ops.rand", "x = ops.rand(2, 3)\nresult = x.shape, str(x.dtype), bool(x.min() >= 0)"),
    *programs("ops.randn", "x = ops.randn(2, 3)\nresult = x.shape, str(x.dtype)"),
    *programs(
        "ops.randint", "x = ops.randint(0, 5, (4,))\nresult = x.shape, str(x.dtype), bool(x.max() < 5)"
    ),
    *programs("ops.standard_normal", "x = ops.standard_normal((2, 3))\nresult = x.shape, str(x.dtype)"),
    *programs("ms.set_seed", "ms.set_seed(3)\nresult = ms.set_seed(4)"),
    # transforms
    *programs(
        "ms.grad",
        "result = ms.grad(lambda x: x * x)(values(3))",
        "result = ms.grad(lambda x, y: x * y, (0, 1))(values(3), values(3))",
        "result = ms.grad(lambda x, y: x * y, (0,))(values(3), values(3))",
        "result = ms.grad(lambda x: (x * x, x + 1), has_aux=True)(values(3))",
        "p = Parameter(Tensor([2.0]), name='p')\nresult = ms.grad(lambda x: x * p, 0, p)(values(3)), ms.grad(lambda x: x * p, None, [p])(values(3))",
        "result = ms.grad(lambda x, y: x * 2, (0, 1))(values(3), values(2))",
        "result = ms.grad(ms.grad(lambda x: x * x * x))(values(3))",
    ),
    *programs(
        "ms.value_and_grad",
        "result = ms.value_and_grad(lambda x: (x * x).sum())(values(3))",
        "result = ms.value_and_grad(lambda x, y: (x * y, x), (0, 1))(values(3), values(3))",
        "result = ms.value_and_grad(lambda x: (x * x, x), has_aux=True)(values(3))",
        "result = ms.value_and_grad(lambda x, y: x * y, (1,))(values(3), values(3))",
        "p = Parameter(Tensor([2.0]), name='p')\nresult = ms.value_and_grad(lambda x: x * p, (0,), [p])(values(3))",
        "p = Parameter(Tensor([2.0]), name='p')\nresult = ms.grad(lambda x: x * p, (0,), p)(values(3))",
        "p = Parameter(Tensor([2.0]), name='p')\nresult = ms.value_and_grad(lambda x: x * p, 0, [p])(values(3))",
    ),
    *programs("ops.grad", "result = ops.grad(lambda x: x * x)(values(3))"),
    *programs("ops.value_and_grad", "result = ops.value_and_grad(lambda x: (x * x).sum())(values(3))"),
    *programs(
        "ops.GradOperation",
        "result = ops.GradOperation()(lambda x, y: x * y)(values(3), values(3))",
        "result = ops.GradOperation(get_all=True)(lambda x, y: x * y)(values(3), values(3))",
        "result = ops.GradOperation(sens_param=True)(lambda x: x * x)(values(3), values(3))",
        "net = filled(nn.Dense(3, 2))\nresult = ops.GradOperation(get_by_list=True)(net, net.trainable_params())(values(4, 3))",
        "net = filled(nn.Dense(3, 2))\nresult = ops.GradOperation(get_all=True, get_by_list=True)(net, net.trainable_params())(values(4, 3))",
    ),
    *(
        row
        for module in ("ms", "ops")
        for row in (
            *programs(
                f"{module}.vjp",
                f"out, pull = {module}.vjp(lambda x: x * x, values(3))\nresult = out, pull(values(3))",
            ),
            *programs(
                f"{module}.jvp", f"f = lambda x: x * x\nresult = {module}.jvp(f, values(3), values(3))"
            ),
            *programs(
                f"{module}.vmap",
                f"f = lambda x: x * x.sum()\ng = lambda x, y: x + y\nresult = {module}.vmap(f)(values(3, 2)), {module}.vmap(g, (0, None), 1)(values(3, 2), values(2))",
            ),
        )
    ),
    *programs(
        "ms.jacfwd",
        "f = lambda x: x * x\nresult = ms.jacfwd(f)(values(3))",
        "f = lambda x, y: x * y\nresult = ms.jacfwd(f, (0, 1))(values(2), values(2))",
    ),
    *programs(
        "ms.jacrev",
        "f = lambda x: x * x\nresult = ms.jacrev(f)(values(3))",
        "f = lambda x, y: x * y\nresult = ms.jacrev(f, (0, 1))(values(2), values(2))",
    ),
    # dtypes
    *programs(
        "ms.dtype",
        "result = [str(d) for d in (ms.bool_, ms.int8, ms.int16, ms.int32, ms.int64, ms.uint8, ms.uint16, ms.uint32, ms.uint64, ms.float16, ms.float32, ms.float64, ms.bfloat16, ms.complex64, ms.complex128)]",
        "result = str(ms.dtype_to_nptype(ms.float32)), str(ms.pytype_to_dtype(float)), ms.float32 == ms.dtype.float32, ms.float32 == ms.float16",
    ),
    *programs(
        "Tensor",
        "shapes = [Tensor(dtype=ms.float32).shape, Tensor(shape=[None, 3], dtype=ms.float32).shape]\n"
        "result = shapes, str(Tensor(dtype=ms.int32).dtype), repr(Tensor(dtype=ms.int32).shape)",
        *(
            f"x = values(2, 3)\nresult = x.{form}"
            for form in (
                "asnumpy()",
                "astype(ms.float64)",
                "astype('int32')",
                "to(ms.float16)",
                "value()",
                "copy()",
                "contiguous()",
                "is_contiguous()",
                "item(0) if False else x[0, 0].item()",
                "itemsize",
                "tolist()",
                "expand_as(values(2, 2, 3))",
                "view(3, 2)",
                "view_as(values(3, 2))",
                "numpy()",
                "float()",
                "half()",
                "int()",
                "long()",
                "copy_(values(2, 3) * 2)",
                "astype(ms.int32).dtype",
                "reshape((3, -1)).shape",
                "move_to('CPU')",
            )
        ),
    ),
]
