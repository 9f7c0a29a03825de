"""``polyop new``: the files it writes and the names it refuses; test_wheel.py builds the project."""

import os
import re
import shlex
import subprocess
import sys

import pytest
import yaml
from wheel_tools import SOURCE, run

from polyop.core.errors import ArgumentValueError
from polyop.wheel.installed_from import origin
from polyop.wheel.project import KINDS, new_project


@pytest.mark.parametrize(("kind", "count"), [("cpp", 13), ("loops", 8), ("mixed", 15), ("torch", 9)])
@pytest.mark.parametrize("source", ["", "/a folder/polyop"])
def test_every_file_is_there_and_filled_in(tmp_path, kind, count, source):
    written = new_project("vecops", tmp_path / "deep" / "vecops", kind, source)
    assert len(written) == len(set(written)) == count
    for path in written:
        text = path.read_text()
        assert not re.search(r"@[a-z_]+@|<\w+\.\w+\.in>", text), path
        if path.suffix == ".py":
            compile(text, str(path), "exec")
        if path.suffix == ".yml":
            assert set(yaml.safe_load(text)["jobs"]) >= {"wheel", "test"}
        assert ("PIP_FIND_LINKS" in text) == bool(source and path.suffix in {".yml", ".md"}), path
    assert (tmp_path / "deep/vecops/src/vecops/__init__.py").is_file()
    sources = {path.name for path in written} & {"ops.cpp", "kernels.py"}
    in_cpp, in_python = {"ops.cpp"}, {"kernels.py"}
    assert sources == {"loops": in_python, "mixed": in_cpp | in_python}.get(kind, in_cpp)
    for name, words in (("pyproject.toml", ', "torch"'), ("README.md", "--no-build-isolation")):
        assert (words in (tmp_path / "deep/vecops" / name).read_text()) == (kind == "torch")


def test_a_kind_that_there_is_not(tmp_path):
    with pytest.raises(ArgumentValueError, match=f"must be one of {', '.join(KINDS)}, but got 'rust'"):
        new_project("vecops", tmp_path / "p", "rust")


def test_where_this_polyop_came_from_is_printed(tmp_path):
    """pip would look for polyop on an index; here it is told the folder, as the record of the install has it."""
    printed = run("-m", "polyop", "new", "vecops", "--kind", "loops", "--folder", tmp_path / "p").stdout
    steps = [line.strip() for line in printed.partition("next, ")[2].splitlines()[1:]]
    readme = (tmp_path / "p" / "README.md").read_text()
    assert steps[0] == f"cd {shlex.quote(str(tmp_path / 'p'))}"
    assert all(step in readme for step in steps[1:])
    told = any(step.startswith(f"pip wheel {origin()} ") for step in steps)
    assert told == bool(origin())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my-ops", r"letters, digits, _, and a letter first, but got 'my-ops'\n  as in my_ops"),
        ("2d", "as in d"),
        ("class", "must be a name in Python and C"),
        ("_x", "as in x"),
        ("größe", "as in gr__e"),
        ("", "but got ''$"),
        ("torch", "must be free, but got 'torch'"),
    ],
)
def test_names_that_are_refused(tmp_path, name, message):
    with pytest.raises(ArgumentValueError, match=message):
        new_project(name, tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "kept.txt").write_text("kept")
    done = run("-m", "polyop", "new", "vecops", "--folder", tmp_path, check=False)
    assert done.returncode == 1 and "must be a folder that is new or empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


def test_the_cmake_target_writes_the_functions_for_ge_graphs(project, tmp_path):
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    for command in (
        ["cmake", "-S", project / "graph", "-B", tmp_path, f"-DPython3_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", tmp_path, "--target", "generate_ge_raw_custom_ops"],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    text = (project / "graph" / "auto_generated_ge_raw_custom_ops.py").read_text()
    assert "Summary: total 1, generated 1, skipped 0" in text and "def AddCustom(" in text
