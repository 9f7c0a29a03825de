"""The base of kernels that are launched with a grid (Triton, OpenCL C), and what their parameters mean."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.dims.dims import Dims
from ..core.errors import ArgumentTypeError, KernelError, SchemaError
from ..core.limits import shown
from ..core.schema import Argument, Schema
from ..core.takes import check_takes
from .base import KernelBase

_NUMBERS = {"int", "SymInt", "float", "bool"}
_HINT = (
    "a parameter is an argument or a result of the schema, perhaps with _ptr behind it, a dimension of "
    "dims=, stride_<tensor>_<dimension>, <tensor>_numel, or one of constants="
)


class Call(NamedTuple):
    """The arguments of a call, its outputs, and the sizes of its dimensions."""

    arguments: tuple[Any, ...]
    outputs: tuple[Any, ...]
    sizes: dict[str, int]


Read = Callable[[Call], Any]
"""Returns the value of a parameter in a call."""


class _Tensor(NamedTuple):
    """A tensor of the schema: its number, its names in parameters, and its dimensions (None: unknown)."""

    label: str
    names: list[str]
    dimensions: tuple[str, ...]
    read: Read


class Bound(NamedTuple):
    """How each parameter gets its value, and which of them get a tensor."""

    reads: dict[str, Read]
    tensors: set[str]


class Owner(NamedTuple):
    """Whose parameters they are: the subject of errors, and the kind of kernel."""

    subject: str
    kind: str
    where: Any


def bind(
    parameters: Mapping[str, inspect.Parameter],
    given: Collection[str],
    schema: Schema,
    dims: Dims | None,
    owner: Owner,
) -> Bound:
    """Return how each parameter gets its value; without those that ``given`` has.

    Raises ``SchemaError`` for a parameter without a value, a value without a parameter, and for arguments
    that such a kernel cannot take.
    """
    return _Binder(parameters, given, schema, dims, owner).bind()


class _Binder:
    def __init__(
        self,
        parameters: Mapping[str, inspect.Parameter],
        given: Collection[str],
        schema: Schema,
        dims: Dims | None,
        owner: Owner,
    ) -> None:
        self.parameters, self.given, self.schema, self.owner = parameters, given, schema, owner
        self.sizes = [name for name in (dims.names if dims else ()) if name != "..."]
        self.tensors = list(_tensors(schema, dims))
        self.attributes = [(i, argument) for i, argument in schema.attributes()]
        self.of_tensors: set[str] = set()

    def bind(self) -> Bound:
        self._check_schema()
        reads: dict[str, Read] = {}
        later: list[str] = []
        used: set[str] = set()
        for name, parameter in self.parameters.items():
            if name in self.given:
                continue
            label, read = self._named(name)
            if read is not None:
                reads[name] = read
                used.add(label)
            elif "constexpr" in str(parameter.annotation):
                self._need_constant(name, parameter)
            else:
                later.append(name)
        pointers = [n for n in later if not n.startswith("stride_") and not n.endswith("_numel")]
        reads |= self._positional(pointers, used)
        for name in later:
            if name not in reads:
                reads[name] = self._of_layout(name)
        return Bound(reads, self.of_tensors)

    def _fail(self, rule: str, seen: str | None = None, hint: str | None = _HINT) -> SchemaError:
        return SchemaError(self.owner.subject, rule, seen, where=self.owner.where, hint=hint)

    def _check_schema(self) -> None:
        if self.schema.returns_list or any(a.type.is_list for a in self.schema.arguments if a.type.is_tensor):
            rule = f"takes and returns no list of tensors, because it is {self.owner.kind}"
            raise self._fail(rule, hint=None)
        for name in sorted({*self.given} & {a.name for a in self.schema.arguments}):
            raise self._fail(f"constants= gives {name}, which is an argument of the schema", hint=None)

    def _need_constant(self, name: str, parameter: inspect.Parameter) -> None:
        if parameter.default is parameter.empty:
            hint = f'give constants={{"{name}": 128}}, or a function of the sizes as in triton.heuristics'
            raise self._fail(f"the tl.constexpr parameter {name} has no value", hint=hint)

    def _named(self, name: str) -> tuple[str, Read | None]:
        """Return what a parameter is by its name: an attribute, a size, a tensor; None if it is none."""
        for position, argument in self.attributes:
            if name == argument.name:
                self._check_number(argument, name)
                return argument.name, _argument(position)
        for tensor in self.tensors:
            if name in tensor.names or name.removesuffix("_ptr") in tensor.names:
                self.of_tensors.add(name)
                return tensor.label, tensor.read
        if name in self.sizes:
            return "", lambda call: call.sizes[name]
        return "", None

    def _check_number(self, argument: Argument, name: str) -> None:
        is_number = argument.type.base in _NUMBERS and not argument.type.is_list
        if not is_number and "constexpr" not in str(self.parameters[name].annotation):
            rule = f"the attribute {argument.name} must be a number"
            rule += ", or its parameter a tl.constexpr" if "Triton" in self.owner.kind else ""
            raise self._fail(rule, str(argument.type), hint=None)

    def _positional(self, names: list[str], used: set[str]) -> dict[str, Read]:
        """Match the other parameters with the other tensors and attributes, in order, outputs last."""
        inputs = len(self.schema.tensor_positions)
        unused: list[tuple[str, Read, _Tensor | None]] = []
        unused += [(t.label, t.read, t) for t in self.tensors[:inputs] if t.label not in used]
        for position, argument in self.attributes:
            if argument.name not in used and argument.name not in self.sizes:
                unused.append((argument.name, _argument(position), None))
        unused += [(t.label, t.read, t) for t in self.tensors[inputs:] if t.label not in used]
        if len(names) != len(unused):
            rule = f"the parameters {', '.join(names) or 'none'} remain for the values that no name matches"
            raise self._fail(rule, ", ".join(label for label, _, _ in unused) or "none")
        for name, (label, _, tensor) in zip(names, unused, strict=True):
            if tensor is None:
                self._check_number(next(a for _, a in self.attributes if a.name == label), name)
            else:
                tensor.names.append(name.removesuffix("_ptr"))
                self.of_tensors.add(name)
        return {name: read for name, (_, read, _) in zip(names, unused, strict=True)}

    def _of_layout(self, name: str) -> Read:
        """Return the stride or the number of elements that a parameter is named for."""
        places = {(k, axis) for k, t in enumerate(self.tensors) for axis in _axes(t, name)}
        if len(places) != 1:
            several = "fits several dimensions" if places else "names no tensor and dimension"
            raise self._fail(f"the parameter {name} {several}")
        ((number, axis),) = places
        read = self.tensors[number].read
        if axis is None:
            return lambda call: math.prod(read(call).shape)
        return lambda call: math.prod(read(call).shape[axis:][1:])


def _axes(tensor: _Tensor, name: str) -> Iterator[int | None]:
    """Yield each axis of a tensor whose stride a parameter is named for; None for the number of elements."""
    rank = len(tensor.dimensions)
    for own in tensor.names:
        if name == f"{own}_numel":
            yield None
        for axis, dimension in enumerate(tensor.dimensions):
            if name in (f"stride_{own}{dimension}", f"stride_{own}_{dimension}"):
                yield axis - rank


def _tensors(schema: Schema, dims: Dims | None) -> Iterator[_Tensor]:
    """Yield the tensors among the arguments, then the new outputs."""
    entries = iter((*dims.inputs, *dims.outputs) if dims else ())
    for i in schema.tensor_positions:
        name = schema.arguments[i].name
        yield _Tensor(name, [name], _dimensions(entries), _argument(i))
    for k, result in enumerate(schema.returns[i] for i in schema.fresh):
        names = [result.name] if result.name else []
        label = result.name or f"output {k}"
        yield _Tensor(label, names, _dimensions(entries), lambda call, k=k: call.outputs[k])  # type: ignore[misc]


def _argument(position: int) -> Read:
    return lambda call: call.arguments[position]


def _dimensions(entries: Iterator[Any]) -> tuple[str, ...]:
    entry = next(entries, None)
    return () if entry is None else tuple(map(str, entry.dimensions))


class Values(NamedTuple):
    """The parameters of a call and its constants, by name, and all that ``grid=`` gets."""

    parameters: dict[str, Any]
    constants: dict[str, Any]
    meta: dict[str, Any]


class GriddedKernel(KernelBase):
    """A kernel with ``grid=`` and ``constants=``, whose parameters get their values by :mod:`.parameters`."""

    GRID = ""
    """What a grid says, in words; an example of one is ``EXAMPLE``."""
    EXAMPLE = ""
    _grid: Any
    _constants: dict[str, Any]
    _where: Any
    _schema: Schema | None = None
    _dims: Dims | None = None
    _reads: dict[str, Read]

    def for_schema(self, schema: Schema, where: Any) -> Any:
        """Return the kernel for an operator with this schema; raises ``ArgumentTypeError``."""
        for name, rule in {"grid": self._grid, **self._constants}.items():
            if callable(rule):
                check_takes(name, rule, ("meta",), schema, where)
        bound = copy.copy(self)
        bound._schema, bound._where = schema, where  # noqa: SLF001
        return bound

    def values(self, schema: Schema, arguments: Sequence[Any], outputs: Sequence[Any]) -> Values:
        """Return what a call passes to the kernel: its tensors, numbers and constants."""
        attributes = {argument.name: arguments[i] for i, argument in schema.attributes()}
        sizes: dict[str, int] = {}
        if self._dims is not None:
            shapes = [getattr(arguments[i], "shape", None) for i in schema.tensor_positions]
            sizes = self._dims.match(shapes, attributes)
        call = Call(tuple(arguments), tuple(outputs), sizes)
        parameters = {name: read(call) for name, read in self._reads.items()}
        numbers = {name: value for name, value in parameters.items() if not hasattr(value, "shape")}
        meta = {**sizes, **attributes, **numbers}
        meta |= {name: value for name, value in self._constants.items() if not callable(value)}
        constants = {k: self._of(k, v, meta) if callable(v) else v for k, v in self._constants.items()}
        return Values(parameters, constants, {**meta, **constants})

    def grid_of(self, meta: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the grid of a call; raises ``KernelError`` unless it is one to three integers of 0 or more.

        OpenCL refuses a negative number without words. Triton leaves the launch out, so that outputs hold
        what was in memory.
        """
        grid = self._of("grid=", self._grid, meta) if callable(self._grid) else self._grid
        return self.checked_sizes("grid=", grid, 0, f"as in grid={self.EXAMPLE}")

    def checked_sizes(self, name: str, sizes: Any, least: int, hint: str) -> tuple[int, ...]:
        """Return sizes; raises ``KernelError`` unless they are one to three integers of ``least`` or more."""
        if not (
            isinstance(sizes, tuple)
            and 0 < len(sizes) < 4
            and all(isinstance(n, int) and n >= least for n in sizes)
        ):
            rule = f"{name} must give a tuple of one to three integers of {least} or more"
            raise KernelError(self._subject(), rule, shown(sizes), where=self._where, hint=hint)
        return sizes

    def _subject(self) -> str:
        return f"{self._schema.qualified_name}: {self}" if self._schema else str(self)

    def _of(self, name: str, rule: Callable[..., Any], meta: Mapping[str, Any]) -> Any:
        try:
            return rule(dict(meta))
        except KeyError as problem:
            seen = f"{problem.args[0]!r}, and there are {', '.join(sorted(meta)) or 'none'}"
            raise KernelError(self._subject(), f"{name} asks for a value", seen, where=self._where) from None

    def check_grid(self) -> None:
        """Raise ``ArgumentTypeError`` if there is no grid, or one of another type."""
        if self._grid is None:
            rule = f"needs grid=: {self.GRID}, a tuple or a function of the sizes"
            raise ArgumentTypeError(self, rule, where=self._where, hint=f"as in grid={self.EXAMPLE}")
        if not callable(self._grid) and not isinstance(self._grid, tuple):
            rule = "grid= must be a tuple or a function"
            raise ArgumentTypeError(self, rule, shown(self._grid), where=self._where)
