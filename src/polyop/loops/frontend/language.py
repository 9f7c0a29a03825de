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
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.dtypes import dtype
from ..ir.grammar import BOOL, FLOAT, INT, PARTS, Type
from ..ir.scalars import FUNCTIONS, as_type
from ..ir.types import FLOAT8, number_of
from .dtype_limits import finfo, iinfo
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
    "digamma", "trigamma", "hypot", "copysign", "fmod", "cbrt", "gcd", "lcm", "mod", "prange",
)  # fmt: skip
"""Functions that kernels wrote themselves before they were words."""


OF_SCALARS = ("sigmoid", "erf", "erfc", "lgamma", "digamma", "trigamma")
"""Functions that NumPy does not have."""


@dataclass(frozen=True, slots=True)
class Word:
    """A row: a name, how many inputs it takes, and what it computes.

    ``kind`` is "buffer", "loop", "with", "cast", "size", "math", "composed", "complex", "reduction", "random"
    or "limit".
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
    parameters: tuple[str, ...] = ()
    """The names of the inputs, for a word that a call may give them by name."""
    defaults: tuple[Any, ...] = ()
    """The values of the last ``parameters``."""

    @property
    def is_soft(self) -> bool:
        """Whether a kernel may give the name to a variable or to a helper of its own."""
        return self.kind in ("reduction", "random", "complex", "composed", "limit") or self.name in _SOFT

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
    def word(*values: Any, **named: Any) -> Any:
        if not all(map(is_python, (*values, *named.values()))):
            return function(*map(numbers, values), **named)
        # a bool becomes 0 or 1 first: NumPy would compute exp(True) in float16
        whole = (int(v) if isinstance(v, bool) else v for v in values)
        return np.asarray(function(*whole, **named)).item()

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


def _without_bool(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that NumPy has for integers, and not for bools alone: they become int8."""

    def of_any(*values: Any) -> Any:
        if not all(np.asarray(v).dtype.kind == "b" for v in values if not is_python(v)):
            return function(*values)
        return function(*(v if is_python(v) else np.int8(v) for v in values))

    return of_any


def _fold(function: Callable[[Any, Any], Any], of_row: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *values: functools.reduce(function, values) if len(values) > 1 else of_row(values[0])


def _extreme(function: Callable[[Any, Any], Any], of_row: Callable[[Any], Any]) -> Callable[..., Any]:
    def one_of(a: Any, b: Any) -> Any:
        try:
            return function(a, b)
        except OverflowError:  # a Python int that the other's dtype does not hold: it is kept as it is
            if np.ndim(a) or np.ndim(b):
                raise
            return a if (a > b) == (function is np.maximum) else b

    return _fold(one_of, of_row)


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    try:
        return np.where(condition, then, otherwise)[()]
    except TypeError:  # it has no dtype for bfloat16 beside float16 or an integer; np.maximum has
        of = np.maximum(then, otherwise).dtype
        return np.where(condition, np.asarray(then).astype(of), np.asarray(otherwise).astype(of))[()]


def _cast(name: str) -> Callable[[Any], Any]:
    of_numbers = dtype(number_of(Type(name)).dtype).numpy

    def cast(x: Any) -> Any:
        value = as_type(x, of_numbers)  # an integer wraps and a float is cut off; x_type(x) would raise
        return value.astype(dtype(name).numpy).astype(of_numbers)[()] if name in FLOAT8 else value

    cast.__name__ = name  # also a dtype, by its name: output_tensor(x.shape, float32)
    cast.dtype = dtype(name).numpy  # type: ignore[attr-defined]  # NumPy reads it: x.dtype == float32
    return cast


def _zeros(shape: Sequence[int] | int, dtype_like: Any, scope: str = "global") -> Any:
    del scope
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    return as_float8(np.zeros(sizes, dtype(dtype_like).numpy))


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


def _composed(
    name: str, meaning: Callable[..., Any], parameters: str, defaults: tuple[Any, ...] = ()
) -> Word:
    names = tuple(parameters.split())
    least = len(names) - len(defaults)
    meaning = _number(meaning)
    return Word(name, "composed", least, len(names), meaning, parameters=names, defaults=defaults)


def _clip(a: Any, a_min: Any, a_max: Any) -> Any:
    return WORDS["min"].meaning(WORDS["max"].meaning(a, a_min), a_max)


def _isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Any:
    return np.isclose(a, b, rtol, atol, equal_nan)


def _isclose_of_math(a: Any, b: Any, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> bool:
    return math.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol)


def _in_float(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of NumPy that also takes bfloat16, for which NumPy has none."""

    def of_any(x: Any) -> Any:
        of = np.asarray(x).dtype
        return function(x) if of.kind in "biufc" else function(np.asarray(x, np.float32)).astype(of)[()]

    return of_any


def _round(x: Any, digits: int = 0) -> Any:
    return _without_bool(np.round)(x, digits) if digits else _whole(np.rint)(x)


_ROWS = (
    Word("output_tensor", "buffer", 2, 2, _zeros),
    Word("allocate", "buffer", 2, 3, _zeros),  # the third, AKG's memory scope, has no meaning here
    *(
        Word(name, "loop", 1, 3, range)
        for name in ("range", "serial", "vectorize", "parallel", "reduce", "prange")
    ),
    Word("grid", "loop", 1, 1, _grid),
    Word("attr", "with", 2, 2, _without_meaning),
    Word("block_realize", "with", 1, 1, _without_meaning),
    Word("len", "size", 1, 1, len),
    Word("finfo", "limit", 1, 2, finfo),
    Word("iinfo", "limit", 1, 2, iinfo),
    *(Word(name, "cast", 1, 1, _cast(name), type=Type(name)) for name in DTYPES if name != "bool"),
    Word("bool_", "cast", 1, 1, _cast("bool"), type=BOOL),
    Word("bool", "cast", 1, 1, _cast("bool"), type=BOOL),
    Word("int", "cast", 1, 1, int, type=INT),
    Word("float", "cast", 1, 1, float, type=FLOAT),
    _math("abs", np.abs),
    _math("sign", _without_bool(np.sign)),
    _math("floor", _whole(np.floor)),
    _math("ceil", _whole(np.ceil)),
    _math("trunc", _whole(np.trunc)),
    _math("round", _round, 1, 2),
    _math("exp", np.exp),
    _math("exp2", np.exp2),
    _math("expm1", np.expm1),
    _math("log", np.log),
    _math("log1p", np.log1p),
    _math("log2", np.log2),
    _math("sqrt", np.sqrt),
    _math("rsqrt", _floating(_rsqrt)),
    _math("cbrt", np.cbrt),
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
    _math("copysign", np.copysign, 2, 2),
    _math("fmod", np.fmod, 2, 2),
    _math("mod", np.remainder, 2, 2, operator="%"),
    _math("gcd", lambda *values: functools.reduce(_without_bool(np.gcd), values), 2, None),
    _math("lcm", lambda *values: functools.reduce(_without_bool(np.lcm), values), 2, None),
    _math("isnan", np.isnan),
    _math("isinf", np.isinf),
    _math("isfinite", np.isfinite),
    _math("pow", lambda x, y: x**y, 2, 2),
    _math("power", lambda x, y: x**y, 2, 2, operator="pow"),
    _math("ceil_div", lambda x, y: (x + y - 1) // y, 2, 2),
    _math("stop_gradient", lambda x: x),  # the value itself; for its derivatives a constant
    _math("with_gradient", _with_gradient, 3, None, pairs=True),  # (value, x, slope, ...): the value itself
    _math("where", _where, 3, 3, operator="select"),
    _composed("square", np.square, "x"),
    _composed("clip", _clip, "a a_min a_max"),
    _composed("degrees", _in_float(np.degrees), "x"),
    _composed("radians", _in_float(np.radians), "x"),
    _composed("logical_and", np.logical_and, "x1 x2"),
    _composed("logical_or", np.logical_or, "x1 x2"),
    _composed("logical_xor", np.logical_xor, "x1 x2"),
    _composed("logical_not", np.logical_not, "x"),
    _composed("isclose", _isclose, "a b rtol atol equal_nan", (1e-5, 1e-8, False)),
    _composed("math.isclose", _isclose_of_math, "a b rel_tol abs_tol", (1e-9, 0.0)),
    _composed("math.floor", math.floor, "x"),
    _composed("math.ceil", math.ceil, "x"),
    _composed("math.trunc", int, "x"),  # math.trunc takes no float32 of NumPy
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
    _math("max", _extreme(np.maximum, np.max), 1, None, reduces="max"),
    _math("min", _extreme(np.minimum, np.min), 1, None, reduces="min"),
    Word("sum", "reduction", 1, 1, np.sum, reduces="+"),
    Word("prod", "reduction", 1, 1, np.prod, reduces="*"),
    Word("mean", "reduction", 1, 1, np.mean, reduces="+"),
    Word("any", "reduction", 1, 1, np.any, reduces="+"),
    Word("all", "reduction", 1, 1, np.all, reduces="*"),
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
