"""Libraries of test kernels, compiled once for all workers and runs that have the same text and headers."""

import functools
import hashlib
import os
import subprocess
from pathlib import Path

from filelock import FileLock

INCLUDE = Path(__file__).resolve().parents[3] / "include"


@functools.cache
def headers():
    """Return the digest of all headers that a text may include."""
    files = [*INCLUDE.rglob("*.h*"), *Path(__file__).parent.glob("*.h")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


def built_once(source, suffix, command, *last):
    """Return the library of a text, in a file with this suffix; words in ``last`` come behind the file's name."""
    key = hashlib.sha256("\0".join([source, suffix, *command, *last, headers()]).encode()).hexdigest()[:20]
    folder = Path(os.environ["POLYOP_CACHE_DIR"]) / "batches"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"{key}.so"
    with FileLock(f"{library}.lock"):
        if not library.exists():
            file, partial = folder / f"{key}{suffix}", folder / f"{key}.part"
            file.write_text(source)
            words = [*command, "-shared", file, "-o", partial, *last]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            partial.rename(library)
    return library
