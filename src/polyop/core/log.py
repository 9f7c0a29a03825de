"""Loggers of the standard library under ``polyop.*``; silent unless the program or POLYOP_LOG asks for them.

``polyop.build``  what was compiled, why it was not in the cache, and how long it took
``polyop.loops``  which passes ran over a loop kernel, and how long

Messages have the level INFO; details, such as what was found in the cache, have DEBUG.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

VARIABLE = "POLYOP_LOG"
"""A level: with POLYOP_LOG=info the messages go to stderr."""


def listener(name: str, *, detail: bool = False) -> logging.Logger | None:
    """Return the logger ``polyop.<name>`` if somebody reads its messages, else None.

    A program that has not imported ``logging`` has set up no logger: then it is not imported here either,
    because that takes longer than a look-up in the cache.

    >>> import logging
    >>> logging.getLogger("polyop.example").setLevel(logging.INFO)
    >>> listener("example").name, listener("example", detail=True)
    ('polyop.example', None)
    """
    if os.environ.get(VARIABLE):
        _to_stderr()
    module = sys.modules.get("logging")
    if module is None:
        return None
    logger: logging.Logger = module.getLogger(f"polyop.{name}")
    return logger if logger.isEnabledFor(module.DEBUG if detail else module.INFO) else None


@functools.cache
def _to_stderr() -> None:
    """Write the messages to stderr, from the level that the variable names. Raises ``ArgumentValueError``.

    Where the program has handlers of its own, these get the messages, and nothing is written twice.
    """
    import logging

    level = os.environ[VARIABLE].upper()
    if level not in ("DEBUG", "INFO"):
        from .errors import ArgumentValueError

        raise ArgumentValueError(VARIABLE, "must be info or debug", repr(os.environ[VARIABLE]))
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    handler.addFilter(lambda _: not logging.getLogger().handlers)
    logger = logging.getLogger("polyop")
    logger.addHandler(handler)
    logger.setLevel(level)
