"""Build the documents as a site: python tools/documentation/build.py [FOLDER].

The pages are collected in one folder, with the folders of the project, and Sphinx makes HTML of them. A link
that leads nowhere, a notebook that fails, and any warning of Sphinx end the build. The site needs
no network: open FOLDER/index.html.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from collect import collect

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def build(folder: Path, work: Path, root: Path = ROOT) -> int:
    """Build the site of the project at ``root`` in a folder; return Sphinx's exit status."""
    collect(root, work / "pages")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--conf-dir", str(HERE)]
    options += ["--doctree-dir", str(work / "doctrees"), "-D", f"nb_execution_cache_path={work / 'executed'}"]
    command = [sys.executable, "-m", "sphinx", "-b", "html", *options, str(work / "pages"), str(folder)]
    return subprocess.run(command, check=False).returncode


def main() -> int:
    """Build what the command line asks for."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    options.add_argument("--work", type=Path, default=ROOT / "build" / "site-work", help="for later builds")
    given = options.parse_args()
    status = build(given.folder.resolve(), given.work.resolve())
    if status == 0:
        print(f"the site: {given.folder / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
