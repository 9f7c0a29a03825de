"""The rules of the networks' own layers, and running a network in JAX and in MindSpore."""

import functools
import importlib

import numpy as np
import torch
from compare import STEPS, Results, leaves

from polyop.networks import weights


# [rules]
def without_middle(_, tensors):
    """Carry a convolution (features, 1, taps) to (features, taps)."""
    return {"weight": tensors["weight"][:, 0], "bias": tensors["bias"]}


def rules(name):
    """Return the rules of the layers that no table has."""
    module = importlib.import_module(f"{name}_torch")
    own = [kind for kind in vars(module).values() if getattr(kind, "__module__", "") == module.__name__]
    return {torch.nn.Conv1d: without_middle} | {
        kind: weights.as_they_are for kind in own if isinstance(kind, type)
    }


# [/rules]


def over_two_devices(data):
    """Return the arrays with their first dimension divided over two devices of JAX."""
    import jax

    mesh = jax.sharding.Mesh(jax.devices()[:2], ("batch",))
    return jax.device_put(data, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch")))


def in_jax(name, start, data, *, compiled, shard=lambda data: data):
    """Return the results of JAX; ``shard`` gives the data to its devices."""
    import jax
    from jax import numpy as jnp

    module, rate = importlib.import_module(f"{name}_jax"), importlib.import_module(f"{name}_torch").RATE
    jit = jax.jit if compiled else lambda function: function
    params = jax.tree.map(jnp.asarray, start["params"])
    statistics = start.get("batch_stats", {})
    inputs, labels = shard(jax.tree.map(lambda x: jnp.asarray(x.numpy()), data))
    step = jit(jax.value_and_grad(lambda p, *x: module.loss(module.network(p, statistics, *x), labels)))
    outputs, losses, first = jit(module.network)(params, statistics, *inputs), [], None
    for _ in range(STEPS):
        value, grads = step(params, *inputs)
        first = grads if first is None else first
        losses.append(float(value))
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    return Results(np.asarray(outputs), leaves({"params": first}), losses)


def in_mindspore(name, start, data, *, compiled):
    """Return the results of MindSpore."""
    import mindspore as ms

    module, rate = importlib.import_module(f"{name}_mindspore"), importlib.import_module(f"{name}_torch").RATE
    ms.set_context(mode=ms.GRAPH_MODE if compiled else ms.PYNATIVE_MODE)
    net = module.Network()
    for path, parameter in net.parameters_and_names():
        parameter.set_data(ms.Tensor(start[path]))
    *inputs, labels = (ms.Tensor(x.numpy()) for x in (*data[0], data[1].int()))
    trained = {path: parameter for path, parameter in net.parameters_and_names() if parameter.requires_grad}

    def forward(*inputs):
        return module.loss(net(*inputs), labels)

    step = ms.value_and_grad(forward, None, list(trained.values()))
    # a compiled graph does not see what `set_data` gives a parameter after the first step
    optimiser = ms.nn.SGD(list(trained.values()), rate)
    outputs, losses, first = net(*inputs).asnumpy(), [], None
    for _ in range(STEPS):
        value, grads = step(*inputs)
        first = [g.asnumpy() for g in grads] if first is None else first
        losses.append(float(value.asnumpy()))
        optimiser(grads)
    return Results(outputs, dict(zip(trained, first, strict=True)), losses)


def ways(name):
    """Yield how a network is run: in words, the package it needs, and the function."""
    for framework, run in (("jax", in_jax), ("mindspore", in_mindspore)):
        for how, compiled in (("eager", False), ("compiled", True)):
            yield f"in {framework}, {how}", framework, functools.partial(run, compiled=compiled)
    if name == "state_space":
        yield "in jax, two devices", "jax", functools.partial(in_jax, compiled=True, shard=over_two_devices)


# [carry]
def carry(name, framework):
    """Return the function that carries a module of PyTorch to a framework."""
    if framework == "jax":
        return functools.partial(weights.to_jax, rules=rules(name))
    cell = importlib.import_module(f"{name}_mindspore").Network()
    return functools.partial(weights.to_mindspore, rules=rules(name), like=cell)


# [/carry]
