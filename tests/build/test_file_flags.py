"""Flags for one source of a build, and sources that are compiled side by side."""

import ctypes
import shlex
import subprocess
import sys

import pytest

from polyop.build import build
from polyop.build.objects import _may_need_more
from polyop.core.errors import ArgumentTypeError, BuildError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def files(tmp_path):
    """Two sources; each has a function that returns the macro N of its own compile command."""
    paths = [tmp_path / "one.c", tmp_path / "two.c"]
    for path in paths:
        path.write_text(f"int {path.stem}(void) {{ return N; }}\n")
    return paths


def values(library):
    loaded = ctypes.CDLL(str(library))
    return loaded.one(), loaded.two()


def test_flags_of_one_file_come_after_those_of_all(files):
    one, two = files
    assert values(build(files, flags=["-DN=1"], file_flags={two: ["-UN", "-DN=2"]})) == (1, 2)
    assert values(build(files, file_flags={one: ["-DN=3"], two: ["-DN=4"]})) == (3, 4)
    assert values(build(files, file_flags={one: ["-DN=4"], two: ["-DN=3"]})) == (4, 3)


def test_a_relative_path_is_that_of_the_source(files, monkeypatch):
    monkeypatch.chdir(files[0].parent)
    assert values(build(files, flags=["-DN=1"], file_flags={"two.c": ["-UN", "-DN=2"]})) == (1, 2)


def test_the_linker_does_not_get_them(files, tmp_path, monkeypatch):
    compiler, log = tmp_path / "cc", tmp_path / "log"
    compiler.write_text(f'#!/bin/sh\necho "$*" >> "{log}"\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", shlex.quote(str(compiler)))
    build(files, flags=["-DN=1"], file_flags={files[0]: ["-funroll-loops"]})
    lines = [line for line in log.read_text().splitlines() if "--version" not in line]
    assert [("-shared" in line, "one.c" in line) for line in lines if "-funroll-loops" in line] == [
        (False, True)
    ]
    assert any("-shared" in line and "-DN=1" in line for line in lines)


@pytest.mark.parametrize(
    ("flags", "error", "message"),
    [
        (
            ["-mavx2"],
            ArgumentTypeError,
            r"a mapping from a source to a list of its flags, but got \['-mavx2'\] \(list\)\n  write \{'a\.cc': ",
        ),
        (
            {"one.c": "-mavx2"},
            ArgumentTypeError,
            r"file_flags\['one\.c'\]: must be a list of strings, but got '-mavx2'\n  write \['-mavx2'\]",
        ),
        ({3: ["-mavx2"]}, ArgumentTypeError, "file_flags: must name each source by its path, but got 3"),
        (
            {"three.c": ["-mavx2"]},
            BuildError,
            r"file_flags: must name sources of this build, but got .*three\.c\n  the sources are .*one\.c, .*two\.c",
        ),
    ],
)
def test_wrong_flags(files, flags, error, message):
    with pytest.raises(error, match=message):
        build(files, file_flags=flags)


def verb(folder, *arguments):
    command = [sys.executable, "-m", "polyop", "build", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_verb(files):
    folder = files[0].parent
    given = ["--file-flag=one.c=-DN=5", "--file-flag=two.c=-DM=3", "--file-flag=two.c=-DN=2*M"]
    done = verb(folder, "one.c", "two.c", "-o", "both.so", *given)
    assert (done.returncode, done.stderr) == (0, "")
    assert values(folder / "both.so") == (5, 6)
    done = verb(folder, "one.c", "two.c", "--file-flag=three.c=-DN=5")
    assert done.returncode == 1
    rule = "--file-flag: must be SRC=FLAG for one of the sources, but got three.c=-DN=5"
    assert rule in done.stderr
    assert "the sources are one.c, two.c" in done.stderr


def test_sources_are_compiled_side_by_side(files, tmp_path, monkeypatch):
    """Each compiler waits until the other has started, which only ends if both run at once."""
    compiler = tmp_path / "cc"
    compiler.write_text(f"""#!/bin/sh
case "$*" in *" -c "*) ;; *) exec cc "$@" ;; esac
touch "{tmp_path}/started.$$"
for turn in $(seq 100); do
  [ $(ls "{tmp_path}"/started.* | wc -l) -ge 2 ] && exec cc "$@"
  sleep 0.1
done
echo "no other compiler was started"; exit 1
""")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", shlex.quote(str(compiler)))
    assert values(build(files, flags=["-DN=1"])) == (1, 1)


def test_a_failed_build_compiles_no_further_source(files, tmp_path, monkeypatch):
    compiler, log = tmp_path / "cc", tmp_path / "log"
    compiler.write_text(f'#!/bin/sh\necho "$*" >> "{log}"\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", shlex.quote(str(compiler)))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    others = []
    for number in range(20):
        others.append(tmp_path / f"other{number}.c")
        others[-1].write_text("int x;\n")
    with pytest.raises(BuildError, match=r"one\.c: cannot be compiled"):
        build([*files, *others])  # without N
    assert log.read_text().count("other") < 20


@pytest.mark.parametrize(
    ("output", "again"),
    [
        ("k.cpp:3:10: fatal error: gpulite/gpulite.hpp: No such file or directory", False),
        ("k.cpp:3:10: fatal error: 'parallel_hashmap/phmap.h' file not found", False),
        ("k.cpp:3:10: fatal error: torch/csrc/autograd/variable.h: No such file or directory", True),
        ("k.cpp:3:10: fatal error: Python.h: No such file or directory", True),
        ("k.cpp:9:3: error: 'nn' is not a member of 'torch'", True),
        ("k.cpp:9:3: error: expected ';' before '}' token", False),
    ],
)
def test_when_a_build_is_repeated_with_all_headers_of_pytorch(output, again):
    assert _may_need_more(output) is again
