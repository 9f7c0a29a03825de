"""Calls from a runtime without Python: a text names the operator and has its attributes.

XLA's custom calls and MindSpore's aot launches carry the text. The native core (csrc/target.h) calls
:func:`resolve` with it once for each set of shapes. There is no address in the text, so a program that
was exported or cached runs in any process that has defined the operator:

    ["demo::scale", "<digest of the operator>", [1, 2.5]]      (1: a tensor is present; 2.5: an attribute)

A program that has the operator's gradient too has a digest of the whole definition as a fourth item.

Names used in this file: a call's tensors have *numbers* in the order of the runtime. ``inputs`` is how
many are inputs; the new outputs (``fresh`` many) follow, then one output for each input that the operator
writes. ``pairs`` maps the number of such an input to the number of its output.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _core
from ..core import locks
from ..core.dtypes import DTYPES
from ..core.errors import ArgumentTypeError, HostError, KernelError, PolyopError
from ..core.origin import of_function
from ..core.schema import Schema
from ..core.spec import Spec
from ..kernels.python import PythonKernel
from . import registry
from .host import load
from .narrow import cast, is_narrowed, narrowed, unfit
from .operator import Operator
from .pickled import definition_digest, digest
from .prepare import normalise, prepare

Run = Callable[[list[Any]], None]
"""Runs a Python kernel on arrays over a runtime's memory."""

_DEVICES = {1: "cpu", 2: "cuda"}  # DLPack's device types
_contents: weakref.WeakKeyDictionary[Operator, str] = weakref.WeakKeyDictionary()
_digests: weakref.WeakKeyDictionary[Operator, str] = weakref.WeakKeyDictionary()
_definitions: weakref.WeakKeyDictionary[Operator, str] = weakref.WeakKeyDictionary()
_lock = locks.shared("table of operators in programs", locks.Level.TABLE)
_issued: set[str] = set()  # "name content" of every operator that this process has made texts for
_definition_counts: dict[tuple[str, str], int] = {}  # by name and digest
_operators: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_watches: list[Callable[[Operator, Run], Run]] = []


def watch(around: Callable[[Operator, Run], Run]) -> None:
    """Wrap Python kernels: runtimes call what ``around(operator, run)`` returns instead of ``run``.

    This holds for every set of shapes that is resolved from now on.
    """
    _watches.append(around)


def call_text(bound: Any, arguments: Sequence[Any], *, with_rules: bool = False) -> str:
    """Return the text of a call with bound arguments; of a tensor it says only whether it is present.

    ``with_rules`` is for a program that has the gradient too. Raises ``ArgumentTypeError`` for an attribute
    that JSON cannot express.
    """
    operator: Operator = bound.operator
    content = content_of(operator)
    _operators[f"{operator.name} {content}"] = bound
    items = [operator.name, content, text_values(operator.schema, arguments)]
    items += [_kept(_definitions, definition_digest, operator)] if with_rules else []
    try:
        return json.dumps(items, separators=(",", ":"))
    except TypeError as problem:
        raise ArgumentTypeError(operator.name, f"an attribute has no JSON form: {problem}") from None


def text_values(schema: Schema, arguments: Sequence[Any]) -> list[Any]:
    """Return the arguments as the text has them: attributes as they are, 1 for a tensor, 0 for None."""
    return [
        _presence(value) if argument.type.is_tensor else value
        for argument, value in zip(schema.arguments, arguments, strict=True)
    ]


def content_of(operator: Operator) -> str:
    """Return the digest, with a number if this process had an operator of the same name and digest.

    The digest does not cover everything that a Python function reads, so two definitions in one process
    are two operators.
    """
    content = _contents.get(operator)
    if content is not None:
        return content
    own = _kept(_digests, digest, operator)
    with _lock:  # threads that call the operator first at the same time get the same number
        content = _contents.get(operator)
        if content is None:
            key = operator.name, own
            number = _definition_counts[key] = _definition_counts.get(key, 0) + 1
            content = _contents[operator] = own if number == 1 else f"{own}.{number}"
            _issued.add(f"{operator.name} {content}")
        return content


def _kept(kept: Any, compute: Callable[[Operator], str], operator: Operator) -> str:
    # kept: it reads whole libraries, and a function's closure can change when it is called
    text: str | None = kept.get(operator)
    if text is None:
        text = compute(operator)  # without the lock: it may read other operators
        with _lock:  # the text of the first of several threads
            text = kept.setdefault(operator, text)
    return text


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


def unflatten(schema: Schema, values: Sequence[Any], tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments of a call; ``values`` are those of a text, ``tensors`` those that are present."""
    remaining = iter(tensors)

    def fill(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(next(remaining) if present else None for present in value)
        return next(remaining) if value else None

    rows = zip(schema.arguments, values, strict=True)
    return tuple(fill(value) if argument.type.is_tensor else _frozen(value) for argument, value in rows)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def written_tensors(schema: Schema, arguments: Sequence[Any]) -> list[Any]:
    """Return the tensors that the schema writes; a call's outputs are the new ones, then these."""
    tensors: list[Any] = []
    for argument, value in zip(schema.arguments, arguments, strict=True):
        if argument.type.writes and value is not None:
            tensors += [v for v in (value if isinstance(value, (list, tuple)) else (value,)) if v is not None]
    return tensors


def parse_call_text(text: str) -> tuple[Any, list[Any]]:
    """Return the operator and the values that a text of :func:`call_text` names.

    Raises ``HostError`` if this process does not have the operator, or a different one of that name.
    """
    name, content, values, *rules = json.loads(text)
    bound = _operators.get(f"{name} {content}")
    if bound is not None and content_of(bound.operator) == content:
        return _with_rules(bound, rules), values
    expected = content.partition(".")[0]  # the number has no meaning in another process
    bound = registry.obtain(name)
    if bound is None:
        hint = "import the module that defines it before the program runs"
        raise HostError(name, "this program calls it, and this process has not defined it", hint=hint)
    own = _kept(_digests, digest, bound.operator)
    if own != expected or f"{name} {content}" in _issued:  # issued here, and that operator is gone
        rule = "the program was made with another definition of the operator"
        hint = (
            "make the program again (where a cache keeps it, remove it there), or use the library, "
            "attributes and schema that it was made with"
        )
        raise HostError(name, f"{rule} ({content})", own, where=bound.operator.origin, hint=hint)
    return _with_rules(bound, rules), values


def _with_rules(bound: Any, rules: Sequence[str]) -> Any:
    """Return the operator; raises ``HostError`` if the program has the gradient of other rules."""
    if rules and rules[0] != _kept(_definitions, definition_digest, bound.operator):
        rule = "the program has the gradient of another definition of the operator"
        hint = "make the program again: where a cache keeps it, remove it there"
        raise HostError(bound.name, rule, where=bound.operator.origin, hint=hint)
    return bound


def resolve(text: str, rows: Sequence[tuple[tuple[int, ...], int, int]], inputs: int) -> tuple[Any, ...]:
    """Return what csrc/target.h says: the kernel, the order of its tensors, and what else a call needs.

    Raises what ``prepare`` raises, and ``HostError`` if the runtime's outputs are not the operator's, or are
    narrower on a device where nothing narrows them.
    """
    bound, values = parse_call_text(text)
    operator: Operator = bound.operator
    specs = [Spec(shape, DTYPES[row], _DEVICES.get(device, "other")) for shape, row, device in rows]
    arguments = normalise(operator, unflatten(operator.schema, values, specs[:inputs]))
    numbers = unflatten(operator.schema, values, range(inputs))
    prepared = prepare(operator, arguments, infer=True)
    expected = [*prepared.outputs, *written_tensors(operator.schema, arguments)]
    wide = _wide_rows(operator, expected, specs[inputs:], inputs)
    first = inputs + len(prepared.outputs)
    pairs = {number: first + k for k, number in enumerate(written_tensors(operator.schema, numbers))}
    kernel: Any = prepared.kernel
    # the core keeps these functions as long as the process lives: they must not keep the operator alive
    get_operator = functools.partial(_dereference, bound.name, weakref.ref(bound))
    failed = functools.partial(_failed, get_operator)
    errors = failed, wide, functools.partial(_unfit, get_operator, inputs, dict(wide))
    if kernel.native and not kernel.allocates:
        order = [pairs.get(i, i) for i in _parameters(operator.schema, numbers)]
        order += range(inputs, first)
        launch = prepared.launch()
        return launch, tuple(order), tuple(pairs.items()), prepared.repeatable, *errors
    if specs and specs[0].device != "cpu":
        rule = "runs on the CPU" if kernel.device == "cpu" else "is launched from PyTorch alone"
        raise HostError(bound.name, f"{kernel} {rule}", f"tensors on {specs[0].device}")
    run: Run = functools.partial(_run, get_operator, values, inputs, len(prepared.outputs), pairs)
    for around in _watches:
        run = around(operator, run)
    return run, (), tuple(pairs.items()), prepared.repeatable, *errors


def _dereference(name: str, reference: weakref.ref[Any]) -> Any:
    bound = reference()
    if bound is None:
        raise HostError(
            name, "a program calls the operator after it was deleted", hint="keep a reference to the operator"
        )
    return bound


def _parameters(schema: Schema, numbers: Sequence[Any]) -> Iterator[int]:
    for position in schema.tensor_positions:
        value = numbers[position]
        for item in value if isinstance(value, tuple) else (value,):
            yield -1 if item is None else item


def _wide_rows(
    operator: Operator, expected: Sequence[Spec], seen: Sequence[Spec], inputs: int
) -> tuple[tuple[int, int], ...]:
    """Return (number, row of its dtype in a call) for each output that is narrower in the program."""
    wanted = [(tuple(spec.shape), spec.dtype) for spec in expected]
    fitting = [(tuple(spec.shape), narrowed(spec).dtype) for spec in expected]
    are = [(spec.shape, spec.dtype) for spec in seen]
    if len(wanted) != len(are) or any(x not in pair for x, *pair in zip(are, wanted, fitting, strict=True)):
        rule = f"the program must have outputs {', '.join(map(str, expected)) or 'none'}"
        shown = ", ".join(map(str, seen)) or "none"
        raise HostError(operator.name, rule, shown, where=operator.origin)
    rows = zip(are, wanted, strict=True)
    wide = [(inputs + i, DTYPES.index(want[1])) for i, (one, want) in enumerate(rows) if one != want]
    if wide and seen[0].device != "cpu":
        rule = f"gives {', '.join(map(str, expected))}, which only programs on the CPU narrow"
        shown = ", ".join(map(str, seen))
        hint = 'jax.config.update("jax_enable_x64", True), or give the operator a 32-bit output'
        raise HostError(operator.name, rule, shown, where=operator.origin, hint=hint)
    return tuple(wide)


def _unfit(
    get_operator: Callable[[], Any], inputs: int, wide: dict[int, int], output: int, value: str
) -> None:
    raise unfit(get_operator().operator, output - inputs, int(value), DTYPES[wide[output]].name)


def _failed(get_operator: Callable[[], Any], *outcome: Any) -> None:
    get_operator()._failed(*outcome)  # noqa: SLF001


def _run(
    get_operator: Callable[[], Any],
    values: list[Any],
    inputs: int,
    fresh: int,
    pairs: dict[int, int],
    arrays: list[Any],
) -> None:
    """Run a Python kernel on arrays over the runtime's memory.

    Raises ``KernelError`` if something still refers to one of the arrays afterwards: their memory is then
    no longer valid.
    """
    for i in range(inputs):
        arrays[i].flags.writeable = False
    before = _counts(arrays)
    bound = get_operator()
    _fill(bound, values, inputs, fresh, pairs, arrays)
    leaked = _leaked(arrays, before)
    for wait in _WAITS if leaked else ():  # reference cycles, and frameworks that free a little later
        gc.collect()
        time.sleep(wait)
        leaked = _leaked(arrays, before)
        if not leaked:
            return
    if leaked:
        what = "an input" if leaked[0] < inputs else "an argument that it writes"
        rule = f"keeps {what} beyond the call, and the memory of it is the runtime's"
        hint = "copy what is kept: x.copy()"
        where = bound.operator.origin
        raise KernelError(
            bound.name, rule, f"an array of shape {arrays[leaked[0]].shape}", where=where, hint=hint
        )


_WAITS = (0, 0.001, 0.01, 0.05)  # seconds


def _leaked(arrays: list[Any], before: list[int]) -> list[int]:
    """Return the numbers of arrays with more references than before; a view refers to its array."""
    rows = zip(before, _counts(arrays), strict=True)
    return [number for number, (old, new) in enumerate(rows) if new > old]


def _counts(arrays: list[Any]) -> list[int]:
    return [sys.getrefcount(array) for array in arrays]


def _fill(
    bound: Any, values: list[Any], inputs: int, fresh: int, pairs: dict[int, int], arrays: list[Any]
) -> None:
    tensors = [arrays[pairs.get(i, i)] for i in range(inputs)]
    arguments = normalise(bound.operator, unflatten(bound.schema, values, tensors))
    host = load("numpy")
    assert host is not None
    try:
        outputs = host.call(bound, arguments)
    except PolyopError:
        raise
    except Exception as problem:
        kernel = bound.operator.kernels[0]
        author = of_function(kernel.function) if isinstance(kernel, PythonKernel) else None
        where = author or bound.operator.origin
        rule = f"the kernel raised {type(problem).__name__}: {problem}"
        raise KernelError(bound.name, rule, where=where) from problem
    if not bound.schema.returns_list:
        outputs = tuple(outputs[i] for i in bound.schema.fresh)
    for number, (array, result) in enumerate(zip(arrays[inputs : inputs + fresh], outputs, strict=True)):
        value = result
        if value is not None and is_narrowed(value.dtype, array.dtype):
            value = cast(bound.operator, number, value, array.dtype)
        if value is None or (value.shape, value.dtype) != (array.shape, array.dtype):
            rule = f"output {number} must be {array.dtype}{list(array.shape)}, as the program has it"
            seen = "None" if value is None else f"{value.dtype}{list(value.shape)}"
            raise KernelError(bound.name, rule, seen, where=bound.operator.origin)
        array[...] = value


def run_arrays(text: str, arrays: list[Any], inputs: int) -> None:
    """Run a call on arrays over a runtime's memory: the inputs, then all outputs, which are written.

    An output that stands for a written input has that input's values already.
    """
    bound, values = parse_call_text(text)
    schema = bound.schema
    written_inputs = written_tensors(schema, unflatten(schema, values, range(inputs)))
    first = len(arrays) - len(written_inputs)
    pairs = {number: first + k for k, number in enumerate(written_inputs)}
    _run(lambda: bound, values, inputs, first - inputs, pairs, arrays)


_core.set_resolver(resolve)
