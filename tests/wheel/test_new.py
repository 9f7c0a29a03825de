"""``polyop new``: the files it writes and the names it refuses; test_wheel.py builds the project."""

import os
import subprocess
import sys

import pytest
from wheel_tools import SOURCE, run

from polyop.core.errors import ArgumentValueError
from polyop.wheel.project import FILES, new_project


def test_every_file_is_there_and_filled_in(tmp_path):
    written = new_project("vecops", tmp_path / "deep" / "vecops")
    assert len(written) == len(FILES) == 13
    for path in written:
        assert "@name@" not in path.read_text(), path
    assert (tmp_path / "deep/vecops/src/vecops/__init__.py").is_file()
    assert "POLYOP_LIBRARY(vecops, m)" in (tmp_path / "deep/vecops/csrc/ops.cpp").read_text()


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
