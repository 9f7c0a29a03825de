"""Prepare a release: the sdist and the wheels in dist/, each tried as a user gets it.

    python tools/release.py                        everything
    python tools/release.py --no-build --host jax  what lies in dist/, in one environment

The files are put into an index of packages in a folder, dist/index. For each framework an empty environment
takes `polyop[FRAMEWORK]` from that index, the rest from the usual one, and runs the first example of
the README; a last one builds the sdist. No checkout is beside them. docs/internals/releasing.md has the rest.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import wheel

DIST = wheel.ROOT / "dist"
INDEX = DIST / "index"
# An environment: what is installed, and a program beside the first example. NumPy 1 is MindSpore's.
HOSTS = {
    "numpy": ("polyop", "print(leaky(x))"),
    "torch": ("polyop[torch]", "import torch; print(leaky(torch.tensor(x)))"),
    "jax": ("polyop[jax]", "import jax; print(jax.jit(leaky)(x))"),
    "mindspore": ("polyop[mindspore]", "import mindspore; print(leaky(mindspore.Tensor(x)))"),
    "paddle": ("polyop[paddle]", "import paddle; print(leaky(paddle.to_tensor(x)))"),
    "sdist": ("--no-binary=polyop polyop", "print(leaky(x))"),
}


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


def first_example() -> str:
    """Return the program of the README's first example, with a small tensor ``x``."""
    text = (wheel.ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- from (\S+) \[\w+\] -->\n```python\n(.*?)```", text, re.DOTALL)
    return "".join(code for _, code in blocks[:2])


def try_out(host: str, folder: Path) -> Iterator[str]:
    """Install polyop for a host in an empty environment and run its first example; yield what goes wrong."""
    package, call = HOSTS[host]
    wheel.run(sys.executable, "-m", "venv", folder / "env")
    python = folder / "env" / "bin" / "python"
    wheel.run(python, "-m", "pip", "install", "-q", "--extra-index-url", INDEX.as_uri(), *package.split())
    (folder / "first.py").write_text(f"{first_example()}\n{call}\n", encoding="utf-8")
    printed = wheel.run(python, "first.py", cwd=folder, POLYOP_CACHE_DIR=str(folder / "cache"))
    if printed.count("-0.001") < 2:
        yield f"the first example printed {printed!r}"
    where = wheel.run(python, "-c", "import polyop; print(polyop.__file__)", cwd=folder)
    if not where.startswith(str(folder)):
        yield f"the example ran with {where.strip()}"


def main() -> int:
    """Prepare the release; return 0, or 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--no-build", action="store_true", help="take what lies in dist/")
    parser.add_argument("--host", action="append", choices=HOSTS, help="all of them without")
    options = parser.parse_args()
    if not options.no_build:
        print(sdist(), flush=True)
        subprocess.run([sys.executable, Path(__file__).with_name("wheel.py"), "-o", DIST], check=True)
    index()
    ok = True
    for host in options.host or HOSTS:
        with tempfile.TemporaryDirectory() as folder:
            problems = list(try_out(host, Path(folder)))
        print(f"{host}: {'; '.join(problems) or 'the first example runs'}", flush=True)
        ok = ok and not problems
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
