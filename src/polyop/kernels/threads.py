"""Set and get how many threads the loops of kernels run on."""

from __future__ import annotations

import operator

from .. import _core
from ..core.errors import ArgumentTypeError, ArgumentValueError

_RULE = f"must be a whole number from 1 to {_core.MOST_THREADS}"


def set_num_threads(count: int) -> None:
    """Let the loop of a kernel use up to ``count`` threads from now on, in the whole process.

    It overrides POLYOP_NUM_THREADS and OMP_NUM_THREADS. More threads than CPUs are allowed, and seldom
    faster. Raises ``ArgumentTypeError`` or ``ArgumentValueError`` for any other value.

    >>> before = get_num_threads()
    >>> set_num_threads(2)
    >>> get_num_threads()
    2
    >>> set_num_threads(before)
    """
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise ArgumentTypeError("set_num_threads", _RULE, repr(count))
    number = operator.index(count)
    if not 1 <= number <= _core.MOST_THREADS:
        raise ArgumentValueError("set_num_threads", _RULE, number)
    _core.set_thread_count(number)


def get_num_threads() -> int:
    """Return how many threads the loop of a kernel may use.

    The first of these that is set: the number given to ``set_num_threads``, POLYOP_NUM_THREADS, the first
    number of OMP_NUM_THREADS, the number of CPUs that the process may use.

    The environment is ``os.environ``, read once, when the number is first needed. What libraries set
    in the C environment of the process does not count: MindSpore sets OMP_NUM_THREADS there when it is
    imported. A child process inherits such a variable unless it is started with
    ``env=dict(os.environ)``. Raises ``ArgumentValueError`` if the variable that counts is no such
    number; kernels then use the number of CPUs.
    """
    unusable = _core.unusable_variable()
    if unusable is not None:
        variable, text = unusable
        hint = "set it right or unset it before the process starts, or call set_num_threads"
        raise ArgumentValueError(variable, _RULE, repr(text), hint=hint)
    return _core.thread_count()
