"""The arguments of ``CustomOpBuilder``: a table of their kinds, and the check."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ...core.errors import ArgumentTypeError, ArgumentValueError, HostError

_SUBJECT = "For 'CustomOpBuilder'"

# argument: (kind, default); "texts" is a str, or a list or tuple of str; "?" allows None
_KINDS: dict[str, tuple[str, Any]] = {
    "name": ("text", None),
    "sources": ("texts", None),
    "backend": ("text?", None),
    "include_paths": ("texts?", None),
    "cflags": ("text?", None),
    "ldflags": ("text?", None),
    "build_dir": ("text?", None),
    "sanitize": ("text?", None),
    "op_def": ("texts?", None),
    "op_doc": ("texts?", None),
    "debug_mode": ("bool", False),
    "enable_atb": ("bool", False),
    "enable_asdsip": ("bool", False),
}
BACKENDS = ("CPU", "GPU", "Ascend")


@dataclass(frozen=True)
class Options:
    """Checked arguments; every list a tuple of str."""

    sources: tuple[str, ...]
    backend: str | None
    include_paths: tuple[str, ...]
    cflags: str
    ldflags: str
    build_dir: str
    sanitize: str
    op_def: tuple[str, ...]
    op_doc: tuple[str, ...]
    debug_mode: bool
    enable_atb: bool
    enable_asdsip: bool

    def check_cann(self, where: Any) -> None:
        """Raise ``HostError`` if a library of CANN is enabled and not installed."""
        for flag, variable in (("enable_atb", "ATB_HOME_PATH"), ("enable_asdsip", "ASDSIP_HOME_PATH")):
            if getattr(self, flag) and not os.environ.get(variable):
                rule = f"'{flag}' needs a library of CANN, and {variable}, which names its folder, is not set"
                hint = "polyop has no other implementation of it; aclnn operators run in rehearsal"
                raise HostError(_SUBJECT, rule, where=where, hint=hint)


def checked(where: Any, **given: Any) -> Options:
    """Return the options; raises ``ArgumentTypeError`` or ``ArgumentValueError`` with the argument's name."""
    unknown = sorted(set(given) - set(_KINDS))
    if unknown:
        rule = f"there is no argument {unknown[0]!r}; there are {', '.join(_KINDS)}"
        raise ArgumentTypeError(_SUBJECT, rule, where=where)
    values = {name: _value(name, given.get(name, default), where) for name, (_, default) in _KINDS.items()}
    values.pop("name")
    backend = values["backend"]
    if backend is not None and backend not in BACKENDS:
        rule = f"only {', '.join(map(repr, BACKENDS))} are allowed"
        raise ArgumentValueError(f"{_SUBJECT}, 'backend'", rule, repr(backend), where=where)
    for flag in ("enable_atb", "enable_asdsip"):
        if values[flag] and backend not in (None, "Ascend"):
            rule = f"when '{flag}' is set to True, the 'backend' must be 'Ascend' (or left implicit)"
            raise ArgumentValueError(_SUBJECT, rule, repr(backend), where=where)
        if values[flag]:
            values["backend"] = "Ascend"
    return Options(**values)


def _value(name: str, value: Any, where: Any) -> Any:
    kind = _KINDS[name][0]
    if value is None and kind.endswith("?"):
        return None if name == "backend" else () if kind == "texts?" else ""
    words = {"text": "a str", "texts": "a str, or a list or tuple of str", "bool": "a bool"}[kind.rstrip("?")]
    if kind.startswith("texts"):
        items = (value,) if isinstance(value, (str, os.PathLike)) else value
        if isinstance(items, (list, tuple)) and all(isinstance(i, (str, os.PathLike)) for i in items):
            return tuple(os.fspath(item) for item in items)
    elif kind.startswith("text"):
        if isinstance(value, (str, os.PathLike)) and (isinstance(value, str) or name == "build_dir"):
            return os.fspath(value)
    elif isinstance(value, bool):
        return value
    flags = name in ("cflags", "ldflags") and isinstance(value, (list, tuple))
    hint = f'give the flags as one text: {name}=" ".join(flags)' if flags else None
    raise ArgumentTypeError(f"{_SUBJECT}, '{name}'", f"must be {words}", repr(value), where=where, hint=hint)
