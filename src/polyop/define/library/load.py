"""``load_library``: build a C++ operator library if necessary, check its registrations, open it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...binary.allowed import check_allowed
from ...binary.export_manifest import is_exported
from ...call import registry
from ...core import locks
from ...core.errors import ArgumentTypeError, ArgumentValueError, LibraryError, SchemaError
from ...core.limits import as_path, shown
from ...core.origin import Origin, caller
from ...core.parse import parse
from ...core.schema import Schema
from ...kernels.module.cxx_types import disagreement, spelled
from ...kernels.module.function_table import ModuleFunction, ModuleSignature, kinds_of
from ...kernels.module.registrations import KEYS, Row, link, open_rows
from ...kernels.source import is_source
from ..module.dims import read_all
from ..module.module import PlainFunction, connect, numpy_like
from ..operator import _check_names as check_names
from . import namespace_owners
from .exported import load_exported, refuse_options
from .opened import OperatorLibrary, set_forward_mode
from .operator import LibraryOperator
from .torch_library import is_torch_library, load_torch_library


def _retire(operators: Iterable[Any]) -> None:
    """Release operators' names, for a library that was built again."""
    for operator in operators:
        for one in operator.parts if isinstance(operator, LibraryOperator) else ():
            if registry.named(one.name) is one:
                registry.discard(one)
                one.retire()


@dataclasses.dataclass(frozen=True)
class _Loaded:
    digest: str
    renamed: dict[str, str]
    library: OperatorLibrary


_loaded: dict[tuple[str, ...], _Loaded] = {}


def load_library(
    library: Any,
    *,
    namespaces: Mapping[str, str] | None = None,
    include_paths: Sequence[str | Path] = (),
    cflags: str = "",
    file_cflags: Mapping[str | Path, str] | None = None,
    ldflags: str = "",
    debug: bool = False,
    docs: Mapping[str, str] | None = None,
    dims: Mapping[str, Any] | None = None,
    infer: Mapping[str, Any] | None = None,
    jvp: Mapping[str, Any] | None = None,
) -> OperatorLibrary:
    """Return the operators of a library: of C++ with ``polyop/library.h``, of PyTorch, of ``polyop export``.

    ``library``     the path of a ``.so``, of a source, or a list of sources, which are built.
    ``cflags``      flags for the compiler, as on a command line; ``file_cflags`` for one of the sources, as
                    ``{"wide.cpp": "-mavx2"}``.
    ``namespaces``  other names for its namespaces, as ``{"myops": "myops_v1"}``, to load two versions
                    of a library into one process.
    ``docs``        docstrings, by the function's name: the operators' ``__doc__``.
    ``dims``        the dimensions of operators, by the name in their schemas: a text, or a mapping of the
                    keywords ``dims``, ``parallel``, ``sum``, ``max``, ``min``, ``halo`` of
                    :func:`polyop.operator`, and ``infer``, which gives the dtypes of the outputs.
    ``infer``       infer rules, as :func:`polyop.operator` takes them, by the names of operators that are
                    registered in PyTorch without a fake: JAX asks for their shapes before it runs them.
    ``jvp``         forward-mode rules, as :func:`polyop.operator` takes them, by the names of operators.

    All registrations are checked: each schema, and the C++ types of each function against its schema.
    The same library gives the same object; one that was built again replaces the operators.

    A library that registers its operators by ``TORCH_LIBRARY`` is loaded through PyTorch. Its operators are
    those of :func:`polyop.aten`, with the fakes and gradients that are registered for them in PyTorch.

    The operators of a library of ``polyop export`` have the schemas, docstrings, ``dims=`` and gradients that
    it was exported with.

    Raises ``LibraryError`` and ``SchemaError`` with the places in the sources, ``BuildError`` with the
    compiler's text, ``ArgumentTypeError`` for a file that POLYOP_LIBRARY_PATHS does not allow.
    """
    origin = caller()
    paths = _paths(library)
    flags = {"cflags": cflags, "file_cflags": file_cflags, "ldflags": ldflags}
    path = _built(paths, {"include_paths": include_paths, **flags, "debug": debug})
    if is_exported(path):
        refuse_options(path, {"dims": dims, "infer": infer, "jvp": jvp}, origin)
        with locks.define:
            return load_exported(path, dict(namespaces or {}), docs or {}, origin)
    if is_torch_library(path):
        registered = {"namespaces": namespaces, "docs": docs}
        return load_torch_library(path, registered, infer or {}, jvp or {}, dims, origin)
    _no_infer(path, infer, origin)
    identity = tuple(map(os.path.realpath, paths))  # of a loop of links, too
    with locks.define:
        loaded = _load(identity, path, dict(namespaces or {}))
        _document(loaded, docs or {})
        _set_dims(loaded, dims, origin)
        set_forward_mode(loaded, jvp or {}, origin)
        return loaded


def _paths(library: Any) -> list[str]:
    """Return the path of a library, or those of its sources."""
    given = [library] if isinstance(library, (str, Path)) else list(library)
    if not given or not all(isinstance(path, (str, Path)) for path in given):
        rule = "takes a path, or a list of sources"
        raise ArgumentTypeError("load_library", rule, repr(library), where=caller())
    paths = [as_path(path, "load_library") for path in given]
    sources = [path for path in paths if is_source(path)]
    if (sources and len(sources) != len(paths)) or (not sources and len(paths) != 1):
        rule = "takes one library, or only sources"
        raise ArgumentTypeError("load_library", rule, repr(library), where=caller())
    return paths


def _built(paths: Sequence[str], options: Mapping[str, Any]) -> Path:
    """Return the path of the library, built if the paths are those of sources."""
    if not is_source(paths[0]):
        for name, value in options.items():
            if value:
                rule = f"is built already, so load_library takes no {name}= for it"
                raise ArgumentValueError(Path(paths[0]).name, rule, where=caller())
        return Path(paths[0])
    from ...build import build

    own = options["file_cflags"] or {}
    return build(
        paths,
        flags=_words("cflags", options["cflags"]),
        file_flags={file: _words("file_cflags", flags) for file, flags in own.items()},
        link_flags=_words("ldflags", options["ldflags"]),
        include_paths=options["include_paths"],
        debug=options["debug"],
    )


def _no_infer(path: Path, infer: Any, origin: Origin) -> None:
    if infer is not None:
        rule = "takes infer= only for a library that registers its operators in PyTorch"
        hint = "a Meta function in C++ gives shapes, and so does dims="
        raise ArgumentValueError(f"load_library: {path.name}", rule, where=origin, hint=hint)


def _document(library: OperatorLibrary, docs: Mapping[str, str]) -> None:
    """Set the operators' docstrings; operators that replace PyTorch's own keep theirs."""
    for bound in library:
        if isinstance(bound, LibraryOperator) and bound.schema.name in docs:
            bound.update(dataclasses.replace(bound.operator, doc=docs[bound.schema.name]))


def _set_dims(library: OperatorLibrary, dims: Any, origin: Origin) -> None:
    """Set the dimensions of operators; raises before any of them is changed."""
    bound = [one for one in library if isinstance(one, LibraryOperator)]
    operators = {name: one for one in bound for name in (one.schema.name, one.schema.qualified_name)}
    schemas = {name: operator.schema for name, operator in operators.items()}
    for name, notation in read_all(f"{library.path.name}: dims", dims, schemas, {}, origin).items():
        if (operators[name].operator.dims, operators[name].author_infer) != notation:
            operators[name].set_dims(notation)


def _words(name: str, flags: Any) -> list[str]:
    if not isinstance(flags, str):
        rule = f"{name} must be one str, as on a command line"
        raise ArgumentTypeError("load_library", rule, shown(flags), where=caller())
    try:
        return shlex.split(flags)
    except ValueError as problem:
        rule = f"{name} must be quoted as in a shell ({problem})"
        raise ArgumentTypeError("load_library", rule, shown(flags), where=caller()) from None


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    except OSError:  # who opens it says so
        return ""


def _load(identity: tuple[str, ...], path: Path, renamed: dict[str, str]) -> OperatorLibrary:
    check_allowed(path)  # also if the same library is loaded already
    identity = (*identity, *map(str, renamed.items()))
    digest = _digest(path)
    for one in _loaded.values():
        if digest and (one.digest, one.renamed) == (digest, renamed):
            return one.library  # the same bytes are the same library, wherever the file is
    old = _loaded.get(identity)
    rows = checked_rows(open_rows(path), path, renamed)
    owners = {
        renamed.get(row.name, row.name): namespace_owners.Owner(f"{row.place} ({path})", None, identity)
        for row in rows
        if row.kind == "library"
    }
    for namespace, owner in owners.items():
        namespace_owners.check_free(
            namespace, owner, f"load it under another name: namespaces={{{namespace!r}: ...}}"
        )
    if old is not None:
        _retire(old.library)
        namespace_owners.release(old.library)
    _check_names_free(rows, renamed)
    operators: dict[str, Any] = {}
    try:
        operators.update(_operators(rows, path, renamed))
    except Exception:
        _retire(operators.values())  # so that the corrected library can use the names
        raise
    opened = OperatorLibrary(path, operators)
    for namespace, owner in owners.items():
        namespace_owners.claim(namespace, dataclasses.replace(owner, library=opened))
    _loaded[identity] = _Loaded(digest, renamed, opened)
    connect()
    linked = [one.library for one in _loaded.values()]  # not those of polyop export, which have no table
    files = [one.path for one in namespace_owners.libraries() if one in linked and one is not opened]
    link([*files, path])
    return opened


def checked_rows(rows: Sequence[Row], path: Path, renamed: Mapping[str, str]) -> Sequence[Row]:
    """Return the rows; raises ``LibraryError`` and ``SchemaError`` for registrations that contradict."""
    spaces: dict[str, Row] = {}
    schemas: dict[str, tuple[Row, Schema]] = {}
    implementations: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.kind == "library":
            _once(
                spaces,
                row.name,
                row,
                f"library {row.name}",
                "the namespace is taken by the POLYOP_LIBRARY at",
            )
        if row.kind == "schema":
            schema = schema_of(row)
            if row.name in schemas:
                rule = f"the schema is given twice, first at {schemas[row.name][0].place}"
                raise SchemaError(row.name, rule, where=row.place)
            schemas[row.name] = row, schema
    for row in rows:
        if row.kind in ("fragment", "implementations", "schema") and row.namespace not in spaces:
            rule = f"no POLYOP_LIBRARY defines the namespace {row.namespace}"
            raise LibraryError(str(path.name), rule, where=row.place, hint=_listing(spaces, "namespaces"))
        if row.kind == "implementation":
            _once(
                implementations,
                (row.name, row.key),
                row,
                f"{row.name} for {row.key}",
                "the function is given twice, first at",
            )
            _check_function(row, schemas)
    unknown = set(renamed) - set(spaces)
    if unknown:
        raise LibraryError(
            str(path.name), "has no such namespace", min(unknown), hint=_listing(spaces, "namespaces")
        )
    if not schemas:
        raise LibraryError(str(path.name), "registers no operators", hint="write m.def() in a POLYOP_LIBRARY")
    return rows


def _once(seen: dict[Any, Row], key: Any, row: Row, subject: str, rule: str) -> None:
    if key in seen:
        raise LibraryError(subject, f"{rule} {seen[key].place}", where=row.place)
    seen[key] = row


def schema_of(row: Row) -> Schema:
    """Return the schema that a row gives; raises ``SchemaError`` with the row's place."""
    text = row.text if "::" in row.text.partition("(")[0] else f"{row.namespace}::{row.text}"
    try:
        return parse(text)
    except SchemaError as problem:
        raise SchemaError(row.name, str(problem), where=row.place) from None


def _check_function(row: Row, schemas: Mapping[str, tuple[Row, Schema]]) -> None:
    if row.key not in KEYS:
        raise LibraryError(
            row.name, f"the key {row.key} is unknown", where=row.place, hint=f"keys: {', '.join(KEYS)}"
        )
    if row.name not in schemas:
        rule = f"a function is registered for {row.key}, but there is no schema of that name"
        raise LibraryError(row.name, rule, where=row.place, hint=_listing(schemas, "schemas"))
    defined, schema = schemas[row.name]
    problem = disagreement(schema, row.text)
    if problem is not None:
        shown = f"schema: {defined.text}  ({defined.place})\n  C++:    {spelled(row.spelled)}  ({row.place})"
        rule = f"the schema and the C++ function for {row.key} disagree: {problem}"
        raise LibraryError(row.name, rule, where=row.place, hint=shown)


def _listing(names: Mapping[str, Any], what: str) -> str:
    return f"{what}: {', '.join(names) or 'none'}"


def _check_names_free(rows: Sequence[Row], renamed: Mapping[str, str]) -> None:
    for row in rows:
        name = row.name.replace(row.namespace, renamed.get(row.namespace, row.namespace), 1)
        taken = registry.named(name) if row.kind == "schema" else None
        if taken is not None:
            rule = f"the name is taken by the operator defined at {taken.operator.origin}"
            raise SchemaError(name, rule, where=row.place)


def _origin(row: Row) -> Origin:
    file, _, line = row.place.rpartition(":")
    return Origin(file, int(line))


def _operators(rows: Sequence[Row], path: Path, renamed: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for row in rows:
        if row.kind != "schema":
            continue
        parsed = schema_of(row)
        schema = dataclasses.replace(parsed, namespace=renamed.get(parsed.namespace, parsed.namespace))
        check_names(schema, row.place)
        plain = not schema.tensor_positions
        signature = ModuleSignature(schema, kinds_of(schema), {}, unpacks=False, is_plain=plain)
        function = ModuleFunction(schema.name, row.address, "", signature)
        mine = [one for one in rows if one.kind == "implementation" and one.name == row.name]
        if plain:
            yield schema.qualified_name, PlainFunction(function, numpy_like)
        else:
            yield schema.qualified_name, LibraryOperator(function, path, mine, _origin(row))
