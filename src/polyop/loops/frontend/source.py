"""The source of a function as a syntax tree with the file's line numbers, and errors that point into it."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from ...core.errors import ArgumentTypeError, ArgumentValueError, PolyopError, UnsupportedError
from ...core.origin import of_function
from .wrapped import unwrapped

LONGEST = 160
"""Characters of a line that an error shows."""


@dataclass(frozen=True, eq=False)
class Source:
    """A function, its ``ast.FunctionDef``, its file, and the text of its lines by number."""

    reference: weakref.ref[FunctionType]  # weak: sources are kept by function
    tree: ast.FunctionDef
    file: str
    lines: dict[int, str]

    def owner(self) -> FunctionType:
        """Return the function, which whoever asks about it holds."""
        found = self.reference()
        assert found is not None
        return found

    @property
    def name(self) -> str:
        """The function's name."""
        return self.owner().__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        arguments = self.tree.args
        return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args))

    @property
    def defaults(self) -> dict[str, Any]:
        """The default values, by parameter."""
        values = self.owner().__defaults__ or ()
        return dict(zip(self.parameters[len(self.parameters) - len(values) :], values, strict=True))

    def error(
        self,
        kind: type[PolyopError],
        rule: str,
        node: ast.AST | int | None = None,
        seen: object = None,
        hint: str | None = None,
    ) -> PolyopError:
        """Return an error about a node or line: the file, the line's number and its text are in it."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.tree.lineno)
        text = self.lines.get(line, "").strip()
        text = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
        where = f"{self.file}:{line}" + (f"\n    {text}" if text else "")
        return kind(f"the function {self.name} written in the Hybrid DSL", rule, seen, where=where, hint=hint)

    def outer(self, name: str) -> Any:
        """Return the value of a name of the closure or the module; raise ``KeyError``."""
        function = self.owner()
        free, cells = function.__code__.co_freevars, function.__closure__ or ()
        if name in free:
            try:
                return cells[free.index(name)].cell_contents
            except ValueError:  # the cell is still empty
                raise KeyError(name) from None
        return function.__globals__[name]


_read: weakref.WeakKeyDictionary[Any, Source] = weakref.WeakKeyDictionary()


def read(function: Callable[..., Any]) -> Source:
    """Return the source of a plain function.

    Raises ``ArgumentTypeError`` for anything but a function made by ``def``, ``UnsupportedError`` for
    one that a decorator wraps, and ``ArgumentValueError`` when Python cannot find its source.
    """
    original = unwrapped(function) if callable(function) else function
    if isinstance(original, FunctionType) and original in _read:
        return _read[original]
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
            "its text is too deep for Python's own parser here",
            "write long expressions in several lines",
        )
        raise ArgumentValueError(subject, rule, where=of_function(original), hint=hint) from None
    if source is None:
        rule = "the text of its file is not what Python runs: the file has changed since it was imported"
        raise ArgumentValueError(subject, rule, where=of_function(original), hint="import it again")
    _read[original] = source
    return source


def is_current(function: FunctionType) -> bool:
    """Whether a function's code is what its file compiles to now; True where that cannot be told."""
    ours = function.__code__
    codes = _codes("".join(linecache.getlines(ours.co_filename, function.__globals__)), ours.co_filename)
    if codes is None:
        return True
    now = codes.get((ours.co_name, ours.co_firstlineno))
    return now is not None and now.co_code == ours.co_code and _plain(now) == _plain(ours)


@functools.lru_cache(maxsize=16)
def _codes(text: str, file: str) -> dict[tuple[str, int], CodeType] | None:
    """Return the functions of a file by name and line; None for one that is more than plain Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the author's file is warned of is between it and Python
            left = [compile(text, file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return None  # a notebook's cell with words of the notebook's own
    found = {}
    while left:
        code = left.pop()
        found[code.co_name, code.co_firstlineno] = code
        left += [c for c in code.co_consts if isinstance(c, CodeType)]
    return found


def _plain(code: CodeType) -> tuple[str, ...]:
    return tuple(repr(c) for c in (*code.co_consts, *code.co_names) if not isinstance(c, CodeType))


def _block(lines: list[str], first: int) -> tuple[ast.Module, int]:
    """Return the definition that begins at a line, parsed, and the line after it; raise ``SyntaxError``.

    It ends where it is whole and what follows is indented no deeper: quicker than by its tokens.
    """

    def depth(line: str) -> int:
        return len(line) - len(line.lstrip())

    def goes_on(line: str) -> bool:
        return depth(line) > depth(lines[first]) or not line.strip() or line.lstrip().startswith("#")

    # a first line that is indented gets an "if" above it: no need to touch the text of strings
    above = "if True:\n" if depth(lines[first]) else ""
    for end in range(first + 1, len(lines)):
        if not goes_on(lines[end]):
            with contextlib.suppress(SyntaxError):  # a decorator alone, or lines of a string
                return ast.parse(above + "".join(lines[first:end])), end
    return ast.parse(above + "".join(lines[first:])), len(lines)


def _parse(function: FunctionType, lines: list[str], first: int) -> Source:
    module, end = _block(lines, first)
    top: ast.AST = module.body[0]
    tree = top.body[0] if isinstance(top, ast.If) else top
    ast.increment_lineno(module, first - isinstance(top, ast.If))
    file = function.__code__.co_filename
    kept = {k + 1: lines[k].rstrip() for k in range(first, end)}
    if not isinstance(tree, ast.FunctionDef):
        raise UnsupportedError(
            f"the loop kernel {function.__name__}", "must be an ordinary def", where=of_function(function)
        )
    source = Source(weakref.ref(function), tree, file, kept)
    arguments = tree.args
    for wrong in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
        if wrong is not None:
            rule = "parameters must be named and positional"
            raise source.error(ArgumentTypeError, rule, wrong, f"{wrong.arg} (* or ** or after *)")
    return source
