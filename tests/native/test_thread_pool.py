"""The thread pool of loops: parts, pieces, results, concurrent callers, thread counts."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from polyop import _core
from polyop.binary.open import open_library
from polyop.core.errors import ArgumentTypeError, ArgumentValueError
from polyop.kernels.threads import get_num_threads, set_num_threads

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LARGEST = 2**63 - 1


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("threads") / "loops.so"
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        [*compiler, "-shared", "-fPIC", f"-I{ROOT / 'include'}", HERE / "threads_kernels.c", "-o", library],
        check=True,
    )
    return library


@pytest.fixture(scope="session")
def loops(built: Path) -> ctypes.CDLL:
    open_library(built)
    return ctypes.CDLL(str(built))


@pytest.fixture(autouse=True)
def _same_count() -> Iterator[None]:
    before = get_num_threads()
    yield
    set_num_threads(before)


def traced(
    loops: ctypes.CDLL, begin: int, end: int, chunk: int, threads: int
) -> tuple[int, list[tuple[int, ...]]]:
    """Return a loop's result, and (begin, end, thread, the system's thread id) of each call of its body."""
    rows, calls = np.zeros((4096, 4), np.int64), ctypes.c_int()
    used = loops.traced(
        ctypes.c_int64(begin),
        ctypes.c_int64(end),
        ctypes.c_int64(chunk),
        threads,
        ctypes.c_void_p(rows.ctypes.data),
        ctypes.byref(calls),
    )
    return used, [tuple(int(n) for n in row) for row in rows[: calls.value]]


def sums(loops: ctypes.CDLL, x: np.ndarray, chunk: int, threads: int) -> list[float]:
    partial = np.zeros(64)
    used = loops.sums(
        ctypes.c_void_p(x.ctypes.data),
        ctypes.c_int64(x.size),
        ctypes.c_int64(chunk),
        threads,
        ctypes.c_void_p(partial.ctypes.data),
    )
    assert not partial[used:].any()
    return [float(value) for value in partial[:used]]


# --- parts


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [1, 2, 6, 7, 100])
def test_static_parts(loops: ctypes.CDLL, count: int, threads: int, size: int) -> None:
    set_num_threads(count)
    expected_values = [part for part in np.array_split(np.arange(-3, size - 3), threads) if len(part)]
    used, calls = traced(loops, -3, size - 3, 0, threads)
    assert used == len(expected_values)
    assert sorted(call[:3] for call in calls) == [
        (part[0], part[-1] + 1, number) for number, part in enumerate(expected_values)
    ]
    assert len({call[3] for call in calls}) <= count


@pytest.mark.parametrize("chunk", [1, 3, 100, LARGEST])
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("size", [1, 6, 100])
def test_pieces(loops: ctypes.CDLL, chunk: int, threads: int, size: int) -> None:
    set_num_threads(3)
    used, calls = traced(loops, 10, 10 + size, chunk, threads)
    bounds = [*range(10, 10 + size, chunk), 10 + size]
    assert sorted(call[:2] for call in calls) == list(pairwise(bounds))
    assert {call[2] for call in calls} <= set(range(used))
    assert used <= min(threads, 3)
    assert len({call[2:] for call in calls}) <= len(
        {call[2] for call in calls}
    )  # each number belongs to one thread


@pytest.mark.parametrize("chunk", [0, 4])
@pytest.mark.parametrize(("begin", "end"), [(0, 0), (5, 5), (5, 3)])
def test_an_empty_range_makes_no_call(loops: ctypes.CDLL, begin: int, end: int, chunk: int) -> None:
    assert traced(loops, begin, end, chunk, 4) == (0, [])


@pytest.mark.parametrize("chunk", [0, 7, LARGEST])
def test_the_ends_of_the_numbers(loops: ctypes.CDLL, chunk: int) -> None:
    set_num_threads(4)
    _, calls = traced(loops, LARGEST - 40, LARGEST, chunk, 4)
    assert min(call[0] for call in calls) == LARGEST - 40
    assert max(call[1] for call in calls) == LARGEST
    assert sum(call[1] - call[0] for call in calls) == 40


@pytest.mark.parametrize("threads", [0, -1])
def test_as_many_as_allowed(loops: ctypes.CDLL, threads: int) -> None:
    set_num_threads(5)
    assert traced(loops, 0, 100, 0, threads)[0] == 5
    assert loops.allowed() == 5


def test_parts_run_at_the_same_time(loops: ctypes.CDLL) -> None:
    set_num_threads(4)
    assert loops.meets(2) == 1
    assert loops.meets(4) == 1
    set_num_threads(1)
    assert traced(loops, 0, 4, 0, 4)[0] == 4  # this thread runs all four parts
    assert {call[3] for call in traced(loops, 0, 4, 0, 4)[1]} == {threading.get_native_id()}


@pytest.mark.parametrize("at", [0, 5, 49, 50, 99])
@pytest.mark.parametrize("threads", [2, 3])
def test_pieces_of_a_slow_thread_are_taken_by_others(loops: ctypes.CDLL, threads: int, at: int) -> None:
    set_num_threads(threads)
    chunk, all_of_them = ctypes.c_int64(5), ctypes.c_int64(100)
    assert loops.waits(all_of_them, chunk, threads, ctypes.c_int64(at)) == 1


@pytest.mark.parametrize(("trips", "expected"), [(64, 0), (511, 0), (512, 64), (5000, 576), (2**40, 2**37)])
def test_pieces_of_lanes_are_whole_vectors_or_whole_parts(
    loops: ctypes.CDLL, trips: int, expected: int
) -> None:
    loops.lanes.restype = ctypes.c_int64
    assert loops.lanes(ctypes.c_int64(trips), 2) == expected


@pytest.mark.parametrize("trips", [1, 7, 8, 9, 100, 2**40])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_pieces_cover_a_loop_and_are_at_most_four_for_each_thread(
    loops: ctypes.CDLL, trips: int, parts: int
) -> None:
    loops.piece.restype = ctypes.c_int64
    piece = loops.piece(ctypes.c_int64(trips), parts)
    assert piece >= 1
    assert -(-trips // piece) <= 4 * parts


def test_a_thread_begins_with_its_part_of_the_range(loops: ctypes.CDLL) -> None:
    set_num_threads(2)
    _, rows = traced(loops, 0, 1000, 10, 2)
    first = {thread: begin for begin, _, thread, _ in reversed(rows)}
    assert first.get(0, 0) < 500  # or no piece, or a later one, when the other thread was faster
    assert first.get(1, 500) >= 500


def test_a_static_sum_depends_on_the_parts_alone(loops: ctypes.CDLL) -> None:
    x = np.random.default_rng(1).standard_normal(10_007)
    expected_values = []
    for part in np.array_split(x, 6):
        total = 0.0
        for value in part:
            total += value
        expected_values.append(total)
    for count in (1, 2, 6, 9):
        set_num_threads(count)
        for _ in range(50):
            assert sums(loops, x, 0, 6) == expected_values


def test_nested_loops_run_in_their_thread(loops: ctypes.CDLL) -> None:
    set_num_threads(4)
    for inner in (3, 100):
        rows = np.zeros((4, 4, 4), np.int64)
        assert loops.nested(ctypes.c_int64(inner), ctypes.c_void_p(rows.ctypes.data)) == 4
        parts = [(part[0], part[-1] + 1) for part in np.array_split(np.arange(inner), 3)]
        for outer in rows:
            assert [tuple(row) for row in outer[:3, :2]] == parts
            assert len(set(outer[:3, 3])) == 1


def test_concurrent_callers(loops: ctypes.CDLL) -> None:
    set_num_threads(3)
    x = np.arange(5000.0)
    expected_values = [float(part.sum()) for part in np.array_split(x, 3)]
    problems: list[object] = []
    barrier = threading.Barrier(4)

    def call() -> None:
        barrier.wait()
        for turn in range(2000):
            if turn % 2 == 0 and (result := sums(loops, x, 0, 3)) != expected_values:
                problems.append(result)
            elif turn % 2 and sum(sums(loops, x, 100, 3)) != sum(expected_values):
                problems.append(turn)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not problems


def test_each_library_has_its_own_hooks(built: Path, tmp_path: Path) -> None:
    others = ctypes.CDLL(shutil.copy(built, tmp_path / "global.so"), ctypes.RTLD_GLOBAL)
    own = Path(shutil.copy(built, tmp_path / "own.so"))
    open_library(own)
    assert others.allowed() == 0
    assert ctypes.CDLL(str(own)).allowed() == get_num_threads()


def test_a_library_that_polyop_did_not_open(built: Path, tmp_path: Path) -> None:
    copy = ctypes.CDLL(shutil.copy(built, tmp_path / "other.so"))
    assert copy.allowed() == 0
    assert traced(copy, 0, 10, 0, 0)[0] == 1
    used, calls = traced(copy, 0, 10, 0, 3)
    assert used == 3
    assert [call[:3] for call in calls] == [(0, 4, 0), (4, 7, 1), (7, 10, 2)]
    assert [call[:3] for call in traced(copy, 0, 10, 4, 3)[1]] == [(0, 4, 0), (4, 8, 0), (8, 10, 0)]


# --- how many threads


@pytest.mark.parametrize("count", [0, -1, 1025, 2**40])
def test_counts_out_of_range(count: int) -> None:
    with pytest.raises(
        ArgumentValueError, match=rf"set_num_threads: must be a whole number from 1 to 1024, but got {count}$"
    ):
        set_num_threads(count)


@pytest.mark.parametrize("count", [True, 2.0, "2", None])
def test_counts_of_another_type(count: object) -> None:
    before = get_num_threads()
    with pytest.raises(
        ArgumentTypeError,
        match=rf"set_num_threads: must be a whole number from 1 to 1024, but got {count!r}$",
    ):
        set_num_threads(count)  # type: ignore[arg-type]
    assert get_num_threads() == before


def test_a_numpy_integer_is_a_count() -> None:
    set_num_threads(np.int64(3))  # type: ignore[arg-type]
    assert _core.thread_count() == 3
