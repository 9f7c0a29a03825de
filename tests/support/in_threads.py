"""Run a function in several threads at the same time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

THREADS = 8


def in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Run ``work(number)`` in threads that start together and switch often; raise what one raised."""
    problems: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as problem:
            problems.append(problem)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if problems:
        raise problems[0]
