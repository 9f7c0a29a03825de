"""Building C++ modules, with real compilers and processes: errors, edits, names, locks, other contracts."""

import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from polyop.define.module.builder import CustomOpBuilder

SOURCES = pathlib.Path(__file__).parents[2] / "sources"

SCALE = """#include "ms_extension/api.h"
ms::Tensor scale(const ms::Tensor& x) {
  ms::Tensor out(x.data_type(), x.shape());
  polyop::launch_aclnn("aclnnMuls", x, FACTOR, out);
  return out;
}
PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("scale", &scale, "Scale."); }
"""
PROGRAM = """
import sys, numpy as np
from polyop.define.module.builder import CustomOpBuilder
ops = CustomOpBuilder(sys.argv[1], sys.argv[2:]).load()
print(ops.scale(np.float32([1]))[0])
"""


def write(path, factor, text=SCALE):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("FACTOR", str(factor)))
    return str(path)


def module(path, body):
    return write(path, 0, '#include "ms_extension/api.h"\n' + body)


def scaled(ops):
    return ops.scale(np.float32([1]))[0]


def program(name, *sources, **options):
    command = [sys.executable, "-c", PROGRAM, name, *sources]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **options)


# -- errors


REFUSED_SOURCES = [
    ("syntax", "int f() {\n  return not_declared;\n}\n", r"syntax\.cpp:3:.*not_declared"),
    (
        "odd",
        'struct Odd {};\nPYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("f", [](Odd) { return 1; }); }\n',
        r"m\.def\(\) cannot bind a function with this type\. Use tensors",
    ),
    (
        "link",
        'int nowhere(int);\nPYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("f", &nowhere); }\n',
        r"undefined symbol: nowhere\(int\) [^\n]*\n[^\n]*link the library that does",
    ),
    (
        "none",
        "int f() { return 1; }\n",
        r"is no operator module: it binds no functions.*write PYBIND11_MODULE\(MS_EXTENSION_NAME",
    ),
    (
        "named",
        'PYBIND11_MODULE(other_ops, m) { m.def("f", [] { return 1; }); }\n',
        r"must be called named_ops, but got other_ops.*PYBIND11_MODULE\(MS_EXTENSION_NAME",
    ),
]


@pytest.mark.slow(3)
@pytest.mark.parametrize(
    ("name", "body", "message"), REFUSED_SOURCES, ids=[row[0] for row in REFUSED_SOURCES]
)
def test_a_source_that_is_no_module_is_refused(tmp_path, name, body, message):
    source = module(tmp_path / f"{name}.cpp", body)
    with pytest.raises(RuntimeError, match=f"(?s){message}"):
        CustomOpBuilder(f"{name}_ops", source).load()


def test_a_literal_name_that_is_the_builders(tmp_path):
    source = module(
        tmp_path / "named.cpp", 'PYBIND11_MODULE(other_ops, m) { m.def("f", [] { return 1; }); }\n'
    )
    assert CustomOpBuilder("other_ops", source).load().f() == 1


def test_two_modules_in_one(tmp_path):
    static = SCALE.replace("ms::Tensor scale(", "static ms::Tensor scale(")
    sources = [write(tmp_path / f"{name}.cpp", 1, static) for name in ("one", "two")]
    message = r"(?s)module twice_ops: several sources have a PYBIND11_MODULE.*one\.cpp, .*two\.cpp"
    with pytest.raises(RuntimeError, match=message):
        CustomOpBuilder("twice_ops", sources).load()


@pytest.mark.slow(3)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            'm.def("f", [] { return 1; }); m.def("f", [] { return 2; });',
            'm.def.. was given the name "f" twice',
        ),
        (
            'm.def("f", [](int a, int b) { return a + b; }, py::arg("a"));',
            r'm.def\("f"\) has 1 py::arg.. for 2',
        ),
        ('throw std::runtime_error("not today");', "not today"),
        ("throw 7;", "no std::exception"),
        ('m.def("a b", [](const ms::Tensor& x) { return x; });', "a b.*cannot be an operator"),
        ('m.def("f", [](const ms::Tensor& x, int n) { return x; }, py::arg("x"), py::arg("a-b"));', "a-b"),
    ],
    ids=["twice", "args", "throws", "throws an int", "function name", "argument name"],
)
def test_a_module_that_binds_wrongly(tmp_path, body, message):
    source = module(tmp_path / "wrong.cpp", f"PYBIND11_MODULE(MS_EXTENSION_NAME, m) {{ {body} }}\n")
    with pytest.raises(RuntimeError, match=f"(?s)wrong_ops.*{message}"):
        CustomOpBuilder("wrong_ops", source).load()


def test_a_module_for_another_contract(tmp_path):
    source = tmp_path / "other.c"
    source.write_text(
        "#include <stdint.h>\n"
        "static const struct { uint32_t version, unused; const char *name; } table = {99, 0, 0};\n"
        "const void *polyop_module(const void *functions) { (void)functions; return &table; }\n"
    )
    with pytest.raises(
        RuntimeError,
        match=r"(?s)must be built against version 1 .*but got version 99.*build the module again",
    ):
        CustomOpBuilder("other_contract_ops", str(source)).load()


def test_a_missing_source(tmp_path):
    with pytest.raises(RuntimeError, match=r"nowhere\.cpp"):
        CustomOpBuilder("missing_ops", str(tmp_path / "nowhere.cpp")).load()


def test_no_source_at_all():
    with pytest.raises((RuntimeError, ValueError), match="source"):
        CustomOpBuilder("empty_ops", []).load()


# -- names, edits, folders


def test_the_same_name_from_other_sources(tmp_path):
    first, second = write(tmp_path / "a.cpp", 2), write(tmp_path / "b.cpp", 3)
    ops = CustomOpBuilder("shared_ops", first).load()
    with pytest.raises(
        ValueError,
        match=r"(?s)module shared_ops: the name is taken by the module loaded at .*test_module_build\.py.*that one is built from .*a\.cpp; choose another name",
    ):
        CustomOpBuilder("shared_ops", second).load()
    assert scaled(ops) == 2
    assert CustomOpBuilder("shared_ops", first).load() is ops


def test_an_edit_is_built_in_the_same_process(tmp_path):
    source = write(tmp_path / "edited.cpp", 2)
    old = CustomOpBuilder("edited_ops", source).load()
    assert scaled(old) == 2
    write(tmp_path / "edited.cpp", 5)
    new = CustomOpBuilder("edited_ops", source).load()
    assert (scaled(new), scaled(old)) == (5, 2)
    write(tmp_path / "edited.cpp", 5, "// a remark\n" + SCALE)
    write(tmp_path / "edited.cpp", 2)
    assert scaled(CustomOpBuilder("edited_ops", source).load()) == 2


@pytest.mark.slow
def test_an_edit_is_built_in_another_process(tmp_path):
    source = write(tmp_path / "edited.cpp", 2)
    assert program("process_ops", source).stdout.strip() == "2.0"
    write(tmp_path / "edited.cpp", 7)
    done = program("process_ops", source)
    assert done.stdout.strip() == "7.0", done.stderr


def test_equal_basenames_in_two_folders(tmp_path):
    helper = "int part() { return 4; }\n"
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "ops.cpp").write_text(helper)
    text = "int part();\n" + SCALE.replace("FACTOR", "static_cast<double>(part())")
    ops = CustomOpBuilder(
        "basename_ops", [write(tmp_path / "a" / "ops.cpp", 0, text), str(tmp_path / "b" / "ops.cpp")]
    )
    assert scaled(ops.load()) == 4


def test_a_folder_for_the_library(tmp_path):
    folder = tmp_path / "new" / "folder"
    builder = CustomOpBuilder("folder_ops", write(tmp_path / "ops.cpp", 2), build_dir=str(folder))
    assert builder.build() == str(folder / "folder_ops.so")
    assert (folder / "folder_ops.so").is_file()
    assert scaled(builder.load()) == 2
    write(tmp_path / "ops.cpp", 3)
    assert scaled(builder.load()) == 3  # over the library that is open


def test_a_build_for_a_debugger_and_one_for_sanitisers(tmp_path):
    source = write(tmp_path / "ops.cpp", 2)
    debug = CustomOpBuilder("debug_ops", source, debug_mode=True).build()
    assert scaled(CustomOpBuilder("debug_ops", source, debug_mode=True).load()) == 2
    if shutil.which("readelf"):
        sections = subprocess.run(["readelf", "-S", debug], capture_output=True, text=True, check=True).stdout
        assert ".debug_info" in sections
    library = CustomOpBuilder("sanitized_ops", source, sanitize="address").build()
    assert b"__asan_" in pathlib.Path(library).read_bytes()


def test_flags_reach_the_compiler_and_the_linker(tmp_path):
    text = SCALE.replace("FACTOR", "GIVEN")
    source = write(tmp_path / "ops.cpp", 0, text)
    ops = CustomOpBuilder("flagged_ops", source, cflags="-DGIVEN=6", ldflags="-Wl,-soname,named_here.so")
    assert scaled(ops.load()) == 6
    assert b"named_here.so" in pathlib.Path(ops.build()).read_bytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:POLYOP_ASCEND=rehearse")
def test_backend_ascend_in_rehearsal(monkeypatch):
    monkeypatch.setenv("POLYOP_ASCEND", "rehearse")
    source = str(SOURCES / "module_functions.cpp")
    ops = CustomOpBuilder("rehearsed_ops", source, backend="Ascend").load()
    out, pull = ops.macro_mul.vjp(np.float32([2]), np.float32([3]))
    assert out[0] == 6 and [g[0] for g in pull(np.float32([1]))] == [3, 2]


def test_an_operator_that_its_author_registers(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from polyop.providers.aclnn import forget, register

    register("aclnnCubeOfMine(Tensor x, Tensor(a!) out) -> ()", lambda x: x * x * x)
    register(
        "aclnnSlopeOfMine(Tensor x, Tensor(a!) out, Tensor grad) -> ()", lambda x, grad: 3 * x * x * grad
    )
    body = """
struct Cube : ms::Function<Cube> {
  static ms::Tensor Forward(ms::AutogradContext* ctx, const ms::Tensor& x) {
    ms::Tensor out(x.data_type(), x.shape());
    ctx->SaveForBackward({x});
    LAUNCH_ACLNN(aclnnCubeOfMine, nullptr, 0, x, out);
    return out;
  }
  static std::vector<ms::Tensor> Backward(ms::AutogradContext* ctx, std::vector<ms::Tensor> grads) {
    const ms::Tensor x = ctx->GetSavedTensors()[0];
    ms::Tensor out(x.data_type(), x.shape());
    LAUNCH_ACLNN(aclnnSlopeOfMine, nullptr, 0, x, out, grads[0]);  // the output is not the last
    return {out};
  }
};
PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("cube", [](const ms::Tensor& x) { return Cube::Apply(x); }); }
"""
    ops = CustomOpBuilder("registered_ops", module(tmp_path / "cube.cpp", body)).load()
    x = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ops.cube, (x,))
    assert torch.autograd.gradgradcheck(ops.cube, (x,))
    forget("aclnnCubeOfMine")
    with pytest.raises(RuntimeError, match="aclnnCubeOfMine.*\n.*register"):
        ops.cube(x)
    forget("aclnnSlopeOfMine")


# -- processes


def test_many_processes_build_one_module(tmp_path):
    source = write(tmp_path / "ops.cpp", 9)
    command = [sys.executable, "-c", PROGRAM, "raced_ops", source]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [one.communicate(timeout=300)[0].strip() for one in running] == ["9.0"] * 3


def test_a_killed_build_leaves_no_lock(tmp_path):
    source = write(tmp_path / "ops.cpp", 8)
    compiler = tmp_path / "slow-c++"
    compiler.write_text(f'#!/bin/sh\ntouch "{tmp_path}/started"\nsleep 300\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    environment = {
        **os.environ,
        "CXX": shlex.quote(str(compiler)),
        "POLYOP_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-c", PROGRAM, "killed_ops", source]
    building = subprocess.Popen(command, env=environment, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "started").exists():
        assert time.monotonic() < deadline and building.poll() is None
        time.sleep(0.05)
    os.killpg(building.pid, signal.SIGKILL)
    building.wait()
    compiler.write_text('#!/bin/sh\nexec c++ "$@"\n')
    done = program("killed_ops", source, env=environment)
    assert done.stdout.strip() == "8.0", done.stderr


@pytest.mark.slow
def test_a_program_ends_cleanly_with_tensors_kept_by_a_module(tmp_path):
    source = str(SOURCES / "module_tensors.cpp")
    text = f"""
import numpy as np
from polyop.define.module.builder import CustomOpBuilder
ops = CustomOpBuilder("ending_ops", {source!r}).load()
ops.keep(np.ones((2, 2), np.float32))
print("kept")
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "kept\n", "")
