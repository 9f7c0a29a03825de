"""Operators inside MindSpore's graphs: what its compiler reads in place of a call.

The compiler reads the Python text of what it calls. An operator shows it :func:`method`, which sorts
the arguments into tensors and constants; the constants choose a launch while the graph is compiled,
and the tensors go to it. A launch is MindSpore's own ``ops.Custom`` of type aot, whose function is
one of a table in polyop's native core (csrc/hosts/mindspore_slots.cc).
"""

from __future__ import annotations

import math
import secrets
import types
import weakref
from typing import Any

import mindspore
import numpy as np
from mindspore import ops
from mindspore.ops.primitive import constexpr

from ...call.foreign import flatten
from ...call.host import find_host
from ...call.operator import Operator
from ...call.prepare import normalise
from ...core.arguments import bind
from ...core.errors import UnsupportedError
from ...core.schema import MISSING
from .launch import Launch
from .written import function

_WALK = """
    for one{n} in {arguments}:
        if isinstance(one{n}, Tensor{n}):
            flat{n} = flat{n} + (one{n},)
            shown{n} = shown{n} + (mark{n},)
        elif isinstance(one{n}, (list, tuple)):
            row{n} = ()
            for item{n} in one{n}:
                if isinstance(item{n}, Tensor{n}):
                    flat{n} = flat{n} + (item{n},)
                    row{n} = row{n} + (mark{n},)
                elif isinstance(item{n}, (list, tuple)):
                    inner{n} = ()
                    for entry{n} in item{n}:
                        if isinstance(entry{n}, Tensor{n}):
                            flat{n} = flat{n} + (entry{n},)
                            inner{n} = inner{n} + (mark{n},)
                        else:
                            inner{n} = inner{n} + (entry{n},)
                    row{n} = row{n} + (inner{n},)
                else:
                    row{n} = row{n} + (item{n},)
            shown{n} = shown{n} + (row{n},)
        else:
            shown{n} = shown{n} + (one{n},)
"""

_ATTRIBUTE = """
    if isinstance({name}, Tensor{n}):
        shown{n} = shown{n} + (mark{n},)
    else:
        shown{n} = shown{n} + ({name},)
"""

_MARK = f"\0tensor {secrets.token_hex(8)}"  # no attribute is this
_methods: weakref.WeakKeyDictionary[Any, tuple[Operator, Any]] = weakref.WeakKeyDictionary()


def method(bound: Any) -> Any:
    """Return the method of an operator that MindSpore's compiler reads as its call."""
    known = _methods.get(bound)
    if known is None or known[0] is not bound.operator:
        known = (bound.operator, _written(bound))
        _methods[bound] = known
    return types.MethodType(known[1], bound)


def _written(bound: Any) -> Any:
    arguments = () if bound._by_signature else bound.schema.arguments  # noqa: SLF001 - polyop's own
    taken = {a.name: f"{a.name}_" if a.name == "self" else a.name for a in arguments}
    parameters = ", ".join(
        taken[a.name] if a.default is MISSING else f"{taken[a.name]}={_literal(a.default)}" for a in arguments
    )
    lines = [
        f"def call{{n}}(self, {parameters if arguments else '*args'}):",
        "    flat{n} = ()",
        "    shown{n} = ()",
    ]
    for a in arguments:  # a long list of numbers is not walked: the compiler walks slowly, and not far
        text = _WALK if a.type.is_tensor else _ATTRIBUTE
        lines.append(text.replace("{arguments}", f"({taken[a.name]},)").replace("{name}", taken[a.name]))
    if not arguments:
        lines.append(_WALK.replace("{arguments}", "args"))
    text = "\n".join([*lines, "    return choose{n}(shown{n})(*flat{n})"])
    owner, name, origin = weakref.ref(bound), bound.name, bound.operator.origin

    chosen: dict[str, Any] = {}

    def choose(shown: Any) -> Any:
        if not isinstance(shown, tuple):  # MindSpore does not know all of it now
            rule = "must be called with attributes that are constants of the graph"
            raise UnsupportedError(name, rule, where=origin)
        key = repr(shown)  # 1, 1.0 and True are equal, and different constants
        if key not in chosen:
            chosen[key] = _chosen(owner(), shown)
        return chosen[key]

    return function("call", text, choose=constexpr(choose), Tensor=mindspore.Tensor, mark=_MARK)


def _literal(value: Any) -> str:
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f'float("{value}")'


def _chosen(bound: Any, shown: tuple[Any, ...]) -> Any:
    """Return the function that makes a call with these constants, tensors as marks."""
    tensor = mindspore.Tensor(np.float32(0))

    def fill(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(map(fill, value))
        return tensor if isinstance(value, str) and value == _MARK else value

    given = tuple(map(fill, shown))
    if bound._by_signature:  # noqa: SLF001
        bound = bound._for(given)  # noqa: SLF001
    args, keywords = bound.opened(given[: len(bound.schema.arguments)], {})
    keyword_only = [a.name for a in bound.schema.arguments if a.keyword_only]
    positional = len(bound.schema.arguments) - len(keyword_only)
    keywords = {**keywords, **dict(zip(keyword_only, args[positional:], strict=False))}
    arguments = bind(bound.schema, args[:positional], keywords, bound.operator.origin)
    find_host(bound.operator, arguments)  # a constant where a tensor must be is an error in words
    arguments = normalise(bound.operator, arguments)
    return _run(Launch.of(bound, arguments))


def call_traced(bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Make a call that MindSpore traces: as a launch, which it sees. Returns all outputs.

    Raises ``UnsupportedError`` where an argument is written: a trace has no place for that.
    """
    if bound.schema.mutates:
        rule = 'writes an argument in place, which capture_mode="trace" cannot record'
        hint = "leave capture_mode out"
        raise UnsupportedError(bound.name, rule, where=bound.operator.origin, hint=hint)
    launch = Launch.of(bound, arguments)
    found = launch(*flatten(bound.schema, arguments))
    return tuple(found[place] for place in launch.places) if launch.places else tuple(found)


def _run(launch: Launch) -> Any:
    """Return the function from a call's tensors to what the operator returns."""
    names = [f"a{i}" for i in range(launch.inputs)]
    lines = [f"def run{{n}}({', '.join(names)}):", f"    found = launch{{n}}({', '.join(names)})"]
    lines += [f"    done{k} = assign{{n}}({names[i]}, found[{k}])" for i, k in launch.written]
    owners = {k: names[i] for i, k in launch.written}  # what is returned can be written again
    operator = launch.bound.operator
    if operator.schema.returns_list and not launch.places:
        lines.append(
            "    return found[0] if len(found) == 1 else found"
            if operator.unpacks
            else "    return list(found)"
        )
    else:
        results = [owners.get(k, f"found[{k}]") for k in launch.places]
        single = len(results) == 1 and not operator.returns_tuple
        lines.append(f"    return {results[0] if single else '(' + ''.join(r + ', ' for r in results) + ')'}")
    return function("run", "\n".join(lines), launch=launch, assign=ops.assign)
