"""Name the lines that Ascend's printed C++ files leave out, where a build of them has failed.

Ascend's document of operator wheels prints the functions of a project, and not what they need around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_USINGS = {
    "AutogradContext": "using torch::autograd::AutogradContext;",
    "tensor_list": "using torch::autograd::tensor_list;",
    "empty_like": "using at::empty_like;",
}
_NAMESPACES = {
    "AutogradContext": "torch::autograd",
    "tensor_list": "torch::autograd",
    "empty_like": "(at|torch)",
}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_FUNCTION_H = "function.h"
_MAX_FILES = 64  # files that are read for one source


def left_out(source: str | Path, folders: Sequence[str | Path] = ()) -> list[str]:
    """Return a sentence for each line that a C++ source lacks and such documents do not print.

    ``folders`` are further folders of headers. A file that cannot be read lacks nothing.
    """
    files = dict(_files(Path(source), [Path(folder) for folder in folders]))
    text = "\n".join(part for part in files.values() if part is not None)
    name = Path(source).name
    notes = [
        f"{name} includes {file}, which is not there: the document does not print it. It has "
        "#include <torch/extension.h> and the declarations of the functions that several files call"
        for file, part in files.items()
        if part is None and Path(file).name == _FUNCTION_H
    ]
    for word, line in _USINGS.items():
        used = re.search(rf"(?<![\w:.>&]){word}\b\s*[(*&\w]", text)
        namespace = rf"\busing\s+namespace\s+{_NAMESPACES[word]}\s*;"
        if used and not re.search(rf"\busing\b[^;]*\b{word}\b|{namespace}", text):
            notes.append(f"{name} uses {word}: the document leaves out {line}")
    return notes


def _files(source: Path, folders: Sequence[Path]) -> Iterator[tuple[str, str | None]]:
    """Yield the source and the headers that it includes in quotes: its name, its text or None without one."""
    waiting, seen = [(source.name, source)], {source.name}
    while waiting and len(seen) <= _MAX_FILES:
        name, path = waiting.pop()
        try:
            text = _COMMENT.sub("", path.read_text(errors="replace"))
        except OSError:
            yield name, None
            continue
        yield name, text
        for found in _INCLUDE.findall(text):
            if found not in seen:
                seen.add(found)
                places = [folder / found for folder in (path.parent, *folders)]
                waiting.append((found, next((place for place in places if place.is_file()), places[0])))
