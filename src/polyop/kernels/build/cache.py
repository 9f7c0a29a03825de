"""The content-addressed cache of built libraries and precompiled headers.

``requests/<id>.json``  a manifest: what was built for a request, from which inputs
``entries/<key>/``      one result; the key is a hash of the request and of every input's content
``work/<id>-*/``        a build in progress; becomes an entry by renaming
``locks/<id>``          locked by the process that builds; the system frees it when that is killed
``repairs.log``         damage that was found and made good
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import BuildError, CacheError
from .inputs import Input, digest, would_shadow
from .manifest import Manifest, Variant
from .paths import cache_dir
from .run import progress

_ALWAYS_HASHED = 8 << 20
"""Bytes: a larger result is hashed only when its time has changed; it is flushed to disk for that."""
_FORGOTTEN = 86400.0
"""Seconds after which a working folder that nobody claims is swept."""
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Made:
    """What a build gives: the file, the files it has read, and the folders searched for headers."""

    file: Path
    inputs: Sequence[str]
    search: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A result in the cache, and the inputs it stands for."""

    path: Path
    variant: Variant


class Cache:
    """The cache in one folder; any number of processes may use it at once."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_dir()

    def get(
        self, request: Any, sources: Sequence[str], make: Callable[[Path], Made], *, watch: Sequence[str] = ()
    ) -> Found:
        """Return the result for ``request``, from the cache or by ``make(working_folder)``.

        ``request`` is anything JSON can hold; with the content of the inputs it decides.
        ``watch`` are inputs known before the build; one that changes meanwhile starts it again.
        Raises what ``make`` raises (nothing is remembered then), and ``CacheError``.
        """
        identity = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:40]
        found = self._look_up(identity)
        if found is not None:
            return found
        from filelock import FileLock

        with self._writable():
            (self.folder / "locks").mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / "locks" / identity)
            with progress("waiting for another process that builds the same"):
                lock.acquire()
        try:
            return self._look_up(identity, record=True) or self._make(identity, sources, make, watch)
        finally:
            lock.release()

    @contextlib.contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise CacheError(
                f"build cache {self.folder}",
                "must be a folder that can be written",
                problem.strerror or problem,
                hint="set POLYOP_CACHE_DIR to another folder",
            ) from None

    def _manifest(self, identity: str) -> Path:
        return self.folder / "requests" / f"{identity}.json"

    def _read(self, identity: str, *, record: bool = False) -> Manifest:
        try:
            return Manifest.read(self._manifest(identity))
        except ValueError as problem:
            if record:
                self._log(f"manifest {identity}: {problem}")
        except OSError:
            pass
        return Manifest()

    def _look_up(self, identity: str, *, record: bool = False) -> Found | None:
        """Return what is there, if anything; ``record`` damage, as the one who will repair it."""
        manifest = self._read(identity, record=record)
        for position, old in enumerate(manifest.variants):
            variant = old.current()
            if variant is None:
                continue
            path = self.folder / "entries" / variant.key / variant.file
            if not _is_whole(path, variant):
                if record:
                    self._log(f"entry {variant.key}: {variant.file} is missing or damaged")
                return None
            if variant is not old:
                manifest.variants[position] = variant
            with contextlib.suppress(OSError):  # a cache that can only be read is good enough here
                if variant is not old:
                    manifest.write(self._manifest(identity))
                os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
            return Found(path, variant)
        return None

    def _log(self, text: str) -> None:
        with contextlib.suppress(OSError), (self.folder / "repairs.log").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}; it is built again\n")

    def _make(
        self, identity: str, sources: Sequence[str], make: Callable[[Path], Made], watch: Sequence[str]
    ) -> Found:
        import tempfile

        with self._writable():
            (self.folder / "work").mkdir(parents=True, exist_ok=True)
            self._sweep(identity)
            work = Path(tempfile.mkdtemp(prefix=f"{identity}-", dir=self.folder / "work"))
        try:
            for attempt in range(_ATTEMPTS):
                before = [Input.of(path) for path in watch]
                started = time.time_ns()
                step = work / str(attempt)
                step.mkdir()
                made = make(step)
                try:
                    inputs = [Input.of(path) for path in dict.fromkeys([*watch, *made.inputs])]
                    still = not _changed_since(before, inputs, started)
                except FileNotFoundError:  # a header was removed while it was used
                    continue
                if still:
                    return self._publish(identity, sources, made, tuple(inputs))
        finally:
            shutil.rmtree(work, ignore_errors=True)
        raise BuildError(
            ", ".join(sources), f"must keep still while it is built; it changed {_ATTEMPTS} times"
        )

    def _publish(self, identity: str, sources: Sequence[str], made: Made, inputs: tuple[Input, ...]) -> Found:
        contents = [(item.path, item.sha256) for item in inputs]
        key = hashlib.sha256(json.dumps([identity, contents]).encode()).hexdigest()[:40]
        seen = made.file.stat()
        if seen.st_size > _ALWAYS_HASHED:
            with made.file.open("rb") as file:
                os.fsync(file.fileno())
        absent = tuple(would_shadow((item.path for item in inputs), made.search))
        size, modified, name = seen.st_size, seen.st_mtime_ns, made.file.name
        variant = Variant(key, name, size, modified, digest(made.file), time.time(), inputs, absent)
        entry = self.folder / "entries" / key
        manifest = self._read(identity)
        with self._writable():
            entry.mkdir(parents=True, exist_ok=True)
            made.file.replace(entry / name)
            manifest.sources = list(sources)
            for dropped in manifest.add(variant):
                shutil.rmtree(self.folder / "entries" / dropped.key, ignore_errors=True)
            manifest.write(self._manifest(identity))
        return Found(entry / name, variant)

    def _sweep(self, identity: str) -> None:
        """Remove what killed builds left: of this request, whose lock we hold, and all that is old."""
        for left in (self.folder / "work").iterdir():
            with contextlib.suppress(OSError):
                if left.name.startswith(f"{identity}-") or time.time() - left.stat().st_mtime > _FORGOTTEN:
                    shutil.rmtree(left, ignore_errors=True)


def _is_whole(path: Path, variant: Variant) -> bool:
    try:
        seen = path.stat()
        trusted = seen.st_size > _ALWAYS_HASHED and seen.st_mtime_ns == variant.modified
        return seen.st_size == variant.size and (trusted or digest(path) == variant.sha256)
    except OSError:
        return False


def _changed_since(before: Sequence[Input], after: Sequence[Input], started: int) -> bool:
    now = {item.path: item.sha256 for item in after}
    if any(now[item.path] != item.sha256 for item in before):
        return True
    until = time.time_ns()
    headers = [item.path for item in after if item.path not in {old.path for old in before}]
    return any(started < Path(path).stat().st_mtime_ns <= until for path in headers)
