"""Prepare a release: the sdist and the wheels in dist/, each tried as a user gets it.

    python tools/release.py                        everything
    python tools/release.py --no-build --host jax  what lies in dist/, in one environment

The files are put into an index of packages in a folder, dist/index. For each framework an empty environment
takes polyop from that index alone, what `polyop[FRAMEWORK]` needs from the usual one, and runs the first
example of the README; a last one builds the sdist. No checkout is beside them. docs/internals/releasing.md
has the rest.
"""

from __future__ import annotations

import argparse
import html
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import wheel

DIST = wheel.ROOT / "dist"
INDEX = DIST / "index"
# An environment: what it takes from the index, and a program after the first example, whose tensor is x.
HOSTS = {
    "numpy": ("polyop", ""),
    "torch": ("polyop[torch]", "import torch; print(leaky(torch.tensor(x)))"),
    "jax": ("polyop[jax]", "import jax; print(jax.jit(leaky)(x))"),
    "mindspore": ("polyop[mindspore]", "import mindspore; print(leaky(mindspore.Tensor(x)))"),
    "paddle": ("polyop[paddle]", "import paddle; print(leaky(paddle.to_tensor(x)))"),
}
SDIST = "sdist"


def sdist() -> Path:
    """Return the sdist that scikit-build-core makes of the checkout."""
    programs = wheel.environment(sys.executable, "sdist", ("scikit-build-core>=0.10", "twine"))
    make = f"from scikit_build_core.build import build_sdist; print(build_sdist({str(DIST)!r}))"
    return DIST / wheel.run(programs / "python", "-c", make).splitlines()[-1]


def index() -> None:
    """Write the pages of an index of packages (PEP 503) with the files in dist/."""
    shutil.rmtree(INDEX, ignore_errors=True)
    folder = INDEX / "polyop"
    folder.mkdir(parents=True)
    files = sorted([*DIST.glob("polyop-*.whl"), *DIST.glob("polyop-*.tar.gz")])
    links = "".join(f'<a href="{path.as_uri()}">{html.escape(path.name)}</a>\n' for path in files)
    (folder / "index.html").write_text(f"<!DOCTYPE html>\n{links}", encoding="utf-8")


def tried(host: str) -> Iterator[str]:
    """Yield what goes wrong in an empty environment of a framework, or with the sdist."""
    if host == SDIST:
        return wheel.try_out(sys.executable, [next(DIST.glob("polyop-*.tar.gz"))])
    packages, call = HOSTS[host]
    return wheel.try_out(sys.executable, [packages], call, INDEX.as_uri())


def main() -> int:
    """Prepare the release; return 0, or 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--no-build", action="store_true", help="take what lies in dist/")
    parser.add_argument("--host", action="append", choices=[*HOSTS, SDIST], help="all of them without")
    options = parser.parse_args()
    if not options.no_build:
        print(sdist(), flush=True)
        subprocess.run([sys.executable, Path(__file__).with_name("wheel.py"), "-o", DIST], check=True)
    index()
    ok = True
    for host in options.host or (*HOSTS, SDIST):
        problems = list(tried(host))
        print(f"{host}: {'; '.join(problems) or 'the first example runs'}", flush=True)
        ok = ok and not problems
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
