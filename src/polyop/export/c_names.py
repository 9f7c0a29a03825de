"""The names of the parameters of an operator's C function."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .operator import ExportedOperator

_KEYWORDS = frozenset({
    "alignas", "alignof", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "case", "catch", "char",
    "char16_t", "char32_t", "char8_t", "compl", "concept", "const", "const_cast", "consteval",
    "constexpr", "constinit", "co_await", "co_return", "co_yield", "decltype", "default", "delete",
    "do", "double", "dynamic_cast", "enum", "explicit", "export", "extern", "float", "friend", "goto",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not_eq", "nullptr", "operator",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict",
    "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
    "template", "this", "thread_local", "throw", "typedef", "typeid", "typename", "union", "unsigned",
    "using", "virtual", "void", "volatile", "wchar_t", "xor", "xor_eq",
    "true", "false", "typeof", "linux", "unix",
})  # fmt: skip
"""Words of C and C++ that a schema may have as names; ``cppreference.com`` lists them."""
_MACROS = re.compile(
    r"\w+_t|polyop_(array|dtype)|NULL|EOF|errno|assert|offsetof"
    r"|(U?INT\w*|PTRDIFF|SIZE|SIG_ATOMIC|WCHAR|WINT)_(MAX|MIN|C|WIDTH)"
)
"""Types and macros of the headers that a generated file includes."""
_RESERVED = re.compile(r"_[A-Z_]|POLYOP_")
"""What names begin with that C reserves for compilers, and the header for itself."""


@dataclass(frozen=True)
class CNames:
    """The name of the parameter of each argument, of the count of each list, and of each output."""

    arguments: Mapping[str, str]
    counts: Mapping[str, str]
    outputs: Sequence[str]


def c_names(operator: ExportedOperator) -> CNames:
    """Return the names: those of the schema, with an underscore where C cannot have one of them.

    All are different. The arguments keep their names before counts and outputs do.

    >>> from polyop.core.parse import parse
    >>> schema = parse("a::f(Tensor size_t, int[] k, int k_count) -> (Tensor size_t)")
    >>> names = c_names(ExportedOperator("a::f", schema, (), (), "C source"))
    >>> list(names.arguments.values()), names.counts, names.outputs
    (['size_t_', 'k', 'k_count'], {'k': 'k_count_'}, ('size_t_result',))
    """
    arguments = operator.schema.arguments
    taken: set[str] = set()
    return CNames(
        {argument.name: _usable(argument.name, taken) for argument in arguments},
        {one.name: _usable(f"{one.name}_count", taken) for one in arguments if one.type.is_list},
        tuple(_usable(name, taken) for name in operator.output_names),
    )


def _usable(name: str, taken: set[str]) -> str:
    if _RESERVED.match(name):
        name = f"arg{name}"
    while name in taken or name in _KEYWORDS or _MACROS.fullmatch(name):
        name += "_"
    taken.add(name)
    return name
