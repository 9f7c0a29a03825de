"""Eviction from the build cache, locks on entries in use, and clearing while others build."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

import pytest

from polyop.build import build, entry_locks, eviction
from polyop.build.entries import clear, entries
from polyop.core.errors import CacheError

BUILD = "import sys; from polyop.build import build; print(build([sys.argv[1]]), flush=True)"
DAY = 86400


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("POLYOP_CACHE_SIZE", raising=False)
    return tmp_path / "cache"


def kernel(folder, name):
    path = folder / f"{name}.c"
    path.write_text(f"int answer(void) {{ return {len(name)}; }}\n")
    return path


def elsewhere(*sources, **environment):
    """Build each source in another process, and wait until it has ended."""
    for source in sources:
        command = [sys.executable, "-c", BUILD, str(source)]
        subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=True)


def wait_for(condition):
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit, "it did not happen within a minute"
        time.sleep(0.01)


def set_age(source, days):
    """Set the times of the entry's build and of its last use to so many days ago."""
    [entry] = [one for one in entries() if one.sources == (str(source),)]
    when = time.time() - days * DAY
    os.utime(entry.path, (when, entry.path.stat().st_mtime))
    [manifest] = [
        p for p in (entry.path.parents[2] / "requests").iterdir() if json.dumps(str(source)) in p.read_text()
    ]
    manifest.write_text(manifest.read_text().replace(f'"created":{entry.created}', f'"created":{when}'))


def names():
    return {pathlib.Path(entry.sources[0]).stem for entry in entries()}


LIMITS = {
    "": (5 * 2**30, 90),
    "0": (0, 90),
    "1000": (1000, 90),
    "2GiB": (2**31, 90),
    "2 gb": (2**31, 90),
    "1.5g": (3 * 2**29, 90),
    "500 MiB": (500 * 2**20, 90),
    "64k, 7d": (2**16, 7),
    "1TiB,365 days": (2**40, 365),
    "none": (None, None),
    "None": (None, None),
}


@pytest.mark.parametrize("text", LIMITS)
def test_spellings_of_the_limits(monkeypatch, text):
    monkeypatch.setenv("POLYOP_CACHE_SIZE", text)
    size, days = LIMITS[text]
    assert eviction.cache_limits() == (size, days and days * DAY)


@pytest.mark.parametrize(
    "text", ["-1", "much", "2GiBs", "1e9", "7d", "2GiB,", "1.2.3", "9" * 5000, "\N{DIGIT TWO}x"]
)
def test_malformed_limits_are_refused_before_anything_is_built(cache, tmp_path, monkeypatch, text):
    monkeypatch.setenv("POLYOP_CACHE_SIZE", text)
    with pytest.raises(CacheError, match=r'POLYOP_CACHE_SIZE: must be a size(.|\n)*as in "2GiB"'):
        build([kernel(tmp_path, "k")])
    assert not (cache / "entries").exists()


def test_the_least_recently_used_are_evicted_first(cache, tmp_path):
    sources = [kernel(tmp_path, name) for name in ("one", "two", "three")]
    elsewhere(*sources)
    size = max(entry.size for entry in entries())
    for source, days in zip(sources, (1, 3, 2), strict=True):
        set_age(source, days)
    elsewhere(kernel(tmp_path, "four"), POLYOP_CACHE_SIZE=str(3 * size))
    assert names() == {"one", "three", "four"}
    elsewhere(kernel(tmp_path, "five"), POLYOP_CACHE_SIZE="0")
    assert names() == {"five"}  # what was built just now is in use
    assert len(list((cache / "entries").iterdir())) == len(list((cache / "requests").iterdir())) == 1
    assert not (cache / "repairs.log").exists()


def test_the_size_is_checked_after_each_build_without_reading_records(cache, tmp_path):
    elsewhere(kernel(tmp_path, "one"))
    [size] = [entry.size for entry in entries()]
    [record] = (cache / "requests").iterdir()
    whole = record.read_text()
    record.write_text("damaged")  # a check that reads it would remove the entry, which then has no record
    elsewhere(kernel(tmp_path, "two"))
    record.write_text(whole)
    assert names() == {"one", "two"}
    elsewhere(kernel(tmp_path, "three"), POLYOP_CACHE_SIZE=str(2 * size))
    assert "three" in names() and len(names()) == 2


def a_day_passes(cache):
    """Ages are checked once a day: let the last time be a day ago."""
    os.utime(cache / "ages-checked", (time.time() - DAY - 1,) * 2)


@pytest.mark.slow
def test_entries_unused_for_long_are_evicted(cache, tmp_path):
    old, new = kernel(tmp_path, "old"), kernel(tmp_path, "new")
    elsewhere(old, new)
    set_age(old, 91)
    set_age(new, 89)
    elsewhere(kernel(tmp_path, "third"), POLYOP_CACHE_SIZE="none")
    assert names() == {"old", "new", "third"}
    elsewhere(kernel(tmp_path, "again"))
    assert names() == {"old", "new", "third", "again"}, "the ages were checked on this day"
    a_day_passes(cache)
    elsewhere(kernel(tmp_path, "fourth"))
    assert names() == {"new", "third", "again", "fourth"}
    a_day_passes(cache)
    elsewhere(kernel(tmp_path, "fifth"), POLYOP_CACHE_SIZE="1GiB,80d")
    assert names() == {"third", "again", "fourth", "fifth"}


@pytest.mark.parametrize("remove", ["evict", "clear"])
def test_entries_in_use_are_kept(cache, tmp_path, remove):
    source = kernel(tmp_path, "held")
    program = f"{BUILD}; sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(source)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    path = pathlib.Path(holder.stdout.readline().decode().strip())
    set_age(source, 1000)
    assert [entry.in_use for entry in entries()] == [True]

    def shrink():
        if remove == "clear":
            return clear()
        return elsewhere(kernel(tmp_path, "other"), POLYOP_CACHE_SIZE="0")

    assert shrink() in (None, (0, 1))
    assert path.exists()
    holder.communicate(timeout=60)
    wait_for(lambda: not entry_locks.in_use(str(cache), path.parent.name))
    (tmp_path / "other.c").unlink(missing_ok=True)
    if remove == "clear":
        assert shrink() == (1, 0)
    else:
        elsewhere(kernel(tmp_path, "another"), POLYOP_CACHE_SIZE="0")
    assert not path.exists()


def test_a_killed_process_releases_its_locks_but_its_child_keeps_them(cache, tmp_path):
    source = kernel(tmp_path, "k")
    program = (
        f"{BUILD}\nimport os, time\nchild = os.fork()\nif child: print(child, flush=True)\ntime.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(source)], stdout=subprocess.PIPE, text=True)
    path, child = pathlib.Path(holder.stdout.readline().strip()), int(holder.stdout.readline())
    holder.kill()
    holder.wait()
    assert entry_locks.in_use(str(cache), path.parent.name)
    os.kill(child, 9)
    wait_for(lambda: not entry_locks.in_use(str(cache), path.parent.name))
    holder.stdout.close()


def test_a_process_needs_one_open_file_for_all_its_libraries(cache, tmp_path):
    def count():
        return len(list(pathlib.Path("/proc/self/fd").iterdir()))

    build([kernel(tmp_path, "k")])
    before = count()
    for number in range(6):
        build([kernel(tmp_path, "k" * (number + 2))])
    assert count() == before


def test_clear_does_not_break_a_build_of_inline_code(cache, tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *" -c "*) touch "{tmp_path}/started"\n'
        f'while ! test -e "{tmp_path}/go"; do sleep 0.05; done;; esac\nexec cc "$@"\n'
    )
    compiler.chmod(0o755)
    program = "from polyop.build import build; print(build(code='int x;', language='c'))"
    building = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "CC": shlex.quote(str(compiler))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for((tmp_path / "started").exists)
    elsewhere(kernel(tmp_path, "other"))
    assert clear() == (1, 0)
    (tmp_path / "go").touch()
    out, err = building.communicate(timeout=60)
    assert building.returncode == 0, err
    assert pathlib.Path(out.strip()).is_file()
    assert len(entries()) == 1
    clear()
    assert list((cache / "code").iterdir()) == list((cache / "entries").iterdir()) == []


@pytest.mark.slow
def test_polyop_cache_shows_size_bound_ages_and_what_is_in_use(cache, tmp_path):
    source = kernel(tmp_path, "shown")
    elsewhere(kernel(tmp_path, "older"))
    set_age(tmp_path / "older.c", 12)
    build([source])
    command = [sys.executable, "-m", "polyop", "cache"]
    done = subprocess.run(
        command,
        env={**os.environ, "POLYOP_CACHE_SIZE": "2GiB,30d"},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, total, limit = done.stdout.splitlines()
    assert "built  0 min ago, in use now" in first and first.endswith("shown.c")
    assert "built 12 d ago, used 12 d ago" in second and second.endswith("older.c")
    assert total.startswith("2 entries, ") and total.endswith(f"in {cache}")
    assert limit == "bound: 2.0 GiB, 30 days unused (POLYOP_CACHE_SIZE); what is in use stays"
    done = subprocess.run([*command, "list", "--json"], capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    first, second = facts["entries"]
    assert facts["folder"] == str(cache) and first["in_use"] and not second["in_use"]
    assert first["sources"][0].endswith("shown.c") and first["built"] > second["built"]
    done = subprocess.run([*command, "clear"], capture_output=True, text=True, check=True)
    assert done.stdout == f"1 entry removed from {cache}; 1 entry in use stays\n"


@pytest.mark.parametrize("remove", ["evict", "clear"])
def test_a_record_whose_inputs_are_damaged_goes_with_its_entry(cache, tmp_path, remove):
    elsewhere(kernel(tmp_path, "one"))
    [record] = (cache / "requests").iterdir()
    parts = json.loads(record.read_text())
    parts["variants"][0]["inputs"] = [[1]]
    record.write_text(json.dumps(parts))
    if remove == "clear":
        clear()
    else:
        elsewhere(kernel(tmp_path, "two"), POLYOP_CACHE_SIZE="0")
    assert names() == (set() if remove == "clear" else {"two"})
    assert len(list((cache / "entries").iterdir())) == len(names())
    assert not record.exists()
