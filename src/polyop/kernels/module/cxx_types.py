"""Compare the types of a C++ function with a schema, and spell C++ types as an author writes them."""

from __future__ import annotations

import dataclasses
import re

from ...core.schema import Schema, Type

_SPELLINGS = (
    (r"std::__cxx11::basic_string<char>|std::basic_string<char>", "std::string"),
    (r"std::basic_string_view<char>", "std::string_view"),
    (r"ms::Tensor|polyop::Tensor", "Tensor"),
    (r"polyop::Scalar", "Scalar"),
    (r"mindspore::TypeId", "ScalarType"),
    (r"std::vector<([^<>]*), std::allocator<[^<>]*> ?>", r"std::vector<\1>"),
    (r"long int|\blong\b", "int64_t"),
    (r" &", "&"),
)


def spelled(text: str) -> str:
    """Return the C++ type ``F`` as an author writes it, from the compiler's text (``__PRETTY_FUNCTION__``).

    >>> spelled("static const char* f() [with F = ms::Tensor(const ms::Tensor&, long int); R = int]")
    'Tensor(const Tensor&, int64_t)'
    """
    match = re.search(r"\bF = (.*?)(?:; \w|\]$)", text)
    shown = match[1] if match else text
    for pattern, word in _SPELLINGS:
        shown = re.sub(pattern, word, shown)
    return shown


def disagreement(schema: Schema, types: str) -> str | None:
    """Return how a C++ function differs from a schema, or None; ``types`` is ``(Tensor, int) -> Tensor``.

    >>> from polyop.core.parse import parse
    >>> disagreement(parse("f(Tensor x, float a) -> Tensor"), "(Tensor, int) -> Tensor")
    'argument a is float in the schema, and int in C++'
    """
    parameters, _, returned = types.partition(") -> ")
    arguments = [kind for kind in parameters[1:].split(", ") if kind]
    if len(arguments) != len(schema.arguments):
        return f"the schema has {len(schema.arguments)} arguments, and the C++ function {len(arguments)}"
    for argument, kind in zip(schema.arguments, arguments, strict=True):
        if kind not in _words(argument.type):
            return f"argument {argument.name} is {_shown(argument.type)} in the schema, and {kind} in C++"
    returns = [_shown(result.type) for result in schema.returns]
    spellings = {f"({', '.join(returns)})", *(returns if len(returns) == 1 else ())}
    if returned not in spellings:
        return f"the result is {min(spellings, key=len)} in the schema, and {returned} in C++"
    return None


def _shown(kind: Type) -> str:
    return str(dataclasses.replace(kind, base="int" if kind.base == "SymInt" else kind.base, alias=""))


def _words(kind: Type) -> set[str]:
    shown = _shown(kind)
    return {shown, re.sub(r"\[\d+\]", "[]", shown)}  # int[2]: a tuple of two, or a vector
