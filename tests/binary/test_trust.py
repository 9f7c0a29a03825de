"""Which files of the build cache are trusted, by their owner and mode: as root, and as an ordinary user."""

import contextlib
import ctypes
import hashlib
import json
import os
import pathlib
import pwd
import shutil
import stat
import subprocess
import tempfile
import traceback
import warnings

import pytest

from polyop import _core
from polyop.binary import hashes, trust
from polyop.binary.open import open_library
from polyop.build import build
from polyop.build.sources import store_code
from polyop.core.errors import CacheError, LibraryError, PolyopError

ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody")
needs_root = pytest.mark.skipif(not ROOT, reason="only root can give files away and act as another user")
USERS = [0, pytest.param(NOBODY.pw_uid, marks=needs_root)] if ROOT else [os.geteuid()]
PARTS = ["the cache", "the manifests", "the entries", "an entry", "a library", "a manifest"]


@pytest.fixture(scope="session", autouse=True)
def imported(tmp_path_factory):
    """Import what a build needs while this is root: another user may not be able to read Python's own files."""
    folder = tmp_path_factory.mktemp("imported")
    (folder / "k.c").write_text("int answer(void) { return 1; }\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYOP_CACHE_DIR", str(folder / "cache"))
        use(folder)
        (folder / "cache").chmod(0o777)
        assert "CacheError" in use(folder)


@pytest.fixture
def folder():
    """A folder that every user may enter; pytest's own folders are private."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="polyop-trust-"))
    folder.chmod(0o755)
    (folder / "k.c").write_text("int answer(void) { return 1; }\n")
    (folder / "k.c").chmod(0o644)
    yield folder
    shutil.rmtree(folder)


def use(folder):
    """Build and call the kernel; return its answer or the error."""
    try:
        return str(answer(open_library(build([folder / "k.c"]))))
    except (PolyopError, PermissionError) as problem:
        return f"{type(problem).__name__} {problem}"


def run(folder, *, user=None, umask=0o022, program=use, cache="cache"):
    """Return the result of a function in a process of a user, with the cache in ``folder``."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():  # a test before this one may have started JAX, which warns of forks
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        try:
            os.umask(umask)
            os.environ["POLYOP_CACHE_DIR"] = str(folder / cache)
            if user is not None and user != os.geteuid():
                os.setgroups([])
                os.setgid(NOBODY.pw_gid)
                os.setuid(user)
            text = program(folder)
        except BaseException:
            text = traceback.format_exc()
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


def parts(cache):
    """Return the files and folders of a cache with one entry."""
    [manifest] = (cache / "requests").iterdir()
    [entry] = (cache / "entries").iterdir()
    return {
        "the cache": cache,
        "the manifests": cache / "requests",
        "the entries": cache / "entries",
        "an entry": entry,
        "a library": entry / "k.so",
        "a manifest": manifest,
    }


def change_owner(path, user):
    if ROOT:
        for one in [path, *path.rglob("*")]:
            os.chown(one, user, -1, follow_symlinks=False)


@pytest.mark.slow(1)
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077], ids="{:03o}".format)
def test_only_the_user_may_write_the_files_of_a_build(folder, user, umask):
    home = folder / "home"
    home.mkdir()
    change_owner(home, user)
    assert run(folder, user=user, umask=umask, cache="home/deep/cache") == "1"
    for path in [home / "deep", *(home / "deep").rglob("*")]:
        mode = path.lstat().st_mode
        assert mode & 0o022 == 0, f"{path} has mode {mode:o}"
        assert stat.S_IMODE(mode) == 0o700 or not path.is_dir()
    assert run(folder, user=user, umask=umask, cache="home/deep/cache") == "1"


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", [0o002, 0o020, 0o1002], ids="{:03o}".format)
def test_files_that_others_may_write_are_refused(folder, user, mode):
    (folder / "home").mkdir()
    change_owner(folder / "home", user)
    assert run(folder, user=user, cache="home/cache") == "1"
    cache = folder / "home/cache"
    for path in parts(cache).values():
        path.chmod(path.stat().st_mode | mode)
        output = run(folder, user=user, cache="home/cache")
        rule = (
            "what it holds is run as code, so it must belong to you or root, and nobody else may write there"
        )
        assert output.startswith(
            f"CacheError build cache {cache}: {rule}, but got {path}, which can be written by"
        )
        assert f"rm -r {cache} " in output and f"chown -R {user} {cache} && chmod -R go-w {cache} " in output
        subprocess.run(["chmod", "-R", "go-w", str(cache)], check=True)
        assert run(folder, user=user, cache="home/cache") == "1"


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize("user", USERS)
def test_files_of_another_user_are_refused(folder, user):
    (folder / "home").mkdir()
    change_owner(folder / "home", user)
    assert run(folder, user=user, cache="home/cache") == "1"
    for path in parts(folder / "home/cache").values():
        mode, other = path.stat().st_mode, 1 if user else NOBODY.pw_uid
        path.chmod(mode | 0o055)
        os.chown(path, other, -1)
        output = run(folder, user=user, cache="home/cache")
        assert f"but got {path}, which belongs to the user {other}\n" in output
        os.chown(path, user, -1)
        assert run(folder, user=user, cache="home/cache") == "1"


@needs_root
def test_a_cache_of_root_serves_other_users(folder):
    assert run(folder) == "1"
    library = parts(folder / "cache")["a library"]
    times = library.stat().st_mtime_ns, library.stat().st_ino
    subprocess.run(["chmod", "-R", "go+rX", str(folder / "cache")], check=True)
    assert run(folder, user=NOBODY.pw_uid) == "1"
    assert (library.stat().st_mtime_ns, library.stat().st_ino) == times


@pytest.mark.slow(3)
@pytest.mark.parametrize(("mode", "good"), [(0o777, False), (0o1777, True), (0o755, True), (0o775, ROOT)])
def test_a_folder_above_that_others_may_write(folder, mode, good):
    above = folder / "above"
    above.mkdir()
    above.chmod(mode)
    if not ROOT:  # a group that is not the user's alone
        good = good or os.getegid() == os.geteuid()
    output = run(folder, cache="above/deep/cache")
    if good:
        assert output == "1"
    else:
        assert f"but got {above}, which can be written by others (mode {mode:o})" in output
        assert f"chmod go-w {above} " in output and "set POLYOP_CACHE_DIR" in output


@needs_root
def test_a_folder_above_of_another_user(folder):
    (folder / "above").mkdir()
    os.chown(folder / "above", NOBODY.pw_uid, -1)
    assert f"which belongs to the user {NOBODY.pw_uid}" in run(folder, cache="above/cache")
    (folder / "link").symlink_to(folder / "above")
    assert f"which belongs to the user {NOBODY.pw_uid}" in run(folder, cache="link/cache")


def swap(folder):
    """Replace the library in the cache, and its hash."""
    cache, data = folder / "cache", (folder / "malicious.so").read_bytes()
    [manifest] = (cache / "requests").iterdir()
    [library] = (cache / "entries").glob("*/k.so")
    record = json.loads(manifest.read_text())
    record["variants"][0].update(size=len(data), sha256=hashlib.sha256(data).hexdigest())
    library.unlink()
    library.write_bytes(data)
    manifest.unlink()
    manifest.write_text(json.dumps(record))
    return "swapped"


def malicious_library(folder):
    """Compile a library that creates the file ``mark`` when it is loaded; its answer is 666."""
    source = folder / "malicious.c"
    source.write_text(
        f'#include <stdio.h>\n__attribute__((constructor)) void run(void) {{ fopen("{folder}/mark", "w"); }}\n'
        "int answer(void) { return 666; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "malicious.so", source], check=True)
    return folder / "malicious.so"


@pytest.mark.slow(1)
@needs_root
@pytest.mark.parametrize("opened", [False, True], ids=["as polyop made it", "opened by chmod"])
def test_a_library_swapped_with_its_hash_is_not_loaded(folder, opened):
    malicious_library(folder)
    assert run(folder, umask=0) == "1"
    if opened:
        subprocess.run(["chmod", "-R", "a+rwX", str(folder / "cache")], check=True)
        assert run(folder, user=NOBODY.pw_uid, program=swap) == "swapped"
        assert "CacheError" in run(folder)
    else:
        assert "PermissionError" in run(folder, user=NOBODY.pw_uid, program=swap)
        assert run(folder) == "1"
    assert not (folder / "mark").exists()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "k.c").write_text("int answer(void) { return 1; }\n")
    return tmp_path / "cache"


def answer(handle):
    return ctypes.CFUNCTYPE(ctypes.c_int)(_core.find_symbol(handle, "answer"))()


def rewrite(cache, **changes):
    [manifest] = (cache / "requests").iterdir()
    data = json.loads(manifest.read_text())
    data["variants"][0].update(changes)
    manifest.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("file", "../../../malicious.so"),
        ("file", "{folder}/malicious.so"),
        ("file", "."),
        ("file", ".."),
        ("file", ""),
        ("file", "k\0.so"),
        ("key", "../../malicious"),
        ("key", "{folder}"),
        ("key", "a" * 39),
        ("key", "A" * 40),
        ("key", ["a"] * 40),
    ],
)
def test_a_manifest_cannot_name_a_file_outside_its_entry(cache, tmp_path, field, value):
    library = malicious_library(tmp_path)
    assert build([tmp_path / "k.c"]).is_relative_to(cache)
    value = value.format(folder=tmp_path) if isinstance(value, str) else value
    digest = hashes.digest(library)
    rewrite(cache, **{field: value, "size": library.stat().st_size, "sha256": digest})
    built = build([tmp_path / "k.c"])
    assert built.is_relative_to(cache / "entries") and ".." not in built.parts
    assert answer(open_library(built)) == 1
    assert not (tmp_path / "mark").exists()
    assert "it is built again" in (cache / "repairs.log").read_text()


@pytest.mark.parametrize("part", ["a library", "a manifest"])
def test_a_file_that_is_a_link_counts_as_damaged(cache, tmp_path, part):
    build([tmp_path / "k.c"])
    path = parts(cache)[part]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert answer(open_library(build([tmp_path / "k.c"]))) == 1
    assert not path.is_symlink()


@pytest.mark.parametrize("part", ["the manifests", "the entries", "an entry"])
def test_a_folder_that_is_a_link_is_refused(cache, tmp_path, part):
    build([tmp_path / "k.c"])
    path = parts(cache)[part]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CacheError, match=rf"but got {path}, which is no folder, or a link to one"):
        build([tmp_path / "k.c"])


@pytest.mark.parametrize("part", ["a library", "a manifest"])
def test_a_pipe_in_the_cache_is_not_waited_for(cache, tmp_path, part):
    build([tmp_path / "k.c"])
    path = parts(cache)[part]
    path.unlink()
    os.mkfifo(path)
    assert answer(open_library(build([tmp_path / "k.c"]))) == 1


@pytest.mark.parametrize("megabytes", [0, 9])
def test_a_library_is_loaded_through_the_file_that_was_hashed(cache, tmp_path, megabytes):
    text = f"char much[{megabytes} << 20] = {{1}};\n" if megabytes else ""
    (tmp_path / "k.c").write_text(f"{text}int answer(void) {{ return 1; }}\n")
    build([tmp_path / "k.c"])
    built = build([tmp_path / "k.c"])  # the look-up leaves the open file
    shutil.copy(malicious_library(tmp_path), tmp_path / "new.so")
    (tmp_path / "new.so").replace(built)
    assert answer(open_library(built)) == 1
    assert not (tmp_path / "mark").exists()


def test_a_library_that_was_changed_after_it_was_built_is_not_loaded(cache, tmp_path):
    built = build([tmp_path / "k.c"])
    shutil.copy(malicious_library(tmp_path), tmp_path / "new.so")
    (tmp_path / "new.so").replace(built)
    with pytest.raises(LibraryError, match="was changed or removed after it was built and verified"):
        open_library(built)
    assert not (tmp_path / "mark").exists()
    assert answer(open_library(build([tmp_path / "k.c"]))) == 1


def test_damage_in_a_large_library_of_the_same_size_and_time_is_found(cache, tmp_path):
    (tmp_path / "k.c").write_text("char much[9 << 20] = {1};\nint answer(void) { return 1; }\n")
    built = build([tmp_path / "k.c"])
    times, data = built.stat(), bytearray(built.read_bytes())
    data[-100_000] ^= 1
    built.write_bytes(data)
    os.utime(built, ns=(times.st_atime_ns, times.st_mtime_ns))
    build([tmp_path / "k.c"])
    assert "k.so is missing or damaged" in (cache / "repairs.log").read_text()


class DlInfo(ctypes.Structure):
    """The ``Dl_info`` that dladdr fills."""

    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    ]


def test_loaded_libraries_have_their_own_paths(cache, tmp_path):
    find = ctypes.CDLL(None).dladdr
    find.argtypes = [ctypes.c_void_p, ctypes.POINTER(DlInfo)]
    for number in range(5):  # each through the same number of an open file
        source = tmp_path / f"k{number}.c"
        source.write_text(f"int answer(void) {{ return {number}; }}\n")
        built = build([source])
        handle, info = open_library(built), DlInfo()
        assert answer(handle) == number
        assert find(_core.find_symbol(handle, "answer"), info)
        assert info.file.decode() == str(built)
        assert str(built) in pathlib.Path("/proc/self/maps").read_text(errors="replace")
    open_files = [os.path.realpath(file) for file in pathlib.Path("/proc/self/fd").iterdir()]
    libraries = [name for name in open_files if name.startswith(f"{cache}/") and name.endswith(".so")]
    assert len(libraries) <= 4, "open files of loaded libraries are closed; some wait to be loaded"


def test_errors_of_the_loader_name_the_path(cache, tmp_path):
    (tmp_path / "k.c").write_text("int missing(void);\nint answer(void) { return missing(); }\n")
    with pytest.raises(LibraryError, match="has an undefined symbol: missing") as raised:
        open_library(build([tmp_path / "k.c"]))
    assert "/proc/self" not in str(raised.value)


def test_inline_code_that_another_may_write_is_written_again(cache):
    path = pathlib.Path(store_code("int x;\n", "c"))
    path.chmod(0o666)
    assert store_code("int x;\n", "c") == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.parent.chmod(0o777)
    with pytest.raises(CacheError, match="can be written by others"):
        store_code("int x;\n", "c")


def test_owners_outside_the_user_namespace_are_told_by_the_uid_map(monkeypatch):
    status = os.stat_result((stat.S_IFDIR | 0o755, 0, 0, 1, 1234567, 1234567, 0, 0, 0, 0))
    assert trust.problem_of(status) == "belongs to the user 1234567"
    with contextlib.suppress(OSError):
        assert not trust._is_unmapped(0)  # root has a number here
