"""Every error polyop raises, in one shape: subject, rule, what was seen, where the other half is.

The classes also derive from the built-in exception that MindSpore and NumPy programs
expect in the same place, so ``except TypeError`` keeps working.

>>> from polyop.core.errors import ArgumentTypeError
>>> print(ArgumentTypeError("demo::f: argument x", "must be a tensor", "int", where="ops.py:3"))
demo::f: argument x: must be a tensor, but got int
  defined at ops.py:3
"""

from __future__ import annotations

from collections.abc import Callable

_adapters: list[Callable[[PolyopError], None]] = []


def adapt_with(adapt: Callable[[PolyopError], None]) -> None:
    """Let a framework change errors as they are made: its compiler hides exceptions of other classes."""
    _adapters.append(adapt)


class PolyopError(Exception):
    """The base of all errors raised by polyop."""

    def __init__(
        self,
        subject: object,
        rule: str,
        seen: object = None,
        *,
        where: object = None,
        hint: str | None = None,
    ) -> None:
        """Join the four parts into a message; ``hint`` says what to do instead."""
        text = f"{subject}: {rule}"
        if seen is not None:
            text += f", but got {_short(str(seen))}"
        if where:
            text += f"\n  defined at {where}"
        if hint:
            text += f"\n  {hint}"
        super().__init__(printable(text))
        for adapt in _adapters:
            adapt(self)


def printable(text: str) -> str:
    """Return a text that UTF-8 can hold: what is no character, as in odd file names, becomes an escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _short(seen: str) -> str:
    return seen if len(seen) <= 2000 else f"{seen[:2000]}... ({len(seen)} characters)"


class ArgumentTypeError(PolyopError, TypeError):
    """An argument of the wrong type, dtype or device."""


class ArgumentValueError(PolyopError, ValueError):
    """An argument of the right type with a value that is not allowed."""


class SchemaError(PolyopError, ValueError):
    """A schema that cannot be parsed or breaks a rule of the grammar."""


class InformationError(PolyopError, ValueError):
    """Operator information that contradicts itself, the function or an earlier registration."""


class InferError(PolyopError, ValueError):
    """An infer rule that raised, or returned something that is no shape or dtype."""


class LibraryError(PolyopError, RuntimeError):
    """A shared library that cannot be opened or does not offer what is asked of it."""


class BuildError(PolyopError, RuntimeError):
    """A compiler that is missing, or failed; its own message is part of the text."""


class CacheError(PolyopError, RuntimeError):
    """A build cache that cannot be read or written."""


class KernelError(PolyopError, RuntimeError):
    """A kernel that returned a non-zero code, threw, or gave a result other than declared."""


class NoKernelError(PolyopError, TypeError):
    """No kernel of the operator takes these inputs; the text lists each refusal."""


class GradientError(PolyopError, RuntimeError):
    """A gradient that was asked for and does not exist, or a rule that broke its contract."""


class HostError(PolyopError, RuntimeError):
    """A framework that is missing, too old, or mixed with another in one call."""


class UnsupportedError(PolyopError, NotImplementedError):
    """Something that polyop recognises and does not do; the text says what to use instead."""


class UninitialisedWarning(UserWarning):
    """A loop kernel reads an element of an output that it has not written: it starts as zeros."""


class FallbackWarning(UserWarning):
    """A slower way was taken than the one asked for; said once, and kept for ``explain``."""
