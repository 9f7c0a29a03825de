"""Calls that a runtime makes without Python: the operator and its attributes are a text.

XLA's custom calls and MindSpore's aot launches carry the text; the native core (csrc/target.h) asks
:func:`resolve` once for each set of shapes what it means. The text has no address in it, so a
program that was exported or cached runs in any process that has defined the operator.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _core
from ..core.dtypes import DTYPES
from ..core.errors import ArgumentTypeError, HostError, KernelError, PolyopError
from ..core.origin import of_function
from ..core.schema import Schema
from ..core.spec import Spec
from ..kernels.python import PythonKernel
from . import registry
from .content import digest
from .host import load
from .operator import Operator
from .prepare import normalise, prepare

Run = Callable[[list[Any]], None]
"""Runs a Python kernel on arrays over a runtime's memory."""

_DEVICES = {1: "cpu", 2: "cuda"}  # DLPack's device types
_contents: weakref.WeakKeyDictionary[Operator, str] = weakref.WeakKeyDictionary()
_digests: weakref.WeakKeyDictionary[Operator, str] = weakref.WeakKeyDictionary()
_lock = threading.RLock()
_given: set[str] = set()
_seen: dict[tuple[str, str], int] = {}  # how many operators of a name and a digest there were
_bound: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_watches: list[Callable[[Operator, Run], Run]] = []


def watch(around: Callable[[Operator, Run], Run]) -> None:
    """Have runtimes call what ``around(operator, run)`` returns, in place of a Python kernel's ``run``.

    For every set of shapes that is resolved from now on.
    """
    _watches.append(around)


def call_text(bound: Any, arguments: Sequence[Any]) -> str:
    """Return the text of a call with bound arguments; tensors count as there or absent.

    Raises ``ArgumentTypeError`` for an attribute that has no text.
    """
    operator: Operator = bound.operator
    content = _content(operator)
    _bound[f"{operator.name} {content}"] = bound
    try:
        return json.dumps(
            [operator.name, content, described(operator.schema, arguments)], separators=(",", ":")
        )
    except TypeError as problem:
        raise ArgumentTypeError(operator.name, f"an attribute has no text: {problem}") from None


def described(schema: Schema, arguments: Sequence[Any]) -> list[Any]:
    """Return the attributes as they are, and for tensors 1 where they are there, else 0."""
    return [
        _presence(value) if argument.type.is_tensor else value
        for argument, value in zip(schema.arguments, arguments, strict=True)
    ]


def _content(operator: Operator) -> str:
    """Return the digest, and a number where an operator alike was here before.

    A digest does not see all that a Python function reads; in one process two definitions are two.
    """
    found = _contents.get(operator)
    if found is not None:
        return found
    with _lock:  # one operator has one number, however many threads call it first
        found = _contents.get(operator)
        if found is None:
            own = _digest(operator)
            number = _seen[operator.name, own] = _seen.get((operator.name, own), 0) + 1
            found = _contents[operator] = own if number == 1 else f"{own}.{number}"
            _given.add(f"{operator.name} {found}")
        return found


def _digest(operator: Operator) -> str:
    # once: libraries are read for it, and what a function holds can change as it is called
    with _lock:
        found = _digests.get(operator)
        if found is None:
            found = _digests[operator] = digest(operator)
        return found


def _presence(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [int(item is not None) for item in value]
    return int(value is not None)


def flatten(schema: Schema, arguments: Sequence[Any]) -> Iterator[Any]:
    """Yield the tensors that are present, in schema order, lists opened: a call's inputs."""
    for position in schema.tensor_positions:
        value = arguments[position]
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if item is not None:
                yield item


def unflatten(schema: Schema, given: Sequence[Any], tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments with tensors in the places that ``given`` (of a text) says are filled."""
    left = iter(tensors)

    def fill(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(next(left) if there else None for there in value)
        return next(left) if value else None

    rows = zip(schema.arguments, given, strict=True)
    return tuple(fill(value) if argument.type.is_tensor else _frozen(value) for argument, value in rows)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def written(schema: Schema, arguments: Sequence[Any]) -> list[Any]:
    """Return the tensors that the schema writes; a call's outputs are the new ones, then these."""
    found: list[Any] = []
    for argument, value in zip(schema.arguments, arguments, strict=True):
        if argument.type.writes and value is not None:
            found += [v for v in (value if isinstance(value, (list, tuple)) else (value,)) if v is not None]
    return found


def find(text: str) -> tuple[Any, list[Any]]:
    """Return the operator and the arguments of a text.

    Raises ``HostError`` where this process does not have the operator, or has another of its name.
    """
    name, content, given = json.loads(text)
    bound = _bound.get(f"{name} {content}")
    if bound is not None and _content(bound.operator) == content:
        return bound, given
    made = content.partition(".")[0]  # in another process the number says nothing
    bound = registry.obtain(name)
    if bound is None:
        hint = "import the module that defines it before the program runs"
        raise HostError(name, "this program calls it, and this process has not defined it", hint=hint)
    own = _digest(bound.operator)
    if own != made or f"{name} {content}" in _given:  # given here: its operator is no more
        rule = "the program was made with another definition of the operator"
        hint = "make the program again, or use the library, attributes and schema that it was made with"
        raise HostError(name, f"{rule} ({content})", own, where=bound.operator.origin, hint=hint)
    return bound, given


def resolve(text: str, rows: Sequence[tuple[tuple[int, ...], int, int]], inputs: int) -> tuple[Any, ...]:
    """Return what csrc/target.h asks for: kernel, order of tensors, pairs that are one tensor.

    Raises what ``prepare`` does, and ``HostError`` where the runtime's outputs are not the operator's.
    """
    bound, given = find(text)
    operator: Operator = bound.operator
    specs = [Spec(shape, DTYPES[row], _DEVICES.get(device, "other")) for shape, row, device in rows]
    arguments = normalise(operator, unflatten(operator.schema, given, specs[:inputs]))
    numbers = unflatten(operator.schema, given, range(inputs))
    prepared = prepare(operator, arguments, infer=True)
    expected = [*prepared.outputs, *written(operator.schema, arguments)]
    _check(operator, expected, specs[inputs:])
    first = inputs + len(prepared.outputs)
    pairs = {
        number: first + k for k, number in enumerate(written(operator.schema, numbers))
    }  # input to the output in its place
    kernel: Any = prepared.kernel
    # the core keeps what it is given for the life of the process: the operator lives as long as its programs
    of = functools.partial(_of, bound.name, weakref.ref(bound))
    failed = functools.partial(_failed, of)
    if kernel.native and not kernel.allocates:
        order = [pairs.get(i, i) for i in _parameters(operator.schema, numbers)]
        order += range(inputs, first)
        launch = prepared.launch()
        return launch, tuple(order), tuple(pairs.items()), prepared.repeatable, failed
    if specs and specs[0].device != "cpu":
        raise HostError(bound.name, f"{kernel} runs on the CPU", f"tensors on {specs[0].device}")
    run: Run = functools.partial(_run, of, given, inputs, len(prepared.outputs), pairs)
    for around in _watches:
        run = around(operator, run)
    return run, (), tuple(pairs.items()), prepared.repeatable, failed


def _of(name: str, reference: weakref.ref[Any]) -> Any:
    bound = reference()
    if bound is None:
        raise HostError(
            name, "the operator is no more, and a program still calls it", hint="keep the operator"
        )
    return bound


def _parameters(schema: Schema, numbers: Sequence[Any]) -> Iterator[int]:
    for position in schema.tensor_positions:
        value = numbers[position]
        for item in value if isinstance(value, tuple) else (value,):
            yield -1 if item is None else item


def _check(operator: Operator, expected: Sequence[Spec], seen: Sequence[Spec]) -> None:
    wanted = [(tuple(spec.shape), spec.dtype) for spec in expected]
    if wanted != [(spec.shape, spec.dtype) for spec in seen]:
        rule = f"the program must have outputs {', '.join(map(str, expected)) or 'none'}"
        shown = ", ".join(map(str, seen)) or "none"
        raise HostError(operator.name, rule, shown, where=operator.origin)


def _failed(of: Callable[[], Any], *outcome: Any) -> None:
    of()._failed(*outcome)  # noqa: SLF001


def _run(
    of: Callable[[], Any], given: list[Any], inputs: int, fresh: int, pairs: dict[int, int], arrays: list[Any]
) -> None:
    """Run a kernel that is no C function on arrays over the runtime's memory.

    Raises ``KernelError`` where something still holds that memory afterwards.
    """
    for i in range(inputs):
        arrays[i].flags.writeable = False
    before = _counts(arrays)
    bound = of()
    _fill(bound, given, inputs, fresh, pairs, arrays)
    held = _held(arrays, before)
    for wait in _WAITS if held else ():  # cycles, and what a runtime gives back a little later
        gc.collect()
        time.sleep(wait)
        held = _held(arrays, before)
        if not held:
            return
    if held:
        what = "an input" if held[0] < inputs else "an argument that it writes"
        rule = f"keeps {what} beyond the call, and the memory of it is the runtime's"
        hint = "copy what is kept: x.copy()"
        where = bound.operator.origin
        raise KernelError(
            bound.name, rule, f"an array of shape {arrays[held[0]].shape}", where=where, hint=hint
        )


_WAITS = (0, 0.001, 0.01, 0.05)  # seconds


def _held(arrays: list[Any], before: list[int]) -> list[int]:
    # a view holds the array that it is of: the memory has no other owner
    rows = zip(before, _counts(arrays), strict=True)
    return [number for number, (old, new) in enumerate(rows) if new > old]


def _counts(arrays: list[Any]) -> list[int]:
    return [sys.getrefcount(array) for array in arrays]


def _fill(
    bound: Any, given: list[Any], inputs: int, fresh: int, pairs: dict[int, int], arrays: list[Any]
) -> None:
    tensors = [arrays[pairs.get(i, i)] for i in range(inputs)]
    arguments = normalise(bound.operator, unflatten(bound.schema, given, tensors))
    host = load("numpy")
    assert host is not None
    try:
        outputs = host.call(bound, arguments)
    except PolyopError:
        raise
    except Exception as problem:
        kernel = bound.operator.kernels[0]
        own = of_function(kernel.function) if isinstance(kernel, PythonKernel) else None
        where = own or bound.operator.origin
        rule = f"the kernel raised {type(problem).__name__}: {problem}"
        raise KernelError(bound.name, rule, where=where) from problem
    if not bound.schema.returns_list:
        outputs = tuple(outputs[i] for i in bound.schema.fresh)
    for array, value in zip(arrays[inputs : inputs + fresh], outputs, strict=True):
        array[...] = value


def run_arrays(text: str, arrays: list[Any], inputs: int) -> None:
    """Run a call on arrays over a runtime's memory: the inputs, then all outputs, which are written.

    An output that takes the place of an input holds that input's values already.
    """
    bound, given = find(text)
    schema = bound.schema
    numbers = unflatten(schema, given, range(inputs))
    places = written(schema, numbers)
    first = len(arrays) - len(places)
    pairs = {number: first + k for k, number in enumerate(places)}
    _run(lambda: bound, given, inputs, first - inputs, pairs, arrays)


_core.set_resolver(resolve)
