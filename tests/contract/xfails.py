"""Known failures: lines ``mode member: reason`` in xfail/<host>.txt. A line that no longer fails is an error."""

import pathlib

FOLDER = pathlib.Path(__file__).parent / "xfail"


def read(host, folder=FOLDER):
    """Return {(mode, member): reason}; raises ``ValueError`` for a line without a reason."""
    path = folder / f"{host}.txt"
    reasons = {}
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else (), 1):
        if not line.strip() or line.startswith("#"):
            continue
        mode, _, rest = line.partition(" ")
        member, _, reason = rest.partition(": ")
        if not reason.strip():
            raise ValueError(f"{path.name}:{number}: needs 'mode member: reason', but got {line!r}")
        reasons[mode, member] = reason.strip()
    return reasons
