"""The allowlist holds for every entry point that opens or compiles a file."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.build import build
from polyop.core.errors import ArgumentTypeError

C = (
    "#include <stdint.h>\nint first(int n, void **p, int *r, int64_t **s, const char **t, void *q, void *e)"
    " { return 0; }\n"
)
MODULE = """
#include <ms_extension/api.h>
int64_t seven() { return 7; }
PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("seven", &seven); }
"""
LIBRARY = """
#include <polyop/library.h>
POLYOP_LIBRARY(gated, m) { m.def("same(Tensor x) -> Tensor"); }
"""
ACLNN = (
    "int aclnnGatedGetWorkspaceSize(void *x, void *y, unsigned long *n, void **e) { return 0; }\n"
    "int aclnnGated(void *w, unsigned long n, void *e, void *s) { return 0; }\n"
)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Return a folder with the folders ``good``, which the tests will allow, and ``other``: the same files."""
    monkeypatch.delenv("MS_CUSTOM_AOT_WHITE_LIST", raising=False)
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("good", "other"):
        folder = tmp_path / name
        (folder / "include").mkdir(parents=True)
        (folder / "k.c").write_text(C)
        (folder / "module.cc").write_text(MODULE)
        (folder / "library.cc").write_text(LIBRARY)
        (folder / "include" / f"of_{name}.h").write_text("#define N 1\n")
        (folder / f"with_{name}.c").write_text(f'#include "of_{name}.h"\n{C}')
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "k.so", folder / "k.c"], check=True)
        (folder / "aclnn.c").write_text(ACLNN.replace("Gated", f"Gated{name.title()}"))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "aclnn.so", folder / "aclnn.c"], check=True)
    return tmp_path


def same(shape):
    return shape


def builder(folder, name="gated", **options):
    return (
        polyop.CustomOpBuilder(f"{name}_{folder.name}", str(folder / "module.cc"), **options).load().seven()
    )


ENTRY_POINTS = {
    "polyop.prebuilt": lambda f: polyop.prebuilt(f / "k.so", "first"),
    "Custom of a library": lambda f: polyop.Custom(f"{f}/k.so:first", same, same, "aot"),
    "register_aclnn_library": lambda f: polyop.register_aclnn_library(
        f / "aclnn.so", [f"aclnnGated{f.name.title()}(Tensor x, Tensor(a!) y) -> ()"]
    ),
    "load_library of a library": lambda f: polyop.load_library(
        f / "library.so", namespaces={"gated": f"gated_{f.name}"}
    ),
    "polyop.source": lambda f: polyop.source(f / "k.c", function="first"),
    "Custom of a source": lambda f: polyop.Custom(f"{f}/k.c:first", same, same, "aot"),
    "an operator of a source": lambda f: polyop.operator(
        f"gate_{f.name}::first(Tensor x) -> Tensor", f"{f}/k.c:first", infer="x"
    ),
    "build": lambda f: build([f / "k.c"]),
    "load_library of sources": lambda f: polyop.load_library(
        f / "library.cc", namespaces={"gated": f"gated_source_{f.name}"}
    ),
    "CustomOpBuilder": builder,
    "a header of a source": lambda f: build(
        [f.parent / "good" / f"with_{f.name}.c"], include_paths=[f / "include"]
    ),
    "a header that inline code names": lambda f: build(
        code=f'#include "{f}/include/of_{f.name}.h"\nint x = N;\n', language="c"
    ),
    "a source that inline code includes": lambda f: build(code=f'#include "{f}/k.c"\n', language="c"),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_every_entry_point_checks_the_list(folders, monkeypatch, entry_point):
    call = ENTRY_POINTS[entry_point]
    if entry_point == "load_library of a library":
        for name in ("good", "other"):
            build([folders / name / "library.cc"], output=folders / name / "library.so", torch=False)
    if entry_point == "a header of a source":
        (folders / "good" / "with_other.c").write_text((folders / "other" / "with_other.c").read_text())
    monkeypatch.setenv("POLYOP_LIBRARY_PATHS", str(folders / "good"))
    call(folders / "good")
    message = rf"the legal path for the file is {folders}/good, but the file is {folders}/other/"
    with pytest.raises(ArgumentTypeError, match=message):
        call(folders / "other")
    monkeypatch.delenv("POLYOP_LIBRARY_PATHS")
    call(folders / "other")
    monkeypatch.setenv("POLYOP_LIBRARY_PATHS", str(folders / "good"))
    if entry_point not in ("CustomOpBuilder", "register_aclnn_library", "an operator of a source"):
        with pytest.raises(ArgumentTypeError, match=message):  # also now that the cache has the result
            call(folders / "other")


def test_inline_code_and_loop_kernels_are_allowed(folders, monkeypatch):
    monkeypatch.setenv("POLYOP_LIBRARY_PATHS", str(folders / "good"))
    polyop.source(function="first", language="c", code=C)
    polyop.source(function="first", language="c", code=C)

    @polyop.kernel
    def twice(a):
        out = output_tensor(a.shape, a.dtype)  # noqa: F821 - a word of the kernel's language
        for i in range(a.shape[0]):
            out[i] = a[i] * 2
        return out

    operator = polyop.operator("gate::twice(Tensor a) -> Tensor", twice)
    assert operator(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_a_library_of_the_cache_is_allowed_only_if_this_process_verified_it(folders, monkeypatch):
    code = "int first(void) { return 0; }\n"
    program = "import sys; from polyop.build import build; print(build(code=sys.argv[1], language='c'))"
    done = subprocess.run([sys.executable, "-c", program, code], capture_output=True, text=True, check=True)
    path = done.stdout.strip()
    monkeypatch.setenv("POLYOP_LIBRARY_PATHS", str(folders / "good"))
    with pytest.raises(ArgumentTypeError, match=f"but the file is {path}"):
        polyop.prebuilt(path, "first")
    assert str(build(code=code, language="c")) == path
    assert polyop.prebuilt(path, "first").name == "first"


def test_a_library_in_a_build_folder_is_checked(folders, monkeypatch):
    monkeypatch.setenv("POLYOP_LIBRARY_PATHS", str(folders / "good"))
    with pytest.raises(ArgumentTypeError, match=rf"the file is {folders}/out/placed_good\.so"):
        builder(folders / "good", "placed", build_dir=str(folders / "out"))
    assert builder(folders / "good", "placed", build_dir=str(folders / "good" / "out")) == 7


@pytest.mark.slow
def test_a_shipped_kernel_outside_the_list_is_compiled_with_a_warning(folders, monkeypatch):
    package = folders / "other" / "shippedops"
    (package / "__polyop__").mkdir(parents=True)
    (package / "kernels.py").write_text(
        "import polyop\n\n@polyop.kernel\ndef twice(a):\n    out = output_tensor(a.shape, a.dtype)\n"
        "    for i in range(a.shape[0]):\n        out[i] = a[i] * 2\n    return out\n"
    )
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import numpy as np, polyop, warnings\n"
        "from shippedops import kernels\n"
        "op = polyop.operator('gate::twice(Tensor a) -> Tensor', kernels.twice)\n"
        "print(op(np.arange(3.0)).tolist())\n"
    )
    ship(package, "twice")

    def use(**environment):
        done = subprocess.run(
            [sys.executable, "-c", program, str(package.parent)],
            env={**os.environ, "POLYOP_CACHE_DIR": str(folders / "use"), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("[0.0, 2.0, 4.0]")
        return done

    assert use().stderr == ""
    assert not (folders / "use").exists()  # the shipped library ran
    refused = use(POLYOP_LIBRARY_PATHS=str(folders / "good"))
    assert len(list((folders / "use" / "entries").iterdir())) == 1
    assert f"but the file is {package}/__polyop__/" in refused.stderr and "FallbackWarning" in refused.stderr
    index = package / "__polyop__" / "kernels.json"
    rows = json.loads(index.read_text())
    rows["kernels"][0]["library"] = "../../../outside.so"
    index.write_text(json.dumps(rows))
    outside = use()
    assert (
        "'../../../outside.so' is no plain file name" in outside.stderr
        and "FallbackWarning" in outside.stderr
    )


def ship(package, name):
    """Compile a function's library for float64 vectors ahead of time, with the index that finds it."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from polyop.wheel import LoopExtension\n"
        "from polyop.wheel.loop_build import compile_module\n"
        "here = Path(sys.argv[1])\n"
        "extension = LoopExtension('shippedops.kernels', {sys.argv[2]: ['float64[:]']})\n"
        "compile_module(extension, here / 'shippedops' / 'kernels.py', here)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(package.parent), name], check=True)
