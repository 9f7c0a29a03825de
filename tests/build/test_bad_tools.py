"""Compilers that never end, and linkers that leave a file which is no library."""

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading
import time

import pytest

import polyop
from polyop.build import build
from polyop.build.run import TIMEOUT, time_limit
from polyop.core.errors import ArgumentValueError, BuildError, LibraryError

CODE = "int answer(void) { return 42; }"
VERSION = 'case "$*" in *--version*) exec cc --version;; esac\n'
HANGS = 'sleep 1000 & echo $! >> "{pids}"\nsleep 1000\n'  # as a driver, which waits for the compiler itself


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def use(tmp_path, monkeypatch):
    """Return a function that makes a shell script the C compiler."""

    def write(text):
        path = tmp_path / "cc"
        path.write_text(f"#!/bin/sh\n{text.format(pids=tmp_path / 'pids')}\n")
        path.chmod(0o755)
        monkeypatch.setenv("CC", shlex.quote(str(path)))
        return tmp_path / "pids"

    return write


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_all_ended(pids):
    numbers = [int(line) for line in pids.read_text().split()]
    for _ in range(100):
        if not any(map(is_running, numbers)):
            break
        time.sleep(0.05)
    assert numbers and not any(map(is_running, numbers))


QUESTION = 'case "$*" in *--version*) ;; *) exit 1;; esac\n'
LINKS = 'case "$*" in *" -c "*) exec cc "$@";; esac\n'


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("script", "seconds", "limit"),
    [
        (VERSION + HANGS, "1", "1"),
        (VERSION + LINKS + HANGS, "1.5", "1.5"),
        (QUESTION + HANGS, "30", "1"),
        (VERSION + "trap '' TERM INT\n" + HANGS, "1", "1"),
    ],
    ids=["the compiler", "the linker", "its version", "signals are ignored"],
)
def test_a_program_that_does_not_end_is_ended(use, monkeypatch, script, seconds, limit):
    pids = use(script)
    monkeypatch.setenv(TIMEOUT, seconds)
    message = rf"cc: did not end within {limit} seconds, and was ended\n.*{TIMEOUT}={2 * float(seconds):g} \(seconds; 0 is"
    with pytest.raises(BuildError, match=message):
        build(code=CODE, language="c")
    assert_all_ended(pids)
    monkeypatch.delenv("CC")
    assert build(code=CODE, language="c").is_file()


def test_a_loop_kernel_whose_compiler_does_not_end(use, monkeypatch):
    @polyop.kernel(name="bad_tools::f")
    def f(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            y[i] = x[i] * 3.25
        return y

    import numpy as np

    pids = use(VERSION + HANGS)
    monkeypatch.setenv(TIMEOUT, "1")
    with pytest.raises(BuildError, match=f"did not end within 1 seconds.*\n.*{TIMEOUT}=2"):
        f(np.ones(3))
    assert_all_ended(pids)
    monkeypatch.delenv("CC")
    assert f(np.ones(3)).tolist() == [3.25] * 3


@pytest.mark.parametrize("count", [1, 4])
def test_ctrl_c_ends_all_compilers(use, tmp_path, count):
    pids = use(VERSION + HANGS)
    sources = [tmp_path / f"k{number}.c" for number in range(count)]
    for number, path in enumerate(sources):
        path.write_text(f"int f{number}(void) {{ return {number}; }}\n")
    program = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # it may be ignored
        f"from polyop.build import build\nbuild({[str(path) for path in sources]!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    wanted = min(count, os.cpu_count() or 1)
    for _ in range(600):
        if pids.exists() and len(pids.read_text().split()) >= wanted:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and errors.rstrip().endswith("KeyboardInterrupt")
    assert_all_ended(pids)


def test_the_other_compilers_end_when_one_fails(use, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    pids = use(VERSION + 'case "$*" in *bad.c*) sleep 1; echo "bad.c:1: error: no"; exit 1;; esac\n' + HANGS)
    paths = [tmp_path / name for name in ("a.c", "bad.c", "b.c")]
    for path in paths:
        path.write_text(CODE)
    started = time.monotonic()
    with pytest.raises(BuildError, match=r"bad\.c: cannot be compiled"):
        build(paths)
    assert time.monotonic() - started < 60
    assert_all_ended(pids)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 1800), ("0", None), (" 2.5 ", 2.5), ("1e999", threading.TIMEOUT_MAX)],
)
def test_the_time_limit(monkeypatch, text, seconds):
    monkeypatch.setenv(TIMEOUT, text)
    assert time_limit() == seconds


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "1h"])
def test_a_time_limit_that_is_none(monkeypatch, text):
    monkeypatch.setenv(TIMEOUT, text)
    with pytest.raises(
        ArgumentValueError, match=f"^{TIMEOUT}: must be a number of seconds, but got '{text}'\n.*1800"
    ):
        build(code=CODE, language="c")


OUTPUT = 'while [ "$1" != "-o" ]; do shift; done\n'
GARBLED = """cc "$@"
while [ "$1" != "-o" ]; do shift; done
{python} -c 'import sys
data = bytearray(open(sys.argv[1], "rb").read())
{change}
open(sys.argv[1], "wb").write(data)' "$2"
"""
DYNAMIC = (  # the segment of the loader's tables
    'at = int.from_bytes(data[32:40], "little"); rows = [data[at + 56 * k:at + 56 * k + 56] for k in range(data[56])];'
    'start = next(int.from_bytes(r[8:16], "little") for r in rows if r[0] == 2)'
)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("exit 0", "couldn't find the AOT binary file"),
        (OUTPUT + ': > "$2"', "an empty file"),
        (OUTPUT + 'echo oops > "$2"', "a text file that begins with 'oops'"),
        (OUTPUT + 'mkdir "$2"', "a directory"),
        (OUTPUT + 'mkfifo "$2"', "a device, pipe or socket"),
        (
            GARBLED.replace("{change}", "del data[len(data) // 3:]"),
            "shorter than its own headers|refers to bytes",
        ),
        (GARBLED.replace("{change}", "data[64:600] = bytes(536)"), "no loadable segments|shorter|no dynamic"),
        (
            GARBLED.replace("{change}", f"{DYNAMIC}; data[start:start + 256] = bytes(256)"),
            "crashes|refuses|cannot|no dyn",
        ),
        (
            GARBLED.replace("{change}", f"{DYNAMIC}; data[start + 8:start + 256:16] = bytes([255]) * 16"),
            ".",
        ),
    ],
    ids=["nothing", "empty", "text", "folder", "pipe", "cut off", "no segments", "no tables", "wrong tables"],
)
def test_a_linker_that_leaves_no_library(use, monkeypatch, link, words):
    link = link.replace("{python}", shlex.quote(sys.executable)).replace("{", "{{").replace("}", "}}")
    use(VERSION + LINKS + link)
    rule = "cannot be linked: the linker ended without an error, and its file cannot be loaded: "
    for _ in range(2):  # the cache does not trust it
        with pytest.raises(BuildError, match=f"{rule}.*({words})(.|\n)*command: ") as caught:
            build(code=CODE, language="c")
        assert "is there space on the disk" in str(caught.value)
    monkeypatch.delenv("CC")
    assert build(code=CODE, language="c").is_file()


def test_a_library_may_need_what_is_not_here():
    """What it needs may be there where it is used: it is built, as before."""
    flags = ["-Wl,--unresolved-symbols=ignore-all"]
    library = build(
        code="int missing(void);\nint f(void) { return missing(); }", language="c", link_flags=flags
    )
    assert library.is_file()


def test_what_a_compiler_starts_may_hold_its_output(use, tmp_path):
    """As the server of a compiler cache, which its first call starts; and a compiler may say much."""
    says = "yes warning | head -c 3000000 >&2\n"
    pids = use(VERSION + 'sleep 1000 & echo $! >> "{pids}"\n' + says + 'exec cc "$@"')
    source = tmp_path / "answer.c"
    source.write_text(CODE)
    try:
        start = time.monotonic()
        assert build([source]).exists()
        assert time.monotonic() - start < 900
    finally:
        for pid in pids.read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def test_what_is_no_library(tmp_path):
    """A pipe, a loop of links and a file that cannot be read are refused, and nothing waits for them."""
    pipe, loop, unread = (tmp_path / f"lib{name}.so" for name in ("pipe", "loop", "unread"))
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    unread.symlink_to("/proc/self/mem")
    for path in (pipe, loop, unread):
        with pytest.raises(LibraryError, match=path.name):
            polyop.load_library(path)
