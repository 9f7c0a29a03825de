"""Derived gradients against central differences, both by the interpreter in double precision."""

import numpy as np

from polyop.loops.derive.forms import adjoint
from polyop.loops.derive.functional import functional
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations

STEP = 1e-6
ABSENT = np.zeros((), bool)


def real(array):
    """Return whether an array holds floating-point numbers."""
    return array.dtype.kind == "f"


class Derived:
    """A function's kernel, in a form that writes no input, and the gradient derived of it."""

    def __init__(self, function, arrays, attributes=None, present=None):
        self.attributes = dict(attributes or {})
        typed = parse(function, [(a.dtype.name, a.ndim) for a in arrays], self.attributes)
        self.kernel = functional(typed)
        dtypes = [self.kernel.buffers[n].dtype for n in self.kernel.outputs]
        # outputs of short floats are too rough for differences, so they get no gradient
        self.present = present or tuple(d not in ("float32", "float16") for d in dtypes)
        self.backward = adjoint(self.kernel, self.present).kernel
        assert violations(self.backward) == []

    def outputs(self, arrays):
        """Return the outputs of the kernel."""
        return interpret(self.kernel, arrays, self.attributes)

    def weights(self, outputs, seed=0):
        """Return a random gradient for each output that has one."""
        random = np.random.default_rng([7, seed])
        weights = [random.normal(size=o.shape) for o in outputs]
        rows = zip(outputs, weights, self.present, strict=True)
        return [w if real(o) and present else None for o, w, present in rows]

    def gradients(self, arrays, weights):
        """Return the gradient of each input, or None for an input of whole numbers."""
        outputs = self.outputs(arrays)
        cotangents = [o if w is None else w for o, w in zip(outputs, weights, strict=True)]
        names = [n for n in self.backward.parameters if n in self.backward.buffers]
        rows = zip(names, [*arrays, *outputs, *cotangents], strict=True)
        operands = [ABSENT if self._is_absent(name) else a for name, a in rows]
        gradients = interpret(self.backward, operands, self.attributes)
        for array, gradient in zip(arrays, gradients, strict=True):
            assert not real(array) or (gradient.shape, gradient.dtype) == (array.shape, array.dtype)
        return [g if real(a) else None for a, g in zip(arrays, gradients, strict=True)]

    def slope(self, arrays, weights, along, step=STEP):
        """Return the central difference, in a direction, of the sum of all outputs times their weights."""
        high, low = (
            self.outputs(
                [a if v is None else a + sign * step * v for a, v in zip(arrays, along, strict=True)]
            )
            for sign in (1, -1)
        )
        rows = zip(high, low, weights, strict=True)  # not of the sums: large numbers would hide small ones
        return sum(((one - other) * w).sum() for one, other, w in rows if w is not None) / (2 * step)

    def _is_absent(self, name):
        return self.backward.buffers[name].absent


def check_elements(derived, arrays, rough=1e-6):
    """Compare the gradient of each element of each input with its central difference."""
    weights = derived.weights(derived.outputs(arrays))
    gradients = derived.gradients(arrays, weights)
    for number, (array, gradient) in enumerate(zip(arrays, gradients, strict=True)):
        if gradient is None:
            continue
        expected = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            unit = np.zeros_like(array)
            unit[index] = 1
            along = [unit if k == number else None for k in range(len(arrays))]
            expected[index] = derived.slope(arrays, weights, along)
        scale = 1 + np.abs(expected).max(initial=0)
        np.testing.assert_allclose(gradient, expected, rtol=rough, atol=rough * scale)


def check_directions(derived, arrays, count=2, rough=1e-6):
    """Compare derivatives along random directions in the space of all inputs."""
    weights = derived.weights(derived.outputs(arrays))
    gradients = derived.gradients(arrays, weights)
    for number in range(count):
        random = np.random.default_rng([number, 3])
        along = [random.normal(size=a.shape) if real(a) else None for a in arrays]
        rows = [(g, v) for g, v in zip(gradients, along, strict=True) if g is not None]
        slope = sum((g * v).sum() for g, v in rows)
        scale = 1 + sum(np.abs(g * v).sum() for g, v in rows)
        np.testing.assert_allclose(
            slope, derived.slope(arrays, weights, along), rtol=rough, atol=rough * scale
        )
