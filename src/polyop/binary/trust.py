"""Whose files may be run as code: the user's own and root's, where nobody else may write.

A hash finds damage; it gives no trust, as whoever can swap a library can write its hash as well. Trust
comes from ownership: of the file, of its folder, and of every folder above, since who may write in a
folder may put another one in its place. A sticky folder such as ``/tmp`` protects what others own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from ..core.errors import CacheError

_ROOT = 0
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def problem_of(seen: os.stat_result) -> str:
    """Return why a file or folder cannot be trusted, "" where it can.

    >>> problem_of(os.stat("/usr"))
    ''
    """
    return _owner_problem(seen) or _mode_problem(seen)


def _owner_problem(seen: os.stat_result) -> str:
    return "" if seen.st_uid in (_ROOT, os.geteuid()) else f"belongs to the user {seen.st_uid}"


def _mode_problem(seen: os.stat_result, writable: int = _WRITABLE) -> str:
    mode = stat.S_IMODE(seen.st_mode)
    return f"can be written by others (mode {mode:o})" if mode & writable else ""


def _problem_above(seen: os.stat_result) -> str:
    """Return why what lies in a folder could be swapped, "" where it could not."""
    owner = _owner_problem(seen)
    if owner and not _is_unmapped(seen.st_uid):
        return owner
    if seen.st_mode & stat.S_ISVTX:
        return ""
    alone = seen.st_gid in (_ROOT, seen.st_uid)  # the group has no other members, as systems number users
    return _mode_problem(seen, stat.S_IWOTH if alone else _WRITABLE)


def _is_unmapped(user: int) -> bool:
    """Whether an owner has no number here, as the system's own folders in a container without root."""
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            ranges = [tuple(map(int, line.split())) for line in file]
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            unmapped = int(file.read())
    except (OSError, ValueError):
        return False
    return user == unmapped and not any(first <= user < first + count for first, _, count in ranges)


def check_cache(folder: str) -> str:
    """Return the resolved folder of the build cache.

    Raises ``CacheError`` where others may change what it holds. What does not exist yet is no
    problem: it is made for this user alone.
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
    """Check the folders above a folder, from the root down; return whether it, or one of them, is a link.

    The folder itself is checked where none is.
    """
    parts, path, linked = folder.split("/")[1:], "", False
    for number in range(len(parts) + 1):
        path = "/".join(["", *parts[:number]]) or "/"
        last = number == len(parts)
        try:
            seen = os.lstat(path)
            if stat.S_ISLNK(seen.st_mode):
                linked = True
                if last:
                    break
                seen = os.stat(path)
        except OSError:
            break  # whoever wants to use it is told so
        if last and not linked:
            if problem := problem_of(seen):
                raise _refused(folder, path, problem)
        elif not last and (problem := _problem_above(seen)):
            raise _refused(folder, path, problem, inside=False)
    return linked


def check_folders(folder: str, inside: Sequence[str]) -> None:
    """Raise ``CacheError`` where a folder of the build cache is not one, or others may write in it."""
    for path in inside:
        try:
            seen = os.lstat(path)
        except OSError:
            continue
        problem = problem_of(seen) if stat.S_ISDIR(seen.st_mode) else "is no folder, or a link to one"
        if problem:
            raise _refused(folder, path, problem)


def check_file(folder: str, path: str, seen: os.stat_result) -> None:
    """Raise ``CacheError`` where others may change an open file of the build cache."""
    problem = problem_of(seen)
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
    """Make a folder that only this user may enter, and those above it where they are missing.

    Raises ``OSError``; one that exists keeps its rights.
    """
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    except FileNotFoundError:
        make_private(os.path.dirname(folder))
        make_private(folder)
