"""A process whose kernels are already built: it imports little, and runs no compiler."""

import hashlib
import pathlib
import shlex
import shutil
import subprocess
import sys

import platformdirs
import pytest

from polyop.binary import hashes
from polyop.build import facts, paths
from polyop.build.compilers import which
from polyop.core.errors import CacheError

SOURCE = """
import sys
import polyop
before = {*sys.modules}
code = "int warm(int n, void **p, int *r, long **s, const char **t, void *q, void *e) { return 0; }"
polyop.source(function="warm", language="c", code=code)
print(*{*sys.modules} - before)
"""
LOOPS = """
import sys
import numpy as np
import polyop

@polyop.kernel
def doubled(a):
    out = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        out[i] = a[i] + a[i]
    return out

operator = polyop.operator("warm::doubled(Tensor a) -> Tensor", doubled)
assert operator(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
print(*sys.modules)
"""
DERIVED = """
import sys
import polyop
import torch

@polyop.kernel
def decayed(a):
    h = output_tensor(a.shape, a.dtype)
    h[0] = a[0]
    for i in range(1, a.shape[0]):
        h[i] = h[i - 1] * a[i]
    return h

x = torch.tensor([2.0, 3.0, 4.0])
def last(v):
    return decayed(v)[2]
assert torch.func.grad(last)(x).tolist() == [12.0, 8.0, 6.0]
assert torch.func.jvp(last, (x,), (torch.ones(3),))[1] == 26.0
assert torch.func.vmap(torch.func.grad(last))(torch.stack([x, x]))[1].tolist() == [12.0, 8.0, 6.0]
print(*sys.modules)
"""
BUILDING = {
    "subprocess", "filelock", "tempfile", "shutil", "lzma", "platformdirs",
    "polyop.build.cache", "polyop.build.make", "polyop.build.run",
    "polyop.build.libtorch", "polyop.build.cuda",
}  # fmt: skip
"""Modules that only a build needs."""
SLOW = {"pathlib", "hashlib", "_hashlib", "dataclasses", "concurrent.futures"}
"""Modules that take milliseconds to import, or to use during an import."""
PASSES = {
    "islpy",
    "polyop.loops.pipeline",
    "polyop.loops.library.make",
    "polyop.loops.analysis.polyhedra",
    "polyop.loops.derive.pipelines",
}


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Run a program in a new process, and return the modules it prints. Compiles are logged in ``log``."""
    compiler = tmp_path / "cc"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *" -c "*) echo x >> "{tmp_path}/log";; esac\nexec cc "$@"\n'
    )
    compiler.chmod(0o755)

    def run(program, cc=None):
        path = tmp_path / "program.py"
        path.write_text(program)
        monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.delenv("CC", raising=False)
        if cc is not None:
            monkeypatch.setenv("CC", cc)
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
        return {*done.stdout.split()}

    run.logging = shlex.quote(str(compiler))
    run.compiles = lambda: (tmp_path / "log").read_text().count("x")
    return run


def test_imports_for_a_source_that_is_built(imported):
    assert imported(SOURCE) >= {"subprocess", "polyop.build.make"}
    assert imported(SOURCE) & (BUILDING | SLOW) == set()


def test_imports_for_a_loop_kernel_that_is_built(imported):
    assert imported(LOOPS) >= {"islpy", "polyop.build.make"}
    assert imported(LOOPS) & (BUILDING | PASSES) == set()


def test_derived_kernels_that_are_built_are_not_derived_again(imported):
    assert imported(DERIVED) >= PASSES
    assert imported(DERIVED) & PASSES == set()
    assert imported(DERIVED.replace("h[i - 1] * a[i]", "a[i] * h[i - 1]")) >= PASSES


@pytest.mark.parametrize("program", [SOURCE, LOOPS])
def test_one_compile_serves_all_processes(imported, program):
    imported(program, imported.logging)
    assert imported.compiles() == 1
    imported(program, imported.logging)
    assert imported.compiles() == 1


HERE = str(pathlib.Path.cwd())


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "/home/me"},
        {"HOME": "/home/me/"},
        {"HOME": "/"},
        {"HOME": "/home/me", "XDG_CACHE_HOME": ""},
        {"HOME": "/home/me", "XDG_CACHE_HOME": "/var/caches"},
        {"HOME": "/home/me", "XDG_CACHE_HOME": "/var/caches/"},
        {"HOME": "/home/me", "XDG_CACHE_HOME": "relative"},
        {"HOME": "/home/me", "XDG_CACHE_HOME": " "},
        {"XDG_CACHE_HOME": "/var/caches"},
        {"HOME": ""},
        {},
    ],
    ids=str,
)
def test_the_cache_is_in_the_folder_of_platformdirs(monkeypatch, environment):
    for name in ("HOME", "XDG_CACHE_HOME", "POLYOP_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert paths.cache_dir() == pathlib.Path(platformdirs.user_cache_dir("polyop"))


def test_the_cache_that_is_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYOP_CACHE_DIR", "mine")
    assert paths.cache_dir() == tmp_path / "mine"
    (tmp_path / "mine").write_text("")
    with pytest.raises(CacheError, match=r"POLYOP_CACHE_DIR: must name a folder, but got .*mine"):
        paths.cache_dir()


@pytest.mark.parametrize("path", [".", "a", "./a/", "a//b", "/", "/a/../b", "/a/./b/", "a/.."])
def test_absolute_paths_are_those_of_pathlib(path):
    assert paths.absolute(path) == str(pathlib.Path(path).absolute())
    assert paths.absolute(pathlib.Path(path)) == str(pathlib.Path(path).absolute())


@pytest.mark.parametrize("path", ["first:second", "second:first", ":first", "", "missing", None])
@pytest.mark.parametrize("program", ["tool", "text", "folder", "first/tool", "first/missing", "sh"])
def test_which_equals_that_of_shutil(monkeypatch, tmp_path, path, program):
    monkeypatch.chdir(tmp_path)
    for folder, name, mode in (("first", "tool", 0o755), ("second", "tool", 0o755), ("first", "text", 0o644)):
        file = tmp_path / folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(mode)
    (tmp_path / "first" / "folder").mkdir()
    if path is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", path)
    assert which(program) == shutil.which(program)
    assert which(program, path="second") == shutil.which(program, path="second")


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 3 << 20])
@pytest.mark.parametrize("loaded", [True, False])
def test_digests_are_sha256(monkeypatch, tmp_path, size, loaded):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    if not loaded:
        monkeypatch.delitem(sys.modules, "hashlib")
    assert hashes.digest(path) == expected
    assert hashes.text_digest(path.read_bytes()) == expected
    assert hashes.text_digest("é") == hashlib.sha256("é".encode()).hexdigest()


class Compute:
    """Returns a fact that counts how often it was computed."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return f"answer {self.count}"


def write_old(path, seconds):
    """Write a file and set its age. Wait, because facts about a file that just changed are not stored."""
    import os
    import time

    path.write_text("text")
    while time.time_ns() - path.stat().st_ctime_ns < 60_000_000:
        time.sleep(0.01)
    when = time.time() - seconds
    os.utime(path, (when, when))
    while time.time_ns() - path.stat().st_ctime_ns < 60_000_000:
        time.sleep(0.01)


def test_facts_are_kept_until_a_file_changes(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    file, compute = tmp_path / "file", Compute()
    write_old(file, 100)
    assert [facts.cached("one", [str(file)], compute) for _ in range(3)] == ["answer 1"] * 3
    assert facts.cached("two", [str(file)], compute) == "answer 2"
    assert facts.cached("one", [str(file)], compute) == "answer 1"
    write_old(file, 50)
    assert [facts.cached("one", [str(file)], compute) for _ in range(2)] == ["answer 3"] * 2


def test_facts_of_files_that_may_still_change_are_not_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    file, compute = tmp_path / "file", Compute()
    file.write_text("text")
    assert facts.cached("one", [str(file)], compute) == "answer 1"
    assert not (tmp_path / "cache" / facts.FILE).exists()


@pytest.mark.parametrize("text", ["", "[]", '{"one": 1}', '{"one": ["x", 2]}', "\0"])
def test_damaged_facts_are_computed_again(monkeypatch, tmp_path, text):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    file, compute = tmp_path / "file", Compute()
    write_old(file, 100)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / facts.FILE).write_text(text)
    assert [facts.cached("one", [str(file)], compute) for _ in range(2)] == ["answer 1"] * 2
