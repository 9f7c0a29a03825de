"""The README of a project of ``polyop new``, followed literally in a new environment, for each kind."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from polyop_wheels import HERE, outside, pip, polyop_wheel

from polyop.wheel.project import KINDS

QUICK = {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}  # half of the time of pip
TRIED = {"cpp": "[3. 3. 3. 3.]", "loops": "[[0.25 0.25 0.25 0.25]", "mixed": "[[0.25 0.25 0.25 0.25]"}
pytestmark = pytest.mark.slow(more=6)


def blocks(folder):
    """Return the commands of a README, a text for each block."""
    text = (folder / "README.md").read_text()
    commands = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(commands) == text.count("```sh") >= 3
    return commands


def follow(commands, folder, programs, cache="cache"):
    """Run the commands in a shell that stops at the first that fails; return what they print."""
    clean = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    done = subprocess.run(
        ["/bin/sh", "-ec", commands],
        cwd=folder,
        env={
            **clean,
            **QUICK,
            "PATH": programs,
            "POLYOP_CACHE_DIR": str(folder.parent / cache),
            "CC": "",
            "CXX": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "torch"])  # it installs PyTorch
def test_as_printed(kind, plain_path):
    tmp_path = plain_path  # pip takes the words of PIP_FIND_LINKS for several folders
    python, polyop = polyop_wheel()
    outside(python, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    programs = tmp_path / "env" / "bin"
    outside(*pip(HERE), "--python", programs / "python", "install", "-q", polyop, cwd=tmp_path, **QUICK)
    printed = outside(programs / "polyop", "new", "vecops", "--kind", kind, cwd=tmp_path)
    project = tmp_path / "vecops"
    commands = blocks(project)
    for line in printed.partition("next, ")[2].splitlines()[2:]:  # behind "cd vecops"
        assert line.strip() in "".join(commands), line
    found, build, install, *more = commands
    assert str(polyop) in found  # it came from a file, so pip must be told where
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    built = follow(found + build, project, path)
    assert re.search(r"\d+ passed", built) and "it keeps what its name promises" in built
    only = tmp_path / "only"  # no compiler in it
    only.mkdir()
    (only / "python").symlink_to(programs / "python")
    assert not any(shutil.which(name, path=str(only)) for name in ("cc", "gcc", "clang", "c++", "make"))
    exported = f"export PIP_FIND_LINKS={project / 'wheels'}\n"
    assert TRIED[kind] in follow(exported + install, project, str(only), "clean_cache")
    assert not list(pathlib.Path(tmp_path, "clean_cache").rglob("*.so"))  # nothing was compiled
    for block in more:
        follow(block, project, path)
    assert (project / "graph" / "auto_generated_ge_raw_custom_ops.py").is_file() == (kind != "loops")
