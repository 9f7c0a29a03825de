"""Run a network in PyTorch, carry its weights, run it elsewhere; compare outputs, gradients and losses."""

import copy
import importlib
from typing import NamedTuple

import numpy as np
import torch

STEPS = 10
BOUNDS = {"outputs": 1e-5, "gradients": 1e-4, "losses": 1e-5}
"""The largest difference, relative to the largest number of the tensor: float32 in another order."""


class Results(NamedTuple):
    """What is compared; the gradients are by name."""

    outputs: np.ndarray
    gradients: dict
    losses: list


def leaves(tree, path=""):
    """Return the arrays of nested dictionaries by their paths."""
    if not isinstance(tree, dict):
        return {path: np.asarray(tree)}
    parts = [leaves(below, f"{path}.{name}".strip(".")) for name, below in tree.items()]
    return {name: leaf for part in parts for name, leaf in part.items()}


class Reference(NamedTuple):
    """The network in PyTorch before training, and what it computed."""

    start: torch.nn.Module
    outputs: np.ndarray
    gradients: torch.nn.Module
    losses: list


def reference(name):
    """Return what PyTorch computes; the gradients are in a module, to be carried as weights are."""
    module = importlib.import_module(f"{name}_torch")
    torch.manual_seed(0)
    net, (inputs, labels) = module.Network(), module.data()
    start, gradients, losses = copy.deepcopy(net), copy.deepcopy(net), []
    outputs = net(*inputs)
    for step in range(STEPS):
        value = module.loss(net(*inputs), labels)
        grads = torch.autograd.grad(value, list(net.parameters()))
        losses.append(value.item())
        with torch.no_grad():
            for parameter, grad, kept in zip(net.parameters(), grads, gradients.parameters(), strict=True):
                if step == 0:
                    kept.copy_(grad)
                parameter.sub_(module.RATE * grad)
    return Reference(start, outputs.detach().numpy(), gradients, losses)


def differences(found, expected, carry):
    """Return the largest relative differences; raise ``AssertionError`` above the bounds.

    ``carry`` gives a module's tensors the names and layouts of the framework.
    """
    gradients = leaves(carry(expected.gradients))
    assert len(found.gradients) == len(list(expected.gradients.parameters()))
    rows = {
        "outputs": [(found.outputs, expected.outputs)],
        "gradients": [(value, gradients[name]) for name, value in found.gradients.items()],
        "losses": [(np.array(found.losses), np.array(expected.losses))],
    }
    largest = {
        name: max(float(np.abs(one - other).max() / np.abs(other).max()) for one, other in pairs)
        for name, pairs in rows.items()
    }
    for name, value in largest.items():
        assert value <= BOUNDS[name], (name, value)
    assert expected.losses[-1] < expected.losses[0]
    return ", ".join(f"{name} {value:.1e}" for name, value in largest.items())
