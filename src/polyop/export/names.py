"""Check that no two functions of an exported library have the same name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
