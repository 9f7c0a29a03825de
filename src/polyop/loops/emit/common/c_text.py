"""The smallest parts of the printed C: types, names, operators, values, and which headers are used."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ....core.dtypes import DTYPES
from ...ir import types
from ...ir.grammar import Buffer, Const, Type

_ROWS = {row.name: row for row in DTYPES if row.c}
SIZES = {"bool": 1} | {row.c: row.itemsize for row in _ROWS.values()}
NARROW = {name: _ROWS[name].c for name in types.NARROW}
"""The C name of each float that is narrower than float32: a word in memory, computed in float32."""

_WORDS = """
r auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof linux unix begin end thread context kernel k nparam params ndims shapes
dtypes stream extra t l on lo hi p e u used parts self text places none found index place size name
line axis run fail failed failure bytes body cost trips chunk most allowed min max free
memset memcpy strncat strlen posix_memalign snprintf NULL EOF stdin stdout stderr main
alignas alignof and and_eq bitand bitor bool catch class compl concept const_cast constexpr decltype
delete dim3 dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public reinterpret_cast requires static_assert
static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor
xor_eq threadIdx blockIdx blockDim gridDim warpSize call given partials scalars state wrong
half local constant global private read_only write_only read_write pipe sampler_t event_t numbers
NAN INFINITY MAXFLOAT HUGE_VAL HUGE_VALF HUGE_VALL errno
"""
_KEYWORDS = frozenset(_WORDS.split())
HEADERS = (
    r"(?:polyop|plp?_|load_|store_|gatherx?_|scatter_|bcast_|iota_|sel_|max_|min_|reduce_|tobool_|frombool_|any_"
    r"|stream_|cvt_|whole_|floordiv_|mod_|shl_|shr_|wrap_|_).*"
)
"""Names of functions and macros of include/polyop/loops, and of the compiler."""
_OURS = re.compile(
    rf"{HEADERS}|u?int\d*_t|cuda[A-Z]\w*|INT\w+"
    r"|(own_|at_).*|(q|part|[mb]\d+_)\d*(_\d+)*|found\d+|(row|next)\d+_\d+|.*_"
    r"|.*_(n|v|r|u|stream|row)\d+(_next)?|.*_(end|lo|hi|panel|part|check|rows|last|from|to|steps?|q|n)"
    r"|image\w+_t|(?:CLK|M|CHAR)_\w+|[A-Z]+_(?:MIN|MAX|BIT)"
)
"""Names that the printed text uses itself. A name that ends with "_" in addition is free."""

INFIX = {"+": "+", "-": "-", "*": "*", "/": "/", "&": "&", "|": "|", "^": "^"}
SHIFTS = {"<<": "shl", ">>": "shr"}
OF_INTEGERS = {"pow": "ipow", "fmod": "rem", "gcd": "gcd", "lcm": "lcm"}
"""Functions of integer.h that are declared where they are wanted."""
COMPARE = ("<", "<=", ">", ">=", "==", "!=")


def memory(dtype: str) -> str:
    """Return the C type of an element in memory.

    >>> memory("bool"), memory("bfloat16"), memory("float32")
    ('u8', 'bf16', 'f32')
    """
    return _ROWS[dtype].c


def word(dtype: str) -> str:
    """Return the C type of an element in a vector from memory: narrow floats are words.

    >>> word("float8_e5m2"), word("bfloat16"), word("float64")
    ('u8', 'u16', 'f64')
    """
    return f"u{SIZES[NARROW[dtype]] * 8}" if dtype in NARROW else memory(dtype)


def computed(kind: Type) -> str:
    """Return the C type that values of a type are computed in; "bool" is an int of 0 or 1."""
    return "bool" if kind.dtype == "bool" else "f32" if kind.dtype in NARROW else memory(kind.dtype)


def signed(elem: str) -> str:
    """Return the element of a mask for vectors of ``elem``."""
    return f"i{SIZES[elem] * 8}"


def identifier(name: str) -> str:
    """Return the C identifier of a name: keywords and names that the text itself uses get a "_".

    >>> identifier("int"), identifier("alpha")
    ('int_', 'alpha')
    """
    taken = name in _KEYWORDS or name in SIZES or _OURS.fullmatch(name)
    return f"{name}_" if taken else name


def size_name(buffer: str, axis: int) -> str:
    """Return the C name of a tensor's size.

    >>> size_name("x", 0)
    'x_n0'
    """
    return f"{buffer}_n{axis}"


def extent(buffer: Buffer, axis: int, name: str) -> str:
    """Return a size in an offset: that of a pair as a number, so that C's compiler knows the stride."""
    return "2" if axis == len(buffer.outer_shape) else name


IDENTITIES = {"+": "0", "*": "1"}


def identity(op: str, elem: str) -> str:
    """Return the identity element of a reduction, as a C expression.

    >>> identity("max", "f32"), identity("min", "u8")
    ('-__builtin_inf()', '255')
    """
    if op in IDENTITIES:
        return IDENTITIES[op]
    if elem[0] == "f":
        return "-__builtin_inf()" if op == "max" else "__builtin_inf()"
    bits = SIZES[elem] * 8
    if elem[0] == "u" or elem == "bool":
        return "0" if op == "max" else f"{2**bits - 1}{'u' * (bits >= 32)}{'ll' * (bits == 64)}"
    low = f"(-{2 ** (bits - 1) - 1}{'ll' * (bits == 64)} - 1)"
    return low if op == "max" else f"{2 ** (bits - 1) - 1}{'ll' * (bits == 64)}"


def identity_of_masks(op: str) -> str:
    """Return the identity element of a reduction of conditions, of which each lane has a mask: 0 or -1.

    >>> identity_of_masks("max"), identity_of_masks("min")
    ('0', '-1')
    """
    return "0" if op in ("+", "max") else "-1"


@dataclass(frozen=True)
class Value:
    """C text and its element type. ``truth``: a condition; as a vector, a mask with elements ``elem``."""

    text: str
    elem: str
    vec: bool = False
    truth: bool = False


_SPECIAL = {"nan": '__builtin_nan("")', "inf": "__builtin_inf()", "-inf": "(-__builtin_inf())"}


def constant(expr: Const) -> Value:
    """Return a number in C."""
    elem = computed(expr.type)
    value: Any = expr.value
    if elem == "bool":
        return Value(str(int(bool(value))), "bool", truth=True)
    if elem[0] == "f":
        number = float(value)
        text = _SPECIAL.get(repr(number), repr(number))
        return Value(f"(({elem}){text})" if text[0] in "-_(" else text + "f" * (elem == "f32"), elem)
    text = f"{int(value)}{'ll' if abs(int(value)) > 2**31 - 1 else ''}"
    if int(value) == -(2**63):
        text = "(-9223372036854775807ll - 1)"
    if elem[0] == "u" and int(value) > 2**31 - 1:
        text = f"{int(value)}ull"
    return Value(f"({elem}){text}" if elem != "i64" or value < 0 else text, elem)


@dataclass
class Used:
    """What the printed text uses of the headers in include/polyop/loops."""

    functions: set[str] = field(default_factory=set)
    """Functions of math.h, by their names in the IR; "precise": in their precise versions."""
    widths: set[int] = field(default_factory=set)
    """Bytes per lane of the vectors."""
    headers: set[str] = field(default_factory=set)
    """Headers beside those that every file includes."""
    names: set[str] = field(default_factory=set)
    """C names of tensors, sizes, attributes and variables, in the function that is being printed."""
