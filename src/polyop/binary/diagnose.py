"""Say what is wrong with a shared library: before it is opened, or after opening it failed.

Only the file's tables are read. None of its code runs.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from .. import _core
from ..core.errors import LibraryError
from ..core.versions import ABI_VERSION, HEADER
from .cxx_names import demangle, has_new_strings, has_old_strings, is_mangled, string_abi, with_name
from .elf import (
    AotFunction,
    LibraryFile,
    aot_functions,
    companions,
    hidden_functions,
    own_machine,
    read,
    tvm_ffi_functions,
)
from .file_kind import file_problem, subject_of
from .loader_message import explain

__all__ = [
    "AotFunction",
    "LibraryFile",
    "aot_functions",
    "check_companions",
    "companion_problem",
    "diagnose",
    "missing_symbol",
    "read",
    "strings_of",
]

_MAX_LISTED = 12  # functions in an error
_REBUILD = f"rebuild it with polyop's {HEADER}: polyop build source.cc -o lib.so"


def diagnose(path: str | Path, problem: str) -> LibraryError:
    """Return the error for a library that the loader refused with the message ``problem``.

    It names the file, what is wrong with it, and what to do. A message that is not understood is shown as it
    is.
    """
    wrong_kind = file_problem(path)
    if wrong_kind is not None:
        return wrong_kind
    try:
        file = read(path)
    except LibraryError as damaged:
        return damaged
    here = own_machine()
    if file.machine != here:
        rule = f"must be built for this machine's architecture, {here}"
        return LibraryError(
            subject_of(path), rule, file.machine, hint="rebuild it here: polyop build source.cc -o lib.so"
        )
    return explain(file, problem) or LibraryError(subject_of(path), f"cannot be opened: {problem}")


def missing_symbol(file: LibraryFile, name: str, handle: int) -> LibraryError:
    """Return the error for a library that does not export the function ``name``.

    It lists the exported functions, and says if the function exists under a C++ name, is hidden, or is
    one of another library, which the open library ``handle`` needs.
    """
    rule = f"does not offer the function {name!r}"
    offered = [*(function.name for function in aot_functions(file)), *tvm_ffi_functions(file)]
    return LibraryError(subject_of(file.path), rule, hint=_where_it_is(file, name, offered, handle))


def _where_it_is(file: LibraryFile, name: str, offered: list[str], handle: int) -> str:
    mangled = with_name(file.cxx_functions, name)
    if mangled:
        return f'it has the C++ function {demangle(mangled[0])}: add extern "C" to it'
    if name in file.undefined:
        return "it calls that function and does not define it: compile in the file that does"
    hidden = hidden_functions(file.path)
    if name in hidden or with_name(hidden, name):
        return "it has the function and hides it: is it static, or compiled with -fvisibility=hidden?"
    other = _file_that_has(name, handle)
    if other:
        return (
            f"{other}, which this library needs, has a function of that name; "
            "name that library if you mean it"
        )
    near = difflib.get_close_matches(name, offered, n=3, cutoff=0.5)
    if not offered:
        only = ', only C++ ones: add extern "C" to its functions' if file.cxx_functions else ""
        return f"it offers no C functions{only}"
    more = f" and {len(offered) - _MAX_LISTED} more" if len(offered) > _MAX_LISTED else ""
    text = f"it offers {', '.join(offered[:_MAX_LISTED])}{more}"
    return f"did you mean {' or '.join(near)}? {text}" if near else text


def _file_that_has(name: str, handle: int) -> str:
    """Return the file whose function the loader gives for a name in an open library; empty without one."""
    import ctypes

    try:
        function = ctypes.CDLL(None, handle=handle)[name]
    except (AttributeError, ValueError):
        return ""
    return Path(_core.symbol_at(ctypes.cast(function, ctypes.c_void_p).value or 0)[0]).name


def check_companions(file: LibraryFile, name: str) -> None:
    """Check that the companions of ``name`` may be called.

    Raises the ``LibraryError`` of ``companion_problem``.
    """
    problem = companion_problem(file, name)
    if problem is not None:
        raise problem


def companion_problem(file: LibraryFile, name: str) -> LibraryError | None:
    """Return why the companions (Init, InferShape, InferType) of ``name`` must not be called, or None.

    There are two reasons. The library was built against a newer ABI version than this polyop knows. Or it was
    built against MindSpore's ``custom_aot_extra.h``, and its symbols do not tell which std::string it passes.
    """
    if file.marker is not None:
        if file.marker <= ABI_VERSION:
            return None
        rule = f"was built against version {file.marker} of polyop's contract"
        hint = "update polyop, or rebuild the library with this one"
        return LibraryError(subject_of(file.path), f"{rule}, and this polyop knows {ABI_VERSION}", hint=hint)
    names = companions(file, name)
    in_c = names in ([], [f"{name}Init"]) and not _has_cxx(file)  # C cannot have included a C++ header
    if in_c or not (names or _uses_extra(file)):
        return None
    problem = _strings_problem(_cxx_names(file))
    if not problem:
        return None
    functions = f"has {' and '.join(names)}" if names else "has functions that use AotExtra"
    rule = f"{functions}, compiled against another {HEADER} than polyop's, and {problem}"
    return LibraryError(subject_of(file.path), rule, hint=_REBUILD)


def strings_of(file: LibraryFile) -> str:
    """Return which std::string the library passes to MindSpore's AotExtra: ``"old"`` or ``"new"``.

    It is "" for a library that gets polyop's C struct: one that was built against polyop's header, or from C.
    The old strings of libstdc++ always leave a symbol. Without any, the compiler has inlined the new ones, or
    the library passes none.
    """
    if file.marker is not None or not _has_cxx(file):
        return ""
    return "old" if has_old_strings(_cxx_names(file)) else "new"


def _cxx_names(file: LibraryFile) -> list[str]:
    return [*file.cxx_functions, *file.undefined]


def _strings_problem(names: list[str]) -> str:
    """Return why C++ names do not tell how MindSpore's AotExtra is called; "" if they do."""
    if any("AotExtraDualABI" in name for name in names):
        return "that header's AotExtraDualABI passes names as lists of characters"
    kind = string_abi(names)
    if kind == "libc++":
        return "passes the strings of libc++, which MindSpore's cannot have"
    if kind and has_old_strings(names) and has_new_strings(names):
        return "has strings of both ABIs of libstdc++ (_GLIBCXX_USE_CXX11_ABI=0 and 1)"
    return ""


def _has_cxx(file: LibraryFile) -> bool:
    return bool(file.cxx_functions) or any(
        is_mangled(name) or name.startswith("__gxx_personality") for name in file.undefined
    )


def _uses_extra(file: LibraryFile) -> bool:
    """Return whether a C++ name mentions AotExtra: a kernel can read attributes without any companion.

    Inlined functions leave no name, so False proves nothing.
    """
    return any("8AotExtra" in name for name in (*file.cxx_functions, *file.undefined))
