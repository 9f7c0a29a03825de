"""Operators of op, from its library. Written by polyop: changes are lost."""

from pathlib import Path

from polyop.define.module import OperatorModule

_library = OperatorModule("op", Path(__file__).resolve().parents[1] / "op.so")


def add4(input, other, alpha=1):
    'Adds one tensor to another, scaled.\n\nBoth are broadcast.\n\nArgs:\n    input: the first tensor.\n    alpha: the factor of the second.\n\nReturns:\n    the sum.\n\nExamples:\n    >>> module.add4(x, y, 1)'
    return _library.add4(input, other, alpha)


def add_three(input, other, alpha=1):
    'The operator add3.'
    return _library.add_three(input, other, alpha)


def batch_norm(input, weight=None, bias=None, running_mean=None, running_var=None, training=False, momentum=0.1, eps=1e-05):
    'The operator batch_norm.'
    return _library.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def inplace_add(input, other):
    'The operator inplace_add.'
    return _library.inplace_add(input, other)


def rows(x, lengths, scale=None, mode='sum'):
    'The operator rows.'
    return _library.rows(x, lengths, scale, mode)


def total(xs):
    'The operator total.'
    return _library.total(xs)


def first(x, count):
    'The operator first.'
    return _library.first(x, count)


def mix(x, y):
    'The operator mix.'
    return _library.mix(x, y)
