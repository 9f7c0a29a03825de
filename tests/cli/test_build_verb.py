"""``polyop build`` and ``polyop cache``, each in another process."""

import ctypes
import os
import subprocess
import sys

import pytest


@pytest.fixture
def polyop(tmp_path):
    """Run polyop with an empty cache, in an empty folder."""

    def run(*arguments):
        environment = {**os.environ, "POLYOP_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-m", "polyop", *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_build_with_options(polyop, tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "n.h").write_text("#define N 4\n")
    (tmp_path / "k.c").write_text(
        '#include "n.h"\nint answer(void) { return N * M + (__STDC_VERSION__ > 201112L); }\n'
    )
    done = polyop(
        "build", "k.c", "-o", "k.so", "-Iinc", "-DM=2", "--flag=-std=c17", "--link-flag=-s", "--debug"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "k.so\n", "")
    assert ctypes.CDLL(str(tmp_path / "k.so")).answer() == 9


def test_build_names_the_caches_copy(polyop, tmp_path):
    (tmp_path / "k.c").write_text("int x;\n")
    done = polyop("build", "k.c")
    assert done.stdout.startswith(f"{tmp_path}/cache/entries/")


def test_failed_build(polyop, tmp_path):
    (tmp_path / "k.c").write_text("int x = nothing;\n")
    done = polyop("build", "k.c", "-o", "k.so")
    assert done.returncode == 1
    assert "polyop build: " in done.stderr
    assert "k.c: cannot be compiled" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "k.so").exists()


@pytest.mark.slow
def test_cache_verbs(polyop, tmp_path):
    assert polyop("cache", "path").stdout == f"{tmp_path}/cache\n"
    empty = f"0 entries, 0 B, in {tmp_path}/cache\n"
    assert polyop("cache", "list").stdout.startswith(empty)
    (tmp_path / "k.c").write_text("int x;\n")
    library = polyop("build", "k.c").stdout.strip()
    listed = polyop("cache", "list").stdout.splitlines()
    assert listed[0].endswith("k.c")
    assert listed[1].startswith("1 entry, ")
    os.truncate(library, 10)
    polyop("build", "k.c")
    assert "damage was found and made good 1 time: " in polyop("cache", "list").stdout
    assert polyop("cache", "clear", "--older-than", "1").stdout.startswith("0 entries removed")
    assert polyop("cache", "clear").stdout == f"1 entry removed from {tmp_path}/cache\n"
    assert polyop("cache").stdout.startswith(empty)
