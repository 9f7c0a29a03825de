"""Print the races in polyop's core that ThreadSanitizer reports; exit with 1 where there are any.

    python tests/support/races.py REPORT...

Frameworks are not instrumented, so ThreadSanitizer does not see how they synchronise. A race counts when the core
itself makes one of the two accesses: its frame is the first below the sanitizer's own. What does not count is the
memory of a call frame, which XLA makes in another thread and hands to the core's handler.
"""

import re
import sys
from pathlib import Path

ACCESS = re.compile(
    r"^  (?:Previous )?(?:atomic )?(?:read|write) of size .*\n((?:    #.*\n)+)", re.MULTILINE | re.IGNORECASE
)
CORE = re.compile(r"_core\.cpython|/csrc/")
MADE_BY_XLA = re.compile(r"Location is heap block .*\n(?:    #.*\n)*    #.* xla::ffi::CallFrame")


def races(text):
    """Yield the reports that count."""
    for report in text.split("=" * 18 + "\n"):
        if any(map(is_in_core, ACCESS.findall(report))) and not MADE_BY_XLA.search(report):
            yield report


def is_in_core(frames):
    """Whether the first frame that is not the sanitizer's is in the core."""
    own = (frame for frame in frames.splitlines() if "libtsan.so" not in frame)
    return CORE.search(next(own, "")) is not None


if __name__ == "__main__":
    reports = [race for path in sys.argv[1:] for race in races(Path(path).read_text(errors="replace"))]
    print("".join(reports[:5]), end="")
    print(f"{len(reports)} races in the core")
    sys.exit(bool(reports))
