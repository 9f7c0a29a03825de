"""Build real PyTorch extensions, run their operators in each host, and print a table in Markdown.

    python table.py FOLDER [--packages torchlpc torch-scatter] [--mindspore .venv-mindspore/bin/python] [--peer]

``FOLDER`` gets the sources. A package runs in a process of its own for each environment. The exit code is 1 if a
result differs from the reference.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter

from packages import PACKAGES

RUN = pathlib.Path(__file__).parent / "run.py"
HOSTS = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX", "mindspore": "MindSpore"}
HEAD = ("package", "operators", "polyop, s", "cpp_extension, s", *HOSTS.values())


def outcome(python, package, folder, hosts, *options):
    """Return what run.py prints, or None with the reason why a package cannot be downloaded.

    The build cache is an empty one, so that the seconds are those of a first build.
    """
    command = [python, str(RUN), package, str(folder), *hosts, *options]
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "POLYOP_CACHE_DIR": cache},
        )
    if done.returncode == 3:
        return None, done.stdout.strip()
    if done.returncode:
        return {"package": package, "calls": [["-", package, f"FAILED: {done.stderr[-2000:]}"]]}, ""
    return json.loads(done.stdout.splitlines()[-1]), ""


def cell(calls, host):
    """Return how many calls passed each check in a host, were refused as they should be, or failed."""
    found = Counter(result.partition(":")[0] for where, _, result in calls if where == host)
    return ", ".join(f"{check} {count}" for check, count in found.items())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--packages", nargs="*", default=[one.name for one in PACKAGES])
    parser.add_argument("--mindspore")
    parser.add_argument("--peer", action="store_true")
    options = parser.parse_args()
    print("|", " | ".join(HEAD), "|")
    print("|", " | ".join("---" for _ in HEAD), "|", flush=True)
    wrong = []
    for name in options.packages:
        peer = ["--peer"] if options.peer else []
        result, reason = outcome(
            sys.executable, name, options.folder, [h for h in HOSTS if h != "mindspore"], *peer
        )
        if result is None:
            print(f"{name}: not run: {reason}", file=sys.stderr)
            continue
        if options.mindspore:
            more, _ = outcome(options.mindspore, name, options.folder, ["mindspore"])
            result["calls"] += more["calls"]
        wrong += [(name, *call) for call in result["calls"] if "FAILED" in call[-1]]
        seconds = [f"{result[key]:.0f}" if key in result else "" for key in ("build_s", "peer_s")]
        first = f"{name} {result.get('version', '')}", str(result.get("operators", "")), *seconds
        print("|", " | ".join([*first, *(cell(result["calls"], host) for host in HOSTS)]), "|", flush=True)
    for line in wrong:
        print(*line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
