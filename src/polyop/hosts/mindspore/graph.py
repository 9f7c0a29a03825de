"""Operators inside MindSpore's graphs: the method that its compiler reads in place of a call.

The compiler reads the Python text of what is called. An operator gives it :func:`method`, which
sorts the arguments into tensors and constants. The constants choose a launch while the graph is
compiled, and the tensors are passed to it. A launch is MindSpore's own ``ops.Custom`` of type aot. All have
one function of the native core, which reads the call from an attribute (csrc/hosts/mindspore_extra.cc):

    op(x, 2.0)   ->   choose((mark, 2.0))(x)   ->   launch(x)
"""

from __future__ import annotations

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
from .generated import literal, make_function
from .launch import Launch
from .unknown_sizes import is_known

_WALK = """
    for one{n} in {arguments}:
        if isinstance(one{n}, Tensor{n}):
            flat{n} = flat{n} + (one{n},)
            constants{n} = constants{n} + (mark{n},)
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
            constants{n} = constants{n} + (row{n},)
        else:
            constants{n} = constants{n} + (one{n},)
"""

_ATTRIBUTE = """
    if isinstance({name}, Tensor{n}):
        constants{n} = constants{n} + (mark{n},)
    else:
        constants{n} = constants{n} + ({name},)
"""

_MARK = f"\0tensor {secrets.token_hex(8)}"  # stands for a tensor; no attribute has this value
_methods: weakref.WeakKeyDictionary[Any, tuple[Operator, Any]] = weakref.WeakKeyDictionary()


def method(bound: Any) -> Any:
    """Return the method that MindSpore's compiler reads in place of a call of the operator."""
    cached = _methods.get(bound)
    if cached is None or cached[0] is not bound.operator:
        cached = (bound.operator, _generate(bound))
        _methods[bound] = cached
    return types.MethodType(cached[1], bound)


def _generate(bound: Any) -> Any:
    arguments = () if bound.by_signature else bound.schema.arguments
    names = {a.name: f"{a.name}_" if a.name == "self" else a.name for a in arguments}
    parameters = ", ".join(
        names[a.name] if a.default is MISSING else f"{names[a.name]}={literal(a.default)}" for a in arguments
    )
    lines = [
        f"def call{{n}}(self, {parameters if arguments else '*args'}):",
        "    flat{n} = ()",
        "    constants{n} = ()",
    ]
    for a in arguments:  # attributes are not walked: a long list of numbers exceeds the compiler's limits
        text = _WALK if a.type.is_tensor else _ATTRIBUTE
        lines.append(text.replace("{arguments}", f"({names[a.name]},)").replace("{name}", names[a.name]))
    if not arguments:
        lines.append(_WALK.replace("{arguments}", "args"))
    text = "\n".join([*lines, "    return choose{n}(constants{n})(*flat{n})"])
    owner, name, origin = weakref.ref(bound), bound.name, bound.operator.origin

    runs: dict[str, Any] = {}

    def choose(constants: Any) -> Any:
        if not isinstance(constants, tuple):  # one of them is known only when the graph runs
            rule = "must be called with attributes that are constants of the graph"
            raise UnsupportedError(name, rule, where=origin)
        key = repr(constants)  # 1, 1.0 and True are equal, but different constants
        if key not in runs:
            runs[key] = _run_for(owner(), constants)
        return runs[key]

    return make_function("call", text, choose=constexpr(choose), Tensor=mindspore.Tensor, mark=_MARK)


def _run_for(bound: Any, constants: tuple[Any, ...]) -> Any:
    """Return the function that calls the operator with these arguments; a mark stands for a tensor."""
    tensor = mindspore.Tensor(np.float32(0))

    def fill(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(map(fill, value))
        return tensor if isinstance(value, str) and value == _MARK else value

    filled = tuple(map(fill, constants))
    if bound.by_signature:
        bound = bound._for(filled)  # noqa: SLF001
    args, keywords = bound.as_schema_arguments(filled[: len(bound.schema.arguments)], {})
    keyword_only = [a.name for a in bound.schema.arguments if a.keyword_only]
    positional = len(bound.schema.arguments) - len(keyword_only)
    keywords = {**keywords, **dict(zip(keyword_only, args[positional:], strict=False))}
    arguments = bind(bound.schema, args[:positional], keywords, bound.operator.origin)
    find_host(bound.operator, arguments)  # raises for a constant in the place of a tensor
    arguments = normalise(bound.operator, arguments)
    bound.check_traced(arguments)
    return _run(Launch.of(bound, arguments))


def call_traced(bound: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Make a call under ``capture_mode="trace"``, as a launch, which MindSpore records. Return all outputs.

    Raises ``UnsupportedError`` for an argument that is written, because a trace cannot record a write.
    """
    if bound.schema.mutates:
        rule = 'writes an argument in place, which capture_mode="trace" cannot record'
        hint = "leave capture_mode out"
        raise UnsupportedError(bound.name, rule, where=bound.operator.origin, hint=hint)
    bound.check_traced(arguments)
    launch = Launch.of(bound, arguments)
    outputs = launch(*flatten(bound.schema, arguments))
    indices = launch.return_indices
    if launch.silent:
        return ()
    return tuple(outputs[i] for i in indices) if indices else tuple(outputs)


def _run(launch: Launch) -> Any:
    """Return the function from a call's tensors to the operator's result, as a compiled text."""
    names = [f"a{i}" for i in range(launch.inputs)]
    dtypes, shapes = (", ".join(f"{name}.{what}" for name in names) for what in ("dtype", "shape"))
    # a launch that is ordered must stand in the text: only there MindSpore sees its side effect
    plain = launch.ordered or not names
    chosen = "launch{n}" if plain else f"chosen{{n}}(({dtypes},), {shapes})"
    lines = [f"def run{{n}}({', '.join(names)}):", f"    outputs = {chosen}({', '.join(names)})"]
    lines += [f"    done{k} = assign{{n}}({names[i]}, outputs[{k}])" for i, k in launch.written]
    owners = {k: names[i] for i, k in launch.written}  # an output that is an argument: the argument itself
    operator = launch.bound.operator
    if launch.silent:
        lines.append("    return None")
    elif operator.schema.returns_list and not launch.return_indices:
        lines.append(
            "    return outputs[0] if len(outputs) == 1 else outputs"
            if operator.unpacks
            else "    return list(outputs)"
        )
    else:
        results = [owners.get(k, f"outputs[{k}]") for k in launch.return_indices]
        single = len(results) == 1 and not operator.returns_tuple
        lines.append(f"    return {results[0] if single else '(' + ''.join(r + ', ' for r in results) + ')'}")
    unknown: dict[str, Any] = {}

    def choose(dtypes: Any, *shapes: Any) -> Any:
        if all(map(is_known, shapes)):
            return launch
        if str(dtypes) not in unknown:
            unknown[str(dtypes)] = launch.for_unknown_sizes(dtypes)
        return unknown[str(dtypes)]

    text = "\n".join(lines)
    return make_function("run", text, launch=launch, assign=ops.assign, chosen=constexpr(choose))
