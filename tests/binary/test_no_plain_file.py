"""A pipe, folder, device or socket in the place of a library or a source: an error at once."""

import os
import socket
import subprocess
import sys

import pytest

KINDS = {
    "pipe": "a device, pipe or socket",
    "folder": "a directory",
    "socket": "a device, pipe or socket",
    "device": "a device, pipe or socket",
    "link to a pipe": "a device, pipe or socket",
}

PROGRAM = """
import sys
import polyop
from polyop.core.errors import PolyopError
path, words = sys.argv[1:]
try:
    {call}
except PolyopError as problem:
    print(problem)
    assert words in str(problem) or "Is a directory" in str(problem), problem
else:
    raise AssertionError("no error")
"""
CALLS = {
    "operator": 'polyop.operator("n::f(Tensor x) -> Tensor", f"{path}:f", infer="x")',
    "prebuilt": 'polyop.prebuilt(path, "f")',
    "load_library": "polyop.load_library(path)",
    "load_library of a list": "polyop.load_library([path])",
    "Custom": 'polyop.Custom(f"{path}:f", out_shape=(2,), out_dtype="float32", func_type="aot")',
    "xla_ffi": 'polyop.xla_ffi(f"{path}:f")',
    "source": 'polyop.source(path, function="f")',
    "builder": 'polyop.CustomOpBuilder("n", path).load()',
    "inspect": "from polyop.binary.elf import read; read(path)",
    "audit": "from polyop.wheel.audit import audit; audit(path)",
}


@pytest.fixture(scope="session")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("no_plain_file")
    (folder / "pipe").mkdir()
    paths = {kind: {} for kind in KINDS}
    for suffix in (".so", ".cc", "-1-py3-none-any.whl"):
        for kind in KINDS:
            path = paths[kind][suffix] = folder / f"{kind.replace(' ', '_')}{suffix}"
            if kind == "pipe":
                os.mkfifo(path)
            elif kind == "folder":
                path.mkdir()
            elif kind == "socket":
                with socket.socket(socket.AF_UNIX) as one:
                    one.bind(os.path.relpath(path))
            elif kind == "device":
                path.symlink_to("/dev/zero")
            else:
                path.symlink_to(folder / f"pipe{suffix}")
    return paths


@pytest.mark.slow(12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_an_error_at_once(places, name, kind):
    suffix = ".cc" if name in ("source", "builder") else "-1-py3-none-any.whl" if name == "audit" else ".so"
    program = PROGRAM.format(call=CALLS[name])
    done = subprocess.run(
        [sys.executable, "-c", program, str(places[kind][suffix]), KINDS[kind]],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
