"""The thread pool of loops in whole processes: environment, fork, exit, races."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from threads_sources import FLAGS, THREADS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SANITIZED = "POLYOP_SANITIZED" in os.environ


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("threads") / "loops.so"
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        [*compiler, "-shared", "-fPIC", f"-I{ROOT / 'include'}", HERE / "threads_kernels.c", "-o", library],
        check=True,
    )
    return library


# The beginning of the code in each new interpreter. `many(n)` runs n loops, and raises when a result is wrong.
PRELUDE = """
import ctypes, os, signal, sys, threading, time, warnings
import numpy as np
import polyop
from polyop import _core
from polyop.binary.open import open_library
from polyop.kernels.threads import get_num_threads, set_num_threads
from pathlib import Path
warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads
LOOPS = os.environ["LOOPS"]
open_library(Path(LOOPS))
loops = ctypes.CDLL(LOOPS)
x, partial = np.arange(1000.0), np.zeros(64)
def many(turns, threads=3):
    for _ in range(turns):
        mine = np.zeros(64)
        used = loops.sums(ctypes.c_void_p(x.ctypes.data), ctypes.c_int64(1000), ctypes.c_int64(0), threads,
                          ctypes.c_void_p(mine.ctypes.data))
        assert used == threads and mine.sum() == 499500, (used, mine)
def workers():
    statuses = {}
    for task in os.listdir("/proc/self/task"):
        name = open(f"/proc/self/task/{task}/comm").read().strip()
        if name.startswith("polyop-"):
            statuses[name] = open(f"/proc/self/task/{task}/status").read()
    return statuses
def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            work()
        except BaseException as problem:
            print(repr(problem), file=sys.stderr, flush=True)
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
signal.alarm(120)  # a test that hangs fails
"""


@pytest.fixture
def child(built: Path, run_python: Callable[[str], str], monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs code after the prelude in a new interpreter, with variables set."""
    monkeypatch.setenv("LOOPS", str(built))
    monkeypatch.delenv("POLYOP_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def run(code: str, **variables: str) -> str:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return run_python(PRELUDE + code)

    return run


# --- the environment


@pytest.mark.slow(5)
@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({"POLYOP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "4"}, 4),
        ({"OMP_NUM_THREADS": " 5 , 2"}, 5),
        ({"POLYOP_NUM_THREADS": "3", "OMP_NUM_THREADS": "4"}, 3),
        ({"POLYOP_NUM_THREADS": "", "OMP_NUM_THREADS": "4"}, 4),
        ({"POLYOP_NUM_THREADS": "1024"}, 1024),
    ],
)
def test_counts_from_the_environment(child, variables: dict[str, str], count: int) -> None:
    code = "print(get_num_threads(), loops.allowed())\nset_num_threads(2)\nprint(get_num_threads())"
    assert child(code, **variables).split() == [str(count), str(count), "2"]


def test_without_a_variable_the_cpus_count(child) -> None:
    code = """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
in_child(lambda: sys.stdout.write(f"{get_num_threads()} ") and sys.stdout.flush())
"""
    assert child("print(get_num_threads() <= len(os.sched_getaffinity(0)))") == "True\n"
    assert child(code) == "1 "


def test_a_variable_that_a_library_sets_is_not_the_users(
    built: Path, run_python: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPS", str(built))
    monkeypatch.delenv("POLYOP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    before = """
import ctypes
ctypes.CDLL(None).setenv(b"POLYOP_NUM_THREADS", b"7", 1)
ctypes.CDLL(None).setenv(b"OMP_NUM_THREADS", b"many", 1)
"""
    code = """
print(get_num_threads(), loops.allowed(), end=" ", flush=True)
in_child(lambda: print(get_num_threads(), end="", flush=True))
"""
    assert run_python(before + PRELUDE + code) == "5 5 5"


@pytest.mark.parametrize(
    ("replaced", "count"),
    [
        ("os.environ = {'OMP_NUM_THREADS': '6'}", "6"),
        ("os.environ = {'OMP_NUM_THREADS': 6}", "5"),  # no text: the process's own
        ("os.environ = None", "5"),
    ],
)
def test_an_environment_that_the_program_replaced(
    run_python, monkeypatch: pytest.MonkeyPatch, replaced: str, count: str
) -> None:
    monkeypatch.delenv("POLYOP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    code = f"import os\nfrom polyop import get_num_threads\n{replaced}\nprint(get_num_threads())"
    assert run_python(code) == f"{count}\n"


@pytest.mark.slow(3)
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("POLYOP_NUM_THREADS", "many"),
        ("POLYOP_NUM_THREADS", "0"),
        ("POLYOP_NUM_THREADS", "2,2"),
        ("POLYOP_NUM_THREADS", "1025"),
        ("OMP_NUM_THREADS", "-2,4"),
        ("OMP_NUM_THREADS", "99999999999999999999"),
    ],
)
def test_a_variable_that_cannot_be_used(child, variable: str, value: str) -> None:
    code = """
try:
    get_num_threads()
except polyop.PolyopError as problem:
    print(type(problem).__name__, problem)
many(3)
set_num_threads(2)
print(get_num_threads())
"""
    told = child("os.dup2(1, 2)\nopen_library(Path(LOOPS))\n" + code, **{variable: value}).splitlines()
    assert told == [
        f"ArgumentValueError {variable}: must be a whole number from 1 to 1024, but got {value!r}",
        "  set it right or unset it before the process starts, or call set_num_threads",
        "2",
    ]


def test_the_first_library_says_it_too(built: Path, run_python, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYOP_NUM_THREADS", "many")
    code = f"""
import ctypes, os
from polyop import _core
ctypes.CDLL(None).setenv(b"POLYOP_NUM_THREADS", b"7", 1)  # as a library does: not what the user said
os.dup2(1, 2)
for _ in range(2): _core.open_library({str(built)!r})
del os.environ["POLYOP_NUM_THREADS"]
import polyop
try:
    polyop.get_num_threads()
except polyop.PolyopError as problem:
    print(problem)
"""
    rule = "POLYOP_NUM_THREADS{} must be a whole number from 1 to 1024, but got 'many'"
    assert run_python(code).splitlines() == [
        f"polyop: {rule.format('')}: it is not used",
        rule.format(":"),
        "  set it right or unset it before the process starts, or call set_num_threads",
    ]


def test_a_library_that_only_asks_how_many(run_python, tmp_path: Path, monkeypatch) -> None:
    """A thread that Python does not know, and that may not read os.environ, gets the count."""
    text = """
        #include <pthread.h>
        __attribute__((visibility("default"))) int (*polyop_threads)(void) = 0;
        static void* ask(void* count) { *(int*)count = polyop_threads(); return 0; }
        int asked(void) {
          pthread_t thread;
          int count = -1;
          pthread_create(&thread, 0, ask, &count);
          pthread_join(thread, 0);
          return count;
        }
    """
    (tmp_path / "asks.c").write_text(text)
    library = tmp_path / "asks.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "asks.c"], check=True)
    monkeypatch.setenv("POLYOP_NUM_THREADS", "3")
    code = f"""
import ctypes
from polyop import _core
_core.open_library({str(library)!r})
print(ctypes.CDLL({str(library)!r}).asked())
"""
    assert run_python(code) == "3\n"


# --- workers


def test_workers_start_when_needed_and_fall_asleep(child) -> None:
    code = """
set_num_threads(4)
assert not workers()
many(1, threads=2)
assert sorted(workers()) == ["polyop-1"], workers()
many(100, threads=9)
assert sorted(workers()) == ["polyop-1", "polyop-2", "polyop-3"], workers()
while any("State:\\tS" not in status for status in workers().values()): time.sleep(0.01)
many(100, threads=4)
for status in workers().values():
    blocked = int(next(line for line in status.splitlines() if line.startswith("SigBlk")).split()[1], 16)
    assert blocked >> (signal.SIGINT - 1) & 1 and blocked >> (signal.SIGALRM - 1) & 1, hex(blocked)
    assert not blocked >> (signal.SIGSEGV - 1) & 1, hex(blocked)
print("so")
"""
    assert child(code) == "so\n"


def test_ctrl_c_reaches_python(child) -> None:
    code = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's command in the background ignores it
set_num_threads(3)
many(10)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True: many(1)
except KeyboardInterrupt:
    many(10)
    print("interrupted")
"""
    assert child(code) == "interrupted\n"


def test_loops_run_when_no_thread_can_be_started(child) -> None:
    if SANITIZED:
        pytest.skip("not run: AddressSanitizer needs the address space that this test takes away")
    code = """
import resource
os.dup2(1, 2)
set_num_threads(3)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, resource.RLIM_INFINITY))
many(20)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert not workers()
in_child(lambda: (many(20), print(sorted(workers()), flush=True)))
"""
    warning, after = child(code).splitlines()
    assert warning.startswith("polyop: loops run on 1 threads, as no more can be started: ")
    assert after == "['polyop-1', 'polyop-2']"


# --- fork, exit, unloading


@pytest.mark.parametrize("before", [0, 100])
def test_fork(child, before: int) -> None:
    code = """
set_num_threads(3)
def work():
    many(200)
    assert len(workers()) == 2, workers()  # new ones
many(BEFORE)
for _ in range(5): in_child(work)
in_child(lambda: in_child(work) or work())
work()
print("both")
"""
    assert child(code.replace("BEFORE", str(before))) == "both\n"


def test_fork_while_others_call(child) -> None:
    code = """
set_num_threads(3)
stop = threading.Event()
def call():
    while not stop.is_set(): many(20)
callers = [threading.Thread(target=call) for _ in range(2)]
for caller in callers: caller.start()
def work():
    many(50)
    assert len(workers()) == 2, workers()
for _ in range(30): in_child(work)
stop.set()
for caller in callers: caller.join()
print("all")
"""
    assert child(code) == "all\n"


def test_multiprocessing_by_fork(child) -> None:
    code = """
import multiprocessing
set_num_threads(2)
many(10)
def work(number):
    many(50, threads=2)
    return number, get_num_threads()
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(pool.map_async(work, range(6)).get(timeout=60))
"""
    assert child(code) == f"{[(n, 2) for n in range(6)]}\n"


@pytest.mark.slow
@pytest.mark.parametrize("end", ["sys.exit()", "os._exit(0)", "pass"])
def test_exit_right_after_use(child, end: str) -> None:
    code = """
set_num_threads(4)
many(200, threads=4)
threading.Thread(target=many, args=(10**9,), daemon=True).start()
many(10)
print("used", flush=True)
END
"""
    for _ in range(5):
        assert child(code.replace("END", end)) == "used\n"


def test_unloading_the_core_leaves_its_threads_their_code(child) -> None:
    code = """
import _ctypes
set_num_threads(3)
many(10)
core = ctypes.CDLL(_core.__file__)
for _ in range(50): _ctypes.dlclose(core._handle)
mapped = any(_core.__file__ in line for line in open("/proc/self/maps"))
many(10)
time.sleep(0.05)
many(10)
print(mapped, flush=True)
"""
    assert child(code) == "True\n"


# --- without Python


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that builds the driver with further options."""

    def build(*options: str) -> Path:
        made = tmp_path_factory.mktemp("driver") / "threads_driver"
        sources = [HERE / "threads_driver.cc", *THREADS]
        command = [os.environ.get("CXX", "c++"), *FLAGS, "-g", "-O1", *options, *sources, "-o", made, "-ldl"]
        subprocess.run(command, check=True)
        return made

    return build


def plain_environment() -> dict[str, str]:
    """The environment without the libraries that another sanitiser preloads."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@pytest.mark.slow
def test_thread_sanitizer(driver: Callable[..., Path]) -> None:
    compiler = os.environ.get("CXX", "c++")
    runtime = subprocess.run(
        [compiler, "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True
    )
    if not runtime.stdout.startswith("/"):
        pytest.skip(f"not run: {compiler} has no libtsan.so")
    program = driver("-fsanitize=thread")
    # it wants some addresses for itself, which a randomised layout may have taken
    fixed = ["setarch", platform.machine(), "-R"] if shutil.which("setarch") else []
    environment = {**plain_environment(), "TSAN_OPTIONS": "exitcode=66:halt_on_error=0"}
    done = subprocess.run(
        [*fixed, program], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr[-3000:]) == (0, "right\n", "")


GROUPS: tuple[tuple[str, str, dict[str, str], int], ...] = (
    ("no quota", "0::/\n", {}, 0),
    ("version 2", "0::/a\n", {"a/cpu.max": "150000 100000\n"}, 2),
    ("less than one", "0::/a\n", {"a/cpu.max": "20000 100000\n"}, 1),
    ("no limit", "0::/a\n", {"a/cpu.max": "max 100000\n"}, 0),
    (
        "the smallest of those around it",
        "0::/a/b\n",
        {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n", "cpu.max": "400000 100000\n"},
        3,
    ),
    ("a container's own root", "0::/docker/1f\n", {"cpu.max": "200000 100000\n"}, 2),
    (
        "version 1",
        "3:cpuset:/\n2:cpu,cpuacct:/a\n0::/\n",
        {"cpu/a/cpu.cfs_quota_us": "250000\n", "cpu/a/cpu.cfs_period_us": "100000\n"},
        3,
    ),
    (
        "version 1 without",
        "1:cpu:/\n",
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
        0,
    ),
)


@pytest.mark.slow
def test_quotas_of_control_groups(driver: Callable[..., Path], tmp_path: Path) -> None:
    program = driver()
    quotas = []
    for name, membership, files, _ in GROUPS:
        mount = tmp_path / name
        mount.mkdir()
        (mount / "self").write_text(membership)
        for path, text in files.items():
            (mount / path).parent.mkdir(parents=True, exist_ok=True)
            (mount / path).write_text(text)
        done = subprocess.run(
            [program, "quota", mount / "self", mount],
            env=plain_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        quotas.append((name, int(done.stdout)))
    assert quotas == [(name, count) for name, _, _, count in GROUPS]
