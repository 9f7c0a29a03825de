"""``polyop audit``: wheels that keep what their tag promises, and one that breaks each promise."""

import base64
import hashlib
import json
import platform
import re
import zipfile

import pytest
from wheel_tools import contents, run

from polyop.build import build
from polyop.core.errors import LibraryError
from polyop.wheel import platforms
from polyop.wheel.audit import audit

MACHINE = platform.machine()
RECORD = "vecops-0.1.0.dist-info/RECORD"


def packed(folder, tag, files, record=None):
    """Write a wheel whose WHEEL and RECORD agree with its name and files."""
    files = dict(files)
    info = next((name.split("/")[0] for name in files if ".dist-info" in name), "vecops-0.1.0.dist-info")
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nTag: {tag}\n".encode()
    files.setdefault(f"{info}/METADATA", b"Requires-Dist: polyop\n")
    files.pop(f"{info}/RECORD", None)
    if record is None:
        record = "".join(
            f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b'=').decode()},\n"
            for name, text in files.items()
        )
    path = folder / f"vecops-0.1.0-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(name, text)
    return path


def with_library(folder, code, tag, link_flags=(), language="c"):
    library = build(code=code, language=language, link_flags=link_flags, torch=False)
    return packed(folder, tag, {"vecops/libx.so": library.read_bytes()})


@pytest.mark.slow
def test_the_report(wheel):
    done = run("-m", "polyop", "audit", wheel)
    lines = dict(line.split(":", 1) for line in done.stdout.splitlines()[:-1])
    assert lines["library"].strip().startswith("vecops/_ops/libops.so (")
    assert lines["requires"].split(",")[0].strip() == "polyop"
    assert re.fullmatch(r"2\.\d+", lines["glibc floor"].strip())
    assert lines["ABI version"].strip() == "1 (this polyop: 1)"
    assert (
        "vecops::add_custom(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor  [CPU, Meta, gradient]"
        in done.stdout
    )
    assert done.stdout.endswith("it keeps what its name promises\n") and not done.stderr


@pytest.mark.slow
def test_a_tag_lower_than_the_glibc_that_is_needed(wheel, tmp_path):
    path = packed(tmp_path, f"py3-none-manylinux_2_5_{MACHINE}", contents(wheel))
    done = run("-m", "polyop", "audit", path, check=False)
    assert done.returncode == 1 and done.stdout.endswith("broken\n")
    floor = re.search(r"glibc floor: +(\S+)", done.stdout)[1]
    assert f"it needs GLIBC {floor}, and manylinux_2_5_{MACHINE} promises that 2.5 is enough" in done.stderr


def test_a_tag_lower_than_the_cxx_library_that_is_needed(tmp_path, wheel):
    path = packed(tmp_path, f"py3-none-manylinux2014_{MACHINE}", contents(wheel))
    breaches = audit(path).breaches
    assert any(
        re.match(r"it needs GLIBCXX 3\.4\.\d+, and .* promises that 3\.4\.19 is enough", one)
        for one in breaches
    )


@pytest.mark.parametrize(("old", "most"), [("manylinux2014", r"1\.3\.7"), ("manylinux1", r"1\.3\.1")])
def test_a_tag_lower_than_the_cxx_abi_that_is_needed(tmp_path, old, most):
    code = (
        'extern "C" void __cxa_throw_bad_array_new_length(); void f() { __cxa_throw_bad_array_new_length(); }'
    )
    report = audit(with_library(tmp_path, code, f"py3-none-{old}_{MACHINE}", language="c++"))
    assert re.search(r"\bCXXABI 1\.3\.\d+", dict(report.facts)["GCC floor"])
    rule = rf"it needs CXXABI 1\.3\.\d+, and {old}_.* promises that {most} is enough"
    assert any(re.fullmatch(rule, one) for one in report.breaches)


@pytest.mark.parametrize(
    ("code", "language", "message"),
    [
        (
            "void* PyList_New(long); void* f(void) { return PyList_New(0); }",
            "c",
            "needs Python .*such as PyList_New",
        ),
        (
            "namespace at { struct Tensor { void zero(); }; } void f(at::Tensor& t) { t.zero(); }",
            "c++",
            "needs PyTorch .*such as _ZN2at6Tensor4zeroEv",
        ),
    ],
)
def test_symbols_of_python_and_frameworks(tmp_path, code, language, message):
    path = with_library(tmp_path, code, f"py3-none-linux_{MACHINE}", language=language)
    [breach] = audit(path).breaches
    assert re.search(rf"vecops/libx\.so {message}; a wheel tagged py3-none must not", breach)


def test_python_symbols_are_fine_where_the_tag_names_the_python(tmp_path):
    code = "void* PyList_New(long); void* f(void) { return PyList_New(0); }"
    assert not audit(with_library(tmp_path, code, f"cp311-cp311-linux_{MACHINE}")).breaches


def test_libraries_that_are_not_inside(tmp_path):
    other = build(code="int g(void) { return 1; }", language="c", output=tmp_path / "libother.so")
    link = [f"-L{tmp_path}", "-Wl,--no-as-needed", "-l:libother.so", f"-Wl,-rpath,{tmp_path}"]
    path = with_library(tmp_path, "int f(void) { return 2; }", f"py3-none-manylinux_2_39_{MACHINE}", link)
    missing, folder = audit(path).breaches
    assert other.is_file()
    assert "vecops/libx.so needs libother.so, which manylinux_2_39" in missing
    assert f"looks for libraries in {tmp_path}, a folder of the builder" in folder


def test_another_machine(wheel, tmp_path):
    path = packed(tmp_path, "py3-none-manylinux_2_39_riscv64", contents(wheel))
    [breach] = audit(path).breaches
    assert breach == f"vecops/_ops/libops.so is for {MACHINE}, and the tag says manylinux_2_39_riscv64"


@pytest.mark.slow
def test_files_that_were_changed(wheel, tmp_path):
    files = contents(wheel)
    record, tag = files[RECORD].decode(), wheel.stem.split("-", 2)[2]
    files["vecops/_ops/operators.json"] += b" "
    files["vecops/more.py"] = b"x = 1\n"
    breaches = "\n".join(audit(packed(tmp_path, tag, files, record)).breaches)
    assert "vecops/_ops/operators.json is not the file that its RECORD names: the hashes differ" in breaches
    assert "vecops/more.py is not in its RECORD" in breaches


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"abi": 99}, "libops.so has ABI version 99, and this polyop loads 1"),
        ({"sha256": "0"}, "tells of another vecops/_ops/libops.so: the hashes differ"),
        ({"library": "none.so"}, "tells of vecops/_ops/none.so, which is not inside"),
        ({"format": 7}, "operators.json has format 7, this polyop knows 1"),
        ({"operators": [{}]}, "operators.json cannot be read: KeyError: 'gradient'"),
    ],
)
def test_information_that_is_wrong(wheel, tmp_path, change, message):
    files = contents(wheel)
    name = "vecops/_ops/operators.json"
    files[name] = json.dumps({**json.loads(files[name]), **change}).encode()
    [breach] = audit(packed(tmp_path, wheel.stem.split("-", 2)[2], files)).breaches
    assert message in breach


def test_a_name_that_the_wheel_file_does_not_have(wheel, tmp_path):
    renamed = tmp_path / re.sub("py3-none", "py2-none", wheel.name)
    renamed.write_bytes(wheel.read_bytes())
    [breach] = audit(renamed).breaches
    assert re.match(r"its name says py2-none-\S+, and its WHEEL file py3-none-", breach)


def test_a_file_that_is_no_library(tmp_path):
    path = packed(tmp_path, f"py3-none-linux_{MACHINE}", {"vecops/libx.so": b"text"})
    [breach] = audit(path).breaches
    assert breach.startswith("vecops/libx.so is no library: ")


def test_notes(tmp_path):
    files = {"vecops/__init__.py": b"", "vecops-0.1.0.dist-info/METADATA": b"Name: vecops\n"}
    report = audit(packed(tmp_path, "py3-none-any", files))
    assert not report.breaches
    assert any(note.startswith("it does not require polyop") for note in report.notes)
    assert "it has no compiled library" in report.notes


@pytest.mark.parametrize(
    ("name", "message"),
    [("ops.zip", "must be called name-version"), ("a-1-py3-none-any.whl", "cannot be read as a wheel")],
)
def test_files_that_are_no_wheel(tmp_path, name, message):
    (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(LibraryError, match=message):
        audit(tmp_path / name)
    done = run("-m", "polyop", "audit", tmp_path / name, check=False)
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("versions", "needed", "tag"),
    [
        ([], ["libc.so.6"], "manylinux_2_17_x86_64"),
        (["GLIBC_2.18"], [], "manylinux_2_24_x86_64"),
        (["GLIBC_2.4", "GLIBCXX_3.4.30"], ["libstdc++.so.6"], "manylinux_2_35_x86_64"),
        (["GLIBC_2.14", "GLIBCXX_3.4.11", "CXXABI_1.3.15"], ["libstdc++.so.6"], "manylinux_2_39_x86_64"),
        (["GLIBC_2.14", "GCC_12.0.0"], ["libgcc_s.so.1"], "manylinux_2_35_x86_64"),
        (["GLIBC_2.14", "GCC_3.0", "CXXABI_1.3.7"], ["libgcc_s.so.1"], "manylinux_2_17_x86_64"),
        (["GLIBC_2.99"], [], "linux_x86_64"),
        (["CXXABI_1.3.99"], [], "linux_x86_64"),
        (["GLIBC_2.4"], ["libblas.so.3"], "linux_x86_64"),
    ],
)
def test_platform_tags(versions, needed, tag):
    assert platforms.platform_tag("x86-64", versions, needed) == tag
