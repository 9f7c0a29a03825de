"""Identify an operator in another process: by its name and a digest of its content, as pickles do.

::

    pickle.dumps(op)    (restore, ("shop::times", "0b5f6cbb0d0c2f4e", "shop.prices"))
    pickle.loads(...)   the operator of this process with that name and that digest; the module is imported
                        if there is none

A pickle holds no code and no address. So both processes need the definition, and the digest proves that they
have the same. An operator whose name polyop chose, as that of a ``Custom``, may have another number in its
name in another process: it is found by its digest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..core.errors import HostError, PolyopError
from ..core.schema import Schema
from ..kernels import described
from . import registry
from .operator import Operator
from .rule import CUSTOM


def digest(operator: Operator) -> str:
    """Return 16 hexadecimal digits of the schema, the attributes that no call passes and the kernels.

    It is the same in every process with this version of Python that defines the same operator. A library
    counts by its bytes, a loop kernel by its text and the numbers that the text reads, a Python function
    by its code, defaults and closure (see :mod:`polyop.kernels.described`). Variables of modules that a
    function reads do not count.
    """
    return _hex(_hasher(operator))


def definition_digest(operator: Operator) -> str:
    """Return 16 hexadecimal digits of all that decides a compiled program: :func:`digest` and the rules.

    A rule counts by its code and what it reads of its own module: other functions, numbers, tuples, and
    operators with their rules.
    """
    hasher = _hasher(operator)
    for part in described.rule(described.rules_of(operator)):
        hasher.update(b"%d:" % len(part) + part)
    return _hex(hasher)


def _hex(hasher: Any) -> str:
    digits: str = hasher.hexdigest()
    return digits[:16]


def _hasher(operator: Operator) -> Any:
    hasher = hashlib.sha256()
    constants = [(i.target, [(c.name, c.value) for c in i.constants]) for i in operator.information]
    fixed = (str(operator.schema), sorted(operator.attributes.items()), constants, operator.target)
    for part in described.value(fixed):  # not repr, which rounds and shortens arrays
        hasher.update(b"%d:" % len(part) + part)
    # parts of a C++ module's operator have Python kernels: the library of the operator itself counts too
    owner = registry.known(operator.part_of) if operator.part_of else None
    for kernel in (*operator.kernels, *(owner.operator.kernels if owner else ())):
        for part in (kernel.kind.encode(), kernel.device.encode(), *kernel.content()):
            hasher.update(b"%d:" % len(part) + part)
    return hasher


SCRIPT = ("__main__", "__mp_main__")
"""The names of the module that Python runs: in a process that multiprocessing starts it is the second."""


def reference(bound: Any) -> tuple[Callable[..., Any], tuple[str, str, str]]:
    """Return what ``__reduce__`` of an operator returns."""
    operator: Operator = bound.operator
    owner = registry.known(operator.part_of) if operator.part_of else None
    return restore, (operator.name, _digest(operator), (owner or bound).defined_in)


def restore(name: str, content: str, module: str) -> Any:
    """Return the operator of this process with this name and digest; import ``module`` if there is none.

    Raises ``HostError`` if this process has no such operator, or another one of that name.
    """
    bound = _find(name, content)
    problem: Exception | None = None
    if bound is None and module and module not in SCRIPT:
        try:
            importlib.import_module(module)
        except ImportError as raised:
            problem = raised
        bound = _find(name, content)
    if bound is not None:
        return bound
    other = next(_candidates(name), None)
    if other is not None:
        called = "of this name" if other.name == name else other.name
        rule = (
            f"the pickled operator has the digest {content}, and the operator {called} in this process "
            f"has the digest {_digest(other.operator)}"
        )
        hint = f"use the same {_described(module)}, libraries and version of Python in both processes"
        raise HostError(name, rule, where=other.origin, hint=hint)
    rule = f"the pickled operator, of the digest {content}, is not defined in this process"
    raise HostError(name, rule, hint=_how_to_define(module, problem)) from problem


def _digest(operator: Operator) -> str:
    """Return the digest without the name, which another process may number differently."""
    schema = dataclasses.replace(operator.schema, name="")
    if schema.namespace == CUSTOM:
        schema = Schema(CUSTOM, "", (), ())  # the inputs of a Custom may be known only after its first call
    return digest(dataclasses.replace(operator, schema=schema))


def _find(name: str, content: str) -> Any:
    return next((bound for bound in _candidates(name) if _has_digest(bound, content)), None)


def _has_digest(bound: Any, content: str) -> bool:
    try:
        return _digest(bound.operator) == content
    except PolyopError:  # a kernel of another name, used for the first time now, and refused
        return False


def _candidates(name: str) -> Iterator[Any]:
    """Yield the operator of this name, then those whose names differ only in the number polyop appended."""
    exact = registry.obtain(name)
    if exact is not None:
        yield exact
    stem = re.sub(r"_\d+$", "", name)
    for bound in registry.objects():
        if re.fullmatch(rf"{re.escape(stem)}(_\d+)?", bound.name):
            yield bound


def _described(module: str) -> str:
    return "script" if module in SCRIPT else f"module {module}"


def _how_to_define(module: str, problem: Exception | None) -> str:
    if module in SCRIPT:
        return (
            "it was defined in the script: define it outside of functions and of if __name__ == '__main__', "
            "or in a module that both processes import"
        )
    if problem is not None:
        return f"it was defined in the module {module}, which cannot be imported here: {problem}"
    return f"it was defined in the module {module}: define it outside of functions, so that an import does it"
