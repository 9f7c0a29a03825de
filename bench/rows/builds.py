"""Build a kernel from C source, with an empty cache and with a filled one, each time in a new process."""

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import Measured, Row, Settings, fresh_process, seconds, summary

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


EXTENSION = """
#include <torch/extension.h>
at::Tensor bench_twice(const at::Tensor& x) { return x * SCALE; }
TORCH_LIBRARY(bench_NAME, m) { m.def("twice", &bench_twice); }
"""
LOADED = """
import sys, time, torch, polyop
start = time.perf_counter()
polyop.load_library(sys.argv[1])
print(time.perf_counter() - start)
"""
PEER = """
import pathlib, sys, time, torch.utils.cpp_extension as cpp_extension
name = pathlib.Path(sys.argv[1]).stem
start = time.perf_counter()
cpp_extension.load(name, [sys.argv[1]], extra_cflags=["-O3"], is_python_module=False)
print(time.perf_counter() - start)
"""


@functools.cache
def extension_builds() -> tuple[Measured, Measured]:
    """Return what two PyTorch extensions cost, one after the other, in build caches that begin empty.

    Both rows read one measurement: it takes minutes, whatever the settings are.
    """
    times: dict[str, tuple[list[float], list[float]]] = {"first": ([], []), "second": ([], [])}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(2):
            env = {
                **os.environ,
                "XDG_CACHE_HOME": str(Path(folder, f"cache_{turn}")),
                "TORCH_EXTENSIONS_DIR": str(Path(folder, f"peer_{turn}")),
            }
            for name, (ours, peer) in times.items():
                file = Path(folder, f"{name}_{turn}.cpp")
                file.write_text(EXTENSION.replace("SCALE", str(2 + turn)).replace("NAME", file.stem))
                ours.append(fresh_process(LOADED, str(file), env=env))
                peer.append(fresh_process(PEER, str(file), env=env))
    return summary(*times["first"]), summary(*times["second"])


ROWS = [
    Row("PyTorch extension, first build", "cpp_extension.load", None, lambda _: extension_builds()[0]),
    Row("PyTorch extension, second build", "cpp_extension.load", None, lambda _: extension_builds()[1]),
    Row("C kernel, cold build", "-", 0.5, build("first", warm=False), "s"),
    Row("C kernel, from the cache", "-", 0.010, build("second", warm=True), "s"),
    Row("C kernel, from the cache, first of a process", "-", 0.010, build("first", warm=True), "s"),
]
