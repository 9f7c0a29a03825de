"""An operator with sample arguments (``Case``), a row of a table of checks (``Check``), and their errors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
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
    """A check failed: the rule that the operator breaks, and what was seen."""

    def __init__(self, rule: str, seen: object = None) -> None:
        """Make the text as polyop's own errors do."""
        super().__init__(rule if seen is None else f"{rule}, but got {seen}")


class NotRunError(Exception):
    """A check does not apply, or cannot run on this machine; the text is the reason."""


@dataclass(frozen=True)
class Check:
    """A row of a table of checks.

    ``host`` is the framework that the check needs; "native" is NumPy with a native kernel. ``run`` returns
    a remark or None. It raises ``BrokenRuleError`` where the operator is wrong and ``NotRunError``
    where the check does not apply. With ``stops``, a failure ends the run: the checks after it are
    reported as not run, with this text as the reason.
    """

    name: str
    host: str
    run: Callable[[Case], str | None]
    stops: str = ""


@dataclass(frozen=True)
class Case:
    """An operator and arguments in the order of its schema; each tensor is a NumPy array.

    ``user_tolerance`` is the caller's (rtol, atol); None stands for the default of the dtype.
    ``torch_device`` is where PyTorch's tensors are put.
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
        """Yield (name, array) of each tensor; the items of a list count one by one, None is left out."""
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
        """Return the tensors among ``arguments`` that the schema writes in place, those of lists too."""
        tensors: list[Any] = []
        for argument, value in zip(self.operator.schema.arguments, arguments, strict=True):
            if argument.type.writes and value is not None:
                tensors.extend(value if isinstance(value, (list, tuple)) else [value])
        return tensors

    def writes(self, name: str) -> bool:
        """Whether the schema writes the tensor of this name in place."""
        written = {argument.name for argument in self.operator.schema.arguments if argument.type.writes}
        return name.split("[", maxsplit=1)[0] in written

    def with_tensors(self, tensors: Iterable[Any]) -> tuple[Any, ...]:
        """Return the arguments with these in place of the tensors, in the order of :meth:`tensors`."""
        remaining = iter(tensors)
        return self.map(lambda *_: next(remaining))

    def call(self, arguments: tuple[Any, ...], function: Callable[..., Any] | None = None) -> list[Any]:
        """Call the operator, or ``function`` in its place, on tensors of any framework.

        Returns the new outputs, then the arguments that the schema writes in place.
        """
        args, keywords = self.operator.schema.split(arguments)
        return self.results((function or self.bound)(*args, **keywords), arguments)

    def results(self, returned: Any, arguments: tuple[Any, ...]) -> list[Any]:
        """Return the new outputs of a call that returned this, then the arguments that it wrote."""
        outputs, schema = as_list(returned), self.operator.schema
        fresh = outputs if schema.returns_list else [outputs[i] for i in schema.fresh]
        return [*fresh, *self.written(arguments)]

    def copy(self) -> tuple[Any, ...]:
        """Return the arguments with each array copied."""
        return self.map(lambda _, value: value.copy())

    def run(self) -> list[Array]:
        """Call the operator on copies of the arrays; return outputs and written arguments as arrays."""
        return [np.asarray(x) for x in self.call(self.copy())]

    @property
    def has_cpu_kernel(self) -> bool:
        """Whether the operator runs on NumPy arrays."""
        devices = {kernel.device for kernel in self.operator.kernels}
        return not devices or bool(devices & {"cpu", "any"})

    def on_cpu(self) -> list[Array]:
        """Return the results on NumPy arrays, of the reference where no kernel runs on the CPU.

        Raises ``NotRunError`` if there is neither.
        """
        results = self.run() if self.has_cpu_kernel else self.expected()
        if results is None:
            raise NotRunError("no kernel runs on the CPU, and there is no reference")
        return results

    def expected(self) -> list[Array] | None:
        """Return the reference's results on copies, or None without a reference.

        For an operator that writes in place, the reference may write its arrays; it returns the new
        outputs only.
        """
        if self.reference is None:
            return None
        arguments = self.copy()
        args, keywords = self.operator.schema.split(arguments)
        outputs = as_list(self.reference(*args, **keywords))
        written = self.written(arguments)
        schema = self.operator.schema
        fresh = len(outputs) if schema.returns_list else len(schema.fresh)
        return [np.asarray(x) for x in (*outputs[:fresh], *written)]

    def prepare(self) -> Prepared:
        """Infer the outputs and choose the kernel for these arrays."""
        return prepare(self.operator, specs(HOST, self.operator, self.arguments), infer=True)

    @property
    def has_gradient(self) -> bool:
        """Whether the operator has a gradient: a rule, or for a C++ module's function a call of ``Apply``."""
        rule: Any = self.operator.gradient
        if not (isinstance(rule, Rule) and rule.is_recorded):
            return rule is not None
        recorded: Any = rule
        try:
            derived = recorded.kernel.derive(self.prepare().inputs, self.attributes())
        except PolyopError:
            return True  # the function reads data, so a dry run cannot tell; the gradient checks will
        return bool(derived.recorded)

    def need_gradient(self) -> None:
        """Raise ``NotRunError`` if there is no gradient to check."""
        if not self.has_gradient:
            raise NotRunError("no gradient rule")
        self.need_derivative()

    def need_derivative(self) -> None:
        """Raise ``NotRunError`` if no rule could give a derivative."""
        if self.operator.schema.mutates:
            raise NotRunError("an operator that writes in place has no gradient")
        if not any(self.floating_outputs() or [True]):
            raise NotRunError("no output of floating dtype")

    def floating_outputs(self) -> list[bool]:
        """Return which outputs are of floating dtype; an empty list if only a call tells."""
        try:
            return [spec.dtype.is_floating for spec in self.prepare().outputs]
        except PolyopError:
            return []  # the checks run into the same error and report it

    def attributes(self) -> dict[str, Any]:
        """Return the schema's attributes by name."""
        return attributes(self.operator.schema, self.arguments)

    def tolerance(self, kind: Any) -> tuple[float, float]:
        """Return (rtol, atol) for values of a dtype."""
        default = dtype(kind).tolerance
        rtol, atol = self.user_tolerance
        return (default if rtol is None else rtol, default if atol is None else atol)

    def __str__(self) -> str:
        """Return the specs of the tensors, by name."""
        return ", ".join(f"{name} {spec_of(value)}" for name, value in self.tensors())


def as_list(returned: Any) -> list[Any]:
    """Return the outputs of a call as a list; a call of an operator without outputs returns None."""
    if isinstance(returned, (tuple, list)):
        return list(returned)
    return [] if returned is None else [returned]


def spec_of(array: Array) -> Spec:
    """Return an array's spec."""
    return HOST.spec(array)


def one_line(problem: BaseException) -> str:
    """Return an error's class and the first line of its text."""
    text = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {text[0]}" if text else type(problem).__name__
