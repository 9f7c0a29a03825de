"""Find where the installed polyop came from: a package index, or something that only its address finds."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from urllib.parse import unquote, urlsplit


def origin() -> str:
    """Return what pip installs this polyop from, "" for a package index.

    Otherwise it is a folder, a file, or an address such as ``git+https://host/polyop@commit``, as PEP 610's
    ``direct_url.json`` has it. For a source tree that is not installed it is the folder of that tree.
    """
    try:
        record = importlib.metadata.distribution("polyop").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return str(Path(__file__).resolve().parents[3])
    return requirement(record)


def requirement(record: str | None) -> str:
    """Return what ``pip install`` takes for a ``direct_url.json``; "" without one.

    >>> requirement('{"url": "file:///my%20code/polyop", "dir_info": {"editable": true}}')
    '/my code/polyop'
    >>> requirement('{"url": "https://host/polyop", "vcs_info": {"vcs": "git", "commit_id": "1a2b"}}')
    'git+https://host/polyop@1a2b'
    """
    if not record:
        return ""
    parts = json.loads(record)
    url = str(parts["url"])
    version_control = parts.get("vcs_info")
    if version_control:
        return f"{version_control['vcs']}+{url}@{version_control['commit_id']}"
    return unquote(urlsplit(url).path) if url.startswith("file://") else url
