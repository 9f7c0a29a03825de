"""The digest of a file that tells operators apart: hashed once, and again when the file has changed."""

import os

import pytest

from polyop.binary.hashes import digest, known_digest


def rewrite(path, stat):
    path.write_bytes(b"changed")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def replace(path, stat):
    path.with_suffix(".new").write_bytes(b"another")
    os.utime(path.with_suffix(".new"), ns=(stat.st_atime_ns, stat.st_mtime_ns))
    path.with_suffix(".new").replace(path)


CHANGES = [
    # what happens to the file of seven bytes, how, whether its digest is taken again
    ("nothing", lambda path, stat: None, False),
    ("it is read", lambda path, stat: path.read_bytes(), False),
    ("it is written anew", lambda path, stat: (path.write_bytes(b"changed"), os.utime(path, ns=(0, 1))), True),
    ("it grows", lambda path, stat: (path.write_bytes(b"it grows"), os.utime(path, ns=(0, stat.st_mtime_ns))), True),
    ("another takes its place", replace, True),
    ("bytes change behind an old time, which no build does", rewrite, False),
]  # fmt: skip


@pytest.mark.parametrize(("change", "again"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_known_digest(tmp_path, change, again):
    path = tmp_path / "library.so"
    path.write_bytes(b"sources")
    first = known_digest(path)
    assert first == digest(path)
    change(path, path.stat())
    assert known_digest(str(path)) == (digest(path) if again else first)
    assert (known_digest(path) != first) is again


def test_a_file_that_is_gone_has_no_digest(tmp_path):
    path = tmp_path / "library.so"
    path.write_bytes(b"sources")
    known_digest(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        known_digest(path)
