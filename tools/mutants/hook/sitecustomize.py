"""Give modules other texts than their files have: those of POLYOP_MUTANT, a JSON file.

Python runs this file when it starts, because its folder is in PYTHONPATH; so do programs that tests start.
What is compiled from a mutated text is never written as byte code.

The build cache knows the library of a loop kernel by the source files of the compiler, not by the C that it
prints. So the digest of these files ends in that of a mutant of the compiler: else the library of the
original were taken for the mutant, and later that of the mutant for the original.
"""

from __future__ import annotations

import json
import os
from importlib.machinery import SourceFileLoader
from types import CodeType

DIGEST = "/polyop/loops/library/library.py"
MIXED = """
_digest_of_files = compiler_digest
def compiler_digest() -> str:
    return _digest_of_files()[:-12] + {digest!r}
"""


def install(texts: dict[str, str], digest: str) -> None:
    """Let the loader of source files compile these texts; they are by the real paths of their files."""
    get_code = SourceFileLoader.get_code

    def get_mutated_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        path = os.path.realpath(loader.path)
        is_digest = digest and path.endswith(DIGEST)
        if path not in texts and not is_digest:
            return get_code(loader, fullname)
        text = texts[path] if path in texts else loader.get_source(fullname) or ""
        mixed = MIXED.format(digest=digest) if is_digest else ""
        code: CodeType = compile(text + mixed, loader.path, "exec", dont_inherit=True)
        return code

    SourceFileLoader.get_code = get_mutated_code  # type: ignore[assignment, method-assign]


if file := os.environ.get("POLYOP_MUTANT"):
    with open(file, encoding="utf-8") as opened:  # noqa: PTH123 - a test may look for pathlib in sys.modules
        install(**json.load(opened))
