"""The words that a loop kernel may call, as a table, with what each means on NumPy scalars.

A word of Python numbers gives a Python number: ``exp(0.5)`` takes the dtype of its operator's other operand,
as ``0.5`` does.

>>> WORDS["sqrt"].meaning(4.0), WORDS["sqrt"].meaning(np.float32(4)).dtype
(2.0, dtype('float32'))
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.dtypes import dtype
from ..ir.grammar import BOOL, FLOAT, INT, PARTS, Type
from ..ir.scalars import FUNCTIONS
from ..ir.types import FLOAT8, number_of
from .float8 import as_float8, numbers
from .random_numbers import MOST, random, random_normal

NUMBERS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
"""The dtypes that real numbers of a loop kernel can have."""
DTYPES = (*NUMBERS, *FLOAT8, *PARTS)
"""The dtypes that its tensors can have."""


_SOFT = (
    "where", "exp2", "log1p", "log2", "sinh", "cosh", "sigmoid", "erfc", "tan", "asin", "acos", "lgamma",
    "digamma", "trigamma", "hypot",
)  # fmt: skip
"""Functions that kernels wrote themselves before they were words."""


OF_SCALARS = ("sigmoid", "erf", "erfc", "lgamma", "digamma", "trigamma")
"""Functions that NumPy does not have."""


@dataclass(frozen=True, slots=True)
class Word:
    """A row: a name, how many inputs it takes, and what it computes.

    ``kind`` is "buffer", "loop", "with", "cast", "size", "math", "complex", "reduction" or "random".
    ``max_inputs`` is None if there is no limit. ``operator`` is a row of ``OPERATORS``, for "math"; ``type``
    is the result's, for "cast".
    """

    name: str
    kind: str
    min_inputs: int
    max_inputs: int | None
    meaning: Callable[..., Any]
    operator: str = ""
    type: Type | None = None
    reduces: str = ""
    """The operator that combines the elements of a row, for "reduction" and for max and min of one input."""
    pairs: bool = False
    """Whether the inputs after the first ``min_inputs`` come in pairs."""

    @property
    def is_soft(self) -> bool:
        """Whether a kernel may give the name to a variable or to a helper of its own."""
        return self.kind in ("reduction", "random", "complex") or self.name in _SOFT

    def takes(self, count: int) -> bool:
        """Whether it can be called with ``count`` inputs."""
        fits = count >= self.min_inputs and (self.max_inputs is None or count <= self.max_inputs)
        return fits and (not self.pairs or (count - self.min_inputs) % 2 == 0)

    def counts(self) -> str:
        """Return how many inputs it takes, in words, for an error."""
        names = ("no", "one", "two", "three", "four", "five")
        if self.pairs:
            return f"{names[self.min_inputs]} inputs, and two for each further pair"
        if self.max_inputs is None:
            return f"{names[self.min_inputs]} or more inputs"
        if self.min_inputs == self.max_inputs:
            return f"{names[self.min_inputs]} input{'s' * (self.min_inputs != 1)}"
        return f"{names[self.min_inputs]} to {names[self.max_inputs]} inputs"


def is_python(value: object) -> bool:
    """Whether a value is a Python number, not a NumPy scalar (np.float64 is also a float)."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def _number(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, changed to give a Python number if all its inputs are Python numbers."""

    @functools.wraps(function)
    def word(*values: Any) -> Any:
        if not all(map(is_python, values)):
            return function(*map(numbers, values))
        # a bool becomes 0 or 1 first: NumPy would compute exp(True) in float16
        return np.asarray(function(*(int(v) if isinstance(v, bool) else v for v in values))).item()

    return word


def _floating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of floats that also takes integers, as the float type that NumPy converts them to."""

    def of_any(x: Any) -> Any:
        x_dtype = np.asarray(x).dtype
        return function(np.sqrt(np.ones((), x_dtype)).dtype.type(x) if x_dtype.kind in "biu" else x)

    return of_any


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rounding function that keeps integers (NumPy before 2.1 converts them to floats)."""

    def rounded(x: Any) -> Any:
        kind = np.asarray(x).dtype.kind
        return (
            function(x) if kind not in "biu" else int(x) if is_python(x) else np.int8(x) if kind == "b" else x
        )

    return rounded


def _of_scalars(operator: str) -> Callable[..., Any]:
    """Return what an operator of the IR computes, for a number of any kind and for a row."""
    function = FUNCTIONS[operator]

    def of_any(x: Any) -> Any:
        values = np.asarray(x)
        results = np.array([function(value) for value in values.ravel()], values.dtype)
        return results.reshape(values.shape)[()]

    return _floating(of_any)


def _rsqrt(x: Any) -> Any:
    return np.asarray(x).dtype.type(1) / np.sqrt(x)


def _complex(re: Any, im: Any = 0) -> Any:
    typed = [np.asarray(x).dtype for x in (re, im) if not is_python(x)]
    is_whole = all(one.kind in "biu" for one in typed)  # so are no dtypes at all: Python numbers
    of = np.complex128 if is_whole else np.result_type(*(np.result_type(one, np.complex64) for one in typed))
    whole = np.zeros(np.broadcast_shapes(np.shape(re), np.shape(im)), of)
    whole.real, whole.imag = re, im  # re + 1j * im would lose -0.0 and infinities
    return whole[()]


def _sign(x: Any) -> Any:
    return np.sign(np.int8(x) if np.asarray(x).dtype.kind == "b" else x)


def _fold(function: Callable[[Any, Any], Any], of_row: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *values: functools.reduce(function, values) if len(values) > 1 else of_row(values[0])


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    return np.where(condition, then, otherwise)[()]


def _cast(name: str) -> Callable[[Any], Any]:
    of_numbers = dtype(number_of(Type(name)).dtype).numpy

    def cast(x: Any) -> Any:
        # astype wraps an integer that does not fit and truncates a float, as C does; x_type(x) would raise
        value = np.asarray(x).astype(of_numbers)
        return value.astype(dtype(name).numpy).astype(of_numbers)[()] if name in FLOAT8 else value[()]

    cast.__name__ = name  # also a dtype, by its name: output_tensor(x.shape, float32)
    cast.dtype = dtype(name).numpy  # type: ignore[attr-defined]  # NumPy reads it: x.dtype == float32
    return cast


def _zeros(shape: Sequence[int], dtype_like: Any, scope: str = "global") -> Any:
    del scope
    return as_float8(np.zeros(tuple(shape), dtype(dtype_like).numpy))


def _grid(extents: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, extents))


def _without_meaning(*inputs: Any) -> contextlib.AbstractContextManager[None]:
    del inputs
    return contextlib.nullcontext()


def _with_gradient(value: Any, *pairs: Any) -> Any:
    typed = [np.asarray(x).dtype for x in pairs if not is_python(x)]
    return np.result_type(*typed).type(value) if typed and is_python(value) else value


def _math(
    name: str,
    meaning: Callable[..., Any],
    min_inputs: int = 1,
    max_inputs: int | None = 1,
    *,
    operator: str = "",
    pairs: bool = False,
    reduces: str = "",
) -> Word:
    meaning = _number(meaning)
    return Word(name, "math", min_inputs, max_inputs, meaning, operator or name, reduces=reduces, pairs=pairs)


_ROWS = (
    Word("output_tensor", "buffer", 2, 2, _zeros),
    Word("allocate", "buffer", 2, 3, _zeros),  # the third, AKG's memory scope, has no meaning here
    *(Word(name, "loop", 1, 3, range) for name in ("range", "serial", "vectorize", "parallel", "reduce")),
    Word("grid", "loop", 1, 1, _grid),
    Word("attr", "with", 2, 2, _without_meaning),
    Word("block_realize", "with", 1, 1, _without_meaning),
    Word("len", "size", 1, 1, len),
    *(Word(name, "cast", 1, 1, _cast(name), type=Type(name)) for name in DTYPES if name != "bool"),
    Word("bool_", "cast", 1, 1, _cast("bool"), type=BOOL),
    Word("bool", "cast", 1, 1, _cast("bool"), type=BOOL),
    Word("int", "cast", 1, 1, int, type=INT),
    Word("float", "cast", 1, 1, float, type=FLOAT),
    _math("abs", np.abs),
    _math("sign", _sign),
    _math("floor", _whole(np.floor)),
    _math("ceil", _whole(np.ceil)),
    _math("trunc", _whole(np.trunc)),
    _math("round", _whole(np.rint)),
    _math("exp", np.exp),
    _math("exp2", np.exp2),
    _math("expm1", np.expm1),
    _math("log", np.log),
    _math("log1p", np.log1p),
    _math("log2", np.log2),
    _math("sqrt", np.sqrt),
    _math("rsqrt", _floating(_rsqrt)),
    _math("sinh", np.sinh),
    _math("cosh", np.cosh),
    _math("tanh", np.tanh),
    *(_math(name, _of_scalars(name)) for name in OF_SCALARS),
    _math("sin", np.sin),
    _math("cos", np.cos),
    _math("tan", np.tan),
    _math("asin", np.arcsin),
    _math("acos", np.arccos),
    _math("atan", np.arctan),
    _math("atan2", np.arctan2, 2, 2),
    _math("hypot", np.hypot, 2, 2),
    _math("isnan", np.isnan),
    _math("isinf", np.isinf),
    _math("isfinite", np.isfinite),
    _math("pow", lambda x, y: x**y, 2, 2),
    _math("power", lambda x, y: x**y, 2, 2, operator="pow"),
    _math("ceil_div", lambda x, y: (x + y - 1) // y, 2, 2),
    _math("stop_gradient", lambda x: x),  # the value itself; for its derivatives a constant
    _math("with_gradient", _with_gradient, 3, None, pairs=True),  # (value, x, slope, ...): the value itself
    _math("where", _where, 3, 3, operator="select"),
    *(
        Word(name, "complex", 1, most, _number(meaning))
        for name, most, meaning in (
            ("complex", 2, _complex),
            ("real", 1, np.real),
            ("imag", 1, np.imag),
            ("conj", 1, np.conj),
            ("angle", 1, np.angle),
        )
    ),
    # NaN if any input is, unlike the built-in max and min; of one input, a row, its greatest element
    _math("max", _fold(np.maximum, np.max), 1, None, reduces="max"),
    _math("min", _fold(np.minimum, np.min), 1, None, reduces="min"),
    Word("sum", "reduction", 1, 1, np.sum, reduces="+"),
    Word("prod", "reduction", 1, 1, np.prod, reduces="*"),
    Word("dot", "reduction", 2, 2, lambda x, y: np.sum(x * y), reduces="+"),
    Word("random", "random", 2, 1 + MOST, random),  # (key, counter, ...), and dtype= by keyword
    Word("random_normal", "random", 2, 1 + MOST, random_normal),
)

WORDS: dict[str, Word] = {row.name: row for row in _ROWS}
"""Every word, by its name."""


def is_word(name: str) -> bool:
    """Whether a name means a word of the language, whatever the module has under it."""
    return name in WORDS and not WORDS[name].is_soft


LOOPS = tuple(name for name, row in WORDS.items() if row.kind == "loop")
BUFFERS = tuple(name for name, row in WORDS.items() if row.kind == "buffer")
