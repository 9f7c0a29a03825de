"""``export``: compile operators into one library, and write its header."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..build import atomic
from ..build.cache import BuildOutput, Cache
from ..build.commands import Plan, make_plan
from ..build.make import make_library
from ..build.objects import CompileFailed
from ..build.options import BuildOptions
from ..build.run import RefusedError, failed
from ..build.sources import gather, store_code
from ..call.bound import BoundOperator
from ..core.errors import ArgumentValueError, BuildError
from . import generated_tables, header, manifest
from .collect import collect
from .names import check_names
from .operator import ExportedOperator, SourceFile
from .surfaces import SURFACES

_WRITTEN = "polyop export has written this file"
_FLAGS = ("-O2", "-fvisibility=hidden")
_LINK_FLAGS = ("-Wl,-s", "-Wl,--no-undefined", "-ldl")


def export(
    operators: Sequence[BoundOperator],
    output: str | Path,
    *,
    signatures: Mapping[str, Sequence[str]] | None = None,
    dtypes: Sequence[str] | None = None,
) -> list[ExportedOperator]:
    """Compile operators into the library ``output``, and write its header and CMake's file beside it.

    The library needs neither Python nor polyop. It holds C and C++ sources, and loop kernels for each
    instruction set, with their derived gradients. It is called through plain C functions, PyTorch,
    ONNX Runtime, XLA FFI and tvm-ffi.

    ``signatures``  for a loop kernel the dtypes and dimensions of its tensors, as ``"T[:,:], float"``;
                    without, the dimensions of ``dims=``.
    ``dtypes``      what ``T`` stands for, and the dtypes of loop kernels without a signature that declare
                    none; else float32 and float64.

    Returns the exported operators, derived gradients among them. Raises ``UnsupportedError`` that names each
    operator which cannot be exported, ``BuildError`` with the compiler's text, ``ArgumentValueError``.
    """
    path = Path(output)
    if path.suffix != ".so":
        raise ArgumentValueError("export", "the library must be a file that ends in .so", str(output))
    if not operators:
        raise ArgumentValueError("export", "needs an operator", "none")
    if not path.parent.is_dir():
        raise ArgumentValueError("export", "the library must be in a folder that exists", str(path.parent))
    exported = collect(operators, signatures or {}, dtypes)
    check_names(exported, header.prefix_of(path.name))
    companions = {
        path.with_suffix(".h"): header.header(exported, path.name),
        path.with_name(header.file_name(path.name)): header.config(path.name),
    }
    _check_own(companions)
    library = _built_or_instead(_files(exported, path.name), path.name.partition(".")[0])
    try:
        atomic.copy(library, path)
        for file, text in companions.items():
            file.write_text(text, encoding="utf-8")
    except OSError as problem:
        rule = "must be a path that can be written"
        raise BuildError(f"output {path}", rule, problem.strerror or str(problem)) from None
    return exported


def _check_own(files: Iterable[Path]) -> None:
    """Raise ``ArgumentValueError`` for a file that ``export`` would replace and did not write."""
    for file in files:
        if file.is_file() and _WRITTEN not in file.read_text(encoding="utf-8", errors="replace"):
            rule = "would be replaced, and polyop export did not write it"
            raise ArgumentValueError(f"export: {file}", rule, hint="choose another folder or name with -o")


def _files(operators: Sequence[ExportedOperator], library: str) -> list[SourceFile]:
    """Return the sources of the operators, each once, and the generated ones."""
    kernels = dict.fromkeys(file for one in operators for file in one.sources)
    texts = [
        generated_tables.source(operators),
        header.source(operators, library),
        manifest.source(operators, library),
    ]
    texts += [surface.source(operators) for surface in SURFACES.values()]
    return [*kernels, *(SourceFile(store_code(text, "c++"), "c++", _FLAGS) for text in texts)]


def _built_or_instead(files: Sequence[SourceFile], name: str) -> str:
    """Return the path of the library; loop kernels that the compiler refuses are in the author's order."""
    try:
        return _built(files, name)
    except RefusedError as problem:
        refused = next((one for one in files if one.path == problem.path), None)
        if refused is None or refused.instead is None:
            raise
        others = [one for one in files if one.instead is not refused.instead]
        return _built_or_instead([*refused.instead(problem), *others], name)


def _built(files: Sequence[SourceFile], name: str) -> str:
    """Return the path of the library in the build cache."""
    plans = [_plan(file, name) for file in files]
    units = tuple(unit for plan in plans for unit in plan.units)
    linking = dict.fromkeys(plan.link_flags for plan in plans)
    plan = plans[-1]._replace(units=units, link_flags=tuple(flag for flags in linking for flag in flags))
    cache = Cache()

    def make(work: Path) -> BuildOutput:
        try:
            return make_library(plan, work, name, cache, label=f"{name}.so")
        except CompileFailed as problem:
            raise failed(problem.unit.source.path, "cannot be compiled", problem.finished) from None
        except BuildError as problem:
            if "multiple definition" not in str(problem):
                raise
            hint = "the sources are linked into one library: make functions that only one of them uses static"
            raise BuildError(f"{name}.so", f"cannot be linked: {hint}", hint=str(problem)) from None

    paths = [file.path for file in files]
    return cache.get(plan.request, paths, make, watch=paths).path


def _plan(file: SourceFile, name: str) -> Plan:
    options = BuildOptions.of(
        flags=file.flags,
        include_paths=file.include_paths,
        link_flags=(*file.link_flags, *_LINK_FLAGS),
        torch=False,
    )
    return make_plan(gather([file.path], None, file.language, file.include_paths), options, name)
