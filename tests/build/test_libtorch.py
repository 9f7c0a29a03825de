"""Builds against PyTorch. The first one of a session parses PyTorch's headers, which takes half a minute or more."""

import ctypes
import json
import os
import pathlib
import subprocess
import sys
import uuid

import pytest

from polyop.build import build, compilers, libtorch
from polyop.build.entries import entries
from polyop.build.sources import Source
from polyop.core.dtypes import DTYPES
from polyop.core.errors import BuildError

# one worker if the tests run in several, so that the headers are precompiled once

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "05_aten"

CONVERSIONS = r"""
#include <torch/extension.h>
#include <stdio.h>
#include "ms_ext.h"
#include "abi.h"

#define KERNEL(name) extern "C" int name(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra)
#define TENSORS get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCPU)

// the last parameter is a workspace that holds a text of 1000 characters
KERNEL(Describe) {
  std::string text;
  for (const at::Tensor &t : TENSORS) {
    if (!t.defined()) { text += "undefined;"; continue; }
    text += std::string(c10::toString(t.scalar_type())) + " " + std::to_string(t.dim()) + " " + std::to_string(t.numel());
    text += t.numel() == 0 || t.data_ptr() == params[0] ? ";" : " copied;";
  }
  snprintf((char *)params[nparam - 1], 1000, "%s", text.c_str());
  return 0;
}

KERNEL(Refuse) {
  try {
    TENSORS;
  } catch (const std::invalid_argument &problem) {
    snprintf((char *)params[nparam - 1], 1000, "%s", problem.what());
    return 1;
  }
  return 0;
}

KERNEL(Relu) {
  auto tensors = TENSORS;
  tensors[1].copy_(torch::relu(tensors[0]));
  return 0;
}
"""

CALL = """
import ctypes, json, sys
path, function, dtypes, shapes = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:5])
library = ctypes.CDLL(path)
assert "torch" not in sys.modules
count = len(dtypes)
data, text = (ctypes.c_float * 16)(0.0, -0.1, -0.2, 1.0), ctypes.create_string_buffer(1000)
output = (ctypes.c_float * 16)()
pointers = [ctypes.addressof(output if name == "out" else data) for name in dtypes] + [ctypes.addressof(text)]
names = [("float32" if name == "out" else name).encode() for name in dtypes] + [None]
sizes = [(ctypes.c_int64 * max(len(s), 1))(*s) for s in shapes]
code = getattr(library, function)(
    count + 1,
    (ctypes.c_void_p * (count + 1))(*pointers),
    (ctypes.c_int * count)(*map(len, shapes)),
    (ctypes.POINTER(ctypes.c_int64) * count)(*(ctypes.cast(s, ctypes.POINTER(ctypes.c_int64)) for s in sizes)),
    (ctypes.c_char_p * (count + 1))(*names),
    None,
    None,
)
print(json.dumps([code, text.value.decode(), [round(x, 6) for x in output[:4]]]))
"""


def call(library, function, dtypes, shapes):
    """Call a function in a process that has not imported PyTorch and has no LD_LIBRARY_PATH."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    command = [sys.executable, "-c", CALL, str(library), function, json.dumps(dtypes), json.dumps(shapes)]
    return json.loads(
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    )


@pytest.fixture(scope="session")
def leaky_relu():
    return build([EXAMPLE / "leaky_relu.cpp"])


@pytest.fixture(scope="session")
def headers(leaky_relu):
    """The precompiled headers after the first build."""
    return {
        entry.key: entry.path
        for entry in entries()
        if entry.sources[0].startswith("<torch/types.h> of PyTorch")
    }


@pytest.fixture(scope="session")
def conversions(headers):
    return build(code=CONVERSIONS)


def test_example_runs_without_help_from_the_environment(leaky_relu):
    code, _, output = call(leaky_relu, "LeakyRelu", ["float32", "out"], [[2, 2], [2, 2]])
    assert code == 0
    assert output == [0.0, -0.001, -0.002, 1.0]


@pytest.mark.slow
def test_function_without_an_output_argument(conversions):
    assert call(conversions, "Relu", ["float32", "out"], [[4], [4]])[2] == [0.0, 0.0, 0.0, 1.0]


@pytest.fixture
def parses(caplog):
    """Return a function from an action to how often it parses PyTorch's headers; others use the cache, too."""

    def count(action):
        caplog.clear()
        with caplog.at_level("DEBUG", "polyop.build"):
            action()
        return sum(one.getMessage().startswith("precompiling") for one in caplog.records)

    return count


@pytest.mark.slow
def test_headers_are_parsed_once(headers, parses):
    assert headers
    assert {path.suffix for path in headers.values()} <= {".gch", ".pch"}
    assert parses(lambda: build(code=f"{CONVERSIONS}// {uuid.uuid4()}\n")) == 0


def with_macro(name):
    """Build a kernel that returns whether a macro is 4."""
    arguments = "int, void **, int *, int64_t **, const char **, void *, void *"
    code = f'// {uuid.uuid4()}\n#include <ATen/ATen.h>\nextern "C" int IsFour({arguments}) {{ return {name} == 4; }}\n'
    return call(build(code=code, flags=[f"-D{name}=4"]), "IsFour", [], [])[0]


def test_macros_of_a_kernel_do_not_change_the_headers(headers, parses):
    values = []
    assert parses(lambda: values.append(with_macro("TILE"))) == 0
    assert values == [1]


@pytest.mark.slow
def test_macros_that_headers_test_change_them(headers, parses, tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))
    values = []
    assert parses(lambda: values.append(with_macro("TILE"))) == 1
    assert parses(lambda: values.append(with_macro("_GLIBCXX_ASSERTIONS"))) >= 1
    assert values == [1, 1]


SCALAR_TYPES = {
    "bool": "Bool", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "uint8": "Byte",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "float16": "Half", "bfloat16": "BFloat16",
    "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2", "float8_e4m3fnuz": "Float8_e4m3fnuz",
    "float8_e5m2fnuz": "Float8_e5m2fnuz", "float8_e8m0fnu": "Float8_e8m0fnu",
}  # fmt: skip


@pytest.mark.slow
def test_every_dtype_is_a_view(conversions):
    names = [row.name for row in DTYPES if row.torch >= 0]
    code, text, _ = call(conversions, "Describe", names, [[2, 2]] * len(names))
    assert code == 0
    assert text.rstrip(";").split(";") == [f"{SCALAR_TYPES[name]} 2 4" for name in names]


@pytest.mark.slow
def test_shapes_and_absent_inputs(conversions):
    shapes = [[], [0, 3], [], [2, 1, 2]]
    _, text, _ = call(conversions, "Describe", ["float32", "int64", "", "int8"], shapes)
    assert text == "Float 0 1;Long 2 0;undefined;Char 3 4;"


def test_unknown_dtype(conversions):
    code, text, _ = call(conversions, "Refuse", ["float32", "int3"], [[1], [1]])
    assert code == 1
    assert text == "get_torch_tensors: parameter 1 has the dtype 'int3', which PyTorch has no tensors of"


@pytest.mark.slow
def test_ms_ext_needs_no_other_header(leaky_relu):
    code = (
        '#include <ATen/ops/leaky_relu.h>\n#include "ms_ext.h"\n'
        'extern "C" int LeakyRelu(int n, void **p, int *d, int64_t **s, const char **t, void *, void *) {\n'
        "  auto tensors = get_torch_tensors(n, p, d, s, t, c10::kCPU);\n  at::leaky_relu_out(tensors[1], tensors[0]);\n  return 0;\n}\n"
    )
    assert call(build(code=code), "LeakyRelu", ["float32", "out"], [[4], [4]])[2] == [
        0.0,
        -0.001,
        -0.002,
        1.0,
    ]


@pytest.mark.slow
def test_compile_errors_name_the_authors_line(leaky_relu, tmp_path):
    source = tmp_path / "bad.cpp"
    source.write_text("#include <torch/extension.h>\nint f() {\n  at::Tensor t = 3 +;\n  return 0;\n}\n")
    with pytest.raises(BuildError, match=r"bad\.cpp: cannot be compiled\n  defined at .*bad\.cpp:3\n"):
        build([source])


@pytest.mark.parametrize(
    ("text", "uses_pytorch"),
    [
        ("#include <torch/extension.h>", True),
        ("  #  include <ATen/ATen.h>", True),
        ('#include "ms_ext.h"', True),
        ("#include <vector>", False),
        ("// #include <torch/extension.h>", False),
        ('#include "my/torch/extension.h"', False),
    ],
)
def test_which_sources_use_pytorch(text, uses_pytorch):
    assert Source("/k.cc", "c++", text).uses_pytorch is uses_pytorch


@pytest.mark.parametrize(
    ("text", "overlays", "python"),
    [
        ("at::Tensor x; // a PyTorch tensor", ("tensors_only", "without_python"), False),
        ("torch::autograd::Function<F>", ("without_nn", "without_python"), False),
        ("torch::nn::Linear", ("without_python",), False),
        ("PYBIND11_MODULE(x, m)", ("tensors_only",), True),
        ("PyObject *f; torch::jit::load(p);", (), True),
    ],
)
def test_tiers(text, overlays, python):
    assert libtorch.tier_of(text) == libtorch.Tier(overlays, python)


@pytest.mark.parametrize(
    ("version", "standard"),
    [("2.10.0", "c++17"), ("2.11.1+cu130", "c++17"), ("2.12.0", "c++20"), ("3.0", "c++20")],
)
def test_standard(version, standard):
    assert libtorch.LibTorch(pathlib.Path(), version, "", None).standard == standard


def imitate_pytorch(folder, version, cuda):
    """Write a package called torch, with a version and one header."""
    (folder / "torch" / "include" / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("raise RuntimeError('a build must not import PyTorch')\n")
    (folder / "torch" / "version.py").write_text(
        f"__version__ = '{version}'\ncuda: str | None = {cuda!r}\ngit_version = 'abc'\n"
    )
    (folder / "torch" / "include" / "torch" / "extension.h").write_text("#pragma once\n")


def add_headers_and_libraries(folder):
    """Add headers, with a function in the heaviest one, and libraries to an imitation of PyTorch."""
    include = folder / "torch" / "include" / "torch"
    (include / "extension.h").write_text("#pragma once\n#include <torch/all.h>\n#include <torch/python.h>\n")
    (include / "all.h").write_text(
        "#include <torch/types.h>\nnamespace torch::nn { inline int two() { return 2; } }\n"
    )
    (include / "types.h").write_text("#pragma once\nnamespace torch { inline int one() { return 1; } }\n")
    (include / "python.h").write_text("#pragma once\n")
    (folder / "torch" / "lib").mkdir()
    for name in ("c10", "torch_cpu", "torch", "torch_python"):
        command = [
            "g++",
            "-shared",
            "-x",
            "c++",
            "/dev/null",
            "-o",
            folder / "torch" / "lib" / f"lib{name}.so",
        ]
        subprocess.run(command, check=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value", "python"), [("one", 1, False), ("nn::two", 2, True)])
def test_an_unknown_name_is_found_in_all_headers(tmp_path, name, value, python):
    imitate_pytorch(tmp_path, "2.13.0", None)
    add_headers_and_libraries(tmp_path)
    source = f'using namespace torch;\nextern "C" int answer() {{ return {name}(); }}\n'
    assert libtorch.tier_of(source) == libtorch.TENSORS
    assert build_elsewhere(tmp_path, ".cpp", text=source) == ""
    library = tmp_path / "k.so"
    assert ctypes.CDLL(str(library)).answer() == value
    assert (b"libtorch_python" in library.read_bytes()) is python


@pytest.mark.slow
def test_one_of_two_sources_gets_all_headers(plain_path):
    """It is compiled twice, once. Later only what is edited is compiled, with the headers that it needs."""
    imitate_pytorch(plain_path, "2.13.0", None)
    add_headers_and_libraries(plain_path)
    compiler, log = plain_path / "logging-cxx", plain_path / "log"
    compiler.write_text(
        f'#!/bin/sh\nfor one; do case "$one" in *.cpp) echo "$one" >> "{log}";; esac; done\nexec g++ "$@"\n'
    )
    compiler.chmod(0o755)
    include = "#include <torch/extension.h>\nusing namespace torch;\n"
    texts = {
        "heavy": f'{include}extern "C" int heavy() {{ return nn::two(); }}\n',
        "light": f'{include}extern "C" int light() {{ return one(); }}\n',
    }
    path = os.pathsep.join(filter(None, [str(plain_path), *sys.path[1:]]))
    variables = {"PYTHONPATH": path, "CXX": str(compiler), "POLYOP_CACHE_DIR": str(plain_path / "cache")}

    def compiled(name, old, new):
        texts[name] = texts[name].replace(old, new)
        for one, text in texts.items():
            (plain_path / f"{one}.cpp").write_text(text)
        command = [sys.executable, "-m", "polyop", "build", "heavy.cpp", "light.cpp"]
        environment = {**os.environ, **variables}
        done = subprocess.run(
            command, cwd=plain_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        library = ctypes.CDLL(done.stdout.strip())
        names = [pathlib.Path(line).stem for line in log.read_text().splitlines()]
        log.write_text("")
        assert b"libtorch_python" in pathlib.Path(done.stdout.strip()).read_bytes()
        return sorted(names), library.heavy(), library.light()

    assert compiled("light", "", "") == (["heavy", "heavy", "light"], 2, 1)
    assert compiled("light", "one()", "one() + 4") == (["light"], 2, 5)
    assert compiled("heavy", "two()", "two() + 5") == (["heavy", "heavy"], 7, 5)


def build_elsewhere(tmp_path, suffix, first="", text=""):
    source = tmp_path / f"k{suffix}"
    source.write_text("#include <torch/extension.h>\n" + text)
    program = (
        "import sys\nfrom polyop.build import build\nfrom polyop.core.errors import BuildError\n"
        "try: build(sys.argv[1:2], output=sys.argv[2])\nexcept BuildError as e: print(e)"
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), *sys.path[1:]]))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", first + program, str(source), str(tmp_path / "k.so")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_no_pytorch(tmp_path):
    output = build_elsewhere(
        tmp_path,
        ".cpp",
        "import sys, importlib.util as u; f = u.find_spec; u.find_spec = lambda n: None if n == 'torch' else f(n)\n",
    )
    assert "k.cpp: includes PyTorch's headers, and PyTorch is not installed for this Python" in output
    assert "pip install torch" in output


def test_broken_pytorch(tmp_path):
    imitate_pytorch(tmp_path, "2.13.0", None)
    (tmp_path / "torch" / "version.py").unlink()
    assert "k.cpp: needs a PyTorch with its headers and version.py, but got" in build_elsewhere(
        tmp_path, ".cpp"
    )


def nvcc():
    try:
        return compilers.find("cuda").number[0]
    except BuildError:
        return None


@pytest.mark.skipif(nvcc() is None, reason="nvcc is not here")
@pytest.mark.parametrize(
    ("cuda", "message"),
    [
        (None, "needs a PyTorch built for CUDA {0} (nvcc is {0}."),
        ("9.2", "needs an nvcc and a PyTorch of the same CUDA major version, but got nvcc {0}."),
    ],
)
def test_cuda_versions_that_do_not_fit(tmp_path, cuda, message):
    imitate_pytorch(tmp_path, "2.13.0", cuda)
    output = build_elsewhere(tmp_path, ".cu")
    assert message.format(nvcc()) in output
    assert ("built for the CPU only" if cuda is None else "PyTorch 2.13.0 for CUDA 9.2") in output


def test_toolkit_can_be_switched_off():
    with pytest.raises(BuildError, match=r"torch/version\.h"):
        build(code="#include <torch/version.h>\n", torch=False)
