"""The parameters that a C kernel is called with (``polyop/abi.h``), and whether a source declares them so.

A C function has no types in its library, and one with other parameters crashes the process. So the definition
is read from the text. Refused is what is plainly another type: a macro, an unknown type, a conditional of the
preprocessor or a C++ function beside the kernel is no reason. A kernel may leave out its last parameters.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..core.errors import ArgumentTypeError
from ..core.origin import Origin

CONTRACT = (  # parameter, its type in abi.h, the types that are as good
    ("nparam", "int", "int32"),
    ("params", "void **", r"void\*|.+\*\*"),
    ("ndims", "int *", r"void\*|int32\*"),
    ("shapes", "int64_t **", r"void\*\*?|int64\*\*"),
    ("dtypes", "const char **", r"void\*\*?|(char|u?int8)\*\*"),
    ("stream", "void *", r".+\*"),
    ("extra", "void *", r".+\*"),
)
"""Types are written as in ``int64**``: without blanks and ``const``, integers by their width."""
INIT = (*CONTRACT[2:5], CONTRACT[6])
"""The parameters of ``<Func>Init``."""


def declaration(name: str, rows: Sequence[tuple[str, str, str]] = CONTRACT) -> str:
    """Return how a function of this name is declared.

    >>> declaration("fInit", INIT)
    'int fInit(int *ndims, int64_t **shapes, const char **dtypes, void *extra)'
    """
    parameters = (f"{text}{'' if text.endswith('*') else ' '}{parameter}" for parameter, text, _ in rows)
    return f"int {name}({', '.join(parameters)})"


_PARTS = re.compile(
    r"""(?P<blank>//(?:\\.|[^\n\\])*|/\*.*?\*/
        |\bu?8?[UL]?R"(?P<fence>[^()\\\s"]{0,16})\(.*?\)(?P=fence)"
        |"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*')
      |^[ \t]*\#[ \t]*(?P<directive>\w*)[ \t]*(?P<name>\w*)(?:/\*.*?\*/|\\.|[^\n\\])*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_LINKAGE = re.compile(r'extern\s*"C"\s*$')
_WITHOUT_TYPE = re.compile(
    r"\b(?:const|volatile|register|restrict|__restrict(?:__)?|extern|inline|__inline(?:__)?)\b"
    r'|"C"|\[\[\w+\]\]|__attribute__\s*\(\(\w+(?:\([\w\s,]*\))?\)\)|\bstd::'
)
_LIST = r"(\([^(){};]*(?:\([^(){};]*\)[^(){};]*)*\))"
_SPECIFIERS = re.compile(r"[A-Za-z_][\w\s*&]*")
_OTHERS = frozenset(("static", "return", "else"))
"""Words before a call, or before a function that the library does not export."""
_WORDS = re.compile(r"(?:(?:void|bool|_Bool|char|short|int|long|signed|unsigned|float|double)\b\s*)+")
_OF_WIDTH = re.compile(r"u?int(8|16|32|64)_t\b|(?:s?size|ptrdiff)_t\b")
_AROUND_NAME = re.compile(r"([\s*]*)(&?)\s*(?:[A-Za-z_]\w*)?\s*((?:\[\w*\]\s*)*)")
_INTEGER = r"int\d+|char|bool"
_ALSO = {"nparam": _INTEGER, "stream": "int64", "extra": "int64"}
"""Types that are as good in a register, beside those of ``CONTRACT``."""


class Definition(NamedTuple):
    """A function of C linkage in a source: its declaration, result, parameters and line, types as written."""

    text: str
    result: str
    parameters: tuple[str, ...]
    line: int


def check_source(name: str, sources: Iterable[tuple[str, str, str]], subject: str) -> None:
    """Raise ``ArgumentTypeError`` if a source defines the kernel or its Init in another way than is called.

    ``sources`` have a file for errors, a language and a text.
    """
    for (file, language, text), (suffix, rows) in itertools.product(
        sources, (("", CONTRACT), ("Init", INIT))
    ):
        function = f"{name}{suffix}"
        for found in definitions(text, function, language) if function in text else ():
            problem = _problem(found, rows)
            if problem is not None:
                hint = f"write {declaration(function, rows)}"
                hint += "" if suffix else "; params has the pointers of the inputs, then of the outputs"
                place = Origin(file, found.line)
                raise ArgumentTypeError(subject, f"{function} {problem}", found.text, where=place, hint=hint)


def definitions(text: str, name: str, language: str) -> Iterator[Definition]:
    """Yield the definitions of a function of C linkage that the text has in full.

    >>> list(definitions("int f(int n, float *x) {}", "f", "c"))
    [Definition(text='int f(int n, float *x)', result='int ', parameters=('int n', 'float *x'), line=1)]
    """
    code, macros, conditional = _code(text)
    for match in re.finditer(rf"(?<![\w:.~]){re.escape(name)}\s*{_LIST}\s*\{{", code):
        start = 1 + max(code.rfind(mark, 0, match.start()) for mark in ";{}")
        before = code[start : match.start()]
        words = {name, *re.findall(r"\w+", before + match[1])}
        in_conditional = bisect_right(conditional, match.start()) % 2
        if in_conditional or words & (macros | _OTHERS) or not _SPECIFIERS.fullmatch(_plain(before)):
            continue
        blocks = _open_blocks(code[:start])
        if blocks or (blocks == 0 and (language == "c" or '"C"' in before)):
            shown = " ".join(f"{before}{name}{match[1]}".split())
            line = code.count("\n", 0, match.start()) + 1
            yield Definition(shown, before, tuple(_parameters(match[1][1:-1])), line)


@functools.lru_cache(maxsize=16)
def _code(text: str) -> tuple[str, frozenset[str], tuple[int, ...]]:
    """Return the text without comments, strings and directives, its macros, and its conditional parts.

    Every character stays in its place. Conditional parts are places where one starts and ends, in turn. Kept,
    as each kernel of a large source asks for it.
    """
    macros: set[str] = set()
    bounds: list[int] = []
    depth = 0

    def blank(match: re.Match[str]) -> str:
        nonlocal depth
        if match["directive"] == "define":
            macros.add(match["name"])
        elif match["directive"] in ("if", "ifdef", "ifndef"):
            bounds.extend([match.start()] if depth == 0 else [])
            depth += 1
        elif match["directive"] == "endif":
            depth -= 1
            bounds.extend([match.end()] if depth == 0 else [])
        return match[0] if match[0] in ('"C"', '"C++"') else re.sub(r"[^\n]", " ", match[0])

    code = _PARTS.sub(blank, text)
    return code, frozenset(macros), tuple(bounds)


def _open_blocks(code: str) -> int | None:
    """Return how many blocks of ``extern "C"`` are open at the end of a text; None inside any other block."""
    opened: list[int] = []
    for match in re.finditer(r"[{}]", code):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            opened.pop()
    return len(opened) if all(_LINKAGE.search(code, 0, place) for place in opened) else None


def _parameters(text: str) -> Iterator[str]:
    """Yield the parameters of a list, without a last ``...``: split at commas outside of brackets."""
    parts = [" ".join(part.split()) for part in re.split(r",(?![^(]*\))", text)]
    yield from parts[:-1]
    yield from (part for part in parts[-1:] if part not in ("", "void", "..."))


def _problem(found: Definition, rows: Sequence[tuple[str, str, str]]) -> str | None:
    """Return how polyop calls a function that cannot be called so; None if that is not certain."""
    parameters = found.parameters
    unknown = (k for k, text in enumerate(parameters) if re.fullmatch(r"\w+", text) and _type(text) is None)
    parameters = parameters[: next(unknown, None)]  # it may be a macro, of several parameters
    result = _type(found.result)
    if result is not None and not re.fullmatch(_INTEGER, result):
        return "must return int, where 0 is success"
    if len(parameters) > len(rows):
        return f"is called with {len(rows)} arguments"
    for number, (seen, (name, text, accepted)) in enumerate(zip(parameters, rows, strict=False)):
        kind = _type(seen)
        if kind is not None and not re.fullmatch(f"{accepted}|{_ALSO.get(name, accepted)}", kind):
            return f"is called with {text} as argument {number + 1}, {name}"
    return None


def _plain(text: str) -> str:
    """Return a type without the words that do not change how it is passed."""
    return _WITHOUT_TYPE.sub(" ", text.partition("=")[0]).strip()


def _type(text: str) -> str | None:
    """Return a type as ``CONTRACT`` writes them, signed; None if it is not certain.

    >>> [_type(text) for text in ("const float *x", "unsigned long n[2]", "std::size_t", "half *x")]
    ['float*', 'int64*', 'int64', None]
    """
    plain = _plain(text)
    base = _WORDS.match(plain) or _OF_WIDTH.match(plain)
    rest = _AROUND_NAME.fullmatch(plain, base.end()) if base else None
    if base is None or rest is None:
        return None
    return _base(base[0].split()) + "*" * (rest[1].count("*") + len(rest[2]) + rest[3].count("["))


def _base(words: list[str]) -> str:
    if len(words) == 1 and words[0].endswith("_t"):
        width = re.search(r"\d+", words[0])
        return f"int{width[0]}" if width else "int64"
    for word in ("void", "float", "double", "char"):
        if word in words:
            return word
    if "bool" in words or "_Bool" in words:
        return "bool"
    if "long" in words:
        return "int64" if words.count("long") > 1 else f"int{8 * ctypes.sizeof(ctypes.c_long)}"
    return "int16" if "short" in words else "int32"
