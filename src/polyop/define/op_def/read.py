"""Read ``op_def`` and ``op_doc`` files. An error names the file, operator and key, and what is allowed."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import keyword
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from ...core.errors import ArgumentValueError, PolyopError
from ...core.limits import MAX_DEPTH, oversize, read_text, shown
from ...core.parse import parse
from ...core.schema import MISSING
from .op_def import DTYPES, HANDLERS, SEQUENCES, ArgumentDef, OperatorDef, ReturnDef

SUFFIXES = (".yaml", ".yml")
_MAX_BYTES = 128 << 10
"""The largest file: room for a thousand operators."""

# keys of an operator, of an argument, ...: required ones end in "!"
_OPERATOR = [
    "args!", "args_signature", "returns!", "function", "class", "view", "graph_view", "dispatch", "labels",
    "bprop_expander",
]  # fmt: skip
_ARGUMENT = ["dtype!", "default", "prim_init", "type_cast", "arg_handler"]
_SIGNATURE = ["rw_write", "rw_read", "rw_ref", "dtype_group"]
_RETURN = ["dtype!", "inplace", "type_cast"]
_NAMED = ["name", "disable"]
_DISPATCH = ["enable", "is_comm_op", "CPU", "GPU", "Ascend"]

_MAX_DEFAULT = 10_000
"""The longest default, in characters."""
_GROUP = re.compile(r"\(([^()]*)\)")
_NUMBERS = ("int", "float", "bool", "number")
_LISTS = [kind for kind in DTYPES if kind.startswith(SEQUENCES)]
# dtype: the dtypes that type_cast may convert to it
_CAST_FROM = {
    **{number: ["tensor"] for number in _NUMBERS},
    "tensor": [*_NUMBERS, *_LISTS],
    "tuple": [*_NUMBERS, "tensor", *_LISTS],
    "list": [*_NUMBERS, "tensor", *_LISTS],
    "str": [],
}


class MissingFileError(PolyopError, FileNotFoundError):
    """A file that an argument names does not exist."""


class Place:
    """The position of a value in a file: the subject of error messages."""

    def __init__(self, file: str, *keys: str) -> None:
        self.file, self.keys = file, keys

    def __truediv__(self, key: str) -> Place:
        return Place(self.file, *self.keys, key)

    def fail(self, rule: str, seen: Any = None, hint: str | None = None) -> NoReturn:
        """Raise ``ArgumentValueError`` for the value at this position."""
        text = None if seen is None else shown(seen)
        raise ArgumentValueError(f"{self.file}: {'.'.join(self.keys)}", rule, text, hint=hint)

    def mapping(self, value: Any, keys: list[str] | None = None) -> dict[str, Any]:
        """Return a mapping; with ``keys``, unknown and missing ones are errors."""
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            self.fail("must be a mapping of names", value)
        names = [key.rstrip("!") for key in keys or ()]
        for key in value:
            if keys is not None and key not in names:
                close = difflib.get_close_matches(key, names, n=1)
                (self / key).fail(
                    f"is not a key here; allowed are {', '.join(names)}", hint=_did_you_mean(close)
                )
        for key in keys or ():
            if key.endswith("!") and key[:-1] not in value:
                self.fail(f"needs the key {key[:-1]!r}")
        return dict(value)

    def one_of(self, value: Any, allowed: Iterable[str]) -> str:
        """Return a text, which must be one of ``allowed``."""
        allowed = list(allowed)
        text = re.sub(r"\s", "", value) if isinstance(value, str) else value
        if text not in allowed:
            self.fail(f"must be one of {', '.join(allowed)}", value)
        return str(text)

    def truth(self, value: Any) -> bool:
        """Return the value, which must be a bool."""
        if not isinstance(value, bool):
            self.fail("must be True or False", value)
        return value

    def identifier(self, value: Any) -> str:
        """Return the value, which must be an identifier."""
        if not isinstance(value, str) or not value.isidentifier() or keyword.iskeyword(value):
            self.fail("must be a Python identifier", value)
        return value


def read_op_defs(files: Iterable[str]) -> tuple[OperatorDef, ...]:
    """Return the operators of the files, in order.

    Raises ``ArgumentValueError`` for a file whose name or content is not YAML, or that breaks a rule, and
    ``MissingFileError`` (a ``FileNotFoundError``) for one that does not exist.
    """
    operators: dict[str, OperatorDef] = {}
    for file in files:
        for name, entry in load_yaml(file, "op_def").items():
            place = Place(file, name)
            place.identifier(name)
            one = _operator(place, name, entry)
            for key in ("name", "function"):
                for other in operators.values():
                    if getattr(other, key) == getattr(one, key):
                        place.fail(
                            f"its {key} {getattr(one, key)!r} is also that of {other.name} in {other.file}"
                        )
            operators[name] = one
    return tuple(operators.values())


def load_yaml(file: str, argument: str) -> dict[str, Any]:
    """Return the mapping in a YAML file; raises as :func:`read_op_defs`."""
    path = Path(file)
    if path.suffix not in SUFFIXES:
        rule = f"Invalid file extension: it must be {' or '.join(SUFFIXES)}"
        raise ArgumentValueError(f"For 'CustomOpBuilder', '{argument}'", rule, repr(file))
    try:
        text = read_text(path, _MAX_BYTES)
    except FileNotFoundError:
        subject = f"For 'CustomOpBuilder', '{argument}'"
        raise MissingFileError(subject, "there is no such file", repr(file)) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise ArgumentValueError(file, f"cannot be read as YAML: {reason}") from None
    value = _yaml(text, file)
    return Place(file, "the file").mapping({} if value is None else value)


def _yaml(text: str, file: str) -> Any:
    """Return the value of a YAML text; raises ``ArgumentValueError`` with the line where it breaks a rule."""
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                _refuse(file, event, f"is nested more than {MAX_DEPTH} levels deep")
            if getattr(event, "tag", None):
                _refuse(file, event, "has a tag (!name): write the plain value")
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<":
                _refuse(file, event, "has a merge key (<<): write the keys in place")
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as problem:  # ValueError: a date or number that does not exist
        if isinstance(problem, PolyopError):
            raise
        raise ArgumentValueError(file, f"is not valid YAML: {problem}") from None
    reason = oversize(value)  # with aliases (*name) a short text can describe a huge value
    if reason is not None:
        raise ArgumentValueError(file, f"is too large: {reason}")
    return value


def _refuse(file: str, event: Any, rule: str) -> NoReturn:
    raise ArgumentValueError(f"{file}:{event.start_mark.line + 1}", rule)


def _operator(place: Place, name: str, entry: Any) -> OperatorDef:
    keys = place.mapping(entry, _OPERATOR)
    arguments = _parts(place / "args", keys["args"], _argument)
    names = [a.name for a in arguments]
    returns = _parts(place / "returns", keys["returns"], lambda p, n, e: _return(p, n, e, arguments))
    written, groups = _signature(place / "args_signature", keys.get("args_signature", {}), names)
    function = _named(place / "function", keys.get("function", {}), name)
    class_ = _named(place / "class", keys.get("class", {}), "".join(w.capitalize() for w in name.split("_")))
    for key in ("view", "graph_view"):
        if (place / key).truth(keys.get(key, False)):
            (place / key).fail("must be False: an operator of polyop makes its outputs itself", True)
    _dispatch(place / "dispatch", keys.get("dispatch", {}))
    (place / "labels").mapping(keys.get("labels", {}))
    operator = OperatorDef(name, arguments, returns, written, groups, *function, *class_, file=place.file)
    _check_tensors(place, operator)
    try:
        parse(str(operator.schema))
    except ValueError as problem:  # a SchemaError, or a number with too many digits for str()
        place.fail(f"gives no valid signature\n{problem}")
    return operator


def _parts(place: Place, value: Any, read: Callable[[Place, str, Any], Any]) -> tuple[Any, ...]:
    return tuple(
        read(place / name, (place / name).identifier(name), entry)
        for name, entry in place.mapping(value).items()
    )


def _argument(place: Place, name: str, entry: Any) -> ArgumentDef:
    keys = place.mapping(entry, _ARGUMENT)
    dtype = (place / "dtype").one_of(keys["dtype"], DTYPES)
    allowed = _CAST_FROM[dtype.partition("[")[0]]
    casts = tuple(
        (place / "type_cast").one_of(one, allowed)
        for one in _texts(place / "type_cast", keys.get("type_cast"))
    )
    handler = ""
    if "arg_handler" in keys:
        handler = (place / "arg_handler").one_of(keys["arg_handler"], HANDLERS)
    prim_init = (place / "prim_init").truth(keys.get("prim_init", False))
    default = _default(place / "default", keys["default"], dtype) if "default" in keys else MISSING
    return ArgumentDef(name, dtype, default, prim_init, casts, handler)


def _default(place: Place, value: Any, dtype: str) -> Any:
    """Return a default; in YAML None and tuples are texts."""
    if value is None or value == "None":
        return None
    if dtype == "str":
        return value.strip("'\"") if isinstance(value, str) else place.fail("must be a text", value)
    if isinstance(value, str):
        if len(value) > _MAX_DEFAULT:
            place.fail(f"must have at most {_MAX_DEFAULT} characters", value)
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # too many brackets or signs
            place.fail(f"must be a value of {dtype}, or None", value)
    return list(value) if isinstance(value, tuple) else value


def _return(place: Place, name: str, entry: Any, arguments: tuple[ArgumentDef, ...]) -> ReturnDef:
    keys = place.mapping(entry, _RETURN)
    dtype = (place / "dtype").one_of(keys["dtype"], ("tensor", "tuple[tensor]", "list[tensor]"))
    tensors = [a.name for a in arguments if a.dtype == "tensor"]
    inplace = (place / "inplace").one_of(keys["inplace"], tensors) if "inplace" in keys else ""
    return ReturnDef(name, dtype, inplace)


def _signature(
    place: Place, value: Any, names: list[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    keys = place.mapping(value, _SIGNATURE)
    listed = {
        key: tuple((place / key).one_of(one, names) for one in _texts(place / key, keys.get(key)))
        for key in _SIGNATURE[:3]
    }
    text = keys.get("dtype_group") or ""
    group_place = place / "dtype_group"
    if not isinstance(text, str) or _GROUP.sub("", text).strip(" ,"):
        group_place.fail("must be groups of arguments, as (a, b), (c, d)", text)
    groups = tuple(
        tuple(group_place.one_of(one, names) for one in _texts(group_place, inner))
        for inner in _GROUP.findall(text)
    )
    return listed["rw_write"], groups


def _named(place: Place, value: Any, default: str) -> tuple[str, bool]:
    keys = place.mapping(value, _NAMED)
    return (place / "name").identifier(keys.get("name", default)), (place / "disable").truth(
        keys.get("disable", False)
    )


def _dispatch(place: Place, value: Any) -> None:
    keys = place.mapping(value, _DISPATCH)
    (place / "enable").truth(keys.pop("enable", False))
    (place / "is_comm_op").truth(keys.pop("is_comm_op", False))
    for key, name in keys.items():
        (place / key).identifier("none" if name in (None, "None") else name)


def _check_tensors(place: Place, operator: OperatorDef) -> None:
    lists = [r for r in operator.returns if r.dtype != "tensor"]
    if not any(a.type.is_tensor for a in operator.arguments):
        (place / "args").fail("needs a tensor: an operator without tensors belongs to no framework")
    if lists and len(operator.returns) > 1:
        (place / "returns" / lists[0].name).fail("must be the only return, as it is a list of tensors")
    kinds = {a.name: a.dtype for a in operator.arguments}
    for name in operator.written:
        if kinds[name] != "tensor":
            (place / "args_signature" / "rw_write").fail("must name tensors", name)


def _texts(place: Place, value: Any) -> list[str]:
    """Return the items of a text with commas; of None, no items."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return list(value)
    if not isinstance(value, str):
        place.fail("must be names, separated by commas", value)
    return [one.strip() for one in value.split(",") if one.strip()]


def _did_you_mean(close: list[str]) -> str | None:
    return f"did you mean {close[0]}?" if close else None


def with_docs(operators: Iterable[OperatorDef], texts: Mapping[str, str]) -> tuple[OperatorDef, ...]:
    """Return the operators with their documentation from ``texts``, by name."""
    return tuple(dataclasses.replace(one, doc=texts.get(one.name, "")) for one in operators)


# key: the title above its part
_PARTS = {"description": "", "args": "Args:", "returns": "Returns:", "examples": "Examples:"}


def read_op_docs(files: Iterable[str], operators: Iterable[str]) -> dict[str, str]:
    """Return a text for each operator in the files.

    Raises as ``read_op_defs`` does, and for an operator that is none of ``operators``.
    """
    known, texts = list(operators), {}
    for file in files:
        for name, entry in load_yaml(file, "op_doc").items():
            place = Place(file, name)
            if name not in known:
                place.fail(f"is not an operator of the op_def files; they have {', '.join(known) or 'none'}")
            if isinstance(entry, dict) and "dtype" in str(entry.get("args")) and "returns" in entry:
                place.fail("is the definition of an operator: pass this file as op_def")
            keys = place.mapping(entry, list(_PARTS))
            texts[name] = "\n\n".join(
                _part(place / key, title, keys[key]) for key, title in _PARTS.items() if keys.get(key)
            )
    return texts


def _part(place: Place, title: str, value: Any) -> str:
    """Return one part of a docstring from a text, or from a text for each name."""
    if isinstance(value, dict):
        if not all(isinstance(text, str) for text in value.values()):
            place.fail("must be a text, or a text for each name", value)
        value = "\n".join(f"{name}: {text.strip()}" for name, text in value.items())
    if not isinstance(value, str):
        place.fail("must be a text, or a text for each name", value)
    text = value.strip("\n").rstrip()
    return f"{title}\n{textwrap.indent(textwrap.dedent(text), '    ')}" if title else text.strip()
