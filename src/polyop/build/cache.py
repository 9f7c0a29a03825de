"""The content-addressed cache of built libraries, their objects, and precompiled headers.

``requests/<id>.json``  a manifest: what was built for a request, from which inputs
``entries/<key>/``      one result; the key is a hash of the request and of every input's content
``work/<id>-*/``        a build in progress; its result is moved into an entry
``code/<digest>/``      source code that was passed as text
``locks/<id>``          locked by the process that builds; the kernel unlocks it if that process is killed
``in-use``              one shared lock per entry, held by the processes that use it: see ``entry_locks``
``repairs.log``         one line for each damaged file that was rebuilt

The folders are private to the user. Files that another user owns or may write are refused (``trust``).
After a build, entries beyond the size limit are evicted, least recently used first (``eviction``).
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
from ..core import locks
from ..core.errors import BuildError, CacheError
from ..core.log import listener
from . import entry_locks, eviction
from .depfile import would_shadow
from .inputs import Input
from .lookup import CachedFile, identity_of, look_up, manifest_path
from .manifest import KEY_DIGITS, BuildResult, Kind, Manifest
from .paths import cache_dir
from .reasons import why_not_cached
from .show import progress

_ABANDONED_AFTER = 86400.0
"""Seconds after which a working folder counts as left by a killed build."""
_ATTEMPTS = 3
_FSYNC_ABOVE = 8 << 20
"""Bytes. A larger file is slow to rebuild, so it is flushed to disk before its record is written."""


class BuildOutput(NamedTuple):
    """The file that a build made, the files it read, and the folders it searched for headers."""

    file: Path
    inputs: Sequence[str]
    search: Sequence[str] = ()


class _Job(NamedTuple):
    """What :meth:`Cache.get` was asked for."""

    identity: str
    sources: Sequence[str]
    make: Callable[[Path], BuildOutput]
    watch: Sequence[str]
    kind: Kind


class Cache:
    """The cache in one folder. Any number of processes may use it at the same time."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_dir()
        self._objects = entry_locks.Users(str(self.folder))
        self._added: list[int] = []
        self._inputs: dict[str, Input] = {}

    def find(self, request: Any, kind: Kind = "library") -> CachedFile | None:
        """Return the valid result for ``request``, or None. Raises ``CacheError``."""
        return self._look_up(identity_of(request), kind)

    def get(
        self,
        request: Any,
        sources: Sequence[str],
        make: Callable[[Path], BuildOutput],
        *,
        watch: Sequence[str] = (),
        kind: Kind = "library",
    ) -> CachedFile:
        """Return the result for ``request``: from the cache, or built by ``make(working_folder)``.

        ``request`` is any JSON value. The request and the content of the inputs identify the result.
        ``sources`` are names for listings and errors. ``watch`` are the inputs known before the build. If
        one of them, or a header, changes during the build, it is built again. ``kind``: see :func:`look_up`.
        The ``make`` of a library may get its objects from this cache. They are in use until it ends.
        Raises ``CacheError``, ``BuildError`` for inputs that keep changing, and what ``make`` raises; then
        nothing is stored.
        """
        identity = identity_of(request)
        cached = self._look_up(identity, kind)
        if cached is not None:
            return cached
        if kind != "other":
            locks.check_may_compile()
        eviction.cache_limits()  # a malformed variable must raise before the build, not after it
        from filelock import FileLock

        with self._writable():
            trust.make_private(str(self.folder / "locks"))
            lock = FileLock(self.folder / "locks" / identity, mode=0o644)
            text = "waiting for another process that builds the same"
            with contextlib.nullcontext() if kind == "object" else progress(text, logged=False):
                lock.acquire()
        try:
            cached = self._look_up(identity, kind, self._log)
            return cached or self._build_logged(_Job(identity, sources, make, watch, kind))
        finally:
            lock.release()
            if kind != "object":  # those of a build that fails count, too
                self._release(kind)

    def _look_up(
        self, identity: str, kind: Kind, log: Callable[[str], None] = lambda text: None
    ) -> CachedFile | None:
        users = self._objects if kind == "object" else None
        cached = look_up(str(self.folder), identity, log, kind=kind, users=users)
        if cached is not None and kind == "object":
            self._inputs.update((item.path, item) for item in cached.result.inputs)
        return cached

    def _build_logged(self, job: _Job) -> CachedFile:
        log = listener("build", detail=job.kind == "object")
        why = why_not_cached(self.folder, job.identity, job.sources, job.kind) if log else ""
        started = time.perf_counter()
        built = self._build(job)
        if log:
            seconds = time.perf_counter() - started
            text = f"{', '.join(job.sources)} in {seconds:.2f} s: {why}; {built.path}"
            log.debug("compiled %s", text) if job.kind == "object" else log.info("built %s", text)
        return built

    def _release(self, kind: Kind) -> None:
        """End the use of objects, if a library was built of them, and keep the cache within its limits."""
        if kind == "library":
            self._objects.release()
        added = sum(self._added)
        self._added.clear()
        with contextlib.suppress(OSError):  # another process may evict the same entry at the same time
            if added:
                eviction.evict(self.folder, added)

    def _input(self, path: str) -> Input:
        """Return an input as it is now; it is hashed once for all objects that have read it."""
        known = self._inputs.get(path)
        current = known.refreshed() if known else None
        self._inputs[path] = current = current or Input.of(path)
        return current

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

    def _build(self, job: _Job) -> CachedFile:
        missing = None
        with self._working_folder(job.identity) as work:
            for attempt in range(_ATTEMPTS):
                try:
                    before = [self._input(path) for path in job.watch]
                except FileNotFoundError as problem:
                    missing = problem.filename
                    break
                started = time.time_ns()
                step = work / str(attempt)
                step.mkdir(mode=0o700)
                output = job.make(step)
                try:
                    inputs = [self._input(path) for path in dict.fromkeys([*job.watch, *output.inputs])]
                    changed = _changed_since(before, inputs, started)
                except FileNotFoundError as problem:  # an input was removed during the build
                    missing = problem.filename
                    continue
                if not changed:
                    published = self._publish(job, output, tuple(inputs))
                    if job.kind == "library":
                        verified.remember_library(published.path, published.result.sha256)
                    return published
        rule = f"must not change while it is built; it changed {_ATTEMPTS} times"
        hint = f"{missing} is missing" if missing else None
        raise BuildError(", ".join(job.sources), rule, hint=hint)

    @contextlib.contextmanager
    def _working_folder(self, identity: str) -> Iterator[Path]:
        """Yield a folder of one build, which is removed after it."""
        import tempfile

        with self._writable():
            trust.make_private(str(self.folder / "work"))
            self._sweep(identity)
            work = Path(tempfile.mkdtemp(prefix=f"{identity}-", dir=self.folder / "work"))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _publish(self, job: _Job, output: BuildOutput, inputs: tuple[Input, ...]) -> CachedFile:
        """Move the file of a build into its entry, and record it in the manifest of its request."""
        contents = [(item.path, item.sha256) for item in inputs]
        key = text_digest(json.dumps([job.identity, contents]))[:KEY_DIGITS]
        output.file.chmod(0o755)  # whatever the umask is
        status = output.file.stat()
        if status.st_size > _FSYNC_ABOVE:
            with output.file.open("rb") as file:
                os.fsync(file.fileno())
        absent = tuple(would_shadow((item.path for item in inputs), output.search))
        size, modified, name = status.st_size, status.st_mtime_ns, output.file.name
        result = BuildResult(key, name, size, modified, digest(output.file), time.time(), inputs, absent)
        entry = self.folder / "entries" / key
        record = manifest_path(str(self.folder), job.identity)
        with self._writable():
            self._objects.hold(key) if job.kind == "object" else entry_locks.hold(str(self.folder), key)
            trust.make_private(str(entry))
            trust.check_folders(str(self.folder), (str(entry.parent), str(entry)))
            output.file.replace(entry / name)
            try:
                manifest = Manifest.read(record)
            except (FileNotFoundError, ValueError):  # the first result, or a damaged record
                manifest = Manifest()
            manifest.sources = list(job.sources)
            dropped_results = manifest.add(result)
            manifest.write(record)
            for dropped in dropped_results:  # eviction removes an entry that is still in use later
                with entry_locks.exclusive(str(self.folder), dropped.key) as locked:
                    if locked:
                        shutil.rmtree(self.folder / "entries" / dropped.key, ignore_errors=True)
        self._added.append(size)
        return CachedFile(str(entry / name), result)

    def _sweep(self, identity: str) -> None:
        """Remove working folders of killed builds: all of this request (we hold its lock), and old ones."""
        for folder in (self.folder / "work").iterdir():
            with contextlib.suppress(OSError):
                ours = folder.name.startswith(f"{identity}-")
                if ours or time.time() - folder.stat().st_mtime > _ABANDONED_AFTER:
                    shutil.rmtree(folder, ignore_errors=True)


def _changed_since(before: Sequence[Input], after: Sequence[Input], started: int) -> bool:
    """Whether an input changed during a build: a watched one by its content, a header by its times."""
    digests = {item.path: item.sha256 for item in after}
    if any(digests[item.path] != item.sha256 for item in before):
        return True
    now = time.time_ns()
    headers = [item.path for item in after if item.path not in {old.path for old in before}]
    return any(started < _last_change(os.stat(path)) <= now for path in headers)


def _last_change(status: os.stat_result) -> int:
    """Return when a file's content or inode changed: a file moved into its place keeps an old mtime."""
    return max(status.st_mtime_ns, status.st_ctime_ns)
