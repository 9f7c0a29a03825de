"""Decide which files of the build cache may run as code: those that only the user and root may write.

A hash detects damage, but it gives no trust: whoever can replace a library can replace its hash too. Trust
comes from ownership of the file, of its folder and of every folder above, because a user who may write in a
folder can replace what is in it. In a sticky folder such as ``/tmp``, users can only replace their own files.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence

from ..core.errors import CacheError

_ROOT = 0
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def problem_of(status: os.stat_result) -> str:
    """Return why a file or folder cannot be trusted, or "" if it can.

    >>> problem_of(os.stat("/usr"))
    ''
    """
    return _owner_problem(status) or _mode_problem(status)


def _owner_problem(status: os.stat_result) -> str:
    return "" if status.st_uid in (_ROOT, os.geteuid()) else f"belongs to the user {status.st_uid}"


def _mode_problem(status: os.stat_result, writable: int = _WRITABLE) -> str:
    mode = stat.S_IMODE(status.st_mode)
    return f"can be written by others (mode {mode:o})" if mode & writable else ""


def _problem_above(status: os.stat_result) -> str:
    """Return why another user could replace what is in a folder, or "" if no other user can."""
    owner = _owner_problem(status)
    if owner and not _is_unmapped(status.st_uid):
        return owner
    if status.st_mode & stat.S_ISVTX:
        return ""
    own_group = status.st_gid in (_ROOT, status.st_uid)  # a user's private group has the user's number
    return _mode_problem(status, stat.S_IWOTH if own_group else _WRITABLE)


def _is_unmapped(user: int) -> bool:
    """Whether a file's owner has no number in this user namespace.

    The system's folders in a container without root have such an owner.
    """
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            ranges = [tuple(map(int, line.split())) for line in file]
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            unmapped = int(file.read())
    except (OSError, ValueError):
        return False
    return user == unmapped and not any(first <= user < first + count for first, _, count in ranges)


def check_cache(folder: str) -> str:
    """Check the folder of the build cache, and return it resolved.

    Raises ``CacheError`` if other users may change what is in it. A folder that does not exist yet is fine:
    it will be created for this user alone.
    """
    if not _check_above(folder):
        return folder
    real = os.path.realpath(folder)
    _check_above(real)
    try:
        problem = problem_of(os.stat(real))
    except OSError:
        return real
    if problem:
        raise _refused(folder, folder, problem)
    return real


def _check_above(folder: str) -> bool:
    """Check the folders above a folder, from the root down. Return whether any, or the folder, is a link.

    The folder itself is checked too, unless there was a link.
    """
    parts, path, linked = folder.split("/")[1:], "", False
    for number in range(len(parts) + 1):
        path = "/".join(["", *parts[:number]]) or "/"
        last = number == len(parts)
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                linked = True
                if last:
                    break
                status = os.stat(path)
        except OSError:
            break  # it does not exist yet, or using it will fail with a better error
        if last and not linked:
            if problem := problem_of(status):
                raise _refused(folder, path, problem)
        elif not last and (problem := _problem_above(status)):
            raise _refused(folder, path, problem, inside=False)
    return linked


def check_folders(folder: str, inside: Sequence[str]) -> None:
    """Raise ``CacheError`` if one of these is no folder, or if other users may write in it.

    ``folder`` is the build cache, ``inside`` are folders in it. Folders that do not exist are skipped.
    """
    for path in inside:
        try:
            status = os.lstat(path)
        except OSError:
            continue
        problem = problem_of(status) if stat.S_ISDIR(status.st_mode) else "is no folder, or a link to one"
        if problem:
            raise _refused(folder, path, problem)


def check_file(folder: str, path: str, status: os.stat_result) -> None:
    """Raise ``CacheError`` if other users may change a file of the build cache, from its status."""
    problem = problem_of(status)
    if problem:
        raise _refused(folder, path, problem)


def _refused(folder: str, path: str, problem: str, *, inside: bool = True) -> CacheError:
    import shlex

    rule = "what it holds is run as code, so it must belong to you or root, and nobody else may write there"
    if inside:
        quoted = shlex.quote(folder)
        hint = f"rm -r {quoted}   removes it, and all is built again; where nobody has put anything there, "
        hint += f"chown -R {os.geteuid()} {quoted} && chmod -R go-w {quoted}   keeps it"
    else:
        quoted = shlex.quote(path)
        hint = f"who may write in {path} may put another folder in its place: chmod go-w {quoted}"
        hint += "   (or chmod +t, as /tmp has it)"
    hint += "; or set POLYOP_CACHE_DIR to a folder of your own"
    return CacheError(f"build cache {folder}", rule, f"{path}, which {problem}", hint=hint)


def make_private(folder: str) -> None:
    """Create a folder that only this user may enter, and missing folders above it.

    An existing folder keeps its permissions. Raises ``OSError``.
    """
    with contextlib.suppress(FileNotFoundError):
        return _make_one(folder)
    above = os.path.dirname(folder)
    if above != folder:
        make_private(above)
    return _make_one(folder)  # raises in a folder that takes no others, such as /proc


def _make_one(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
