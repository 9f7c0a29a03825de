"""Kernels that differ from a common one in a line or two, written as the common text and the changes."""

from loop_samples.generate import function_of


def variant(name, text, *changes):
    r"""Return the kernel ``f`` of a text after the changes, pairs of an old and a new text, under a name.

    >>> text = "def f(x):\n    y = output_tensor(x.shape, x.dtype)\n    y[0] = 1\n    return y\n"
    >>> variant("two", text, ("y[0] = 1", "y[0] = 2")).__name__
    'two'
    """
    for old, new in changes:
        assert old in text, f"{name}: the text to change is not there: {old}"
        text = text.replace(old, new)
    function = function_of(text)
    function.__name__ = name
    return function
