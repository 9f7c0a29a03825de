"""The build cache, with real processes: reuse, edits, races, kills and damage."""

import contextlib
import ctypes
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damage import flip_a_byte
from polyop.build import build
from polyop.build.depfile import parse_depfile
from polyop.build.entries import clear, entries
from polyop.build.manifest import Manifest, _parsed
from polyop.build.sources import has
from polyop.core.errors import BuildError, CacheError

PROGRAM = "import sys; from polyop.build import build; print(build(sys.argv[1:]))"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and a C compiler that logs each compile."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(folder))
    compiler(tmp_path, "", monkeypatch)
    return folder


def compiler(tmp_path, before, monkeypatch=None):
    path = tmp_path / "logging-cc"
    path.write_text(
        f'#!/bin/sh\ncase "$*" in *" -c "*) echo "$*" >> "{tmp_path}/log"\n{before}\n;; esac\nexec cc "$@"\n'
    )
    path.chmod(0o755)
    if monkeypatch:
        monkeypatch.setenv("CC", shlex.quote(str(path)))


@pytest.fixture
def compiles(tmp_path):
    """How many sources have been compiled so far."""
    log = tmp_path / "log"
    return lambda: len(log.read_text().splitlines()) if log.exists() else 0


def kernel(path, number):
    path.write_text(f"int answer(void) {{ return {number}; }}\n")
    return path


def answer(library):
    return ctypes.CDLL(str(library)).answer()


def wait_for(condition):
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit, "it did not happen within a minute"
        time.sleep(0.01)


def test_second_build_compiles_nothing(cache, tmp_path, compiles):
    source = kernel(tmp_path / "k.c", 1)
    assert build([source]) == build([source])
    assert build([source]).is_relative_to(cache)
    assert compiles() == 1


def test_another_process_finds_it(cache, tmp_path, compiles):
    source = kernel(tmp_path / "k.c", 1)
    built = build([source])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(source)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(built)
    assert compiles() == 1


def test_touch_is_no_edit(cache, tmp_path, compiles):
    source = kernel(tmp_path / "k.c", 1)
    built = build([source])
    os.utime(source, (1e9, 1e9))
    assert build([source]) == built
    assert compiles() == 1


def test_undoing_an_edit_finds_the_first_library(cache, tmp_path, compiles):
    source = tmp_path / "k.c"
    one = build([kernel(source, 1)])
    two = build([kernel(source, 2)])
    assert (answer(one), answer(two)) == (1, 2)
    assert build([kernel(source, 1)]) == one
    assert compiles() == 2


def test_edit_of_equal_size_and_time(cache, tmp_path):
    source = kernel(tmp_path / "k.c", 1)
    os.utime(source, (1e9, 1e9))
    time.sleep(0.1)
    one = build([source])
    kernel(source, 2)
    os.utime(source, (1e9, 1e9))
    assert (answer(one), answer(build([source]))) == (1, 2)


def test_functions_of_one_source_share_what_was_read(cache, tmp_path, compiles):
    (tmp_path / "n.h").write_text("#define N 1\n")
    source = tmp_path / "k.c"
    source.write_text('#include "n.h"\nint answer(void) { return N; }\n')
    for _ in range(
        3
    ):  # writes the manifest; writes it again, when the files are older than the clock's steps
        build([source])
        time.sleep(0.05)
    parsed, searched = _parsed.cache_info(), has.cache_info()
    libraries = {build([source]) for _ in range(5)}
    assert (_parsed.cache_info().misses, has.cache_info().misses) == (parsed.misses, searched.misses)
    assert _parsed.cache_info().hits == parsed.hits + 5 and has.cache_info().hits >= searched.hits + 5
    assert len(libraries) == 1 and compiles() == 1
    edits = [("n.h", "#define N 2\n", 2), ("k.c", '#include "n.h"\nint answer(void) { return N + 5; }\n', 7)]
    for name, text, expected in edits:
        (tmp_path / name).write_text(text)
        assert answer(build([source])) == expected


def test_edit_of_a_header_read_through_another(cache, tmp_path):
    (tmp_path / "outer.h").write_text('#include "sub/inner.h"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.h").write_text("#define N 1\n")
    source = tmp_path / "k.c"
    source.write_text('#include "outer.h"\nint answer(void) { return N; }\n')
    assert answer(build([source])) == 1
    (tmp_path / "sub" / "inner.h").write_text("#define N 2\n")
    assert answer(build([source])) == 2
    (tmp_path / "sub" / "inner.h").unlink()
    with pytest.raises(BuildError, match=r"sub/inner\.h"):
        build([source])


@pytest.mark.parametrize("name", ["n.h", "deep/n.h", "math.h"])
def test_new_header_that_is_found_earlier(cache, tmp_path, name):
    late, early = tmp_path / "late", tmp_path / "early"
    early.mkdir()
    if name != "math.h":
        (late / name).parent.mkdir(parents=True)
        (late / name).write_text("#define N 1\n")
    source = tmp_path / "k.c"
    source.write_text(
        f"#include <{name}>\n#ifndef N\n#define N 1\n#endif\nint answer(void) {{ return N; }}\n"
    )
    assert answer(build([source], include_paths=[early, late])) == 1
    (early / name).parent.mkdir(parents=True, exist_ok=True)
    (early / name).write_text("#define N 2\n")
    assert answer(build([source], include_paths=[early, late])) == 2


@pytest.mark.parametrize(
    "change",
    [{"flags": ["-DX"]}, {"debug": True}, {"link_flags": ["-s"]}, {"include_paths": ["."]}],
    ids=lambda c: next(iter(c)),
)
def test_options_are_part_of_the_key(cache, tmp_path, change):
    source = kernel(tmp_path / "k.c", 1)
    assert build([source]) != build([source], **change)


def test_environment_that_compilers_read_is_part_of_the_key(cache, tmp_path, monkeypatch):
    source = kernel(tmp_path / "k.c", 1)
    built = build([source])
    monkeypatch.setenv("CPATH", str(tmp_path))
    assert build([source]) != built


def test_concurrent_processes_compile_once(cache, tmp_path, compiles):
    compiler(tmp_path, "sleep 0.5")
    source = kernel(tmp_path / "k.c", 6)
    command = [sys.executable, "-c", PROGRAM, str(source)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    paths = {process.communicate(timeout=120)[0].strip() for process in started}
    assert [process.returncode for process in started] == [0] * 4
    assert len(paths) == 1
    assert answer(paths.pop()) == 6
    assert compiles() == 1


def test_threads_compile_once(cache, tmp_path, compiles):
    compiler(tmp_path, "sleep 0.3")
    source = kernel(tmp_path / "k.c", 7)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: build([source]), range(4)))) == 1
    assert compiles() == 1


def test_killed_build(cache, tmp_path, compiles):
    compiler(tmp_path, f'echo $$ > "{tmp_path}/group"\nsleep 60')
    source = kernel(tmp_path / "k.c", 8)
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(source)], start_new_session=True)
    wait_for(lambda: compiles() == 1)
    process.kill()
    process.wait()
    working_folders = list((cache / "work").iterdir())
    compiler(tmp_path, "")
    assert answer(build([source])) == 8  # neither waits for the lock nor uses a partial result
    assert len(working_folders) == 1
    assert not working_folders[0].exists()
    group = int((tmp_path / "group").read_text())
    os.killpg(group, signal.SIGKILL)  # the compiler that outlived its caller, in a group of its own


def test_abandoned_working_folder_is_removed(cache, tmp_path):
    build([kernel(tmp_path / "k.c", 1)])
    old = cache / "work" / "something"
    old.mkdir()
    os.utime(old, (1e9, 1e9))
    build([kernel(tmp_path / "k.c", 2)])
    assert not old.exists()


def test_source_edited_while_it_is_compiled(cache, tmp_path, compiles):
    header = tmp_path / "n.h"
    header.write_text("#define N 1\n")
    source = tmp_path / "k.c"
    source.write_text('#include "n.h"\nint answer(void) { return N; }\n')
    compiler(
        tmp_path,
        f'test -e "{tmp_path}/once" || {{ touch "{tmp_path}/once"; sleep 0.05; echo "#define N 2" > "{header}"; }}',
    )
    assert answer(build([source])) == 2
    assert compiles() == 2
    assert answer(build([source])) == 2


def test_header_replaced_by_an_old_file_while_it_is_compiled(cache, tmp_path, compiles):
    """A package manager moves files into place and keeps their old modification times."""
    header, old = tmp_path / "n.h", tmp_path / "old.h"
    header.write_text("#define N 1\n")
    old.write_text("#define N 2\n")
    os.utime(old, (1e9, 1e9))
    source = tmp_path / "k.c"
    source.write_text('#include "n.h"\nint answer(void) { return N; }\n')
    # the header is replaced after the compiler has read it
    compiler(
        tmp_path, f'cc "$@" || exit; test ! -e "{old}" || {{ sleep 0.05; mv "{old}" "{header}"; }}; exit 0'
    )
    assert answer(build([source])) == 2
    assert compiles() == 2


def test_source_that_changes_during_every_build(cache, tmp_path):
    source = kernel(tmp_path / "k.c", 1)
    compiler(tmp_path, f'sleep 0.05; echo "/* $$ */" >> "{source}"')
    with pytest.raises(BuildError, match=r"k\.c: must not change while it is built; it changed 3 times"):
        build([source])
    assert entries() == []


DAMAGE = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "empty": lambda path: path.write_bytes(b""),
    "one bit, same size and time": flip_a_byte,
    "removed": lambda path: path.unlink(),
    "folder removed": lambda path: shutil.rmtree(path.parent),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_library_is_built_again(cache, tmp_path, compiles, damage):
    source = kernel(tmp_path / "k.c", 5)
    built = build([source])
    damage(built)
    assert build([source]) == built
    assert answer(built) == 5
    assert compiles() == 2
    assert "k.so is missing or damaged; it is built again" in (cache / "repairs.log").read_text()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"x"', '{"format": 1}', '{"format": 1, "sources": [], "variants": [{}]}']
)
def test_damaged_manifest(cache, tmp_path, text):
    source = kernel(tmp_path / "k.c", 5)
    build([source])
    next((cache / "requests").iterdir()).write_text(text)
    assert answer(build([source])) == 5
    assert "it is built again" in (cache / "repairs.log").read_text()


@pytest.mark.slow
@given(
    data=st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["variants", "sources", "key", "inputs"]), inner)
        ),
    )
)
def test_any_manifest_is_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({"format": 1, "sources": [], "variants": data}))
    with contextlib.suppress(ValueError):
        assert isinstance(Manifest.read(str(path)), Manifest)


@given(
    paths=st.lists(st.text(st.sampled_from("ab/ #$.-"), min_size=1).map(lambda text: f"/{text}x"), max_size=5)
)
def test_depfiles_round_trip(paths):
    escaped = [p.replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ") for p in paths]
    assert parse_depfile("object: " + " \\\n ".join(escaped) + "\n") == paths


def test_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "file" / "cache"))
    message = r"build cache .*file/cache: must be a folder that can be written, but got Not a directory\n  set POLYOP_CACHE_DIR"
    with pytest.raises(CacheError, match=message):
        build([kernel(tmp_path / "k.c", 1)])
    with pytest.raises(CacheError, match=message):
        build(code="int x;", language="c")
    assert entries() == []


def test_cache_in_a_folder_that_takes_no_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", "/proc/polyop/cache")  # there mkdir says "no such file" for ever
    message = (
        r"build cache /proc/polyop/cache: must be a folder that can be written(.|\n)*set POLYOP_CACHE_DIR"
    )
    with pytest.raises(CacheError, match=message):
        build([kernel(tmp_path / "k.c", 1)])


def test_entries(cache, tmp_path):
    assert entries() == []
    before = time.time()
    old, new = kernel(tmp_path / "old.c", 1), kernel(tmp_path / "new.c", 2)
    for source in (old, new):
        build([source])
    assert [entry.sources for entry in entries()] == [(str(new),), (str(old),)]
    build([old])
    first = entries()[0]
    assert first.sources == (str(old),)
    assert before < first.created < first.used
    assert first.size == first.path.stat().st_size
    assert first.key in str(first.path)


def elsewhere(*sources):
    """Build in another process and wait until it has ended, so that no entry is in use."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, sources)], capture_output=True, text=True, check=True
    )
    return pathlib.Path(done.stdout.strip())


def test_clear(cache, tmp_path, compiles):
    old, new = kernel(tmp_path / "old.c", 1), kernel(tmp_path / "new.c", 2)
    kept = elsewhere(new)
    os.utime(elsewhere(old), (1e9, 1e9))
    manifest = next(p for p in (cache / "requests").iterdir() if "old.c" in p.read_text())
    manifest.write_text(manifest.read_text().replace('"created":', '"created":-'))  # long ago
    assert clear(older_than=3600) == (1, 0)
    assert elsewhere(new) == kept
    assert compiles() == 2
    assert clear() == (1, 0)
    assert entries() == []
    assert answer(build([old])) == 1


def test_edits_do_not_fill_the_disk(cache, tmp_path):
    program = (
        "import pathlib, sys; from polyop.build import build; path = pathlib.Path(sys.argv[1])\n"
        "for n in range(12): path.write_text(f'int answer(void) {{ return {n}; }}'); build([path])"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "k.c")], check=True)
    assert len(entries()) == 8
    os.utime(cache / "ages-checked", (1e9, 1e9))
    build([kernel(tmp_path / "other.c", 1)])  # sweeps what that process had in use
    assert len(entries()) == len(list((cache / "entries").iterdir())) == 9
