"""What the interpreter makes of the programs of the table, computed once in a process."""

import functools

import numpy as np

from polyop.core.errors import ArgumentValueError
from polyop.loops.derive.forms import adjoint
from polyop.loops.derive.functional import functional
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret


@functools.cache
def typed(program):
    """Return the kernel of a program."""
    tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
    return parse(program.function, tensors, program.attributes)


@functools.cache
def expected(program, index):
    """Return the results of a program for sizes number ``index``."""
    arrays = program.arrays(program.sizes()[index])
    return interpret(typed(program), arrays, program.attributes)


def cases(program):
    """Yield sizes and the results of a program for them; a size that makes an output's negative is left out."""
    for index, sizes in enumerate(program.sizes()):
        try:
            results = expected(program, index)
        except ArgumentValueError:
            continue
        yield sizes, results


@functools.cache
def forward(program):
    """Return the kernel of a program; what it wrote in place is an output, so that it has a gradient."""
    kernel = typed(program)
    in_place = any(buffer.role == "inplace" for buffer in kernel.buffers.values())
    return functional(kernel) if in_place else kernel


@functools.cache
def gradient(program):
    """Return the kernel of the gradient of a program: of all outputs, for all inputs."""
    return adjoint(forward(program), (True,) * len(forward(program).outputs)).kernel


def gradient_arrays(program, index):
    """Return tensors for the gradient: inputs, outputs, and the outputs' values as their gradients."""
    kernel, arrays = gradient(program), program.arrays(program.sizes()[index])
    outputs = interpret(forward(program), arrays, program.attributes)
    names = [name for name in kernel.parameters if name in kernel.buffers]
    pairs = zip(names, [*arrays, *outputs, *outputs], strict=True)
    return [array if kernel.buffers[name].shape else np.zeros((), bool) for name, array in pairs]


def close(reference, actual, rough, where):
    """Assert that a result has shape, dtype and values, with a relative error of ``rough`` if there is one."""
    assert (actual.shape, actual.dtype) == (reference.shape, reference.dtype), where
    if rough:
        reference, actual = reference.astype(np.float64), actual.astype(np.float64)
        np.testing.assert_allclose(actual, reference, rough, rough, err_msg=where)
    else:
        np.testing.assert_array_equal(actual, reference, err_msg=where)
