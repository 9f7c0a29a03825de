"""The two return types of InferShape are told apart by their memory, wherever the program's heap is."""

import os
import pathlib
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ROWS = "returned a list of shapes, where the operator has one output"
ONE = "returned one shape, where the operator has several outputs"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="not run: the program needs ELF's -no-pie")
@pytest.mark.parametrize("flags", [("-no-pie", "-fno-pie"), ("-pie", "-fPIE")], ids=lambda f: f[0][1:])
def test_both_return_types_of_infershape(flags, tmp_path):
    """Some distributions build Python without position independence: its heap then begins below 1 GiB."""
    program = tmp_path / "forms"
    core = ("library.cc", "extra.cc", "aot_object_new.cc", "aot_object_old.cc")
    sources = [ROOT / "tests/native/infer_forms.cc", *(ROOT / "csrc" / name for name in core)]
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    includes = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'csrc'}"]
    command = [*compiler, "-std=c++17", *flags, *includes, *map(str, sources), "-o", str(program), "-ldl"]
    subprocess.run(command, check=True)
    plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # a sanitizer has its own heap
    done = subprocess.run([program], check=True, capture_output=True, text=True, env=plain)
    low, *lines = done.stdout.splitlines()
    assert low == f"low {int(flags[0] == '-no-pie')}"
    assert lines == [
        "rows [2,3,][5,]",
        "scalars_and_row [][7,]",
        f"shape {ONE}",
        f"large {ONE}",
        f"flat {ONE}",
        f"rows {ROWS}",
        f"scalars_and_row {ROWS}",
        "shape [2,3,4,]",
        "large [2097152,1024,2097152,]",
        "flat [8589934592,]",
        "empty [0,0,0,]",
    ]
