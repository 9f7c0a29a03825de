"""The sources of a build: files that exist, in languages we know, and what they include."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import ArgumentValueError, BuildError, CacheError
from . import atomic
from .paths import cache_dir

LANGUAGES = {".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".cu": "cuda"}
_SUFFIX = {"c": ".c", "c++": ".cc", "cuda": ".cu"}
_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """A source file: its absolute path, its language, and its text with that of its own headers."""

    path: Path
    language: str
    text: str

    @property
    def subject(self) -> str:
        """How an error names it."""
        return str(self.path)


def gather(
    paths: Sequence[str | Path], code: str | None, language: str, include: Sequence[str]
) -> list[Source]:
    """Return the sources of a build, an inline one last; that is kept as a file of the cache.

    Raises ``BuildError`` for a file that is missing or of no known language, and
    ``ArgumentValueError`` when there is nothing to build.
    """
    if isinstance(paths, (str, Path)):
        paths = [paths]
    files = [Path(path).absolute() for path in paths]
    if code is not None:
        files.append(keep(code, language))
    if not files:
        raise ArgumentValueError("build", "needs a source file, or code")
    return [_read(path, include) for path in files]


def keep(code: str, language: str) -> Path:
    """Return the file of the cache that holds this text. Raises ``CacheError``."""
    if language not in _SUFFIX:
        known = ", ".join(map(repr, _SUFFIX))
        raise ArgumentValueError("build: language", f"must be one of {known}", repr(language))
    name = hashlib.sha256(code.encode()).hexdigest()[:16]
    path = cache_dir() / "code" / name / f"code{_SUFFIX[language]}"
    try:
        if not path.is_file() or path.read_text(encoding="utf-8") != code:
            atomic.write_text(path, code)
    except OSError as problem:
        raise CacheError(
            f"build cache {cache_dir()}",
            "must be a folder that can be written",
            problem.strerror or problem,
            hint="set POLYOP_CACHE_DIR to another folder",
        ) from None
    return path


def _read(path: Path, include: Sequence[str]) -> Source:
    language = LANGUAGES.get(path.suffix)
    if language is None:
        known = " ".join(LANGUAGES)
        raise BuildError(path, f"must be a source with one of the suffixes {known}", repr(path.suffix))
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise BuildError(path, "must be a source file that can be read", problem.strerror) from None
    return Source(path, language, _with_own_headers(path, text, include))


def _with_own_headers(path: Path, text: str, include: Sequence[str]) -> str:
    """Return the text followed by that of the headers it includes with quotes, theirs too."""
    texts, seen, left = [text], {path}, [(path, text)]
    while left:
        current, body = left.pop()
        for name in _QUOTED.findall(body):
            for folder in (current.parent, *map(Path, include)):
                header = folder / name
                if header in seen or not header.is_file():
                    continue
                seen.add(header)
                body_of = header.read_text(encoding="utf-8", errors="replace")
                texts.append(body_of)
                left.append((header, body_of))
                break
    return "\n".join(texts)
