"""The names of an exported library: no two functions share one, and parameters have names of C."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.errors import ArgumentValueError
from .operator import ExportedOperator, SourceFile


def check_names(operators: Sequence[ExportedOperator], prefix: str) -> None:
    """Raise ``ArgumentValueError`` for two functions of the library that would have one name.

    ``prefix`` is what the names of the library's own functions begin with.
    """
    owners = {f"{prefix}_{name}": "the library itself" for name in ("error", "register_torch")}
    short_names: dict[str, str] = {}
    for one in operators:
        for name in _functions(one):
            if name in owners:
                hint = "--only exports one of them, -o gives the library another name"
                raise _clash(one.name, owners[name], f"one C function, {name}", hint)
            owners[name] = one.name
        if one.short_name in short_names:
            what = f"one name without their namespaces, {one.short_name}"
            raise _clash(one.name, short_names[one.short_name], what, "--only exports one of them")
        short_names[one.short_name] = one.name
    sources: dict[str, tuple[str, tuple[SourceFile, ...]]] = {}
    for one in operators:
        for kernel in one.kernels:
            if kernel.function in owners:
                what = f"one C function: {kernel.function} is also a kernel of {one.name}"
                raise _clash(one.name, owners[kernel.function], what, "rename the kernel's function")
            other = sources.setdefault(kernel.function, (one.name, one.sources))
            if other[1] != one.sources:
                what = f"kernels called {kernel.function} in different sources"
                raise _clash(one.name, other[0], what, "rename one of the functions")


def _functions(operator: ExportedOperator) -> Iterator[str]:
    yield operator.c_name
    if operator.output_names:
        yield f"{operator.c_name}_shapes"


def _clash(one: str, other: str, what: str, hint: str) -> ArgumentValueError:
    return ArgumentValueError(f"export of {one} and {other}", f"they would have {what}", hint=hint)


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
