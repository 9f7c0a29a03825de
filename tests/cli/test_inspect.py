"""``polyop inspect``, in this process and on a terminal."""

import argparse
import os
import pathlib
import pty
import re
import shlex
import subprocess
import sys
import zipfile

import pytest

from polyop.cli import inspect
from polyop.core.errors import ArgumentTypeError, LibraryError

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
SCRIPT = """
import argparse, sys
from polyop.cli import inspect
from polyop.core.errors import ArgumentTypeError, LibraryError
parser = argparse.ArgumentParser()
inspect.add(parser.add_subparsers())
options = parser.parse_args(["inspect", *sys.argv[1:]])
sys.exit(options.run(options))
"""
OURS = """
#include "polyop/custom_aot_extra.h"
extern "C" int Scale(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }
extern "C" int ScaleInit(int *, int64_t **, const char **, AotExtra *extra) { return !extra->HasAttr("by"); }
extern "C" std::vector<int64_t> ScaleInferShape(int *, int64_t **, AotExtra *) { return {1}; }
extern "C" int Add(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }
int Forgotten(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }
"""
FOREIGN = """
#include <cstdint>
#include <string>
struct AotExtra { virtual bool HasAttr(std::string name) = 0; };
extern "C" int Add(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }
extern "C" int AddInit(int *, int64_t **, const char **, AotExtra *extra) { return !extra->HasAttr("by"); }
"""


def make(path, code, *flags):
    source = path.with_suffix(".cc")
    source.write_text(code)
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    subprocess.run([*compiler, "-shared", "-fPIC", f"-I{INCLUDE}", "-o", path, source, *flags], check=True)
    return path


def show(capsys, *arguments):
    parser = argparse.ArgumentParser()
    inspect.add(parser.add_subparsers())
    options = parser.parse_args(["inspect", *map(str, arguments)])
    code = options.run(options)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_operators_companions_and_abi_are_shown(tmp_path, capsys):
    code, out, err = show(capsys, make(tmp_path / "lib.so", OURS, f"-Wl,-rpath,{tmp_path}"))
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert ["operator", "Init", "InferShape", "InferType"] in rows
    assert ["Scale", "yes", "yes", "-"] in rows
    assert ["Add", "-", "-", "-"] in rows
    assert "version 1 (this polyop: 1)" in out
    assert f"run path:     {tmp_path}" in out
    assert "libc.so" in out
    assert "libstdc++, new (_GLIBCXX_USE_CXX11_ABI=1)" in out
    assert "note: Forgotten(int, void**" in out
    assert "\x1b" not in out


def test_a_foreign_header_is_shown(tmp_path, capsys):
    code, out, _ = show(capsys, make(tmp_path / "lib.so", FOREIGN, "-D_GLIBCXX_USE_CXX11_ABI=0"))
    assert code == 0
    assert "no header of polyop included" in out
    assert "libstdc++, old (_GLIBCXX_USE_CXX11_ABI=0)" in out
    assert "note:" not in out


def test_frameworks_and_libraries_without_operators(tmp_path, capsys):
    make(tmp_path / "libtorch_none.so", "int torch() { return 1; }")
    code, out, _ = show(
        capsys,
        make(
            tmp_path / "lib.so",
            "int torch(); void *PyList_New(long); int f() { return torch(); }",
            f"-L{tmp_path}",
            "-ltorch_none",
        ),
    )
    assert code == 0
    assert "PyTorch (libtorch_none.so)" in out
    assert "no operators" in out
    extension = 'extern "C" void *PyList_New(long); extern "C" void *PyInit_x() { return PyList_New(1); }'
    _, out, _ = show(capsys, make(tmp_path / "x.so", extension))
    assert "Python (its symbols, not linked)" in out
    assert "no operators" in out


def test_what_the_libraries_of_a_package_need_is_shown(tmp_path, capsys):
    make(tmp_path / "libother.so", "int other() { return 1; }", "-nostdlib")
    using = "int other(); int f() { return other(); }"
    make(tmp_path / "libusing.so", using, f"-L{tmp_path}", "-lother", "-nostdlib")
    package = tmp_path / "model.pt2"
    with zipfile.ZipFile(package, "w") as archive:
        for name in ("libother.so", "libusing.so"):
            archive.write(tmp_path / name, f"model/{name}")
    _, out, _ = show(capsys, package)
    assert re.findall("needs: +(.*)", out) == ["none", "libother.so"]


def test_another_machine_is_remarked(tmp_path, capsys):
    path = make(tmp_path / "lib.so", OURS)
    raw = bytearray(path.read_bytes())
    raw[18:20] = (243).to_bytes(2, "little")
    path.write_bytes(raw)
    code, out, _ = show(capsys, path)
    assert code == 0
    assert "note: it is for riscv, and this machine is " in out


@pytest.mark.parametrize(
    ("name", "message"), [("absent.so", "couldn't find the AOT binary file"), ("a.cc", "a text file")]
)
def test_a_bad_file_is_a_clean_error(tmp_path, capsys, name, message):
    (tmp_path / "a.cc").write_text("int f;\n")
    code, out, err = show(capsys, tmp_path / name)
    assert (code, out) == (1, "")
    assert err.startswith(f"library {tmp_path / name}: ")
    assert message in err


def test_operators_of_pytorch_are_listed(capsys):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    code, out, _ = show(capsys, "aten", "leaky_relu")
    lines = out.splitlines()
    assert code == 0
    assert "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor" in lines
    assert lines[-1].startswith(f"{len(lines) - 2} operators with 'leaky_relu' in the name, ")
    code, out, _ = show(capsys, "aten", "qscheme")
    assert "-> QScheme  # not for polyop: returns QScheme" in out
    code, out, _ = show(capsys, "aten", "no_such_operator")
    assert (code, out.strip()) == (
        1,
        "0 operators with 'no_such_operator' in the name, 0 of them by polyop.aten()",
    )


def test_only_pytorch_is_searched_by_a_word(capsys):
    code, out, err = show(capsys, "lib.so", "add")
    assert (code, out, err) == (2, "", "only 'aten' takes a second argument, but got 'add'\n")


def test_a_terminal_gets_a_table(tmp_path):
    path = make(tmp_path / "lib.so", OURS)
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run([sys.executable, "-c", SCRIPT, path], stdout=follower, env=environment, check=False)
    os.close(follower)
    text = b""
    try:
        while piece := os.read(leader, 65536):
            text += piece
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    assert done.returncode == 0
    assert b"\x1b[" in text
    lines = [line.split() for line in re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).splitlines()]
    assert ["┃", "operator", "┃", "Init", "┃", "InferShape", "┃", "InferType", "┃"] in lines
    assert ["│", "Scale", "│", "yes", "│", "yes", "│", "-", "│"] in lines


@pytest.mark.slow
def test_a_module_shows_its_functions():
    from polyop import CustomOpBuilder

    source = pathlib.Path(__file__).parents[2] / "examples" / "08_cpp_module" / "smooth.cpp"
    built = CustomOpBuilder("inspected", [source]).build()
    done = subprocess.run(
        [sys.executable, "-m", "polyop", "inspect", "--open", built],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = done.stdout
    assert "module:       inspected, contract version 1 (this polyop: 1)" in shown
    assert "inspected.mul(Tensor x, Tensor y) -> Tensor" in shown
    assert "inspected.smooth_abs(Tensor x, float width=1.0) -> Tensor" in shown
    assert "frameworks:   none" in shown


LIBRARY = """
#include <polyop/library.h>
using polyop::Tensor;
Tensor twice(const Tensor& x) { return x; }
POLYOP_LIBRARY(shown, m) {
  m.def("twice(Tensor x) -> Tensor");
  m.def("planned(Tensor x, *, float by=2.0) -> Tensor");
}
POLYOP_LIBRARY_IMPL(shown, CPU, m) { m.impl("twice", &twice); }
POLYOP_LIBRARY(shown_more, m) { m.def("again(Tensor x) -> Tensor"); }
POLYOP_LIBRARY_IMPL(shown_more, Meta, m) { m.impl("again", &twice); }
POLYOP_LIBRARY_IMPL(shown, Meta, m) { m.impl("twice", &twice); }
POLYOP_LIBRARY_IMPL(shown, AutogradCPU, m) { m.impl("twice", &twice); }
"""


def library(folder, code=LIBRARY):
    return make(folder / "libshown.so", code, "-std=c++17")


def test_operators_by_schema_are_shown_with_their_keys(tmp_path, capsys):
    path = library(tmp_path)
    code, out, err = show(capsys, path, "--open")
    assert (code, err) == (0, "")
    source = path.with_suffix(".cc")
    head, own, more = out.split("\n\n")
    assert f"library:      {path}\n" in head and "frameworks:   none\n" in head
    assert head.splitlines()[-3:] == [
        "ABI version:  1 (this polyop: 1)",
        f"namespace:    shown  ({source}:5)",
        f"namespace:    shown_more  ({source}:10)",
    ]
    assert own.splitlines() == [
        "shown::twice(Tensor x) -> Tensor  [CPU, Meta, AutogradCPU]",
        "shown::planned(Tensor x, *, float by=2.0) -> Tensor  [no functions]",
    ]
    assert more == "shown_more::again(Tensor x) -> Tensor  [Meta]\n"


def test_a_library_that_would_not_load_is_shown_with_the_reason(tmp_path, capsys):
    wrong = LIBRARY.replace("twice(Tensor x) ->", "twice(Tensor x, int n) ->")
    code, out, err = show(capsys, library(tmp_path, wrong), "--open")
    assert code == 1
    assert "shown::twice(Tensor x, int n) -> Tensor  [CPU, Meta, AutogradCPU]" in out
    assert "shown::twice: the schema and the C++ function for CPU disagree" in err
    assert "twice(Tensor x, int n) -> Tensor" in err and "libshown.cc:9" in err


def test_a_library_of_another_contract_is_shown_with_its_version(tmp_path, capsys):
    newer = "#include <polyop/module_abi.h>\n#undef POLYOP_MODULE_VERSION\n#define POLYOP_MODULE_VERSION 7\n"
    code, out, err = show(capsys, library(tmp_path, newer + LIBRARY), "--open")
    assert code == 1 and out.endswith("ABI version:  7 (this polyop: 1)\n")
    assert "must be built against version 1 of polyop's module contract, but got version 7" in err


def test_a_library_that_is_a_module_as_well_shows_both(tmp_path, capsys):
    module = LIBRARY + 'PYBIND11_MODULE(both, m) { m.def("plain", &twice); }\n'
    module = "#include <polyop/ms_extension.h>\n" + module
    code, out, _ = show(capsys, library(tmp_path, module), "--open")
    assert code == 0
    assert "both.plain(Tensor" in out and "shown::twice(Tensor x) -> Tensor  [CPU, Meta, AutogradCPU]" in out


WRITES = """
#include <cstdio>
#include <cstdlib>
__attribute__((constructor)) static void ran() { if (FILE* f = fopen(getenv("RAN"), "w")) fclose(f); }
"""


def test_without_open_no_code_of_the_library_runs(tmp_path, capsys, monkeypatch):
    ran = tmp_path / "ran"
    monkeypatch.setenv("RAN", str(ran))
    path = library(tmp_path, WRITES + LIBRARY)
    code, out, err = show(capsys, path)
    assert (code, err) == (0, "") and not ran.exists()
    assert "registers:    shown (CPU, Meta, AutogradCPU)\n" in out
    assert "registers:    shown_more (Meta)\n" in out
    assert "operators of its POLYOP_LIBRARY are known only with --open" in out
    assert "no operators" not in out and "twice" not in out
    code, out, _ = show(capsys, path, "--open")
    assert code == 0 and ran.exists()
    assert "shown::twice(Tensor x) -> Tensor  [CPU, Meta, AutogradCPU]" in out


def test_a_library_that_crashes_when_it_is_opened_is_a_message(tmp_path, capsys):
    path = library(tmp_path, "__attribute__((constructor)) static void ran() { __builtin_trap(); }" + LIBRARY)
    assert show(capsys, path)[0] == 0
    with pytest.raises(LibraryError, match="ended the process that opened it with SIG(ILL|TRAP)"):
        show(capsys, path, "--open")


def test_a_library_that_may_not_be_opened_is_not_opened(tmp_path, capsys, monkeypatch):
    ran, allowed = tmp_path / "ran", tmp_path / "allowed"
    allowed.mkdir()
    monkeypatch.setenv("RAN", str(ran))
    monkeypatch.setenv("POLYOP_LIBRARY_PATHS", str(allowed))
    path = library(tmp_path, WRITES + LIBRARY)
    assert show(capsys, path)[0] == 0
    with pytest.raises(ArgumentTypeError, match="the legal path for the file is"):
        show(capsys, path, "--open")
    assert not ran.exists()


TORCH = """
#include <torch/library.h>
at::Tensor twice(const at::Tensor& x) { return x; }
TORCH_LIBRARY(torch_shown, m) { m.def("twice(Tensor x) -> Tensor"); m.def("planned(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(torch_shown, CPU, m) { m.impl("twice", &twice); }
"""


@pytest.mark.slow
def test_operators_of_torch_library_are_known_with_open(tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from polyop.build import build

    ran = tmp_path / "ran"
    monkeypatch.setenv("RAN", str(ran))
    source = tmp_path / "ops.cpp"
    source.write_text(WRITES + TORCH)
    path = build([source])
    code, out, _ = show(capsys, path)
    assert code == 0 and not ran.exists()
    assert "operators that it registers by TORCH_LIBRARY are known only with --open" in out
    assert "no operators" not in out
    code, out, _ = show(capsys, path, "--open")
    assert code == 0 and ran.exists()
    assert "torch_shown::twice(Tensor x) -> Tensor  [CPU]" in out
    assert "torch_shown::planned(Tensor x) -> Tensor  [no functions]" in out
