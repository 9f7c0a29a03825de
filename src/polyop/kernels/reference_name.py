"""The text that names a function in a file: ``lib.so:Func``."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

from ..core.errors import ArgumentTypeError, ArgumentValueError, FallbackWarning
from ..core.limits import as_path

_RULE = "'func' should be like 'file_name:func_name'"
_FILES = (".c", ".cc", ".cpp", ".cxx", ".cu", ".hip", ".py", ".so", ".dylib")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def split_reference(func: str, subject: str) -> tuple[str, str]:
    """Return the path and the function name in ``func``.

    Raises ``ArgumentTypeError`` if it is no str, does not have exactly one ``:``, has an empty part, or
    the function is no identifier of C. ``subject`` is the beginning of the message.

    >>> split_reference("build/add.so:CustomAdd", "Custom")
    ('build/add.so', 'CustomAdd')
    """
    if not isinstance(func, str):
        raise ArgumentTypeError(subject, "'func' must be of type str", f"{func!r} ({type(func).__name__})")
    path, colon, name = func.rpartition(":")
    if not colon:
        hint = "a function of a library is 'lib.so:Func'; a name without ':' is an operator of a provider"
        hint = f"name its function, as in '{func}:function'" if Path(func).suffix in _FILES else hint
        raise ArgumentTypeError(subject, _RULE, repr(func), hint=hint)
    if not path.strip():
        raise ArgumentTypeError(subject, f"{_RULE}, and the path is empty", repr(func))
    if not name:
        raise ArgumentTypeError(subject, f"{_RULE}, and the function name is empty", repr(func))
    if ":" in path:
        raise ArgumentTypeError(subject, f"{_RULE}, with one ':'", repr(func), hint=_colon_hint(path, name))
    if not _IDENTIFIER.fullmatch(name):
        rule = f"{_RULE}, and the function must be a name in C"
        raise ArgumentTypeError(subject, rule, repr(name), hint='a C++ function needs extern "C"')
    return path, name


def _colon_hint(path: str, name: str) -> str:
    if path.endswith(":"):  # lib.so:space::func
        file = path.partition(":")[0]
        return f"{name} is in a C++ namespace: declare it extern \"C\", and name it as '{file}:{name}'"
    return f"a path may have no ':', and {path!r} has one: rename the file, or link to it"


def resolve_path(text: str, from_env: bool = False) -> Path:
    """Return the absolute path that ``text`` names, with symbolic links resolved.

    With ``from_env`` the text is the name of an environment variable with the path. If the variable is not
    set, a ``FallbackWarning`` is given and the text itself is taken as the path. Raises
    ``ArgumentValueError`` if the variable is set and empty.

    >>> resolve_path("/usr/../usr").name
    'usr'
    """
    if from_env:
        value = os.environ.get(text)
        if value is None:
            message = (
                f"path_from_env: the environment variable {text} is not set; its name is taken as the path"
            )
            warnings.warn(message, FallbackWarning, stacklevel=2)
        elif not value.strip():
            raise ArgumentValueError(
                "path_from_env", f"the environment variable {text} must hold a path", "an empty text"
            )
        else:
            text = value
    return Path(os.path.realpath(as_path(text, "library")))
