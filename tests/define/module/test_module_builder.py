"""CustomOpBuilder's arguments, and the methods that a subclass may override."""

import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

from polyop.core.errors import BuildError
from polyop.define.module.builder import CustomOpBuilder

SOURCE = """
#include <dependency.h>
#include "ms_extension/api.h"
PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("number", [] { return FACTOR + dependency(); });
}
"""

VALID = [
    {"sources": "ops.cpp"},
    {"sources": ["a.cpp", "b.cpp"]},
    {"sources": ("a.cpp", "b.cpp")},
    {"include_paths": "include"},
    {"include_paths": ["include", "more"]},
    {"cflags": "-O3 -DX=1"},
    {"ldflags": "-lm"},
    {"debug_mode": True},
    {"build_dir": "build"},
    {"backend": "CPU"},
    {"backend": "GPU"},
    {"backend": "Ascend"},
    {"backend": "Ascend", "enable_atb": True},
    {"backend": "Ascend", "enable_asdsip": True},
    {"enable_atb": True, "enable_asdsip": False},
    {"sanitize": "address,undefined"},
    {
        "sources": ("a.cpp",),
        "backend": "Ascend",
        "include_paths": ["include"],
        "cflags": "-O1",
        "ldflags": "-lm",
        "build_dir": "build",
        "debug_mode": False,
        "enable_atb": True,
        "enable_asdsip": True,
    },
]


@pytest.mark.parametrize("options", VALID, ids=str)
def test_valid_arguments(options):
    sources = options.get("sources", "ops.cpp")
    builder = CustomOpBuilder("valid_ops", **{"sources": sources, **options})
    assert builder.get_sources() == ([sources] if isinstance(sources, str) else list(sources))
    atb = options.get("enable_atb") or options.get("enable_asdsip")
    assert builder.backend == ("Ascend" if atb else options.get("backend"))


INVALID = [
    ("name", {"name": 123}, TypeError),
    ("sources", {"sources": 123}, TypeError),
    ("sources", {"sources": ["a.cpp", 123]}, TypeError),
    ("include_paths", {"include_paths": ["a", 123]}, TypeError),
    ("include_paths", {"include_paths": 123}, TypeError),
    ("cflags", {"cflags": 123}, TypeError),
    ("ldflags", {"ldflags": 123}, TypeError),
    ("build_dir", {"build_dir": 123}, TypeError),
    ("debug_mode", {"debug_mode": "true"}, TypeError),
    ("enable_atb", {"enable_atb": 1}, TypeError),
    ("enable_asdsip", {"enable_asdsip": "yes"}, TypeError),
    ("op_def", {"op_def": 123}, TypeError),
    ("op_def", {"op_def": ["a.yaml", 123]}, TypeError),
    ("op_doc", {"op_doc": 123}, TypeError),
    ("sanitize", {"sanitize": 1}, TypeError),
    ("backend", {"backend": 123}, TypeError),
    ("backend", {"backend": "TPU"}, ValueError),
    ("backend", {"backend": "cpu"}, ValueError),
    ("enable_atb", {"backend": "CPU", "enable_atb": True}, ValueError),
    ("enable_asdsip", {"backend": "GPU", "enable_asdsip": True}, ValueError),
    ("libraries", {"libraries": ["m"]}, TypeError),
]


@pytest.mark.parametrize(("argument", "options", "error"), INVALID, ids=str)
def test_invalid_arguments_are_named(argument, options, error):
    arguments = {"name": "invalid_ops", "sources": "ops.cpp", **options}
    with pytest.raises(
        error, match=f"(?s)For 'CustomOpBuilder'.*{argument}.*test_module_builder.py"
    ) as excinfo:
        CustomOpBuilder(**arguments)
    if argument != "libraries" and not isinstance(options[argument], bool):
        assert repr(options[argument]) in str(excinfo.value)


@pytest.mark.parametrize("name", ["two words", "a-b", "1st", "", "class", "a.b", "a::b"])
def test_names_that_are_not_identifiers(name):
    with pytest.raises(ValueError, match=f"'name': must be an identifier.*{re.escape(repr(name))}"):
        CustomOpBuilder(name, "ops.cpp")


def test_ascend_without_cann_is_an_error_that_names_the_switch(monkeypatch):
    monkeypatch.delenv("POLYOP_ASCEND", raising=False)
    monkeypatch.delenv("ATB_HOME_PATH", raising=False)
    with pytest.raises(RuntimeError, match="POLYOP_ASCEND"):
        CustomOpBuilder("ascend_ops", "ops.cpp", backend="Ascend").build()


@pytest.mark.filterwarnings("ignore:POLYOP_ASCEND=rehearse")
def test_libraries_of_cann_are_required(monkeypatch):
    monkeypatch.setenv("POLYOP_ASCEND", "rehearse")
    monkeypatch.delenv("ATB_HOME_PATH", raising=False)
    with pytest.raises(
        RuntimeError, match="'enable_atb' needs a library of CANN, and ATB_HOME_PATH.* is not set"
    ):
        CustomOpBuilder("atb_ops", "ops.cpp", enable_atb=True).build()


def test_flags():
    plain = CustomOpBuilder("flag_ops", "ops.cpp", cflags="-DX='a b'", ldflags="-lm")
    assert plain.get_cflags() == "-DMS_EXTENSION_NAME=flag_ops -O2 -DX='a b'"
    assert plain.get_ldflags() == "-lm"
    debug = CustomOpBuilder("flag_ops", "ops.cpp", debug_mode=True, sanitize="address")
    assert "-O2" not in debug.get_cflags() and "-fsanitize=address" in debug.get_cflags()
    assert "-fsanitize=address" in debug.get_ldflags()
    assert "-DCUSTOM_ASCEND_OP" in CustomOpBuilder("flag_ops", "ops.cpp", backend="Ascend").get_cflags()


@pytest.mark.parametrize("name", ["cflags", "ldflags"])
def test_a_list_of_flags_is_refused_with_the_text_to_write(name):
    with pytest.raises(TypeError, match=rf'(?s)\'{name}\': must be a str.*{name}=" "\.join\(flags\)'):
        CustomOpBuilder("flag_ops", "ops.cpp", **{name: ["-O3", "-g"]})


SUM = """
#include "ms_extension/api.h"
PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("number", [] { return 42; });
  m.def("same", [](const ms::Tensor &x) { return x; });
}
"""


def test_another_backend_is_another_module(tmp_path):
    source = tmp_path / "ops.cpp"
    source.write_text(SUM)
    cpu = CustomOpBuilder("backend_ops", str(source), backend="CPU").load()
    assert CustomOpBuilder("backend_ops", str(source)).load() is cpu
    gpu = CustomOpBuilder("backend_ops", str(source), backend="GPU").load()
    devices = [module.same.operator.kernels[0].device for module in (cpu, gpu)]
    assert devices == ["cpu", "cuda"]


LOADS_SANITIZED = """
from polyop.define.module.builder import CustomOpBuilder
builder = CustomOpBuilder("sanitized_ops", "ops.cpp", backend="CPU", sanitize="address")
builder.build()
try:
    print(builder.load().number())
except RuntimeError as problem:
    print(problem)
"""


def test_a_sanitised_module_is_refused_with_the_command_that_works(tmp_path):
    (tmp_path / "ops.cpp").write_text(SUM)
    (tmp_path / "loads.py").write_text(LOADS_SANITIZED)

    def run(command):
        return subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)

    refused = run(f"{shlex.quote(sys.executable)} loads.py")
    assert refused.returncode == 0, refused.stderr
    assert "module sanitized_ops: is built with AddressSanitizer" in refused.stdout
    command = refused.stdout.split("start it with: ")[1].strip()
    assert command.startswith("LD_PRELOAD=") and command.endswith(" loads.py")
    done = run(command)
    assert done.stdout.strip() == "42", done.stdout + done.stderr


def test_the_callers_list_is_left_alone():
    folders = ["include"]
    builder = CustomOpBuilder("list_ops", "ops.cpp", include_paths=folders)
    builder.get_include_paths().append("more")
    assert folders == ["include"] and builder.get_include_paths() == ["include"]


def test_methods_that_a_subclass_overrides(tmp_path):
    source, headers = tmp_path / "ops.cpp", tmp_path / "include with space"
    headers.mkdir()
    source.write_text(SOURCE)
    (headers / "dependency.h").write_text("#pragma once\ninline int dependency() { return 30; }\n")

    class Builder(CustomOpBuilder):
        def get_sources(self):
            return [str(source)]

        def get_include_paths(self):
            return [*super().get_include_paths(), str(headers)]

        def get_cflags(self):
            return super().get_cflags() + " -DFACTOR=12"

    ops = Builder("overridden_ops", "not-there.cpp").load()
    assert ops.number() == 42
    (headers / "dependency.h").write_text("#pragma once\ninline int dependency() { return 31; }\n")
    assert Builder("overridden_ops", "not-there.cpp").load().number() == 43  # a header counts, too


def test_a_tensor_of_numbers_is_returned_as_an_array(tmp_path):
    source = tmp_path / "dtypes.cpp"
    source.write_text(
        '#include "ms_extension.h"\n'
        "PYBIND11_MODULE(MS_EXTENSION_NAME, m) {\n"
        '  m.def("two", [] { return ms::tensor(std::vector<int64_t>{1, 2}); });\n}\n'
    )
    ops = CustomOpBuilder("number_ops", source.as_posix()).load()
    np.testing.assert_array_equal(ops.two(), [1, 2])


HEADERS = [
    ("torch/extension.h", True),
    ("ATen/ATen.h", True),
    ("c10/core/Device.h", True),
    ("torch_of_mine/extension.h", False),
    ("dependency.h", False),
]


@pytest.mark.parametrize(("header", "of_pytorch"), HEADERS, ids=[row[0] for row in HEADERS])
def test_a_pytorch_extension_is_sent_to_load_library(tmp_path, header, of_pytorch):
    source = tmp_path / "extension.cpp"
    source.write_text(f"#include <cmath>\n#include <{header}>\n")
    with pytest.raises(BuildError) as caught:
        CustomOpBuilder("sent_ops", [str(source)]).load()
    text = str(caught.value)
    assert f"defined at {source}:2" in text
    words = [
        "module sent_ops: is compiled without the headers of PyTorch",
        f"but got #include <{header}>",
        f"polyop.load_library('{source}') takes a PyTorch extension",
    ]
    assert [part in text for part in words] == [of_pytorch] * 3
    assert ("command: " in text) is not of_pytorch  # of another header, the compiler's own words
