"""Read the sources of a build, their languages, and the headers that they include with quotes."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ..binary import trust, verified
from ..binary.allowed import check_allowed
from ..binary.hashes import text_digest
from ..core.errors import ArgumentValueError, BuildError, CacheError
from . import atomic, entry_locks
from .paths import absolute, cache_folder

LANGUAGES = {".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".cu": "cuda", ".hip": "hip"}
_SUFFIX = {"c": ".c", "c++": ".cc", "cuda": ".cu", "hip": ".hip"}
_QUOTED = r'(?m)^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"'
_PYTORCH = r'(?m)^[ \t]*#[ \t]*include[ \t]*[<"](?:torch/|ATen/|c10/|ms_ext\.h|pytorch_npu_helper\.hpp)'


class Source(NamedTuple):
    """A source file: its absolute path, its language, and its text followed by that of its own headers."""

    path: str
    language: str
    text: str

    @property
    def name(self) -> str:
        """The file's name."""
        return os.path.basename(self.path)

    @property
    def uses_pytorch(self) -> bool:
        """Whether it includes a header of PyTorch, or one of polyop's headers that does.

        >>> Source("/a.cc", "c++", "#include <torch/extension.h>").uses_pytorch
        True
        """
        return has(_PYTORCH, self.text)


@functools.lru_cache(maxsize=64)
def has(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; kept, as each function of a large source asks it again."""
    return re.search(pattern, text) is not None


@functools.lru_cache(maxsize=64)
def _quoted(text: str) -> tuple[str, ...]:
    """Return the headers that a text includes with quotes; kept for the same reason."""
    return tuple(re.findall(_QUOTED, text))


def gather(
    paths: Sequence[str | os.PathLike[str]], code: str | None, language: str, include: Sequence[str]
) -> list[Source]:
    """Return the sources of a build. ``code`` is stored as a file of the cache, and comes last.

    Raises ``BuildError`` for a file that is missing or whose language is unknown, ``ArgumentTypeError`` for
    a file outside the allowlist, and ``ArgumentValueError`` if there is no source at all.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    files = [absolute(path) for path in paths]
    for path in files:
        check_allowed(path, "source")
    if code is not None:
        files.append(store_code(code, language))
    if not files:
        raise ArgumentValueError("build", "needs a source file, or code")
    return [_read(path, include) for path in files]


def store_code(code: str, language: str) -> str:
    """Store source code in the cache, and return the path of its file. Raises ``CacheError``."""
    if language not in _SUFFIX:
        known = ", ".join(map(repr, _SUFFIX))
        raise ArgumentValueError("build: language", f"must be one of {known}", repr(language))
    folder, key = cache_folder(), text_digest(code)[:16]
    parent = f"{folder}/code/{key}"
    path = f"{parent}/code{_SUFFIX[language]}"
    trust.check_cache(folder)
    try:
        trust.make_private(folder)
        entry_locks.hold(folder, key)
        trust.make_private(parent)
        trust.check_folders(folder, (os.path.dirname(parent), parent))
        if not _holds(path, code):
            atomic.write_text(path, code)
    except OSError as problem:
        raise CacheError(
            f"build cache {folder}",
            "must be a folder that can be written",
            problem.strerror or problem,
            hint="set POLYOP_CACHE_DIR to another folder",
        ) from None
    verified.remember_source(path)
    return path


def _holds(path: str, code: str) -> bool:
    """Whether the file has this text, and no other user can write it."""
    file = verified.open_plain(path)
    if file is None:
        return False
    with open(file, encoding="utf-8", errors="replace", newline="") as stream:
        return not trust.problem_of(os.fstat(file)) and stream.read() == code


def _read(path: str, include: Sequence[str]) -> Source:
    suffix = os.path.splitext(path)[1]
    language = LANGUAGES.get(suffix)
    if language is None:
        known = " ".join(LANGUAGES)
        raise BuildError(path, f"must be a source with one of the suffixes {known}", repr(suffix))
    try:
        text = _text(path)
    except OSError as problem:
        raise BuildError(path, "must be a source file that can be read", problem.strerror) from None
    return Source(path, language, _with_own_headers(path, text, include))


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _with_own_headers(path: str, text: str, include: Sequence[str]) -> str:
    """Return the text followed by the text of all headers that it includes with quotes, recursively."""
    texts, visited, stack = [text], {path}, [(path, text)]
    while stack:
        current, current_text = stack.pop()
        for name in _quoted(current_text):
            for folder in (os.path.dirname(current), *include):
                header = os.path.join(folder, name)
                if header in visited or not os.path.isfile(header):
                    continue
                visited.add(header)
                header_text = _text(header)
                texts.append(header_text)
                stack.append((header, header_text))
                break
    return "\n".join(texts)
