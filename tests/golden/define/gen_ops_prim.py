"""Operators as classes: what op_def marks prim_init is given first. Written by polyop."""

from .gen_ops_def import _library


class Add4:
    'Adds one tensor to another, scaled.\n\nBoth are broadcast.\n\nArgs:\n    input: the first tensor.\n    alpha: the factor of the second.\n\nReturns:\n    the sum.\n\nExamples:\n    >>> module.add4(x, y, 1)'

    def __call__(self, input, other, alpha=1):
        return _library.Custom_add4(input, other, alpha)


class AddThree:
    'The operator add3.'

    def __init__(self, alpha=1):
        self.alpha = alpha

    def __call__(self, input, other):
        return _library.Custom_add_three(input, other, self.alpha)


class BatchNorm:
    'The operator batch_norm.'

    def __call__(self, input, weight=None, bias=None, running_mean=None, running_var=None, training=False, momentum=0.1, eps=1e-05):
        return _library.Custom_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


class InplaceAdd:
    'The operator inplace_add.'

    def __call__(self, input, other):
        return _library.Custom_inplace_add(input, other)


class Rows:
    'The operator rows.'

    def __call__(self, x, lengths, scale=None, mode='sum'):
        return _library.Custom_rows(x, lengths, scale, mode)


class Total:
    'The operator total.'

    def __call__(self, xs):
        return _library.Custom_total(xs)


class First:
    'The operator first.'

    def __call__(self, x, count):
        return _library.Custom_first(x, count)


class Mix:
    'The operator mix.'

    def __call__(self, x, y):
        return _library.Custom_mix(x, y)
