"""Operators of somebody else's, by name: ATen's through PyTorch, aclnn's in rehearsal."""

import importlib.util

import numpy as np

import polyop

x = np.linspace(-1, 2, 12).reshape(3, 4)
polyop_samples = {}
if importlib.util.find_spec("torch") is not None:
    leaky = polyop.aten("leaky_relu")
    softmax = polyop.aten("_softmax")
    polyop_samples = {leaky.name: (x, 0.25), softmax.name: (x, 1, False)}
