"""Find what a command line names: a Python file or module, an operator, and the samples given for it."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..call import registry
from ..call.bound import BoundOperator
from ..core.errors import ArgumentTypeError, ArgumentValueError, PolyopError
from ..core.texts import did_you_mean
from ..define.kernel_operator import KernelOperator


def load(name: str) -> ModuleType:
    """Import a path that ends in ``.py``, or a dotted name, and return the module.

    Raises ``ArgumentValueError`` if there is none. An exception of the module becomes an
    ``ArgumentValueError`` with its type, its message and the line.
    """
    sys.path.insert(0, str(Path.cwd()))
    if name.endswith(".so"):
        raise ArgumentValueError(
            "module", "must define operators in Python", repr(name), hint=f"polyop inspect {name}"
        )
    if not name.endswith(".py"):
        if importlib.util.find_spec(name.split(".", maxsplit=1)[0]) is None:
            rule, hint = (
                "must be a Python file or an importable module",
                "an operator of a file is FILE:OPERATOR",
            )
            raise ArgumentValueError("module", rule, repr(name), hint=hint)
        imported: ModuleType = _run(name, lambda: importlib.import_module(name))
        return imported
    path = Path(name).resolve()
    if not path.is_file():
        raise ArgumentValueError("module", "must be a Python file or an importable module", repr(name))
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentValueError("module", "is no Python file", repr(name))
    module = importlib.util.module_from_spec(spec)
    if path.stem not in sys.stdlib_module_names:  # else frameworks would import the user's random.py
        sys.modules[path.stem] = module
    loader = spec.loader
    _run(name, lambda: loader.exec_module(module))
    return module


def add_target(verb: argparse.ArgumentParser, without: str = "") -> None:
    """Add the arguments that name an operator; ``without`` says what is taken where none is named."""
    verb.add_argument(
        "module",
        metavar="MODULE_OR_FILE[:OPERATOR]",
        help="a Python file or a module with the operator",
    )
    verb.add_argument("operator", nargs="?", help=f"namespace::name, or a name in the module{without}")


def target(options: argparse.Namespace) -> tuple[str, str | None]:
    """Return the module and the operator that ``FILE OPERATOR`` or ``FILE:OPERATOR`` names.

    Raises ``ArgumentValueError`` if both name an operator.
    """
    module, name = split_target(options.module)
    if name and options.operator is not None:
        raise ArgumentValueError("operator", f"is named already in {options.module}", repr(options.operator))
    return module, options.operator or name or None


def split_target(text: str) -> tuple[str, str]:
    """Return module and operator of ``ops.py:myops::add``.

    >>> split_target("ops.py:myops::add"), split_target("package.ops")
    (('ops.py', 'myops::add'), ('package.ops', ''))
    """
    module, colon, name = text.partition(":")
    if colon and (not module or not name or name.startswith(":")):
        raise ArgumentValueError("operator", "must look like ops.py:myops::add", repr(text))
    return module, name


def find_operator(name: str, module: ModuleType) -> BoundOperator:
    """Return the operator ``namespace::name``, or the one that the module has under a plain name.

    A plain name is also looked for in each namespace, the module's first: ``scale__backward`` is no variable.
    Raises ``ArgumentValueError`` with the nearest names.
    """
    operator = getattr(module, name, None)
    if not isinstance(operator, BoundOperator):
        spaces = {one.name.split("::")[0] for one in operators(module)} if "::" not in name else ()
        nearest = sorted(spaces, key=lambda space: (space != module.__name__, space))
        full = (name, *(f"{space}::{name}" for space in nearest))
        operator = next(filter(None, map(registry.obtain, full)), None)
    if operator is None:
        raise unknown_operator(name, module.__name__, operators(module))
    found: BoundOperator = operator
    return found


def unknown_operator(name: str, where: str, known: Sequence[BoundOperator]) -> ArgumentValueError:
    """Return the error for a name that no operator of a module has."""
    own = Path(where).name.removesuffix(".py")
    names = sorted((bound.name for bound in known), key=lambda full: not full.startswith(f"{own}::"))
    written = names if "::" in name else [full.split("::")[-1] for full in names]
    listed = f"it has {', '.join(names[:_LISTED]) or 'none'}{', ...' * (len(names) > _LISTED)}"
    hint = f"{question} {listed}" if (question := did_you_mean(name, written)) else listed
    return ArgumentValueError(where, f"has no operator {name!r}", hint=hint)


_LISTED = 8
"""How many operators an error names."""


def operators(module: ModuleType) -> list[BoundOperator]:
    """Return all registered operators, then the module's loop kernels from which none was made yet."""
    registered = list(registry.operators())
    functions = [
        getattr(kernel, "function", None) for bound in registered for kernel in bound.operator.kernels
    ]
    kernels = [value for value in vars(module).values() if isinstance(value, KernelOperator)]
    return [*registered, *(k for k in kernels if k not in registered and k not in functions)]


def _run(name: str, importing: Callable[[], Any]) -> Any:
    try:
        return importing()
    except PolyopError:
        raise
    except (Exception, SystemExit) as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        users = [
            frame for frame in frames if "importlib" not in frame.filename and __file__ != frame.filename
        ]
        line = f"{users[-1].filename}:{users[-1].lineno}" if users else None
        if isinstance(problem, SyntaxError):
            line = f"{problem.filename}:{problem.lineno}"
        rule = f"could not be imported: {type(problem).__name__}: {problem}"
        raise ArgumentValueError(name, rule, where=line) from problem


SAMPLES = "polyop_samples"


def operators_of(target: str) -> Iterator[tuple[Any, Any]]:
    """Yield (operator, samples) of one target; raises ``ArgumentValueError`` if there are none."""
    name, operator_name = split_target(target)
    before = {bound.name for bound in registry.operators()}
    module = load(name)
    samples = _samples(module)
    own = {id(value) for value in vars(module).values()}
    defined = [bound for bound in operators(module) if bound.name not in before or id(bound) in own]
    chosen = [bound for bound in defined if operator_name in ("", bound.name, bound.name.split("::")[-1])]
    if not chosen:
        if operator_name:
            raise unknown_operator(operator_name, name, defined)
        raise ArgumentValueError(name, "must define an operator", "no operators")
    names = {bound.name for bound in defined}
    for sampled in samples:
        if sampled not in names and registry.named(sampled) is None:
            raise unknown_operator(sampled, f"{name}, {SAMPLES}", defined)
    for bound in chosen:
        yield bound, samples.get(bound.name, ())


def _samples(module: Any) -> dict[str, Any]:
    samples = getattr(module, SAMPLES, {})
    if not isinstance(samples, dict):
        rule = "must be a dictionary, from the names of operators to sample inputs"
        raise ArgumentTypeError(SAMPLES, rule, type(samples).__name__)
    for name, inputs in samples.items():
        if not isinstance(inputs, (tuple, list, dict)):
            rule = "must be a tuple of sample inputs, or a dictionary of them by argument"
            raise ArgumentTypeError(f"{SAMPLES}[{name!r}]", rule, type(inputs).__name__)
    return samples
