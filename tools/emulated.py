"""Run Python with a wheel of polyop for aarch64 on a machine of another kind, by qemu-aarch64.

    python tools/emulated.py dist/polyop-*-cp311-*_aarch64.whl first.py
    python tools/emulated.py --also pytest dist/polyop-*-cp311-*_aarch64.whl -m pytest tests/loops

The Python is Debian's. Its packages are unpacked into build/aarch64; nothing is installed on this machine.
polyop starts this machine's aarch64-linux-gnu-gcc and -g++. Debian's packages qemu-user and
g++-aarch64-linux-gnu must be installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

WORK = Path(__file__).resolve().parents[1] / "build" / "aarch64"
SYSTEM = WORK / "system"
PROGRAMS = ("qemu-aarch64", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "apt-get", "dpkg-deb")
PACKAGES = ("python3", "libstdc++6")
PLATFORMS = ("manylinux2014_aarch64", *(f"manylinux_2_{minor}_aarch64" for minor in range(17, 37)))


def main(arguments: Sequence[str]) -> int:
    """Run Python with the arguments of the command line; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--also", action="append", default=[], help="another requirement of what is run")
    parser.add_argument("python", nargs=argparse.REMAINDER, metavar="...", help="the arguments of Python")
    options = parser.parse_args(arguments)
    command, variables = prepare(options.wheel, options.also)
    return subprocess.run([*command, *options.python], env=variables, check=False).returncode


def lacking() -> list[str]:
    """Return the programs that are needed and are not on this machine."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def prepare(wheel: Path, also: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts Python with the wheel, and its environment variables."""
    if names := lacking():
        raise SystemExit(f"not on this machine: {', '.join(names)}")
    if not SYSTEM.is_dir():
        unpack()
    [python] = (SYSTEM / "usr" / "bin").glob("python3.[0-9]*[0-9]")
    site = WORK / "site"
    shutil.rmtree(site, ignore_errors=True)
    version = python.name.removeprefix("python")
    run(
        sys.executable, "-m", "pip", "install", "-q", "--target", site, "--only-binary", ":all:",
        "--python-version", version, *(f"--platform={name}" for name in PLATFORMS), wheel, *also,
    )  # fmt: skip
    compilers = {"CC": "aarch64-linux-gnu-gcc", "CXX": "aarch64-linux-gnu-g++"}
    places = {"QEMU_LD_PREFIX": str(SYSTEM), "PYTHONPATH": str(site), "POLYOP_CACHE_DIR": str(WORK / "cache")}
    return ["qemu-aarch64", str(python)], {**os.environ, **compilers, **places}


def unpack() -> None:
    """Unpack Debian's Python for aarch64, and what it needs, by lists of packages of its own."""
    for folder in ("lists/partial", "archives/partial"):
        (WORK / "apt" / folder).mkdir(parents=True, exist_ok=True)
    (WORK / "apt" / "status").touch()  # nothing is installed
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",
        "Dir::State": WORK / "apt",
        "Dir::State::status": WORK / "apt" / "status",
        "Dir::Cache": WORK / "apt",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    run(*apt, "update")
    run(*apt, "install", "-y", "--download-only", "--no-install-recommends", *PACKAGES)
    partial = SYSTEM.with_name("partial")
    shutil.rmtree(partial, ignore_errors=True)
    for package in sorted((WORK / "apt" / "archives").glob("*.deb")):
        run("dpkg-deb", "-x", package, partial)
    partial.rename(SYSTEM)


def run(*command: object) -> None:
    """Run a command; if it fails, exit with its output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
