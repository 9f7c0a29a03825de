"""The protocols of hosts, and finding the host that owns a tensor.

A host is imported only when its framework already is.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, cast

from ..core import late, locks
from ..core.errors import ArgumentTypeError, HostError, about
from ..core.schema import Argument
from ..core.spec import Spec
from . import registry
from .arrival import Arrival
from .conversion import way_to_array
from .operator import Operator


class Host(Protocol):
    """A framework whose tensors can be passed to an operator."""

    name: str

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is a tensor of this framework."""

    def spec(self, tensor: Any) -> Spec:
        """Return the shape, dtype and device of a tensor, without reading its data."""

    def call(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator on bound arguments and return its outputs, aliasing ones included."""

    def vjp(self, bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the outputs, and the function from output gradients to input gradients."""

    def zeros(self, spec: Spec, like: Any) -> Any:
        """Return a tensor of zeros of this spec, on the device of ``like``."""

    def copy(self, tensor: Any) -> Any:
        """Return a tensor of the same values that shares no memory that can be written."""

    def namespace(self) -> Any:
        """Return the framework's functions, by their names in the array API."""

    def start(self) -> None:
        """Take over the operators that were defined earlier; called once, right after the host is loaded."""

    def state(self, bound: Any) -> str:
        """Return in words how this host calls an operator, or why it cannot."""


class NamingHost(Host, Protocol):
    """A host whose framework calls operators by name: PyTorch."""

    def attach(self, bound: Any) -> None:
        """Give the native call the function that it runs when gradients are required."""

    def offer(self, bound: Any) -> None:
        """Register the operator with the framework, unless the framework refuses its schema."""

    def forget(self, bound: Any) -> None:
        """Remove the operator from the framework."""

    def overload(self, bound: Any) -> Any:
        """Return the framework's operator; raises ``SchemaError`` if the framework refuses the schema."""


class TransformingHost(Host, Protocol):
    """A host whose framework differentiates functions: PyTorch, JAX."""

    def pull_back(self, function: Any, inputs: Any, grads: Any) -> tuple[Any, ...]:
        """Return the gradients of ``function`` at the inputs; they can be differentiated again."""

    def alive(self, values: Any) -> list[Any]:
        """Return the tensors without wrappers of transforms that have ended."""


class GraphHost(Host, Protocol):
    """A host whose compiler reads the source of the functions that a program calls: MindSpore."""

    def graph(self, bound: Any) -> Any:
        """Return the method whose source the compiler reads in place of a call of the operator."""


class _Row(NamedTuple):
    """Where the host of a framework comes from."""

    find: Callable[[], Host | None]
    packages: tuple[str, ...]
    beside: tuple[str, ...]


EARLY = ("torch", "paddle")
"""Frameworks that must know operators before their first call: PyTorch calls them by name, and Paddle would
rewrite polyop's code in a program that it traces."""

_CONVERSIONS = {
    "numpy": "np.asarray({})",
    "torch": "torch.from_dlpack({})",
    "jax": "jax.numpy.asarray({})",
    "paddle": "paddle.to_tensor(np.asarray({}))",
    "mindspore": "mindspore.Tensor(np.asarray({}))",
}
"""How a tensor of another framework, on the CPU, becomes one of each of these."""

NUMBERS = "builtins"
"""The name for Python's numbers in ``beside`` of :func:`register`: the host takes them as tensors."""

_rows: dict[str, _Row] = {}  # by framework, in the order of registration
_loaded: dict[str, Host] = {}
_starting: dict[str, Host] = {}  # those whose start() has not ended yet
_by_protocol: dict[str, Host] = {}  # of libraries without a row whose arrays speak DLPack, by their name


def register(
    framework: str,
    find: Callable[[], Host | None],
    packages: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
) -> None:
    """Let operators take the tensors of a framework; a framework that is known already is replaced.

    ``framework`` is the name of the module that programs import. ``find`` returns its host. It is
    called once that module is imported, and again only after it has returned None. ``packages`` are
    the further top-level packages that classes of its tensors are defined in. ``beside`` are the
    frameworks whose tensors its host also takes, in a call with at least one tensor of ``framework``;
    ``"builtins"`` among them stands for Python's numbers.
    """
    _rows[framework] = _Row(find, packages, beside)
    _loaded.pop(framework, None)
    for name in (framework, *packages):
        _by_protocol.pop(name, None)
    _frameworks.cache_clear()


def hosts() -> Iterator[Host]:
    """Yield the hosts whose framework is imported, and those of other libraries whose arrays were passed."""
    for framework in tuple(_rows):
        host = load(framework)
        if host is not None:
            yield host
    yield from tuple(_by_protocol.values())


def load(framework: str) -> Host | None:
    """Return the host of a framework if that is imported, else None."""
    host = _loaded.get(framework)
    if host is not None:
        return host
    module = sys.modules.get(framework)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    if module.__name__ != framework:
        return None  # polyop.mindspore stands in for MindSpore under its name
    host = _rows[framework].find()
    if host is None:
        return None  # it is being imported, by another thread or further up in this one
    with locks.define:  # another thread waits here until the host has started
        known = _loaded.get(framework) or _starting.get(framework)
        if known is not None:
            return known
        _starting[framework] = host  # start() may make operators, which look for their hosts
        try:
            host.start()
        finally:
            _loaded[framework] = _starting.pop(framework)
        return host


def need(framework: str) -> Host:
    """Return the host of a framework, which is imported if necessary; raises ``ImportError``."""
    importlib.import_module(framework)
    host = load(framework)
    assert host is not None, framework
    return host


def torch_host() -> NamingHost | None:
    """Return the host of PyTorch if that is imported, else None."""
    return cast("NamingHost | None", load("torch"))


def start_early() -> None:
    """Start the hosts of :data:`EARLY` whose frameworks are imported."""
    for framework in EARLY:
        load(framework)


def transforming_host(tensors: Iterable[Any]) -> TransformingHost | None:
    """Return the host of the first tensor among the values; None if there is none."""
    host = next((host for host in map(host_of, tensors) if host is not None), None)
    return cast("TransformingHost | None", host)


def _start(framework: str) -> None:
    if registry.objects():  # else the definition of the first operator loads it
        load(framework)


for _framework in EARLY:
    if _framework not in sys.modules:
        Arrival(_framework, _start).wait()


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of any host that is present."""
    return host_of(value) is not None


def host_of(value: Any) -> Host | None:
    """Return the host that owns a value, or None."""
    kind: type = type(value)
    frameworks = _frameworks(kind)
    for framework in frameworks:
        host = load(framework)
        if host is not None and host.owns(value):
            return host
    if not frameworks and hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__"):
        return _host_of_library(kind)
    return None


def _host_of_library(kind: type) -> Host:
    """Return the host of the library that defines a class of arrays that speak DLPack."""
    name = kind.__module__.split(".", 1)[0]
    if name not in _by_protocol:
        _by_protocol[name] = late.load("host", "dlpack").DlpackHost(name)
    return _by_protocol[name]


@functools.lru_cache(maxsize=256)
def _frameworks(kind: type) -> tuple[str, ...]:
    """Return the frameworks that define a class or one of its bases."""
    packages = dict.fromkeys(base.__module__.split(".", 1)[0] for base in kind.__mro__)
    names = (name for package in packages for name, row in _rows.items() if package in (name, *row.packages))
    return tuple(dict.fromkeys(names))


def _built_in(framework: str) -> Host | None:
    """Return the host of a file of polyop; None while that file is being imported."""
    host: Host | None = getattr(late.load("host", framework), "HOST", None)
    return host


for _framework, _packages, _beside in (
    ("numpy", (), ()),
    ("torch", (), ()),
    ("jax", ("jaxlib",), ("numpy", NUMBERS)),
    ("mindspore", (), ()),
    ("paddle", (), ()),
    ("dask", (), ("numpy",)),
    ("xarray", (), ("numpy", "dask")),
    ("pyopencl", (), ()),
):
    register(_framework, functools.partial(_built_in, _framework), _packages, _beside)


def array_namespace(*tensors: Any) -> Any:
    """Return the functions (``where``, ``exp``, ``sum`` ...) of the framework of the tensors.

    They have the names of the array API standard, so that one gradient rule serves every framework.
    MindSpore's are those of ``mindspore.numpy``.

    >>> import numpy as np
    >>> float(array_namespace(np.ones(2)).sum(np.ones(2)))
    2.0

    Raises ``HostError`` if none of them is a tensor.
    """
    for tensor in tensors:
        host = host_of(tensor)
        if host is not None:
            return host.namespace()
    raise HostError("array_namespace", "needs a tensor", ", ".join(type(t).__name__ for t in tensors))


def find_host(operator: Operator, arguments: Sequence[Any]) -> Host:
    """Return the one host of all tensors among bound arguments.

    If the schema has no tensors and the kernel is a Python function, that is NumPy.

    Raises ``ArgumentTypeError`` for another value in place of a tensor, ``HostError`` if the tensors
    are of two frameworks, if all are absent, or if what the operator writes is no tensor of its host.
    """
    numpy = load("numpy")
    native = any(kernel.native for kernel in operator.kernels)
    if numpy is not None and not operator.schema.tensor_positions and not native:
        return numpy  # no argument shows which framework is calling, and every framework takes NumPy arrays
    host = _owner(operator, arguments)
    if host is None:
        hint = None
        if not operator.schema.tensor_positions:
            hint = "without tensors, the kernel must be a Python function, and this one is machine code"
        rule = "needs at least one tensor to know which framework is calling"
        raise HostError(operator.name, rule, where=operator.origin, hint=hint)
    if operator.schema.mutates:
        written = (i for i, a in enumerate(operator.schema.arguments) if a.type.writes)
        need_own(operator, host, arguments, written)
    return host


def _owner(operator: Operator, arguments: Sequence[Any]) -> Host | None:
    """Return the host that takes all tensors among the arguments; None if there is no tensor."""
    first: tuple[Host, str] | None = None  # the host of the first tensor, and the argument's name
    number: tuple[str, Any] | None = None  # the first of Python's numbers, and the argument's name
    for position in operator.schema.tensor_positions:
        argument = operator.schema.arguments[position]
        for name, value in tensors_of(operator, argument, arguments[position]):
            host = host_of(value)
            if host is None:
                if not is_number(value):
                    raise _no_tensor(operator, name, value)
                number = number or (name, value)
            elif first is None or _takes(host, first[0].name):
                first = host, name
            elif first[0] is not host and not _takes(first[0], host.name):
                rule = f"{name} is a tensor of {host.name}, and {first[1]} one of {first[0].name}"
                hint = "a call has tensors of one framework: convert one of them first"
                if first[0].name in _CONVERSIONS:
                    hint += f", as in {_CONVERSIONS[first[0].name].format(name)}"
                raise HostError(operator.name, rule, where=operator.origin, hint=hint)
    if number is not None and (first is None or not _takes(first[0], NUMBERS)):
        raise _no_tensor(operator, *number)
    return first[0] if first else None


def is_number(value: Any) -> bool:
    """Whether a value is one of Python's numbers, which some hosts take as tensors without dimensions."""
    return isinstance(value, (bool, int, float, complex))


def need_own(operator: Operator, host: Host, arguments: Sequence[Any], positions: Iterable[int]) -> None:
    """Raise ``HostError`` if an argument at these positions, which a call writes, is none of the host's.

    The host converts what other frameworks' tensors it takes, so nobody would see what was written there.
    """
    for position in positions:
        argument = operator.schema.arguments[position]
        for name, value in tensors_of(operator, argument, arguments[position]):
            owner = host_of(value)
            if owner is not host:
                seen = f"a tensor of {owner.name}" if owner else f"a value of type {type(value).__name__}"
                rule = f"writes {name}, which must be a tensor of {host.name}, as others of the call are"
                hint = (
                    "convert it first, and use what was written there: a change of the original would be lost"
                )
                raise HostError(operator.name, rule, seen, where=operator.origin, hint=hint)


def _no_tensor(operator: Operator, name: str, value: Any) -> ArgumentTypeError:
    """Return the error for a value in place of a tensor."""
    rule = f"must be a tensor of {' or '.join(_rows)}, or an array with __dlpack__"
    seen = f"{type(value).__module__}.{type(value).__qualname__}"
    way = way_to_array(name.partition("[")[0] if name.endswith("]") else name, value)
    hint = f"make an array of it first: {way}, or as your framework has it" if way else None
    if isinstance(value, str):
        hint = "pass the array itself, such as np.load(file); a text can be an attribute alone, a str"
    return ArgumentTypeError(
        f"{operator.name}: argument {name}", rule, seen, where=operator.origin, hint=hint
    )


def _takes(host: Host, other: str) -> bool:
    """Whether a host takes the tensors of another one beside its own."""
    row = _rows.get(host.name)
    return row is not None and other in row.beside


def tensors_of(operator: Operator, argument: Argument, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, tensor) for each tensor of a bound argument; absent tensors are skipped."""
    if argument.type.is_list and value is not None:
        if not isinstance(value, (list, tuple)):
            seen = type(value).__name__
            raise ArgumentTypeError(
                f"{operator.name}: argument {argument.name}", f"must be {argument.type}", seen
            )
        for number, item in enumerate(value):
            name = f"{argument.name}[{number}]"
            if item is not None:
                yield name, item
            elif argument.type.suffixes[:1] != ("?",):
                raise _absent(operator, name)
    elif value is not None:
        yield argument.name, value
    elif not argument.type.is_optional:
        raise _absent(operator, argument.name)


def _absent(operator: Operator, name: str) -> ArgumentTypeError:
    subject = f"{operator.name}: argument {name}"
    hint = "pass a tensor; one that may be absent is a Tensor? of the schema"
    return ArgumentTypeError(subject, "must be a tensor", "None", where=operator.origin, hint=hint)


def map_tensors(operator: Operator, arguments: Sequence[Any], function: Any) -> tuple[Any, ...]:
    """Return the arguments with ``function(name, tensor, argument)`` in place of each tensor."""
    mapped = list(arguments)
    for position in operator.schema.tensor_positions:
        argument, value = operator.schema.arguments[position], arguments[position]
        if value is None:
            continue
        if isinstance(value, (list, tuple)) and argument.type.is_list:
            mapped[position] = tuple(
                None if item is None else function(f"{argument.name}[{i}]", item, argument)
                for i, item in enumerate(value)
            )
        else:
            mapped[position] = function(argument.name, value, argument)
    return tuple(mapped)


class Reader(Protocol):
    """What reads the specs of a framework's tensors: a host, or a module of one."""

    def spec(self, tensor: Any, /) -> Spec:
        """Return the spec; raises ``ArgumentTypeError`` about ``"tensor"`` or a part of it."""


def specs(reader: Reader, operator: Operator, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments with each tensor replaced by its spec."""
    return map_tensors(
        operator, arguments, lambda name, value, argument: spec_of(reader, operator, name, value)
    )


def spec_of(reader: Reader, operator: Operator, name: str, value: Any) -> Spec:
    """Return the spec of an argument; an error of the reader gets its operator and its name."""
    try:
        return reader.spec(value)
    except ArgumentTypeError as problem:
        part = "" if problem.subject == "tensor" else f": {problem.subject}"
        raise about(f"{operator.name}: argument {name}{part}", problem, operator.origin) from None


def with_aliases(operator: Operator, arguments: Sequence[Any], fresh: Sequence[Any]) -> tuple[Any, ...]:
    """Return all outputs in schema order: new ones, and arguments that were written in place."""
    schema = operator.schema
    if schema.returns_list and not schema.returns[0].type.alias:
        return tuple(fresh)
    new = iter(fresh)
    return tuple(
        next(new) if not result.type.alias else arguments[schema.alias_of(i)]
        for i, result in enumerate(schema.returns)
    )
