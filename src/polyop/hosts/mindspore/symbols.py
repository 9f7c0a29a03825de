"""Rules that run once, on symbols, while a graph is compiled, and become a text that the compiler reads.

MindSpore's compiler reads Python texts. It cannot read polyop's own rules, nor what they call. So a rule is
run on symbols: each stands for a tensor of the graph and has its shape and dtype. Calls of operators and
functions are written down as the lines of a function::

    rule(x, dout)   ->   def recorded(a0, dout):
                             t0 = launch(a0, dout[0])
                             return (t0[0],)
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from mindspore.ops.composite.base import _Grad

from ...call.foreign import flatten
from ...core.dtypes import dtype
from ...core.errors import UnsupportedError
from ...core.spec import Spec
from . import tensors
from .generated import literal, make_function

_thread = threading.local()

LaunchOf = Callable[[Any, tuple[Any, ...]], Any]


class Symbol:
    """A tensor of the graph: an expression of the text that is being written, and a spec."""

    __module__ = "mindspore"  # by its module a value finds its host

    def __init__(self, recording: Recording, text: str, spec: Spec, is_constant: bool = False) -> None:
        """Stand for what ``text`` computes in the function that ``recording`` writes."""
        self.recording, self.text, self.spec, self.is_constant = recording, text, spec, is_constant

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.spec.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.spec.shape)

    @property
    def dtype(self) -> Any:
        """The dtype, as specs have it."""
        return self.spec.dtype

    def __neg__(self) -> Any:
        """Return the negative."""
        return cast("Any", self) * -1

    def __bool__(self) -> bool:
        """Raise: its value is known only when the graph runs."""
        text = "a tensor of a graph has no truth value while MindSpore compiles; use where(...)"
        raise TypeError(text)

    __hash__ = object.__hash__


def _infix(name: str, sign: str, swapped: bool) -> Any:
    compute = getattr(operator, name)

    def method(self: Symbol, other: Any) -> Any:
        recording = current() or self.recording
        pair = (other, self) if swapped else (self, other)
        spec = Spec(result_spec(compute, pair).shape, _kind(compute, pair), "cpu")
        return recording.line(f"({recording.text(pair[0])} {sign} {recording.text(pair[1])})", spec)

    return method


for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("pow", "**")):
    setattr(Symbol, f"__{_name}__", _infix(_name, _sign, swapped=False))
    setattr(Symbol, f"__r{_name}__", _infix(_name, _sign, swapped=True))
for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    setattr(Symbol, f"__{_name}__", _infix(_name, _sign, swapped=False))


class Recording:
    """The text of a function that is being written. ``launch_of`` makes the launch of a call."""

    def __init__(self, launch_of: LaunchOf) -> None:
        """Write nothing yet."""
        self.launch_of = launch_of
        self.captured: list[Symbol] = []  # symbols of an outer recording: further parameters
        self._lines: list[str] = []
        self._outside: dict[str, Any] = {}

    @property
    def is_one_launch(self) -> bool:
        """Whether nothing is written down but one launch."""
        return len(self._lines) == 1

    def line(self, expression: str, spec: Spec) -> Symbol:
        """Write one line; return its result."""
        return Symbol(self, self._line(expression), spec)

    def launch(self, launch: Any, inputs: Sequence[Any]) -> tuple[Symbol, ...]:
        """Write a launch; return its outputs: the new ones, then what it wrote."""
        specs = launch.output_specs([_spec(x) for x in inputs])
        name = self._line(f"{self._name(launch)}({', '.join(map(self.text, inputs))})")
        return tuple(Symbol(self, f"{name}[{k}]", spec) for k, spec in enumerate(specs))

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Write a call with bound arguments; return all outputs of the schema."""
        if bound.schema.mutates:
            rule = "writes an argument in place, which a rule cannot do while MindSpore compiles it"
            raise UnsupportedError(bound.name, rule, where=bound.operator.origin)
        bound.check_traced(arguments)
        launch = self.launch_of(bound, arguments)
        outputs = self.launch(launch, list(flatten(bound.schema, arguments)))
        indices = launch.return_indices
        return tuple(outputs[i] for i in indices) if indices else outputs

    def apply(self, function: Any, arguments: Sequence[Any], keywords: dict[str, Any], spec: Spec) -> Symbol:
        """Write a call of one of MindSpore's functions; return its result."""
        texts = [*map(self.text, arguments), *(f"{k}={self.text(v)}" for k, v in keywords.items())]
        return self.line(f"{self._name(function)}({', '.join(texts)})", spec)

    def pull_back(self, function: Any, inputs: Sequence[Any], grads: Sequence[Any]) -> tuple[Any, ...]:
        """Write the gradient of ``function``, which is recorded too; return one or None for each input."""
        # MindSpore leaves out the gradients of constants, which nobody needs
        active = [x for x in inputs if not (isinstance(x, Symbol) and x.is_constant)]
        with record(self.launch_of) as inner:
            variables = {id(x): Symbol(inner, f"v{i}", _spec(x)) for i, x in enumerate(active)}
            results = function(*(variables.get(id(x), x) for x in inputs))
            result = f"({''.join(f'{inner.text(x)}, ' for x in results)})"
        names = [f"v{i}" for i in range(len(active))] + [f"c{k}" for k in range(len(inner.captured))]
        gradient = self._name(_Grad(get_by_position=True, sens_param=True))
        recorded = self._name(inner.function(names, result))
        passed = ", ".join(map(self.text, (*active, *inner.captured)))
        sens = "".join(f"{self.text(grad)}, " for grad in grads)
        positions = tuple(range(len(active)))
        name = self._line(f"{gradient}({recorded}, None, {positions})({passed}, ({sens}))")
        found = {
            id(x): Symbol(self, name if len(active) == 1 else f"{name}[{i}]", _spec(x))
            for i, x in enumerate(active)
        }
        return tuple(found.get(id(x)) for x in inputs)

    def text(self, value: Any) -> str:
        """Return a value as text: a symbol's expression, a constant, or the name of what is outside."""
        if isinstance(value, Symbol):
            if value.recording is self:
                return value.text
            places = [k for k, one in enumerate(self.captured) if one is value]
            self.captured += [] if places else [value]
            return f"c{(places or [len(self.captured) - 1])[0]}"
        if isinstance(value, np.generic):
            return self.text(value.item())
        if value is None or isinstance(value, (bool, int, float, str)):
            return literal(value)
        if isinstance(value, (tuple, list)):
            return f"({''.join(f'{self.text(item)}, ' for item in value)})"
        return self._name(value)

    def function(self, parameters: Sequence[str], result: str, **outside: Any) -> Any:
        """Return the function of these parameters; in ``result``, the names of ``outside`` end with {n}."""
        lines = [f"def recorded{{n}}({', '.join(parameters)}):", *self._lines, f"    return {result}"]
        return make_function("recorded", "\n".join(lines), **self._outside, **outside)

    def _line(self, expression: str) -> str:
        name = f"t{len(self._lines)}"
        self._lines.append(f"    {name} = {expression}")
        return name

    def _name(self, value: Any) -> str:
        name = f"outside{len(self._outside)}_"
        self._outside[name] = value
        return f"{name}{{n}}"


def current() -> Recording | None:
    """Return the recording of this thread, or None."""
    return getattr(_thread, "recording", None)


@contextlib.contextmanager
def record(launch_of: LaunchOf) -> Iterator[Recording]:
    """Record what operators are called and what functions of MindSpore, instead of running them."""
    outer, _thread.recording = current(), Recording(launch_of)
    try:
        yield _thread.recording
    finally:
        _thread.recording = outer


_KEEPS_SIZES = {np.sum, np.max, np.any, np.where, np.zeros_like, np.ones_like}
"""Functions, besides ufuncs and infixes, each size of whose result is one of an operand's, or 1."""


def result_spec(function: Any, arguments: Sequence[Any], keywords: dict[str, Any] | None = None) -> Spec:
    """Return the spec of the result of one of NumPy's functions, for symbols and constants.

    The function computes. Where each size of the result is one of an operand's, small numbers take the
    place of the sizes: the product of two large matrices would take seconds.
    """
    infix = getattr(function, "__module__", "") == operator.add.__module__
    keeps = infix or isinstance(function, np.ufunc) or function in _KEEPS_SIZES
    sizes = sorted(_sizes(arguments)) if keeps and not _has_array(arguments) else []
    small = {size: number for number, size in enumerate(sizes, 2)}
    with np.errstate(all="ignore"):
        arrays = _arrays(arguments, lambda spec: _like(spec, small))
        result = np.asarray(function(*arrays, **(keywords or {})))
    shape = tuple(sizes[size - 2] if sizes and size > 1 else size for size in result.shape)
    return Spec(shape, dtype(result.dtype), "cpu")


def _sizes(values: Sequence[Any]) -> set[int]:
    """Return the sizes of symbols that are greater than 1: those of 1 broadcast, those of 0 stay."""
    listed = (
        x.shape if isinstance(x, Symbol) else _sizes(x)
        for x in values
        if isinstance(x, (Symbol, list, tuple))
    )
    return {size for sizes in listed for size in sizes if size > 1}


def _has_array(values: Sequence[Any]) -> bool:
    return any(
        _has_array(x) if isinstance(x, (list, tuple)) else not isinstance(x, Symbol) and np.ndim(x) > 0
        for x in values
    )


def _arrays(values: Sequence[Any], array: Callable[[Spec], Any]) -> list[Any]:
    return [
        array(x.spec) if isinstance(x, Symbol) else _arrays(x, array) if isinstance(x, (list, tuple)) else x
        for x in values
    ]


def _like(spec: Spec, small: dict[int, int]) -> Any:
    shape = tuple(small.get(size, size) for size in spec.shape)
    return np.broadcast_to(np.ones((), spec.dtype.numpy), shape)  # it takes no memory


def _kind(compute: Any, pair: Sequence[Any]) -> Any:
    """Return the dtype of an infix; that of a 0-d array and a number would depend on NumPy's version."""
    with np.errstate(all="ignore"):
        return dtype(compute(*_arrays(pair, lambda spec: np.ones(1, spec.dtype.numpy))).dtype)


def _spec(value: Any) -> Spec:
    return value.spec if isinstance(value, Symbol) else tensors.spec(value)
