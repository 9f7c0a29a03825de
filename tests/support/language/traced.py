"""Run a kernel's plain Python function on numbers that know how far rounding may change them.

A traced value is what NumPy computes, with a bound of the error that another order of the operations, or more digits
inside, may give. A decision that such an error may turn, as a comparison of two numbers that are nearly equal, raises
``Undecided``: there is no value to compare with.
"""

import operator
from unittest import mock

import ml_dtypes
import numpy as np

from polyop.loops.frontend import plain as plain_module
from polyop.loops.frontend.byte_floats import as_array, as_byte_floats
from polyop.loops.frontend.language import WORDS, Word

ULPS = 4
"""The rounding of a function, in units of the last place of its result: the compiled one and NumPy's."""
MOST = 200_000
"""The most functions of a run: some ten seconds."""
STEPS = ("floor", "ceil", "trunc", "round", "sign", "ceil_div", "//", "%", "fmod", "mod",
         "math.floor", "math.ceil", "math.trunc")  # fmt: skip
"""Functions that are constant between jumps: an error may turn into a whole step."""
EXACT = (*STEPS, "abs", "max", "min", "where", "real", "imag", "conj", "complex", "stop_gradient", "with_gradient",
         "copysign", "square", "clip", "random", "+", "-", "*", "**", "neg", "cast", "getitem", "sum", "prod", "dot")  # fmt: skip
"""Functions without an error of their own where their result has few digits."""


class Undecided(Exception):
    """Rounding decides what the kernel does."""


WIDE = {np.dtype(np.float64): np.longdouble, np.dtype(np.complex64): np.complex128}
WIDE |= {np.dtype(np.complex128): np.clongdouble}
WIDE |= {np.dtype(d): d for d in (np.longdouble, np.clongdouble)}


def kind_of(value):
    dtype = np.asarray(value).dtype
    return "f" if dtype.name.startswith(("bfloat16", "float8")) else dtype.kind


def epsilon(value):
    """Return the distance of 1 and the next number of a value's dtype."""
    dtype = np.asarray(value).dtype
    return float(ml_dtypes.finfo(dtype).eps) if kind_of(value) in "fc" else 0.0


def wide(value):
    """Return a value with more digits."""
    if isinstance(value, (bool, int, tuple)) or kind_of(value) == "b":
        return value
    array = np.asarray(as_array(value) if isinstance(value, np.ndarray) else value)
    to = np.float64 if array.dtype.kind != "c" else np.complex128
    return array.astype(WIDE.get(array.dtype, to))[()]


def magnitude(value):
    return np.abs(wide(value)).astype(np.float64)


class Traced:
    """A number or an array of the plain run, and the bound of its error, of the same shape."""

    __array_ufunc__ = None
    wraps = count = 0
    """How many integers wrapped around, and how many functions were computed, since they were set."""

    def __init__(self, value, error=0.0):
        self.value = value
        self.error = error if isinstance(error, np.ndarray) else np.full(np.shape(value), float(error))

    shape = property(lambda self: np.shape(self.value))
    ndim = property(lambda self: np.ndim(self.value))
    size = property(lambda self: np.size(self.value))
    dtype = property(lambda self: np.asarray(self.value).dtype)
    real = property(lambda self: apply("real", np.real, self))
    imag = property(lambda self: apply("imag", np.imag, self))

    def conj(self):
        return apply("conj", np.conj, self)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __len__(self):
        return len(self.value)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __bool__(self):
        return bool(apply("bool", lambda x: np.asarray(x).astype(bool)[()], self).value)

    def __index__(self):
        return operator.index(self.value)

    def __int__(self):
        return int(apply("int", int, self).value)

    def __getitem__(self, index):
        index = unwrapped_index(index)
        return Traced(self.value[index], np.asarray(self.error[index]))

    def __setitem__(self, index, new):
        index, value = unwrapped_index(index), untraced(new)
        self.value[index] = value
        stored = self.value[index]
        error = error_of(new)
        if kind_of(stored) in "iub":
            if np.any(error) and kind_of(value) in "fc":
                for moved in (value - error, value + error):
                    if np.any(np.trunc(moved) != np.trunc(value)):
                        raise Undecided("an integer of a rounded number")
            elif np.any(error):
                raise Undecided("an integer of a rounded number")
            self.error[index] = 0.0
            return
        with np.errstate(all="ignore"):
            exact = np.all((wide(stored) == wide(value)) | (wide(value) != wide(value))) and not np.any(error)
            self.error[index] = 0.0 if exact else error + epsilon(stored) * magnitude(stored)


def unwrapped_index(index):
    if isinstance(index, tuple):
        return tuple(map(unwrapped_index, index))
    if isinstance(index, slice):
        return slice(*map(unwrapped_index, (index.start, index.stop, index.step)))
    return operator.index(index) if isinstance(index, Traced) else index


def untraced(value):
    if isinstance(value, tuple):
        return tuple(map(untraced, value))
    return value.value if isinstance(value, Traced) else value


def error_of(value):
    return value.error if isinstance(value, Traced) else 0.0


def apply(name, function, *inputs, **named):
    """Return a function of traced values, and the bound of its error.

    An input moved by its error moves the result so far; the function itself rounds where a result with more digits
    differs.
    """
    values = [untraced(value) for value in inputs]
    Traced.count += 1
    if Traced.count > MOST:
        raise Undecided("too long")
    with np.errstate(all="ignore"):
        result = function(*values, **named)
        inexact = [k for k, value in enumerate(inputs) if np.any(error_of(value))]
        if kind_of(result) in "iub":
            for k in inexact:
                for moved in moves(values[k], inputs[k].error):
                    if np.any(function(*values[:k], moved, *values[k + 1 :], **named) != result):
                        raise Undecided(name)
            note_wraps(name, function, values, result)
            return Traced(result)
        return Traced(result, bound(name, function, values, inputs, inexact, result, named))


def moves(value, error):
    """Return a value less and plus its error, with more digits; NaN where the error has no bound."""
    value = wide(value)
    return value - error, value + error


def bound(name, function, values, inputs, inexact, result, named):
    """Return the bound of the error of a result of floats."""
    if name in ("random", "random_normal"):
        return 0.0 if name == "random" else 8 * epsilon(result) * (1 + magnitude(result))
    wider = [wide(value) for value in values]
    try:
        high = function(*wider, **named)
    except (TypeError, ValueError, OverflowError):  # a function that takes no such digits
        wider = [np.float64(v) if isinstance(v, np.longdouble) else v for v in wider]
        high = function(*wider, **named)
    high = wide(high)
    if np.any(np.isfinite(high) & ~np.isfinite(wide(result))):
        raise Undecided("an overflow")
    sure = name in EXACT and not inexact and np.all((high == wide(result)) | (high != high))
    scale = np.maximum(magnitude(result), most(name, wider))
    total = np.zeros(np.shape(result)) if sure else ULPS * epsilon(result) * scale
    total = total if name in EXACT or not sure else total + ULPS * epsilon(result) * scale
    for k in inexact:
        by = 0.0
        for moved in moves(values[k], inputs[k].error):
            other = wide(function(*wider[:k], moved, *wider[k + 1 :], **named))
            by = np.maximum(by, np.abs(other - high).astype(np.float64))
        if name in STEPS and np.any(by > 4 * np.max(inputs[k].error)):
            raise Undecided(name)
        total = total + by
    total = np.where(np.isnan(total), np.inf, total)
    return np.where((total > 0) & ~np.isfinite(wide(result)), np.inf, total)


def most(name, values):
    """Return how large the terms of a sum may be."""
    try:
        sizes = [np.abs(value) for value in values]
        if name in ("+", "-"):
            return (sizes[0] + sizes[1]).astype(np.float64)
        if name in ("sum", "prod"):
            return float(getattr(np, name)(sizes[0]))
        if name == "dot":
            return float(np.sum(sizes[0] * sizes[1]))
    except (TypeError, AttributeError):
        pass
    return 0.0


def note_wraps(name, function, values, result):
    """Count an integer that wrapped around."""
    if kind_of(result) in "iu" and name in ("+", "-", "*", "**", "neg", "<<"):
        exact = function(*(float(v) if np.ndim(v) == 0 else v.astype(np.float64) for v in values)) \
            if name != "<<" else float(values[0]) * 2.0 ** min(float(values[1]), 80)  # fmt: skip
        Traced.wraps += bool(
            np.any(np.abs(exact - np.asarray(result).astype(np.float64)) > 0.5 + 1e-6 * np.abs(exact))
        )


BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "and": "&",
    "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
for word, sign in BINARY.items():
    run = getattr(operator, f"{word}_" if word in ("and", "or") else word)
    setattr(Traced, f"__{word}__", lambda self, other, run=run, sign=sign: apply(sign, run, self, other))
    setattr(Traced, f"__r{word}__", lambda self, other, run=run, sign=sign: apply(sign, run, other, self))
for word in ("lt", "le", "gt", "ge", "eq", "ne"):
    run = getattr(operator, word)
    setattr(Traced, f"__{word}__", lambda self, other, run=run, word=word: apply(word, run, self, other))
for word in ("neg", "invert", "pos"):
    run = getattr(operator, word)
    setattr(Traced, f"__{word}__", lambda self, run=run, word=word: apply(word, run, self))
Traced.__hash__ = None


def traced_word(row):
    """Return a word of the language for traced values."""

    def meaning(*inputs, **named):
        if row.kind == "loop":
            return row.meaning(*(operator.index(one) if isinstance(one, Traced) else one for one in inputs))
        if row.kind == "buffer":
            array = row.meaning(*inputs, **named)
            return Traced(array, np.zeros(array.shape))
        if row.kind in ("with", "size", "limit") or not any(isinstance(one, Traced) for one in inputs):
            result = row.meaning(*inputs, **named)
            is_float = kind_of(result) in "fc" and row.kind in ("math", "composed", "complex", "random")
            return apply(row.name, row.meaning, *inputs, **named) if is_float else result
        name = "cast" if row.kind == "cast" and row.name not in ("int", "float", "bool") else row.name
        result = apply(name, row.meaning, *inputs, **named)
        return result.value if row.name in ("int", "math.floor", "math.ceil", "math.trunc") else result

    for attribute in ("__name__", "dtype"):
        if hasattr(row.meaning, attribute):
            setattr(meaning, attribute, getattr(row.meaning, attribute))
    return meaning


TRACED = {
    name: Word(name, row.kind, row.min_inputs, row.max_inputs, traced_word(row), row.operator, row.type, row.reduces,
               row.pairs)
    for name, row in WORDS.items()
}  # fmt: skip


def run(function, arrays, attributes):
    """Return the outputs of the plain function and the bounds of their errors, and whether an integer wrapped."""
    Traced.wraps = Traced.count = 0
    inputs = [None if a is None else Traced(as_byte_floats(a.copy()), np.zeros(a.shape)) for a in arrays]
    with mock.patch.object(plain_module, "WORDS", TRACED):
        results = plain_module.plain(function)(*inputs, **attributes)
    results = results if isinstance(results, tuple) else (results,)
    return [as_array(r.value) for r in results], [r.error for r in results], Traced.wraps > 0
