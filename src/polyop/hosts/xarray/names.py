"""Match the dimensions of ``dims=`` to the dimensions of xarray's arrays.

dims="... n, n -> ... n"    x (level, time), weight (level)

weight   level is n: entries without ``...`` come first
x        level is n, by name; time stays, for ``...``
output   (time, level)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...call.operator import Operator
from ...core.dims.entry import Entry, Name, names_in
from ...core.errors import ArgumentValueError

Names = tuple[Any, ...]


class Tensor(NamedTuple):
    """A tensor of a call: its argument, its entry, and its dimensions; None for an array without names."""

    argument: str
    entry: Entry
    dims: Names | None
    ndim: int


@dataclass
class Matching:
    """The dimensions of the arrays of one call, by those of the operator."""

    operator: Operator
    tensors: Sequence[Tensor]
    names: dict[str, Any] = field(default_factory=dict)
    """Dimension of the operator -> dimension of the arrays."""
    core: list[Names] = field(default_factory=list)
    """Of each tensor, those that its entry names, in the entry's order."""

    def __post_init__(self) -> None:
        """Match all tensors; raises ``ArgumentValueError`` for one whose dimensions do not fit."""
        core: dict[int, Names] = {}
        for _, tensor in self._in_order():
            for name in set(tensor.entry.names()) & set(tensor.dims or ()):
                self.names[name] = name
        for number, tensor in self._in_order():
            core[number] = self._labelled(tensor) if tensor.dims is not None else self._unlabelled(tensor)
        self.core = [core[number] for number in range(len(self.tensors))]
        taken = {dim for dims in self.core for dim in dims}
        for tensor, own in zip(self.tensors, self.core, strict=True):
            for dim in taken.intersection(tensor.dims or ()) - {*own}:
                rule = f"{dim!r} lies before the dimensions {tensor.entry}, and in another array it is one"
                hint = f'rename one of them: {tensor.argument}.rename({{"{dim}": "{dim}_"}})'
                raise self._error(tensor, rule, hint)

    def _in_order(self) -> Iterator[tuple[int, Tensor]]:
        """Yield arrays with names first, and of these the ones whose entry names all dimensions."""
        rows = enumerate(self.tensors)
        return iter(sorted(rows, key=lambda row: (row[1].dims is None, row[1].entry.ellipsis, row[0])))

    def _labelled(self, tensor: Tensor) -> Names:
        entry, dims = tensor.entry, tensor.dims or ()
        if entry.repeated():
            (name, *_) = entry.repeated()
            raise self._error(tensor, f"has the dimension {name} twice, and names of xarray occur once")
        by_name = [self.names.get(name, "") for name in self._of(entry)]
        rest = [dim for dim in dims if dim not in by_name]
        missing = [position for position, name in enumerate(by_name) if name not in dims]
        if len(rest) < len(missing) or (len(rest) > len(missing) and not entry.ellipsis):
            raise self._error(tensor, f"must have the dimensions {entry}")
        positional = dict(zip(missing, rest[len(rest) - len(missing) :], strict=True))
        for position, dim in positional.items():
            name = self._of(entry)[position]
            if name and self.names.setdefault(name, dim) != dim:
                other = self.names[name]
                rule = f"{dim!r} would be the operator's dimension {name}, which is {other!r} elsewhere"
                hint = f'rename one of them: {tensor.argument}.rename({{"{dim}": "{other}"}})'
                raise self._error(tensor, rule, hint)
        return tuple(positional.get(position, name) for position, name in enumerate(by_name))

    def _unlabelled(self, tensor: Tensor) -> Names:
        entry = tensor.entry
        if tensor.ndim != len(entry.dimensions):
            hint = "pass an xarray.DataArray, whose dimensions have names"
            raise self._error(tensor, f"must have the dimensions {entry}, being an array without names", hint)
        names: list[str] = []
        for position, name in enumerate(self._of(entry)):
            known = self.names.setdefault(name, self._unused(name)) if name else ""
            names.append(known or self._unused(f"{tensor.argument}_{position}"))
        return tuple(names)

    def _unused(self, name: str) -> str:
        taken = {*self.names.values(), *(dim for tensor in self.tensors for dim in tensor.dims or ())}
        while name in taken:
            name += "_"
        return name

    @staticmethod
    def _of(entry: Entry) -> list[str]:
        """Return the names of an entry's dimensions; empty for a number and for any size."""
        return [size.name if isinstance(size, Name) else "" for size in entry.dimensions]

    def leading(self) -> Names:
        """Return what ``...`` stands for, in the order of the arrays."""
        rows = zip(self.tensors, self.core, strict=True)
        dims = (dim for tensor, core in rows for dim in tensor.dims or () if dim not in core)
        return tuple(dict.fromkeys(dims))

    def outputs(self, entries: Sequence[Entry]) -> tuple[list[Names], set[str]]:
        """Return the dimensions of each output without ``...``, and those whose size is another one.

        A size in arithmetic keeps the name of the first dimension in it; a number gets xarray's ``dim_0``.
        A dimension that no input has gets a name that no input has, with ``_`` after it where it is taken.
        """
        inputs = {dim for core in self.core for dim in core}
        taken = {dim for tensor in self.tensors for dim in tensor.dims or ()}
        rows, resized = [], set()
        for entry in entries:
            row: list[str] = []
            for axis, size in enumerate(entry.dimensions):
                name = next(iter(names_in(size)), "")
                dim = self.names.get(name, name) or f"dim_{axis}"
                while dim in row or (name not in self.names and dim in taken):
                    dim += "_"
                if dim in inputs and not (isinstance(size, Name) and self.names.get(name) == dim):
                    resized.add(dim)
                row.append(dim)
            rows.append(tuple(row))
        return rows, resized

    def _error(self, tensor: Tensor, rule: str, hint: str | None = None) -> ArgumentValueError:
        subject = f"{self.operator.name}: argument {tensor.argument}"
        seen = None if tensor.dims is None else f"({', '.join(map(str, tensor.dims))})"
        where = self.operator.origin
        return ArgumentValueError(subject, rule, seen, where=where, hint=hint or f"{self.operator.dims}")
