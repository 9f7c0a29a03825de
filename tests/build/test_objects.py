"""The objects of several sources: after an edit only what has read the edited file is compiled."""

import contextlib
import ctypes
import json
import os
import pathlib
import pty
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest

from damage import flip_a_byte
from polyop.build import build
from polyop.build.entries import clear, entries
from polyop.core.errors import BuildError, CacheError

PROGRAM = "import sys; from polyop.build import build; print(build(sys.argv[1:]))"
NAMES = ("a", "b", "c", "d")


class Project:
    """Four sources: ``a`` and ``b`` read one header, ``c`` reads it through another, ``d`` reads none."""

    def __init__(self, folder):
        self.folder = folder
        self.sources = [folder / f"{name}.c" for name in NAMES]
        self.write("n.h", "#define N 1\n")
        self.write("outer.h", '#include "n.h"\n')
        for name, header in zip(NAMES, ("n.h", "n.h", "outer.h", None), strict=True):
            include = f'#include "{header}"\n' if header else "#define N 1\n"
            self.write(f"{name}.c", f"{include}int {name}(void) {{ return N; }}\n")
        self.compiler()

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def compiler(self, before="", after=""):
        """Log each compile, and run shell commands before and after it; ``$src`` is the source's name."""
        path = self.folder / "logging-cc"
        log = self.folder / "log"
        path.write_text(
            f'#!/bin/bash\nsrc=\nfor a in "$@"; do case "$a" in *.c) src=$(basename "$a" .c);; esac; done\n'
            f'[ -z "$src" ] && exec cc "$@"\necho "$src" >> "{log}"\n{before}\ncc "$@" || exit\n{after}\nexit 0\n'
        )
        path.chmod(0o755)

    def compiled(self):
        """Return which sources were compiled since the last time."""
        log = self.folder / "log"
        names = "".join(sorted(log.read_text().split())) if log.exists() else ""
        log.unlink(missing_ok=True)
        return names

    def answers(self, library):
        functions = ctypes.CDLL(str(library))
        return [functions[name]() for name in NAMES]

    def elsewhere(self, *sources, **variables):
        """Start a build in another process."""
        command = [sys.executable, "-c", PROGRAM, *map(str, sources or self.sources)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env={**os.environ, **variables}, start_new_session=True, **pipes)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("POLYOP_CACHE_SIZE", raising=False)
    monkeypatch.setenv("CC", shlex.quote(str(tmp_path / "logging-cc")))
    return Project(tmp_path)


def wait_for(condition):
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit, "it did not happen within a minute"
        time.sleep(0.01)


def objects():
    return {pathlib.Path(one.sources[0]).stem: one.path for one in entries() if one.kind == "object"}


EDITS = {
    "one source": ({"b.c": '#include "n.h"\nint b(void) { return N + 1; }\n'}, "b", [1, 2, 1, 1]),
    "a header": ({"n.h": "#define N 2\n"}, "abc", [2, 2, 2, 1]),
    "a header of one": ({"outer.h": "#define N 3\n"}, "c", [1, 1, 3, 1]),
    "a header found earlier": ({"first/n.h": "#define N 4\n"}, "abc", [4, 4, 4, 1]),
    "the same text": ({"n.h": "#define N 1\n"}, "", [1, 1, 1, 1]),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_has_read_an_edited_file_is_compiled(project, edit):
    files, expected, answers = EDITS[edit]
    for name in ("a", "b"):
        project.write(f"{name}.c", f"#include <n.h>\nint {name}(void) {{ return N; }}\n")
    project.write("outer.h", "#include <n.h>\n")
    (project.folder / "first").mkdir()
    folders = [project.folder / "first", project.folder]
    build(project.sources, include_paths=folders)
    assert project.compiled() == "abcd"
    for name, text in files.items():
        project.write(name, text)
    edited = build(project.sources, include_paths=folders)
    assert project.compiled() == expected and project.answers(edited) == answers


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"flags": ["-DX"]}, "abcd"),
        ({"debug": True}, "abcd"),
        ({"file_flags": {"c.c": ["-DX"]}}, "c"),
        ({"link_flags": ["-Wl,-s"]}, ""),
    ],
    ids=["flags", "debug", "flags of one", "flags of the linker"],
)
def test_an_object_has_the_flags_of_its_source(project, options, expected):
    first = build(project.sources)
    project.compiled()
    if own := options.get("file_flags"):
        options = {"file_flags": {project.folder / name: flags for name, flags in own.items()}}
    assert build(project.sources, **options) != first
    assert project.compiled() == expected


def test_a_compiler_that_calls_itself_another_version_compiles_all(project):
    build(project.sources)
    project.compiled()
    wrapper = project.folder / "logging-cc"
    text = wrapper.read_text().replace(
        "src=\n", 'src=\n[ "$1" = --version ] && { echo gcc 99.9.9; exit; }\n', 1
    )
    wrapper.write_text(text)
    build(project.sources)
    assert project.compiled() == "abcd"


def test_libraries_share_objects_also_those_of_another_process(project):
    done = project.elsewhere(*project.sources[:3])
    assert done.wait(60) == 0
    done.communicate()
    assert project.compiled() == "abc"
    assert project.answers(build(project.sources)) == [1] * 4
    assert project.compiled() == "d"


def test_the_object_of_a_single_source_is_not_kept(project):
    build(project.sources[:1])
    assert [one.kind for one in entries()] == ["library"]


@pytest.mark.parametrize(
    "damage",
    [flip_a_byte, lambda path: path.write_bytes(b""), lambda path: path.unlink()],
    ids=["one bit, same size and time", "empty", "removed"],
)
def test_a_damaged_object_is_not_linked(project, damage):
    build(project.sources)
    project.compiled()
    damage(objects()["c"])
    project.write("b.c", "int b(void) { return 5; }\n")
    assert project.answers(build(project.sources)) == [1, 5, 1, 1]
    assert project.compiled() == "bc"
    log = (project.folder / "cache" / "repairs.log").read_text()
    assert "c.o is missing or damaged; it is built again" in log


@pytest.mark.parametrize("name", ["the object", "its folder", "its record"])
def test_an_object_that_others_may_write_is_refused(project, name):
    build(project.sources)
    path = objects()["c"]
    requests = (project.folder / "cache" / "requests").iterdir()
    record = next(one for one in requests if json.loads(one.read_text())["variants"][0]["file"] == "c.o")
    {"the object": path, "its folder": path.parent, "its record": record}[name].chmod(0o777)
    project.write("b.c", "int b(void) { return 5; }\n")
    with pytest.raises(CacheError, match=r"what it holds is run as code.*can be written by others"):
        build(project.sources)


def test_a_link_in_the_place_of_an_object_is_damage(project):
    build(project.sources)
    path = objects()["c"]
    other = project.folder / "other.o"
    path.rename(other)
    path.symlink_to(other)
    project.compiled()
    project.write("b.c", "int b(void) { return 5; }\n")
    build(project.sources)
    assert project.compiled() == "bc"


def test_a_killed_build_goes_on_where_it_was(project):
    project.compiler(before='[ "$src" = d ] && sleep 60')
    process = project.elsewhere()
    wait_for(lambda: {"a", "b", "c"} <= set(objects()))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    # the compiler outlives its caller, in a session of its own
    project.compiler()
    assert "d" in project.compiled()
    assert project.answers(build(project.sources)) == [1] * 4
    assert project.compiled() == "d"


@pytest.mark.slow
def test_a_build_that_failed_goes_on_where_it_was(project):
    project.compiler(before='[ "$src" = d ] && sleep 2')  # so that the others are compiled
    project.write("d.c", "int d(void) { return oops; }\n")
    with pytest.raises(BuildError, match=r"d\.c: cannot be compiled(.|\n)*oops"):
        build(project.sources)
    project.compiled()
    kept = set(objects())
    project.write("d.c", "int d(void) { return 7; }\n")
    assert project.answers(build(project.sources)) == [1, 1, 1, 7]
    assert kept and project.compiled() == "".join(sorted(set(NAMES) - kept))


def test_a_library_that_cannot_be_linked_keeps_its_objects(project):
    with pytest.raises(BuildError, match="cannot be linked"):
        build(project.sources, link_flags=["-lno-such-library"])
    assert project.compiled() == "abcd"
    build(project.sources)
    assert project.compiled() == ""


def test_two_processes_compile_a_shared_source_once(project):
    project.compiler(before="sleep 0.5")
    running = [project.elsewhere(*project.sources[:3]), project.elsewhere(*project.sources[1:])]
    outputs = [one.communicate(timeout=120) for one in running]
    assert [one.returncode for one in running] == [0, 0], outputs
    assert project.compiled() == "abcd"


def test_a_header_edited_while_the_last_source_is_compiled(project):
    """The objects that have read the older header are compiled again."""
    project.write("d.c", "int d(void) { return 1; }\n")
    edit = f'echo "#define N 9" > "{project.folder}/n.h"'
    once = f'"{project.folder}/once"'
    project.compiler(before=f'[ "$src" = d ] && [ ! -e {once} ] && {{ touch {once}; sleep 2; {edit}; }}')
    assert project.answers(build(project.sources)) == [9, 9, 9, 1]
    assert project.compiled().replace("d", "") == "aabbcc"


def test_the_bound_of_the_cache_counts_objects(project):
    def start(size):
        done = project.elsewhere(POLYOP_CACHE_SIZE=size)
        out, err = done.communicate(timeout=120)
        assert done.returncode == 0, err
        return pathlib.Path(out.strip())

    library = start("0")  # the objects are in use until they are linked; then nothing uses them
    assert [one.path for one in entries()] == [library]
    project.write("d.c", "int d(void) { return 2; }\n")
    start("none")
    assert sorted(objects()) == list(NAMES)
    command = [sys.executable, "-m", "polyop", "cache"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r"(?m)  [a-d]\.c \(object\)$", listed)) == 4
    facts = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    assert sorted(one["kind"] for one in json.loads(facts)["entries"]) == ["library"] * 2 + ["object"] * 4
    assert clear() == (6, 0) and entries() == []


def test_a_process_that_goes_on_does_not_use_the_objects_of_its_libraries(project):
    library = build(project.sources)
    assert {one.path for one in entries() if one.in_use} == {library}


def test_a_long_build_prints_a_line_per_file_in_a_pipe(project):
    def lines(count):
        command = [sys.executable, "-m", "polyop", "build", *map(str, project.sources[:count])]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.count("\n") == 1 and done.stdout.endswith(".so\n")
        return done.stderr.splitlines()

    project.compiler(before='[ "$src" = a ] && sleep 3')
    assert lines(1) == []
    said = lines(4)
    assert re.fullmatch(r"compiled 4 of 4: a\.c in \d+\.\d s", said.pop())
    assert [re.sub(r"[bcd]\.c in \d+\.\d s$", "NAME", line) for line in said] == [
        f"compiled {number} of 4: NAME" for number in range(1, 4)
    ]
    assert lines(4) == []
    project.write("a.c", "int a(void) { return 5; }\n")
    [line] = lines(4)
    assert re.fullmatch(r"compiled 4 of 4: a\.c in \d+\.\d s", line)


def test_a_long_build_shows_on_a_terminal_what_is_compiled(project):
    project.compiler(before='[ "$src" = a ] && sleep 3')
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "polyop", "build", *map(str, project.sources)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the other side was closed
            while part := os.read(ours, 65536):
                text += part
        assert process.wait() == 0
    os.close(ours)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())
    assert re.search(r"compiled \d of 4 files, now .*a\.c.*, \d s", shown), shown
    assert " in " not in shown
