"""One operator with sample arguments: what every check is given, and how a check speaks."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..call.host import map_tensors, specs, tensors_of
from ..call.operator import Operator
from ..call.prepare import Prepared, prepare
from ..call.rule import Rule
from ..core.arguments import attributes
from ..core.dtypes import dtype
from ..core.errors import PolyopError
from ..core.spec import Spec
from ..hosts.numpy import HOST

Array: TypeAlias = Any


class BrokenRuleError(Exception):
    """A check failed: the rule, and what was seen in place of what it asks for."""

    def __init__(self, rule: str, seen: object = None) -> None:
        """Join the two as the errors of polyop do."""
        super().__init__(rule if seen is None else f"{rule}, but got {seen}")


class NotRunError(Exception):
    """A check does not apply, or cannot run here; the text is the reason."""


@dataclass(frozen=True)
class Check:
    """A row of a table of checks. ``run`` returns a remark or None; it raises what is above.

    ``stops``: when it fails, the checks after it are not run, for that reason.
    """

    name: str
    host: str
    run: Callable[[Case], str | None]
    stops: str = ""


@dataclass(frozen=True)
class Case:
    """An operator and arguments in schema order, each tensor a NumPy array.

    ``user_tolerance`` is (rtol, atol) where the caller gave them, else a pair of None.
    """

    bound: Any
    arguments: tuple[Any, ...]
    reference: Callable[..., Any] | None
    hosts: tuple[str, ...]
    seed: int
    user_tolerance: tuple[float | None, float | None] = (None, None)
    torch_device: str = "cpu"

    @property
    def operator(self) -> Operator:
        """The operator's value."""
        operator: Operator = self.bound.operator
        return operator

    def rng(self, purpose: str) -> np.random.Generator:
        """Return a generator that depends on the seed and the purpose alone."""
        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode())])

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield (name, array) of each tensor, lists opened, absent ones left out."""
        for position in self.operator.schema.tensor_positions:
            argument = self.operator.schema.arguments[position]
            yield from tensors_of(self.operator, argument, self.arguments[position])

    def map(self, function: Callable[[str, Array], Any]) -> tuple[Any, ...]:
        """Return the arguments with ``function(name, array)`` in place of each tensor."""
        return map_tensors(self.operator, self.arguments, lambda name, value, _: function(name, value))

    def mapped(self, function: Callable[[str, Array], Any]) -> Case:
        """Return a case whose arrays are ``function(name, array)``."""
        return replace(self, arguments=self.map(function))

    def written(self, arguments: tuple[Any, ...]) -> list[Any]:
        """Return the tensors among ``arguments`` that the schema writes in place, lists opened."""
        found: list[Any] = []
        for argument, value in zip(self.operator.schema.arguments, arguments, strict=True):
            if argument.type.writes and value is not None:
                found.extend(value if isinstance(value, (list, tuple)) else [value])
        return found

    def writes(self, name: str) -> bool:
        """Whether the schema writes the tensor of this name in place."""
        written = {argument.name for argument in self.operator.schema.arguments if argument.type.writes}
        return name.split("[", maxsplit=1)[0] in written

    def positional(self, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional arguments, and keyword-only ones by name."""
        schema = self.operator.schema
        count = sum(not argument.keyword_only for argument in schema.arguments)
        names = (argument.name for argument in schema.arguments[count:])
        return arguments[:count], dict(zip(names, arguments[count:], strict=True))

    def call(self, arguments: tuple[Any, ...]) -> list[Any]:
        """Call the operator on any host's tensors; return outputs, then what it wrote in place."""
        args, keywords = self.positional(arguments)
        result = self.bound(*args, **keywords)
        outputs = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
        written = self.written(arguments)
        return [x for x in outputs if not any(x is w for w in written)] + written

    def copy(self) -> tuple[Any, ...]:
        """Return the arguments with each array copied."""
        return self.map(lambda _, value: value.copy())

    def run(self) -> list[Array]:
        """Call the operator on copies of the arrays; return all results as arrays."""
        return [np.asarray(x) for x in self.call(self.copy())]

    def expected(self) -> list[Array] | None:
        """Return the reference's results on copies, or None without a reference.

        A reference of an operator that writes in place may write its arrays, and returns the
        operator's fresh outputs.
        """
        if self.reference is None:
            return None
        arguments = self.copy()
        args, keywords = self.positional(arguments)
        result = self.reference(*args, **keywords)
        outputs = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
        written = self.written(arguments)
        schema = self.operator.schema
        fresh = len(outputs) if schema.returns_list else len(schema.fresh)
        return [np.asarray(x) for x in (*outputs[:fresh], *written)]

    def prepare(self) -> Prepared:
        """Infer the outputs and choose the kernel for these arrays."""
        return prepare(self.operator, specs(HOST, self.operator, self.arguments), infer=True)

    @property
    def has_gradient(self) -> bool:
        """Whether the operator has a gradient rule; a C++ module's function, whether it calls ``Apply``."""
        rule: Any = self.operator.gradient
        if not (isinstance(rule, Rule) and rule.is_recorded):
            return rule is not None
        recorded: Any = rule
        try:
            found = recorded.kernel.derive(self.prepare().inputs, self.attributes())
        except PolyopError:
            return True  # it depends on data: asking for the gradient says more
        return bool(found.recorded)

    def attributes(self) -> dict[str, Any]:
        """Return the schema's attributes by name."""
        return attributes(self.operator.schema, self.arguments)

    def tolerance(self, kind: Any) -> tuple[float, float]:
        """Return (rtol, atol) for values of a dtype."""
        default = TOLERANCES.get(dtype(kind).name, 0.0)
        rtol, atol = self.user_tolerance
        return (default if rtol is None else rtol, default if atol is None else atol)

    def __str__(self) -> str:
        """Return the specs of the tensors, by name."""
        return ", ".join(f"{name} {spec_of(value)}" for name, value in self.tensors())


TOLERANCES = {  # the relative difference that another order of the same additions can make
    "float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-8, "complex64": 1e-4,
    "complex128": 1e-8, "float8_e4m3fn": 0.2, "float8_e5m2": 0.4, "float8_e4m3fnuz": 0.2,
    "float8_e5m2fnuz": 0.4, "float8_e8m0fnu": 1.0,
}  # fmt: skip


def spec_of(array: Array) -> Spec:
    """Return an array's spec."""
    return HOST.spec(array)


def first_line(problem: BaseException) -> str:
    """Return an error's class and the first line of its text."""
    text = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {text[0]}" if text else type(problem).__name__
