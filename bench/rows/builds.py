"""Build a kernel from C source, with an empty cache and with a filled one, each time in a new process."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import Measured, Row, Settings, fresh_process, seconds

CODE = """
import time, polyop
def seconds(name):
    code = 'int %s(int n, void **p, int *r, void *s, const char **t, void *q, void *e) { return 0; }' % name
    start = time.perf_counter()
    polyop.source(function=name, language="c", code=code)
    return time.perf_counter() - start
first, second = seconds("bench_first"), seconds("bench_second")
print(PRINTED)
"""


def build(printed: str, *, warm: bool) -> Callable[[Settings], Measured]:
    def measure(settings: Settings) -> Measured:
        times = []
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(settings.processes + warm):
                env = {**os.environ, "XDG_CACHE_HOME": str(Path(folder, "warm" if warm else str(turn)))}
                times.append(fresh_process(CODE.replace("PRINTED", printed), env=env))
        return seconds(times[warm:])

    return measure


ROWS = [
    Row("C kernel, cold build", "-", 0.5, build("first", warm=False), "s"),
    Row("C kernel, from the cache", "-", 0.010, build("second", warm=True), "s"),
    Row("C kernel, from the cache, first of a process", "-", 0.010, build("first", warm=True), "s"),
]
