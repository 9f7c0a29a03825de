"""Making a kernel from C source: the first time, and with the cache filled. Each in a new process."""

import os
import tempfile

from measure import Measured, Row, Settings, fresh_process, seconds

CODE = """
import time, polyop
kernel = '''#include <stdint.h>
int bench_ok(int n, void **p, int *r, int64_t **s, const char **t, void *q, void *e) { return 0; }'''
start = time.perf_counter()
polyop.source(function="bench_ok", language="c", code=kernel)
print(time.perf_counter() - start)
"""


def build(*, warm: bool, settings: Settings) -> Measured:
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(settings.processes):
            env = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, "warm" if warm else str(turn))}
            if warm and turn == 0:
                fresh_process(CODE, env=env)
            times.append(fresh_process(CODE, env=env))
    return seconds(times)


ROWS = [
    Row("C kernel, cold build", "-", 0.5, lambda settings: build(warm=False, settings=settings), "s"),
    Row("C kernel, warm build", "-", 0.010, lambda settings: build(warm=True, settings=settings), "s"),
]
