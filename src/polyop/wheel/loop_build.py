"""Compile the loop kernels of a module ahead of time: their libraries, and the index of these."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from ..build import build, compilers
from ..build.sources import store_code
from ..core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BuildError,
    FallbackWarning,
    ScheduleError,
)
from ..core.versions import ABI_VERSION
from ..define.kernel_operator import KernelOperator
from ..define.kernel_options import options as options_of
from ..kernels.loop.adjoints import Adjoints
from ..kernels.loop.derived import DerivedKernel
from ..kernels.loop.forms import GRADIENT
from ..kernels.loop.kernel import LoopKernel
from ..loops.emit.printer import notes
from ..loops.frontend.parse import outline
from ..loops.ir.grammar import Kernel
from ..loops.library import shipped, tuned
from ..loops.library.library import compiler_digest, schedule_or_original
from ..loops.library.make import sources, with_fallback
from ..loops.library.options import Options, exported, flags_of
from ..loops.program import Program
from ..loops.targets import isa
from .loop_extension import LoopExtension
from .signatures import Signature


def compile_module(extension: LoopExtension, file: Path, root: Path) -> list[Path]:
    """Compile the functions of a module ahead of time; return the libraries, beside its file.

    ``root`` is the folder that its package is imported from. A warning names the loop kernels of the
    module that the extension does not list. Raises ``BuildError`` if the module cannot be imported,
    and the errors of parsing and compiling.
    """
    file = file.absolute()
    module = _imported(extension.name, file, root)
    folder = file.parent / shipped.FOLDER
    path = Path(shipped.index_file(str(file)))
    _remove_old(path)
    folder.mkdir(exist_ok=True)
    rows = [
        _compile(extension, kernel, each, folder)
        for name, signatures in extension.signatures.items()
        for signature in signatures
        for kernel, how in _kernels(extension, _function(extension, module, name), name, signature)
        for each in (how, *_tuned(kernel, how))
    ]
    _warn_of_unlisted(extension, module)
    index = {
        "format": shipped.FORMAT,
        "meaning": shipped.MEANING,
        "abi": ABI_VERSION,
        "polyop": _version(),
        "machine": platform.machine(),
        "module": extension.name,
        "source": hashlib.sha256(file.read_bytes()).hexdigest(),
        "kernels": rows,
    }
    path.write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return [folder / row["library"] for row in rows]


def _remove_old(index: Path) -> None:
    """Remove the libraries of an earlier build: a wheel takes every file of the build folder."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        for row in json.loads(index.read_text(encoding="utf-8"))["kernels"]:
            index.with_name(Path(row["library"]).name).unlink(missing_ok=True)


def _kernels(
    extension: LoopExtension, function: Callable[..., Any], name: str, signature: Signature
) -> Iterator[tuple[Kernel, Options]]:
    """Yield each kernel of a function for a signature, and how it is compiled."""
    parsed, numbers = outline(function), _numbers(extension, function, signature)
    ranks = {one: parsed.ranks.get(one) for one in parsed.parameters[: len(signature.tensors)]}
    subject, where = f"LoopExtension {extension.name}: {name}", f"{parsed.file}:{parsed.line}"
    specs = signature.with_ranks(subject, ranks, where).specs()
    given = options_of(function)
    how = Options(isa.PORTABLE, given["precise"], schedule=given["schedule"])
    attributes = parsed.parameters[len(signature.tensors) :]
    schedules = {name: given[name] for name in ("schedule", "derived_schedules")}
    base = LoopKernel(function, attributes, given["precise"], **schedules, for_all_values=True)
    yield base.typed(specs, numbers), how
    if name in extension.gradients:
        gradient = DerivedKernel.of(base, GRADIENT)
        adjoint = Adjoints(gradient, specs, numbers).adjoint()
        yield adjoint.kernel, how._replace(schedule=gradient.schedule)


def _tuned(kernel: Kernel, how: Options) -> Iterator[Options]:
    """Yield how a kernel is compiled with each schedule that ``polyop tune`` found and kept beside its file.

    A schedule that this polyop refuses is left out, with a warning.
    """
    for schedule in dict.fromkeys(entry.schedule for entry in tuned.of_kernel(kernel, how)):
        tried = how._replace(schedule=schedule)
        try:
            schedule_or_original(kernel, tried)
        except ScheduleError as problem:
            warnings.warn(FallbackWarning(f"a tuned schedule is left out: {problem}"), stacklevel=2)
        else:
            yield tried


def _compile(extension: LoopExtension, kernel: Kernel, options: Options, folder: Path) -> dict[str, Any]:
    """Compile one library and return its row of the index."""
    # messages name the file by its path in the package: no path of the builder gets into the wheel
    placed = replace(kernel, file=f"{extension.name.replace('.', '/')}.py")
    digest = shipped.digest(kernel, precise=options.precise, schedule=options.schedule)
    library = folder / f"{kernel.name}-{digest[:12]}.so"
    flags = flags_of(compilers.find("c").family, options)

    def compiled(program: Program) -> Program:
        files = [store_code(text, "c") for text in sources(placed, options, program)]
        build(files, flags=flags, link_flags=["-Wl,-s"], torch=False, output=library)
        return program

    program = with_fallback(placed, options, compiled)
    if program.fallback:
        warnings.warn(FallbackWarning(program.fallback), stacklevel=2)
    return {
        "function": kernel.name,
        "signature": shipped.signature(kernel),
        "precise": options.precise,
        "digest": digest,
        "library": library.name,
        "symbol": exported(kernel),
        "sha256": hashlib.sha256(library.read_bytes()).hexdigest(),
        "passes": compiler_digest(),
        "told": {name: [(n.line, n.text) for n in notes(program, name)] for name in isa.family()},
    }


def _numbers(
    extension: LoopExtension, function: Callable[..., Any], signature: Signature
) -> dict[str, type | str]:
    """Return the types of the numbers of a signature, and its strings, by the name of the parameter."""
    subject, parsed = f"LoopExtension {extension.name}: {function.__name__}", outline(function)
    names = parsed.parameters[len(signature.tensors) :]
    tensors = [name for name in parsed.parameters if name in parsed.tensors]
    if len(signature.numbers) > len(names) or tensors != list(parsed.parameters[: len(signature.tensors)]):
        numbers = len(parsed.parameters) - len(tensors)
        rule = f"takes the tensors {', '.join(tensors)}, and {numbers} numbers after them"
        seen = f"a signature of {len(signature.tensors)} tensors and {len(signature.numbers)} numbers"
        raise ArgumentValueError(subject, rule, seen, where=f"{parsed.file}:{parsed.line}")
    return dict(zip(names, signature.numbers, strict=False))


def _imported(name: str, file: Path, root: Path) -> ModuleType:
    subject, hint = f"LoopExtension {name}", "loop kernels are compiled from the functions of the module"
    if not file.is_file():
        raise BuildError(subject, "must name a module of the project", f"no {file}", hint=hint)
    with _importing(root):
        try:
            module = importlib.import_module(name)
        except Exception as problem:  # any error of the author's module
            rule = f"cannot be imported: {type(problem).__name__}: {problem}"
            raise BuildError(subject, rule, where=file, hint=hint) from problem
    imported = Path(module.__file__ or "")
    if not imported.is_file() or imported.read_bytes() != file.read_bytes():
        raise BuildError(
            subject, "another module of this name was imported before", str(imported), where=file
        )
    return module


@contextlib.contextmanager
def _importing(root: Path) -> Iterator[None]:
    """Within this context, modules are imported from ``root`` first, without bytecode files for the wheel."""
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root.absolute()))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(root.absolute()))
        sys.dont_write_bytecode = before


def _function(extension: LoopExtension, module: ModuleType, name: str) -> Callable[..., Any]:
    subject = f"LoopExtension {extension.name}"
    kernels = ", ".join(_defined(module)) or "none"
    if not hasattr(module, name):
        rule = "must name functions of the module"
        raise ArgumentValueError(
            subject, rule, repr(name), where=module.__file__, hint=f"there are {kernels}"
        )
    function = getattr(module, name)
    if not isinstance(function, (FunctionType, KernelOperator)):
        rule = f"{name} must be a function of @polyop.kernel; give the operator that it becomes another name"
        raise ArgumentTypeError(subject, rule, type(function).__name__, where=module.__file__)
    return function


def _defined(module: ModuleType) -> list[str]:
    """Return the names of the loop kernels that a module defines."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, (FunctionType, KernelOperator))
        and hasattr(value, "compile_attrs")
        and value.__module__ == module.__name__
    ]


def _warn_of_unlisted(extension: LoopExtension, module: ModuleType) -> None:
    unlisted = [name for name in _defined(module) if name not in extension.signatures]
    if unlisted:
        rule = f"not listed, so that users need a compiler for them: {', '.join(unlisted)}"
        warnings.warn(f"LoopExtension {extension.name}: {rule}", stacklevel=2)


def _version() -> str:
    try:
        return importlib.metadata.version("polyop")
    except importlib.metadata.PackageNotFoundError:  # a source checkout
        return "unknown"
