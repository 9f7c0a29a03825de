"""All errors of polyop. Each has a subject, a rule, what was seen, the place of a definition, and a hint.

The classes also derive from the built-in exception that MindSpore and NumPy programs expect in the same
place, so ``except TypeError`` keeps working.

>>> from polyop.core.errors import ArgumentTypeError
>>> print(ArgumentTypeError("demo::f: argument x", "must be a tensor", "int", where="ops.py:3"))
demo::f: argument x: must be a tensor, but got int
  defined at ops.py:3
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from .derived_names import in_words

Error = TypeVar("Error", bound="PolyopError")

_adapters: list[Callable[[PolyopError], None]] = []


def adapt_with(adapt: Callable[[PolyopError], None]) -> None:
    """Call ``adapt`` with each new error. PyTorch's host needs it: its compiler hides unknown exceptions."""
    _adapters.append(adapt)


class PolyopError(Exception):
    """The base class of all errors that polyop raises."""

    in_words: ClassVar[bool] = True
    """Whether the message has words in place of names that polyop has derived."""

    def __init__(
        self,
        subject: object,
        rule: str | None = None,
        seen: object = None,
        *,
        where: object = None,
        hint: str | None = None,
    ) -> None:
        """Join the parts into a message. ``seen`` is the wrong value, ``where`` the place of a definition.

        ``hint`` says what to do. Without a rule, ``subject`` is the whole message: pickle and Paddle make
        errors again in this way.
        """
        text = f"{subject}: {rule}" if rule is not None else str(subject)
        if seen is not None:
            text += f", but got {_short(str(seen))}"
        if where:
            text += f"\n  defined at {where}"
        if hint:
            text += f"\n  {hint}"
        super().__init__(printable(in_words(text) if self.in_words else text))
        self.subject, self.rule, self.hint = str(subject), rule, hint  # texts: errors are pickled
        self.seen = None if seen is None else str(seen)
        for adapt in _adapters:
            adapt(self)


def about(subject: object, problem: Error, where: object = None) -> Error:
    """Return the same error about another subject, such as the argument of a call."""
    return type(problem)(subject, problem.rule, problem.seen, where=where, hint=problem.hint)


def printable(text: str) -> str:
    r"""Return the text with everything escaped that a terminal would not show as a character of the text.

    Those are control characters but newlines and tabs, characters that change the direction of others, and
    what UTF-8 cannot hold, such as bytes in odd file names. They can come with any name out of a file, and
    would colour a terminal, hide lines, or write commands into it.

    >>> printable("a\x1b[31mb\u202e")
    'a\\x1b[31mb\\u202e'
    """
    return "".join(c if c in "\n\t" else one_line(c) for c in text) if _has_odd(text) else text


def one_line(text: str) -> str:
    r"""Return the text with newlines and tabs escaped too: a name out of a file must make no line of its own.

    >>> one_line("a\nb")
    'a\\nb'
    """
    if not _has_odd(text):
        return text
    return "".join(c if _is_plain(c) else c.encode("unicode_escape").decode() for c in text)


def _has_odd(text: str) -> bool:
    return not (text.isprintable() or all(map(_is_plain, text)))


def _is_plain(character: str) -> bool:
    is_space = character.isspace() and character >= "\xa0" and character not in "\u2028\u2029"
    return character.isprintable() or is_space


def _short(seen: str) -> str:
    return seen if len(seen) <= 2000 else f"{seen[:2000]}... ({len(seen)} characters)"


class ArgumentTypeError(PolyopError, TypeError):
    """An argument of the wrong type, dtype or device."""


class NoDtypeError(ArgumentTypeError):
    """A framework has no tensors of a dtype, which is ``seen``."""


class ArgumentValueError(PolyopError, ValueError):
    """An argument of the right type whose value is not allowed."""


class SchemaError(PolyopError, ValueError):
    """A schema that cannot be parsed, or that breaks a rule."""

    in_words = False  # it is about names


class InformationError(PolyopError, ValueError):
    """Operator information that contradicts itself, the function, or an earlier registration."""


class InferError(PolyopError, ValueError):
    """An infer rule that raised, or that returned something other than shapes or dtypes."""


class LibraryError(PolyopError, RuntimeError):
    """A shared library that cannot be opened, or that lacks a function."""


class BuildError(PolyopError, RuntimeError):
    """A compiler that is missing, or that failed; the text includes its message."""

    in_words = False


class CacheError(PolyopError, RuntimeError):
    """A build cache that cannot be read or written, or that other users may change."""


class KernelError(PolyopError, RuntimeError):
    """A kernel that returned a non-zero code, threw, or whose result is not the declared one."""


class NoKernelError(PolyopError, TypeError):
    """No kernel of the operator takes these inputs; the text has the reason of each kernel."""


class ScheduleError(PolyopError, ValueError):
    """A step of a schedule that is not legal for the loops of its kernel; nothing was compiled."""


class GradientError(PolyopError, RuntimeError):
    """A gradient that does not exist, or a gradient rule that broke its contract."""


class HostError(PolyopError, RuntimeError):
    """A framework that is missing or too old, or two frameworks in one call."""


class UnsupportedError(PolyopError, NotImplementedError):
    """A feature that polyop recognises but does not support; the text says what else to use, if anything."""


class UninitialisedWarning(UserWarning):
    """A loop kernel reads an element of an output before writing it; the output starts as zeros."""


class FallbackWarning(UserWarning):
    """polyop falls back to slower code. Each reason is warned about once, and shown by ``explain``."""

    def __init__(self, text: object = "") -> None:
        """Take the text, with words in place of names that polyop has derived."""
        super().__init__(in_words(str(text)))
