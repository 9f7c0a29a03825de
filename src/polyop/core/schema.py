"""The typed signature of an operator, in PyTorch's schema grammar.

::

    schema   = [namespace "::"] name ["." overload] "(" [argument {"," argument}] ")" "->" returns
    argument = type identifier ["=" default]  |  "*"          (after "*": keyword only)
    returns  = "()"  |  return  |  "(" return {"," return} ")"
    return   = type [identifier]
    type     = base [alias | "!"] {"?" | "[" [size] "]"}      (read from left to right; "!": an unused alias)
    alias    = "(" set ["!"] ["->" set] ")"                   ("!": written in place)
    set      = alias-name {"|" alias-name}  |  "*"            (a, b, a0, ...; "*" only after "->")
    base     = "Tensor" | "int" | "SymInt" | "float" | "bool" | "str" | "complex" | "Scalar"
             | "ScalarType" | "Device" | "Layout" | "MemoryFormat" | "Generator"
    default  = int | float | "True" | "False" | "None" | string | "[" [default {"," default}] "]"

The text round-trips: ``parse(str(schema)) == schema``. The parser is stricter than PyTorch's, which accepts a
duplicate argument name, reads ``0x10`` as 0, and accepts Python keywords as names. Source of the grammar:
PyTorch, aten/src/ATen/native/README.md.
"""

from __future__ import annotations

import dataclasses
import itertools
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .locks import cached_property

BASES: Final = frozenset({
    "Tensor", "int", "SymInt", "float", "bool", "str", "complex", "Scalar",
    "ScalarType", "Device", "Layout", "MemoryFormat", "Generator",
})  # fmt: skip


class _Missing:
    """The default of an argument that has none."""

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"  # the name of the module's object: copies and pickles are the same object


MISSING: Final = _Missing()


def alias_names() -> Iterator[str]:
    """Yield names for the tensors of a schema that are written in place: a, b, ..., z, aa, ab, ...

    >>> import itertools
    >>> list(itertools.islice(alias_names(), 24, 29))
    ['y', 'z', 'aa', 'ab', 'ac']
    """
    for length in itertools.count(1):
        yield from map("".join, itertools.product(string.ascii_lowercase, repeat=length))


@dataclass(frozen=True, slots=True)
class Type:
    """A base type with its suffixes: each is ``"?"``, ``"[]"`` or ``"[N]"``, the outermost last."""

    base: str
    suffixes: tuple[str, ...] = ()
    alias: str = ""

    def __str__(self) -> str:
        """Return the text of the type; the alias comes after the base."""
        alias = f"({self.alias})" if self.alias else ""
        return self.base + alias + "".join(self.suffixes)

    @property
    def is_tensor(self) -> bool:
        """Whether this is a tensor, an optional tensor or a list of tensors."""
        return self.base == "Tensor"

    @property
    def is_list(self) -> bool:
        """Whether this is a list, perhaps an optional one or one of optional items."""
        return any(suffix != "?" for suffix in self.suffixes)

    @property
    def is_optional(self) -> bool:
        """Whether None is a value of the type."""
        return bool(self.suffixes) and self.suffixes[-1] == "?"

    @property
    def writes(self) -> bool:
        """Whether an argument of this type is written in place."""
        return "!" in self.alias


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. ``default`` is ``MISSING`` for a required argument."""

    name: str
    type: Type
    default: Any = MISSING
    keyword_only: bool = False

    def __str__(self) -> str:
        """Return ``type name[=default]``."""
        text = f"{self.type} {self.name}"
        return text if self.default is MISSING else f"{text}={format_default(self.default)}"


@dataclass(frozen=True, slots=True)
class Return:
    """One result, with its name if the schema has one."""

    type: Type
    name: str = ""

    def __str__(self) -> str:
        """Return ``type [name]``."""
        return f"{self.type} {self.name}" if self.name else str(self.type)


@dataclass(frozen=True)
class Schema:
    """The signature of an operator. ``str()`` is its text, ``qualified_name`` is ``namespace::name``."""

    namespace: str
    name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    overload: str = ""

    def __str__(self) -> str:
        """Return the text, which parses to an equal schema."""
        return f"{self.qualified_name}{self.signature}"

    @property
    def qualified_name(self) -> str:
        """``namespace::name[.overload]``, or ``name[.overload]`` without a namespace."""
        name = f"{self.name}.{self.overload}" if self.overload else self.name
        return f"{self.namespace}::{name}" if self.namespace else name

    @cached_property
    def signature(self) -> str:
        """Return the text after the name: ``(Tensor x) -> Tensor``."""
        parts = [str(argument) for argument in self.arguments]
        first = next((i for i, argument in enumerate(self.arguments) if argument.keyword_only), None)
        if first is not None:
            parts.insert(first, "*")
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1 or self.returns[0].name:
            returns = f"({returns})"
        return f"({', '.join(parts)}) -> {returns}"

    @cached_property
    def mutates(self) -> bool:
        """Whether any argument is written in place."""
        return any(argument.type.writes for argument in self.arguments)

    @cached_property
    def returns_list(self) -> bool:
        """Whether the only return is a list of tensors. Its length depends on the arguments."""
        return len(self.returns) == 1 and self.returns[0].type.is_list

    @cached_property
    def fresh(self) -> tuple[int, ...]:
        """Positions of the returns that are new tensors, not arguments written in place."""
        return tuple(i for i, result in enumerate(self.returns) if not result.type.alias)

    def alias_of(self, index: int) -> int:
        """Return the position of the argument that return number ``index`` aliases."""
        letter = self.returns[index].type.alias.split("!")[0].split("|")[0].strip()
        for position, argument in enumerate(self.arguments):
            if letter in argument.type.alias.split("->")[0].replace("!", "").replace(" ", "").split("|"):
                return position
        raise LookupError(letter)

    def without_written_returns(self) -> Schema:
        """Return the schema for PyTorch, whose tracers take no result that is an argument written in place.

        >>> from polyop.core.parse import parse
        >>> print(parse("a::f_(Tensor(a!) x) -> Tensor(a!)").without_written_returns())
        a::f_(Tensor(a!) x) -> ()
        """
        return dataclasses.replace(self, returns=tuple(self.returns[i] for i in self.fresh))

    @cached_property
    def tensor_positions(self) -> tuple[int, ...]:
        """Positions of the arguments that are tensors, optional tensors or lists of them."""
        return tuple(i for i, argument in enumerate(self.arguments) if argument.type.is_tensor)

    @cached_property
    def tensor_arguments(self) -> tuple[Argument, ...]:
        """The arguments at :attr:`tensor_positions`."""
        return tuple(self.arguments[i] for i in self.tensor_positions)

    def split(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return bound values as positional arguments and keyword-only arguments."""
        count = sum(not argument.keyword_only for argument in self.arguments)
        names = (argument.name for argument in self.arguments[count:])
        return tuple(values[:count]), dict(zip(names, values[count:], strict=True))

    def tensors_and_attributes(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the tensors among the values of a call, in order, and the attributes by name.

        A value is one for each argument. Absent tensors are None, and a list of tensors is one item.

        >>> from polyop.core.parse import parse
        >>> parse("a::f(Tensor x, float by, Tensor? y) -> Tensor").tensors_and_attributes(("X", 2.0, None))
        (('X', None), {'by': 2.0})
        """
        tensors = tuple(values[i] for i in self.tensor_positions)
        return tensors, {argument.name: values[i] for i, argument in self.attributes()}

    def attributes(self) -> Iterator[tuple[int, Argument]]:
        """Yield (position, argument) for every attribute: an argument that is no tensor."""
        return ((i, a) for i, a in enumerate(self.arguments) if not a.type.is_tensor)


def format_default(value: Any) -> str:
    """Return the text of a default value, which parses to an equal value."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(format_default, value)) + "]"
    return repr(value)
