"""Read the source of a function: a syntax tree with its file's line numbers, and errors that show a line.

A function whose file has changed since the import is refused: its source is not the code that Python runs.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any

from ...core.errors import ArgumentTypeError, ArgumentValueError, PolyopError, UnsupportedError
from ...core.origin import of_function, place
from .outside import Outside
from .records import Record, defaults_of, flattened
from .syntax_tree import is_target, path_of_names, walk
from .wrapped import unwrapped

MAX_LINE_SHOWN = 160
"""An error shows at most so many characters of a line."""


@dataclass(frozen=True, eq=False)
class Source:
    """A function: its ``ast.FunctionDef``, its file, and the text of each of its lines, by line number."""

    reference: weakref.ref[FunctionType]  # weak: the cache of sources must not keep a function alive
    tree: ast.FunctionDef
    file: str
    lines: dict[int, str]
    records: tuple[Record, ...] = ()
    """The parameters that are records; the tree has their fields as parameters."""
    outside: Outside = field(default_factory=Outside)
    """What the kernel reads from outside, with its helpers."""

    def function(self) -> FunctionType:
        """Return the function. The caller must hold a reference to it."""
        function = self.reference()
        assert function is not None
        return function

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function().__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        arguments = self.tree.args
        return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args))

    @property
    def defaults(self) -> dict[str, Any]:
        """The default values, by parameter."""
        function = self.function()
        values = function.__defaults__ or ()
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        given = dict(zip(names[len(names) - len(values) :], values, strict=True))
        return defaults_of(self, given, names) if self.records else given

    def error(
        self,
        kind: type[PolyopError],
        rule: str,
        node: ast.AST | int | None = None,
        seen: object = None,
        hint: str | None = None,
    ) -> PolyopError:
        """Return an error about a node or a line number; it shows the file, the number and the line."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.tree.lineno)
        text = self.lines.get(line, "").strip()
        text = text if len(text) <= MAX_LINE_SHOWN else f"{text[:MAX_LINE_SHOWN]} ..."
        where = place(self.file, line) + (f"\n    {text}" if text else "")
        return kind(f"loop kernel {self.name}", rule, seen, where=where, hint=hint)

    def outer(self, path: str) -> Any:
        """Return the value of ``name`` or ``module.name`` from outside, as it was at the definition.

        Raises ``KeyError``.
        """
        return self.outside.value(self.function(), path)

    def helper(self, function: FunctionType) -> Source:
        """Return the source of a helper of this function; it reads values of the same time."""
        return replace(as_written(function), outside=self.outside)

    def fix(self) -> None:
        """Read all that the kernel and its helpers read from outside: from now on it does not change."""
        if not self.outside.is_fixed:
            self.read_outside(set())
            self.outside.is_fixed = True

    def read_outside(self, seen: set[FunctionType]) -> None:
        """Read what the text names, and what the helpers name that are not in ``seen``."""
        seen.add(self.function())
        bound = {n.id for n in walk(self.tree) if isinstance(n, ast.Name) and is_target(n)}
        bound |= set(self.parameters)
        for path in dict.fromkeys(p for one in self.tree.body for n in walk(one) if (p := path_of_names(n))):
            if path.partition(".")[0] in bound:
                continue
            with contextlib.suppress(KeyError):
                value = self.outer(path)
                if isinstance(value, FunctionType) and value not in seen:
                    with contextlib.suppress(PolyopError):  # the call, if there is one, says what is wrong
                        self.helper(value).read_outside(seen)


_written: weakref.WeakKeyDictionary[Any, Source] = weakref.WeakKeyDictionary()
_kernels: weakref.WeakKeyDictionary[Any, Source] = weakref.WeakKeyDictionary()


def read(function: Callable[..., Any]) -> Source:
    """Return the source of a kernel, which has attributes in place of records; see :func:`as_written`."""
    original = unwrapped(function) if callable(function) else function
    if isinstance(original, FunctionType) and original in _kernels:
        return _kernels[original]
    source = as_written(function)
    flat: Source = flattened(source)
    _kernels[source.function()] = flat
    return flat


def as_written(function: Callable[..., Any]) -> Source:
    """Return the source of a function with its parameters as they are, as of a helper; it is read once.

    Raises ``ArgumentTypeError`` for anything but a function made by ``def``, ``UnsupportedError`` for
    a function that a decorator wraps, and ``ArgumentValueError`` if its source cannot be found, or if
    the file has changed since it was imported.
    """
    original = unwrapped(function) if callable(function) else function
    if isinstance(original, FunctionType) and original in _written:
        return _written[original]
    subject = f"the loop kernel {getattr(function, '__name__', function)}"
    if not isinstance(original, FunctionType) or original.__name__ == "<lambda>":
        seen = "a lambda" if isinstance(original, FunctionType) else type(function).__name__
        raise ArgumentTypeError(subject, "must be a function made by def", seen, where=of_function(original))
    try:
        lines, first = inspect.findsource(original)
    except (OSError, TypeError, IndexError) as error:
        raise ArgumentValueError(
            subject,
            f"its source cannot be read ({error})",
            where=of_function(original),
            hint="write it in a file or a notebook cell: a loop kernel is compiled from its source text",
        ) from error
    try:
        source = _parse(original, lines, first) if is_current(original) else None
    except SyntaxError:
        source = None
    except RecursionError:
        rule, hint = (
            "its text is nested too deep for Python's own parser",
            "write long expressions in several lines",
        )
        raise ArgumentValueError(subject, rule, where=of_function(original), hint=hint) from None
    if source is None:
        rule = "the text of its file is not what Python runs: the file has changed since it was imported"
        raise ArgumentValueError(subject, rule, where=of_function(original), hint="import it again")
    _written[original] = source
    return source


def is_current(function: FunctionType) -> bool:
    """Whether the text of a function's file still compiles to the function's code.

    True also if the file is more than plain Python, as a notebook cell with ``%`` lines is.
    """
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    codes = _functions_of(text, code.co_filename)
    if codes is None:
        return True
    now = codes.get((code.co_name, code.co_firstlineno))
    return now is not None and now.co_code == code.co_code and _constants(now) == _constants(code)


@functools.lru_cache(maxsize=16)
def _functions_of(text: str, file: str) -> dict[tuple[str, int], CodeType] | None:
    """Return the code of each function of a file, by name and line; None if it is more than plain Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python has given its warnings at the import
            pending = [compile(text, file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return None  # a notebook cell with commands of the notebook
    functions = {}
    while pending:
        code = pending.pop()
        functions[code.co_name, code.co_firstlineno] = code
        pending += [c for c in code.co_consts if isinstance(c, CodeType)]
    return functions


def _constants(code: CodeType) -> tuple[str, ...]:
    """Return the constants and names of a function; the code of functions inside is left out."""
    return tuple(repr(c) for c in (*code.co_consts, *code.co_names) if not isinstance(c, CodeType))


def _definition(lines: list[str], first: int) -> tuple[ast.Module, int]:
    """Return the definition that begins at a line, parsed, and the line after it; raise ``SyntaxError``.

    The definition ends before the first line that is not indented deeper, if the lines up to there can be
    parsed. That is faster than to read the tokens, as ``inspect.getsource`` does.
    """

    def depth(line: str) -> int:
        return len(line) - len(line.lstrip())

    def belongs(line: str) -> bool:
        return depth(line) > depth(lines[first]) or not line.strip() or line.lstrip().startswith("#")

    # an indented definition is put below an "if": to dedent it would change the text of its strings
    above = "if True:\n" if depth(lines[first]) else ""
    for end in range(first + 1, len(lines)):
        if not belongs(lines[end]):
            with contextlib.suppress(SyntaxError):  # only the decorators so far, or inside a string
                return ast.parse(above + "".join(lines[first:end])), end
    return ast.parse(above + "".join(lines[first:])), len(lines)


def _parse(function: FunctionType, lines: list[str], first: int) -> Source:
    module, end = _definition(lines, first)
    top: ast.AST = module.body[0]
    tree = top.body[0] if isinstance(top, ast.If) else top
    ast.increment_lineno(module, first - isinstance(top, ast.If))
    file = function.__code__.co_filename
    numbered = {k + 1: lines[k].rstrip() for k in range(first, end)}
    if not isinstance(tree, ast.FunctionDef):
        raise UnsupportedError(
            f"the loop kernel {function.__name__}", "must be an ordinary def", where=of_function(function)
        )
    source = Source(weakref.ref(function), tree, file, numbered)
    arguments = tree.args
    rejected = [(a, f"{a.arg} after *") for a in arguments.kwonlyargs]
    rejected += [(a, f"*{a.arg}") for a in (arguments.vararg,) if a is not None]
    rejected += [(a, f"**{a.arg}") for a in (arguments.kwarg,) if a is not None]
    if rejected:
        argument, seen = rejected[0]
        rule = "parameters must be named and positional"
        hint = "write every parameter by its name, without * and **; a call may still use keywords"
        raise source.error(ArgumentTypeError, rule, argument, seen, hint)
    return source
