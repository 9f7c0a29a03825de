"""Scratch memory of kernels: a thread keeps it for its next kernel, within limits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from polyop.binary.open import open_library

ROOT = Path(__file__).resolve().parents[2]
LEAST, MOST, BLOCKS = 1 << 16, 64 << 20, 16  # kMinCached, kMaxCached, kMaxBlocks of csrc/scratch.cc

SOURCE = r"""
#include <string.h>
#include "polyop/scratch.h"
void* take(int64_t bytes) { return polyop_scratch(bytes); }
void give(void* memory) { polyop_release(memory); }
void fill(void* memory, int64_t bytes) { memset(memory, 0xa5, (size_t)bytes + 64); }
int64_t turns(int64_t count, int64_t first, int64_t step) {
  int64_t missing = 0;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t bytes = first + k * step;
    char* one = polyop_scratch(bytes);
    char* other = polyop_scratch(bytes / 2);
    if (!one || !other) ++missing;
    if (one) memset(one, 1, (size_t)bytes + 64);
    if (other) memset(other, 2, (size_t)(bytes / 2) + 64);
    if (one && other && (one[0] != 1 || one[bytes + 63] != 1)) ++missing;
    polyop_release(k % 2 ? one : other);
    polyop_release(k % 2 ? other : one);
  }
  return missing;
}
"""


def build(folder: Path, *flags: str) -> Path:
    (folder / "scratch.c").write_text(SOURCE)
    library = folder / "scratch.so"
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", *flags]
    subprocess.run(
        [*compiler, "-shared", "-fPIC", f"-I{ROOT / 'include'}", folder / "scratch.c", "-o", library],
        check=True,
    )
    return library


def typed(path: Path) -> Any:
    library = ctypes.CDLL(str(path))
    library.take.restype, library.take.argtypes = ctypes.c_void_p, [ctypes.c_int64]
    library.give.restype, library.give.argtypes = None, [ctypes.c_void_p]
    library.fill.restype, library.fill.argtypes = None, [ctypes.c_void_p, ctypes.c_int64]
    library.turns.restype, library.turns.argtypes = ctypes.c_int64, [ctypes.c_int64] * 3
    return library


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("scratch"))


@pytest.fixture(scope="session")
def opened(built: Path) -> Any:
    open_library(built)
    return typed(built)


def in_a_thread(work: Callable[[], Any]) -> Any:
    """Return the result of ``work`` in a new thread, which has no memory kept yet."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


needs_frees = pytest.mark.skipif(
    bool(os.environ.get("POLYOP_SANITIZED")), reason="AddressSanitizer keeps what is freed for a while"
)


@pytest.mark.parametrize("size", [-5, 0, 1, LEAST - 1, LEAST, 3 * LEAST + 7, MOST, MOST + 1])
def test_memory_is_aligned_and_larger_than_asked_for(opened: Any, size: int) -> None:
    for _ in range(3):
        memory = opened.take(size)
        assert memory % 64 == 0
        opened.fill(memory, max(size, 0))
        opened.give(memory)


def test_a_thread_reuses_memory_that_it_gave_back(opened: Any) -> None:
    def work() -> list[int]:
        addresses = []
        for size in (
            2 * LEAST,
            2 * LEAST,
            LEAST + 1,
        ):  # the last one fits into the block, and needs over half
            addresses.append(opened.take(size))
            opened.give(addresses[-1])
        return addresses

    first, second, third = in_a_thread(work)
    assert first == second == third


def test_memory_in_use_is_not_shared(opened: Any) -> None:
    def work() -> int:
        first = [opened.take(LEAST + k) for k in range(2 * BLOCKS)]
        for memory in first:
            opened.give(memory)
        again = [opened.take(LEAST + k) for k in range(2 * BLOCKS)]
        for k, memory in enumerate(again):
            opened.fill(memory, LEAST + k)
        ends = sorted((memory, memory + LEAST + k + 64) for k, memory in enumerate(again))
        for memory in again:
            opened.give(memory)
        return sum(end > start for (_, end), (start, _) in pairwise(ends))

    assert in_a_thread(work) == 0


def test_a_large_block_is_not_kept_for_a_little(opened: Any) -> None:
    def work() -> tuple[int, int]:
        large = opened.take(8 * LEAST)
        opened.give(large)
        little = opened.take(LEAST)
        opened.give(little)
        again = opened.take(8 * LEAST)
        opened.give(again)
        return large, again

    large, again = in_a_thread(work)
    assert large == again


@pytest.mark.parametrize("size", [2**46, 2**62, 2**63 - 1])
def test_without_memory_take_returns_null(opened: Any, size: int) -> None:
    if os.environ.get("POLYOP_SANITIZED"):
        pytest.skip("AddressSanitizer ends the process for such sizes")
    assert opened.take(size) is None
    opened.give(None)
    assert opened.turns(3, LEAST, LEAST) == 0


def test_memory_is_given_back_in_another_thread(opened: Any) -> None:
    sizes = [LEAST // 2, 2 * LEAST, 1 << 20, MOST + 1]
    taken = in_a_thread(lambda: [opened.take(size) for size in sizes])
    for memory, size in zip(taken, sizes, strict=True):
        opened.fill(memory, size)
        opened.give(memory)
    assert opened.turns(5, LEAST, 999) == 0


def test_concurrent_threads(opened: Any) -> None:
    missing: list[int] = []
    rows = [(200, LEAST - 100 * k, 1000 + k) for k in range(6)]
    threads = [threading.Thread(target=lambda row=row: missing.append(opened.turns(*row))) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missing == [0] * 6


START = """
import ctypes, os, sys, threading
path = sys.argv[1]
lib = ctypes.CDLL(path)
lib.take.restype, lib.take.argtypes = ctypes.c_void_p, [ctypes.c_int64]
lib.give.restype, lib.give.argtypes = None, [ctypes.c_void_p]
lib.turns.restype, lib.turns.argtypes = ctypes.c_int64, [ctypes.c_int64] * 3
from polyop.binary.open import open_library
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
"""


def run(built: Path, code: str) -> None:
    """Run code in a new process. It must print "right"."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "MALLOC_CHECK_": "3"}
    done = subprocess.run(
        [sys.executable, "-c", START + code, built],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "right"), done.stderr


def test_a_library_that_something_else_opened(built: Path) -> None:
    run(built, "assert lib.turns(50, 1000, 7777) == 0\nprint('right')")


@pytest.mark.parametrize("size", [1, 100000, 100_000_000])
def test_a_library_that_is_opened_while_its_kernel_runs(built: Path, size: int) -> None:
    """Memory that came from the system is given back to polyop."""
    run(
        built,
        f"""
blocks = [lib.take({size}) for _ in range(5)]
open_library(path)
for memory in blocks: lib.give(memory)
assert lib.turns(50, 1000, 7777) == 0
print("right")
""",
    )


def test_a_library_that_is_opened_in_several_threads(built: Path) -> None:
    run(
        built,
        """
results = []
def work(k):
    open_library(path)
    results.append(lib.turns(100, 60000, 500 + k))
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert results == [0] * 8, results
print("right")
""",
    )


@pytest.mark.slow
@needs_frees
@pytest.mark.parametrize(
    ("first", "step"), [(1 << 20, 4096), (MOST // 3, 1 << 16), (MOST - (1 << 20), 1 << 15)]
)
def test_memory_kept_for_many_sizes_has_a_limit(built: Path, first: int, step: int) -> None:
    run(
        built,
        f"""
open_library(path)
before = resident()
assert lib.turns(60, {first}, {step}) == 0
assert resident() - before < {2 * MOST}
print("right")
""",
    )


@needs_frees
def test_a_thread_that_ends_frees_its_memory(built: Path) -> None:
    run(
        built,
        """
open_library(path)
def work():
    thread = threading.Thread(target=lambda: lib.turns(2, 8 << 20, 0))
    thread.start()
    thread.join()
work()
before = resident()
for _ in range(40): work()
assert resident() - before < 64 << 20, resident() - before  # of 40 * 12 MB
print("right")
""",
    )


def test_a_forked_process_has_its_own(built: Path) -> None:
    run(
        built,
        """
open_library(path)
held = lib.take(100000)
assert lib.turns(5, 100000, 1) == 0
child = os.fork()
if child == 0:
    lib.give(held)
    os._exit(0 if lib.turns(20, 90000, 3000) == 0 else 3)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
lib.give(held)
assert lib.turns(20, 90000, 3000) == 0
print("right")
""",
    )
