"""Graphs that MindSpore keeps on disk (``enable_compile_cache``), after an edit of the operator's definition.

MindSpore compares the files of the program and of what it imports, but not those of installed packages.
"""

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).parent / "compile_cache_program.py"

DEFINED = """
import pathlib
import polyop

def gradient(x, out, dout):
    return (2 * dout,)

library = pathlib.Path(__file__).parent / "twice.c"
op = polyop.Custom(f"{library}:twice", lambda x: x, lambda x: x, "aot", gradient)
"""

KERNEL = """
#include <stdint.h>
int twice(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  for (int64_t i = 0; i < shapes[nparam - 1][0]; ++i) ((float *)params[1])[i] = 2 * ((float *)params[0])[i];
  return 0;
}
"""


@pytest.fixture
def project(tmp_path):
    """A folder with an operator in an installed module, and a program that keeps its graph."""

    def run(what):
        environment = {k: v for k, v in os.environ.items() if k != "GLOG_v"}
        return subprocess.run(
            [sys.executable, str(PROGRAM), str(tmp_path / "site"), str(tmp_path / "cache"), what],
            capture_output=True, text=True, check=False, cwd=tmp_path, env=environment,
        )  # fmt: skip

    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "defined.py").write_text(DEFINED)
    (tmp_path / "site" / "twice.c").write_text(KERNEL)
    run.folder = tmp_path / "site"
    return run


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


EDITS = [  # what the program computes; the file that is edited, how; what is said of the kept graph
    ("value", "twice.c", ("= 2 *", "= 3 *"), "the program was made with another definition of the operator"),
    (
        "value",
        "defined.py",
        ("lambda x: x, lambda", "lambda x: [x[0] - 1], lambda"),
        "the program must have outputs",
    ),
    (
        "gradient",
        "defined.py",
        ("return (2 * dout,)", "return (5 * dout,)"),
        "the gradient of another definition",
    ),
    (
        "gradient",
        "twice.c",
        ("= 2 *", "= 3 *"),
        "the program was made with another definition of the operator",
    ),
]


@pytest.mark.parametrize(("what", "file", "change", "words"), EDITS, ids=lambda value: str(value)[:9])
def test_a_kept_graph_of_an_older_definition_is_an_error(project, what, file, change, words):
    expected = "[2.0, 4.0, 6.0]\n" if what == "value" else "[2.0, 2.0, 2.0]\n"
    for _ in range(2):  # the second run takes the graph from the cache
        done = project(what)
        assert done.stdout == expected, done.stderr
    assert "Use the compilation cache" in done.stderr
    edit(project.folder / file, *change)
    done = project(what)
    assert done.returncode != 0
    assert words in done.stderr
