"""``Dims``: the rule of an operator in index notation, from which the shapes of outputs follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..errors import SchemaError
from ..schema import Schema
from ..sizes import DataSize, same_size, size_text
from .claims import REDUCTIONS, ClaimParser, Halo
from .entry import AtMost, Entry, Expression, Number, Same, evaluate, names_in
from .match import Definition, Sizes, match
from .parse import parse_entries
from .text import Text


class Evaluator:
    """Evaluates expressions with the sizes and attributes of one call."""

    def __init__(
        self, definition: Definition, inputs: Sequence[Entry], values: Mapping[str, Any], same: Same
    ) -> None:
        self.definition, self.inputs, self.values, self.same = definition, inputs, values, same

    def shape(self, entry: Entry) -> tuple[Any, ...]:
        """Return the shape of an output; raises ``InferError``."""
        if entry.ellipsis and "..." not in self.values:
            self._fail_unknown(entry.label, "...")
        leading = self.values["..."] if entry.ellipsis else ()
        sizes = []
        for dimension in entry.dimensions:
            assert dimension is not None, "an output has no '_'"
            sizes.append(self.size(entry.label, dimension))
        return (*leading, *sizes)

    def size(self, label: str, expression: Expression) -> Any:
        """Return the value of an expression, a ``DataSize`` for one that depends on data.

        Raises ``InferError`` if it is negative, not whole or unknown.
        A symbol is not compared with 0: its sign is checked when the call runs, with its real sizes.
        """
        try:
            size = evaluate(expression, self.values, self.same)
        except KeyError as problem:
            self._fail_unknown(label, problem.args[0])
        except ArithmeticError as problem:
            self._fail(label, expression, str(problem))
        if isinstance(size, int) and size < 0:
            self._fail(label, expression, f"is {size}")
        if isinstance(expression, AtMost):
            return DataSize(expression.name, size, f"{self.definition.operator}: {self.definition.hint}")
        return size

    def _fail(self, label: str, expression: Expression, problem: str) -> NoReturn:
        names = dict.fromkeys(names_in(expression))
        values = ", ".join(f"{name}={size_text(self.values[name])}" for name in names if name in self.values)
        where = f", for {values}" if values else ""
        self.definition.fail(f"{label}: the size {expression} {problem}{where}")

    def _fail_unknown(self, label: str, name: str) -> NoReturn:
        sources = [entry.label for entry in self.inputs if name in entry.names()]
        reason = f"no tensor is passed as {' or '.join(sources)}"
        self.definition.fail(f"{label}: the size {name} is unknown, because {reason}")


@dataclass(frozen=True)
class Dims:
    """One entry per tensor argument and per new output, and what is claimed about the dimensions.

    ``parallel`` are dimensions whose slices are computed alone. ``reductions`` maps a dimension to how
    slices are combined in the outputs that lack it: ``"sum"``, ``"max"`` or ``"min"``. ``halo`` maps a
    dimension to how many neighbours a slice reads before and after it. Names are in the order of the
    entries, and ``"..."`` is one of them. ``operator`` and ``origin``, the place of its definition, are for
    errors.

    ``str()`` is the text of the keyword arguments, as an author writes them.

    >>> from polyop.core.parse import parse
    >>> linear = Dims.parse("b i, i o -> b o", parse("ns::f(Tensor x, Tensor w) -> Tensor"), sum="i")
    >>> print(linear)
    dims="b i, i o -> b o", sum="i"
    >>> sizes = linear.match([(2, 3), (3, 4)])
    >>> sizes, linear.output_shapes(sizes)
    ({'b': 2, 'i': 3, 'o': 4}, ((2, 4),))
    """

    operator: str = field(compare=False)
    inputs: tuple[Entry, ...]
    outputs: tuple[Entry, ...]
    parallel: tuple[str, ...] = ()
    reductions: Mapping[str, str] = field(default_factory=dict, hash=False)
    halo: Mapping[str, Halo] = field(default_factory=dict, hash=False)
    origin: object = field(default=None, compare=False)
    hint: str = field(default="", compare=False)
    """What an error adds about the rule; the entries, if it is empty."""

    @classmethod
    def parse(
        cls,
        text: str,
        schema: Schema,
        *,
        parallel: str = "",
        sum: str = "",  # noqa: A002 - the keywords of polyop.operator
        max: str = "",  # noqa: A002
        min: str = "",  # noqa: A002
        halo: Mapping[str, Any] | None = None,
        origin: object = None,
    ) -> Dims:
        """Return the rule that an author wrote; raises ``SchemaError`` or ``ArgumentTypeError``."""
        operator = schema.qualified_name
        inputs, outputs = parse_entries(Text(text, f"{operator}: dims"), schema)
        _check_data_sizes(operator, inputs, outputs, (parallel, sum, max, min, halo), origin)
        claims = ClaimParser(schema, inputs, outputs)
        return cls(
            operator,
            inputs,
            outputs,
            claims.parallel(parallel),
            claims.reductions({"sum": sum, "max": max, "min": min}),
            claims.halo({} if halo is None else halo),
            origin,
        )

    @property
    def text(self) -> str:
        """Return the entries: ``b i, i o -> b o``."""
        sides = (", ".join(map(str, entries)) for entries in (self.inputs, self.outputs))
        return " ".join(" -> ".join(sides).split())

    def claims(self) -> dict[str, Any]:
        """Return the keyword arguments of ``parse`` beside the entries, without those that are empty."""
        claims: dict[str, Any] = {"parallel": " ".join(self.parallel)}
        for kind in REDUCTIONS:
            claims[kind] = " ".join(name for name, of in self.reductions.items() if of == kind)
        claims["halo"] = {
            name: tuple(width.value if isinstance(width, Number) else str(width) for width in widths)
            for name, widths in self.halo.items()
        }
        return {keyword: value for keyword, value in claims.items() if value}

    def __str__(self) -> str:
        """Return the keyword arguments that parse to an equal value: ``dims="n -> n", parallel="n"``."""
        claims = {"dims": self.text, **self.claims()}
        return ", ".join(f"{keyword}={_literal(value)}" for keyword, value in claims.items())

    @property
    def data_sizes(self) -> tuple[str, ...]:
        """Return the names of the sizes of outputs that depend on data: ``k`` of ``k<=n``."""
        return _data_sizes(self.outputs)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the dimensions of the arguments in their order; ``"..."`` is one of them."""
        return tuple(dict.fromkeys(name for entry in self.inputs for name in entry.names()))

    @property
    def whole(self) -> tuple[str, ...]:
        """Return the dimensions that cannot be sliced: nothing is claimed about them.

        ``...`` needs no claim where every output has it: an operator maps over it, by definition.
        """
        claimed = {*self.parallel, *self.reductions, *self.halo}
        if all(entry.ellipsis for entry in self.outputs):
            claimed.add("...")
        return tuple(name for name in self.names if name not in claimed)

    def match(
        self, shapes: Sequence[Any], attributes: Mapping[str, Any] | None = None, same: Same = same_size
    ) -> Sizes:
        """Return the size of each name in one call.

        ``shapes`` has one shape per tensor argument: None for an absent one, a sequence of them for a list.
        ``attributes`` are the values by name. ``same`` compares two sizes, see :mod:`polyop.core.dims.match`.

        Raises ``InferError`` that names the dimension, both sizes and both arguments.
        """
        return match(self._definition, self.inputs, shapes, attributes or {}, same)

    def output_shapes(
        self, sizes: Sizes, attributes: Mapping[str, Any] | None = None, same: Same = same_size
    ) -> tuple[tuple[Any, ...], ...]:
        """Return the shape of each new output; ``sizes`` is what ``match`` returned.

        Raises ``InferError`` for a size that is negative or not whole, or that only an absent argument gives.
        """
        evaluator = self._evaluator(sizes, attributes, same)
        return tuple(map(evaluator.shape, self.outputs))

    def halo_widths(
        self, name: str, sizes: Sizes, attributes: Mapping[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """Return how many neighbours a slice reads before and after it; raises ``InferError``."""
        evaluator = self._evaluator(sizes, attributes, same_size)
        before, after = self.halo[name]
        return evaluator.size(f"halo of {name}", before), evaluator.size(f"halo of {name}", after)

    def _evaluator(self, sizes: Sizes, attributes: Mapping[str, Any] | None, same: Same) -> Evaluator:
        return Evaluator(self._definition, self.inputs, {**(attributes or {}), **sizes}, same)

    @property
    def _definition(self) -> Definition:
        return Definition(self.operator, self.hint or f'dims="{self.text}"', self.origin)


def _data_sizes(outputs: Sequence[Entry]) -> tuple[str, ...]:
    sizes = (size for entry in outputs for size in entry.dimensions)
    return tuple(dict.fromkeys(size.name for size in sizes if isinstance(size, AtMost)))


def _check_data_sizes(
    operator: str, inputs: Sequence[Entry], outputs: Sequence[Entry], claims: Sequence[Any], origin: object
) -> None:
    """Raise ``SchemaError`` where sizes depend on data and something is claimed or written."""
    names = ", ".join(_data_sizes(outputs))
    if not names:
        return
    reason = f"the size {names} depends on data"
    if any(claims) or all(entry.ellipsis for entry in outputs):
        what = "claims something" if any(claims) else "has '...' in an output"
        rule = f"{what}, and a size depends on data ({names}), which may differ between slices"
        hint = "leave out parallel=, sum=, max=, min= and halo=, and have no '...' in an output"
        raise SchemaError(f"{operator}: dims", rule, where=origin, hint=hint)
    if any(entry.written for entry in inputs):
        rule = f"writes an argument in place, and {reason}"
        raise SchemaError(f"{operator}: dims", rule, where=origin, hint="return a new tensor")


_ELEMENTWISE = (
    'batch="elementwise": all tensors must have one shape; where the kernel takes other shapes, give infer= '
    "a function of the specs: it raises for shapes that do not fit, and returns the output's Spec"
)


def elementwise(schema: Schema, origin: object = None) -> Dims:
    """Return the rule of ``batch="elementwise"``: all shapes are equal, and all dimensions are parallel.

    >>> from polyop.core.parse import parse
    >>> print(elementwise(parse("ns::add(Tensor x, Tensor y) -> Tensor")))
    dims="..., ... -> ...", parallel="..."
    """
    arguments = schema.tensor_arguments
    inputs = tuple(
        Entry(f"argument {a.name}", ellipsis=True, each=a.type.is_list, written=a.type.writes)
        for a in arguments
    )
    results = [schema.returns[i] for i in schema.fresh]
    outputs = tuple(
        Entry(f"output {result.name or number}", ellipsis=True, each=result.type.is_list)
        for number, result in enumerate(results)
    )
    parallel = ("...",) if inputs else ()
    return Dims(schema.qualified_name, inputs, outputs, parallel, origin=origin, hint=_ELEMENTWISE)


def _literal(value: Any) -> str:
    """Return a value as Python text, strings in double quotes."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    return repr(value)
