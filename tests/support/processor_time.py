"""Processor time of a block: what a limit against a hang is compared with."""

import contextlib
import gc
import time
import types


@contextlib.contextmanager
def seconds_within(limit, what="it"):
    """Fail when the block takes more than `limit` seconds of this thread's processor; yield `seconds`, set at its end.

    The garbage collector is off: with every framework imported, one collection takes seconds, in whatever test it
    falls.
    """
    spent, collects = types.SimpleNamespace(seconds=0.0), gc.isenabled()
    gc.disable()
    start_time = time.thread_time()
    try:
        yield spent
    finally:
        spent.seconds = time.thread_time() - start_time
        if collects:
            gc.enable()
    assert spent.seconds < limit, f"{what} took {spent.seconds:.1f} s, more than {limit} s"
