"""The content-addressed cache of built libraries and precompiled headers.

``requests/<id>.json``  a manifest: what was built for a request, from which inputs
``entries/<key>/``      one result; the key is a hash of the request and of every input's content
``work/<id>-*/``        a build in progress; becomes an entry by renaming
``code/<digest>/``      code that was given as text
``locks/<id>``          locked by the process that builds; the system frees it when that is killed
``in-use``              one lock for each entry, shared by those that use it: see ``entry_locks``
``repairs.log``         damage that was found and made good

Folders are the user's alone; what another user owns or may write is refused (``trust``). What is beyond
the bound, and used least recently, goes after a build (``eviction``).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..binary import trust, verified
from ..binary.hashes import digest, text_digest
from ..core.errors import BuildError, CacheError
from . import entry_locks, eviction
from .depfile import would_shadow
from .inputs import Input
from .lookup import CachedFile, identity_of, look_up, manifest_path
from .manifest import KEY_DIGITS, BuildResult, Manifest
from .paths import cache_dir
from .run import progress

_FORGOTTEN = 86400.0
"""Seconds after which a working folder that nobody claims is swept."""
_ATTEMPTS = 3
_FLUSHED = 8 << 20
"""Bytes: a larger file is slow to make again, and is on disk before its record is."""


class BuildOutput(NamedTuple):
    """What a build gives: the file, the files it has read, and the folders searched for headers."""

    file: Path
    inputs: Sequence[str]
    search: Sequence[str] = ()


class Cache:
    """The cache in one folder; any number of processes may use it at once."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_dir()

    def get(
        self,
        request: Any,
        sources: Sequence[str],
        make: Callable[[Path], BuildOutput],
        *,
        watch: Sequence[str] = (),
        library: bool = True,
    ) -> CachedFile:
        """Return the result for ``request``, from the cache or by ``make(working_folder)``.

        ``request`` is anything JSON can hold; with the content of the inputs it decides.
        ``watch`` are inputs known before the build; one that changes meanwhile starts it again.
        ``library`` is False for what is not loaded: see :func:`look_up`.
        Raises what ``make`` raises (nothing is remembered then), and ``CacheError``.
        """
        identity = identity_of(request)
        found = look_up(str(self.folder), identity, library=library)
        if found is not None:
            return found
        eviction.cache_limits()  # an error in it is said before the work, not after it
        from filelock import FileLock

        with self._writable():
            trust.make_private(str(self.folder / "locks"))
            lock = FileLock(self.folder / "locks" / identity, mode=0o644)
            with progress("waiting for another process that builds the same"):
                lock.acquire()
        try:
            found = look_up(str(self.folder), identity, self._log, library=library)
            if found is not None:
                return found
            made = self._make(identity, sources, make, watch, library=library)
        finally:
            lock.release()
        with contextlib.suppress(OSError):  # of two that make room at once, one comes too late
            eviction.evict(self.folder, made.result.size)
        return made

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

    def _log(self, text: str) -> None:
        with contextlib.suppress(OSError), (self.folder / "repairs.log").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}; it is built again\n")

    def _make(
        self,
        identity: str,
        sources: Sequence[str],
        make: Callable[[Path], BuildOutput],
        watch: Sequence[str],
        *,
        library: bool,
    ) -> CachedFile:
        import tempfile

        with self._writable():
            trust.make_private(str(self.folder / "work"))
            self._sweep(identity)
            work = Path(tempfile.mkdtemp(prefix=f"{identity}-", dir=self.folder / "work"))
        try:
            for attempt in range(_ATTEMPTS):
                before = [Input.of(path) for path in watch]
                started = time.time_ns()
                step = work / str(attempt)
                step.mkdir(mode=0o700)
                made = make(step)
                try:
                    inputs = [Input.of(path) for path in dict.fromkeys([*watch, *made.inputs])]
                    still = not _changed_since(before, inputs, started)
                except FileNotFoundError:  # a header was removed while it was used
                    continue
                if still:
                    found = self._publish(identity, sources, made, tuple(inputs))
                    if library:
                        verified.remember_library(found.path, found.result.sha256)
                    return found
        finally:
            shutil.rmtree(work, ignore_errors=True)
        raise BuildError(
            ", ".join(sources), f"must keep still while it is built; it changed {_ATTEMPTS} times"
        )

    def _publish(
        self, identity: str, sources: Sequence[str], made: BuildOutput, inputs: tuple[Input, ...]
    ) -> CachedFile:
        contents = [(item.path, item.sha256) for item in inputs]
        key = text_digest(json.dumps([identity, contents]))[:KEY_DIGITS]
        made.file.chmod(0o755)  # whatever the umask is
        seen = made.file.stat()
        if seen.st_size > _FLUSHED:
            with made.file.open("rb") as file:
                os.fsync(file.fileno())
        absent = tuple(would_shadow((item.path for item in inputs), made.search))
        size, modified, name = seen.st_size, seen.st_mtime_ns, made.file.name
        result = BuildResult(key, name, size, modified, digest(made.file), time.time(), inputs, absent)
        entry = self.folder / "entries" / key
        record = manifest_path(str(self.folder), identity)
        with self._writable():
            entry_locks.hold(str(self.folder), key)
            trust.make_private(str(entry))
            trust.check_folders(str(self.folder), (str(entry.parent), str(entry)))
            made.file.replace(entry / name)
            try:
                manifest = Manifest.read(record)
            except (FileNotFoundError, ValueError):  # the first result, or a damaged record
                manifest = Manifest()
            manifest.sources = list(sources)
            old = manifest.add(result)
            manifest.write(record)
            for dropped in old:  # one that is in use is swept when it is not
                with entry_locks.exclusive(str(self.folder), dropped.key) as free:
                    if free:
                        shutil.rmtree(self.folder / "entries" / dropped.key, ignore_errors=True)
        return CachedFile(str(entry / name), result)

    def _sweep(self, identity: str) -> None:
        """Remove what killed builds left: of this request, whose lock we hold, and all that is old."""
        for left in (self.folder / "work").iterdir():
            with contextlib.suppress(OSError):
                if left.name.startswith(f"{identity}-") or time.time() - left.stat().st_mtime > _FORGOTTEN:
                    shutil.rmtree(left, ignore_errors=True)


def _changed_since(before: Sequence[Input], after: Sequence[Input], started: int) -> bool:
    now = {item.path: item.sha256 for item in after}
    if any(now[item.path] != item.sha256 for item in before):
        return True
    until = time.time_ns()
    headers = [item.path for item in after if item.path not in {old.path for old in before}]
    return any(started < Path(path).stat().st_mtime_ns <= until for path in headers)
