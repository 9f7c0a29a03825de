"""Descriptions of libraries, and the errors about libraries that cannot be used. All are compiled here."""

import ctypes
import os
import pathlib
import random
import re
import shlex
import socket
import struct
import subprocess

import pytest

from polyop.binary import diagnose as library_file
from polyop.binary import elf, elf_tables
from polyop.binary.elf import own_machine
from polyop.core import versions
from polyop.core.errors import LibraryError

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
KERNEL = "(int n, void **p, int *d, int64_t **s, const char **t, void *stream, void *extra) { return 0; }\n"
C = "#include <stdint.h>\nint Add" + KERNEL
CC = '#include <cstdint>\n#include <string>\n#include <vector>\nextern "C" int Add' + KERNEL

# A header as another framework has it: virtual functions that take and return C++ strings.
FOREIGN = """
#include <cstdint>
#include <string>
#include <vector>
class AotExtra {
 public:
  virtual ~AotExtra() = default;
  virtual bool HasAttr(std::string name) = 0;
  template <typename T> T Attr(std::string name) { T value; Get(name, &value); return value; }
 private:
  virtual bool Get(std::string name, float *value) = 0;
};
extern "C" int Add(int, void **, int *, int64_t **, const char **, void *, void *) { return 0; }
"""
COMPANION = {
    "AddInit": 'extern "C" int AddInit(int *, int64_t **, const char **, AotExtra *e) {'
    ' return e->HasAttr("a") && e->Attr<float>("a") > 0; }\n',
    "AddInferShape": 'extern "C" std::vector<int64_t> AddInferShape(int *, int64_t **, AotExtra *) { return {2, 3}; }\n',
    "AddInferType": 'enum TypeId : int {};\nextern "C" TypeId AddInferType(std::vector<TypeId> t, AotExtra *) {'
    " return t.at(0); }\n",
}


def make(folder, name, code, *flags):
    """Compile the code to folder/name, as C++ if it looks like C++, else as C."""
    cxx = "extern" in code or "namespace" in code or "std::" in code
    compiler = os.environ.get("CXX", "c++") if cxx else os.environ.get("CC", "cc")
    source = folder / f"{name}.{'cc' if cxx else 'c'}"
    source.write_text(code)
    command = [
        *shlex.split(compiler),
        "-shared",
        "-fPIC",
        f"-I{INCLUDE}",
        "-o",
        str(folder / name),
        str(source),
    ]
    finished = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return folder / name


def load_error(path):
    """Load the library, and return polyop's error for the loader's message."""
    with pytest.raises(OSError) as problem:
        ctypes.CDLL(str(path))
    return str(library_file.diagnose(str(path), str(problem.value)))


def test_read_names_functions_machine_and_needs(tmp_path):
    code = (
        C
        + '#include <stdio.h>\nstatic int hidden(void) { return puts("x"); }\nint used(void) { return hidden(); }'
    )
    path = make(tmp_path, "lib.so", code)
    file = library_file.read(path)
    assert file.path == path
    assert file.functions == ("Add", "used")
    assert any("libc" in name for name in file.needed)
    assert (file.marker, file.machine) == (None, own_machine())


def test_read_works_without_section_headers(tmp_path):
    path = make(tmp_path, "lib.so", C + '#include <stdio.h>\nint Sub(void) { return puts("x"); }\n')
    before = library_file.read(path)
    raw = bytearray(path.read_bytes())
    raw[0x28:0x30] = bytes(8)  # e_shoff
    raw[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
    path.write_bytes(raw)
    after = library_file.read(path)
    assert (after.functions, after.needed, after.machine) == (before.functions, before.needed, before.machine)


@pytest.mark.parametrize(
    "flags", [(), ("-fvisibility=hidden",), ("-O2", "-s"), ("-std=c++20", "-Wl,--gc-sections")]
)
def test_the_header_exports_the_marker(tmp_path, flags):
    code = '#include "polyop/custom_aot_extra.h"\nextern "C" int Add() { return 0; }\n'
    file = library_file.read(make(tmp_path, "lib.so", code, *flags))
    assert file.marker == versions.ABI_VERSION


def test_abi_version_is_that_of_the_header():
    [version] = re.findall(r"#define POLYOP_ABI_VERSION (\d+)", (INCLUDE / "polyop/abi.h").read_text())
    assert int(version) == versions.ABI_VERSION


def test_aot_functions_pairs_companions_and_drops_the_runtime(tmp_path):
    code = CC + "".join(
        f'extern "C" int {name}() {{ return 0; }}\n'
        for name in (
            "AddInit",
            "AddInferType",
            "Sub",
            "SubInferShape",
            "WarmInit",
            "_init2",
            "__mine",
            "PyInit_x",
        )
    )
    functions = library_file.aot_functions(library_file.read(make(tmp_path, "lib.so", code)))
    assert functions == (
        library_file.AotFunction("Add", has_init=True, has_infer_shape=False, has_infer_type=True),
        library_file.AotFunction("Sub", has_init=False, has_infer_shape=True, has_infer_type=False),
        library_file.AotFunction("WarmInit", has_init=False, has_infer_shape=False, has_infer_type=False),
        library_file.AotFunction("_init2", has_init=False, has_infer_shape=False, has_infer_type=False),
    )


def test_missing_file_names_the_nearest(tmp_path):
    make(tmp_path, "libadd.so", C)
    text = str(library_file.diagnose(str(tmp_path / "libad.so"), "no such file"))
    assert re.search(r"couldn't find the AOT binary file", text)
    assert "similar name libadd.so" in text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the path is empty"),
        ("absent/lib.so", "there is no folder .*absent"),
        ("dangling.so", "a link to nowhere, which does not exist"),
        (".", "a directory"),
        ("file.txt/lib.so", "Not a directory"),
        ("socket", "a device, pipe or socket"),
        ("file.txt", "a text file that begins with 'hello'"),
        ("add.cc", "polyop build add.cc -o lib.so"),
        ("empty.so", "an empty file"),
        ("short.so", "a file that was cut off"),
        ("bytes.so", "a file that begins with b'.x00.x01"),
        ("wheel.whl", "a zip file or wheel"),
        ("lib.dll", "a Windows library"),
        ("nul\0.so", "is no path"),
    ],
)
def test_files_that_are_no_library(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    contents = {
        "file.txt": b"hello\nworld",
        "add.cc": b"int f;",
        "empty.so": b"",
        "short.so": b"\x7fELF\x02\x01",
        "bytes.so": b"\0\1\2\3",
        "wheel.whl": b"PK\x03\x04",
        "lib.dll": b"MZ\x90\0",
    }
    for other, content in contents.items():
        (tmp_path / other).write_bytes(content)
    (tmp_path / "dangling.so").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert re.search(message, str(library_file.diagnose(name, "x")))
        with pytest.raises(LibraryError, match=message):
            library_file.read(name)


def test_object_archive_and_program_are_named(tmp_path):
    (tmp_path / "m.c").write_text("int main(void) { return 0; }\n")
    compiler = shlex.split(os.environ.get("CC", "cc"))

    def run(*command):
        subprocess.run(command, cwd=tmp_path, check=True)

    run(*compiler, "-c", "m.c", "-o", "m.o")
    run("ar", "rcs", "m.a", "m.o")
    run(*compiler, "-pie", "-fPIE", "m.c", "-o", "pie")
    run(*compiler, "-no-pie", "m.c", "-o", "fixed")
    assert re.search(r"got an object file, not linked yet\n.*-shared", load_error(tmp_path / "m.o"))
    assert re.search(r"got a static archive\n.*--whole-archive", load_error(tmp_path / "m.a"))
    for program in ("pie", "fixed"):
        assert re.search(r"got a program\n.*-shared", load_error(tmp_path / program))


def test_wrong_architecture_names_both(tmp_path):
    path = make(tmp_path, "lib.so", C)
    raw = bytearray(path.read_bytes())
    other, name = (62, "x86-64") if own_machine() == "aarch64" else (183, "aarch64")
    raw[18:20] = other.to_bytes(2, "little")
    path.write_bytes(raw)
    assert re.search(rf"architecture, {own_machine()}, but got {name}", load_error(path))


def test_missing_dependency_names_it_and_the_way_out(tmp_path):
    make(tmp_path, "libdeep.so", "int deep(void) { return 1; }")
    middle = make(
        tmp_path,
        "libmiddle.so",
        "int deep(void); int middle(void) { return deep(); }",
        f"-L{tmp_path}",
        "-ldeep",
    )
    rpath = f"-Wl,-rpath,{tmp_path}"
    path = make(
        tmp_path,
        "lib.so",
        "int middle(void); int Add(void) { return middle(); }",
        f"-L{tmp_path}",
        "-lmiddle",
        rpath,
    )
    text = load_error(path)
    assert re.search(r"needs libdeep.so, which is not found \(one of the libraries it needs does\)", text)
    middle.unlink()
    text = load_error(path)
    assert re.search(r"needs libmiddle.so, which is not found\n.*LD_LIBRARY_PATH", text)
    assert f"its run path ({tmp_path})" in text
    assert "-Wl,-rpath" in text


def test_missing_pytorch_says_how_to_build(tmp_path):
    torch = make(tmp_path, "libtorch_none.so", "int t(void) { return 1; }")
    path = make(
        tmp_path, "lib.so", "int t(void); int Add(void) { return t(); }", f"-L{tmp_path}", "-ltorch_none"
    )
    torch.unlink()
    assert re.search(
        r"needs libtorch_none.so.*no run path of its own.*it is PyTorch's.*polyop build",
        load_error(path),
        re.DOTALL,
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "int helper(void); int Add(void) { return helper(); }",
            r'undefined symbol: helper\n.*link the library.*extern "C"',
        ),
        (
            'namespace my { int f(int); } extern "C" int Add() { return my::f(1); }',
            r"undefined symbol: my::f\(int\) \(_ZN2my1fEi\)",
        ),
        (
            'namespace c10 { int f(int); } extern "C" int Add() { return c10::f(1); }',
            r"(?s)c10::f\(int\).*it is PyTorch's",
        ),
    ],
)
def test_undefined_symbols(tmp_path, code, message):
    assert re.search(message, load_error(make(tmp_path, "lib.so", code)))


def test_missing_symbol_version_asks_for_a_rebuild(tmp_path):
    (tmp_path / "v1").write_text("V1 { global: *; };")
    (tmp_path / "v2").write_text("V2 { global: *; };")
    make(tmp_path, "libv.so", "int v(void) { return 1; }", f"-Wl,--version-script={tmp_path}/v1")
    path = make(
        tmp_path,
        "lib.so",
        "int v(void); int Add(void) { return v(); }",
        f"-L{tmp_path}",
        "-lv",
        f"-Wl,-rpath,{tmp_path}",
    )
    make(tmp_path, "libv.so", "int v(void) { return 1; }", f"-Wl,--version-script={tmp_path}/v2")
    assert re.search(r"needs V1, which .*libv.so does not have\n.*rebuild it here", load_error(path))


def test_thread_storage(tmp_path):
    code = '__thread char big[1 << 22] __attribute__((tls_model("initial-exec")));\nchar Add(int i) { return big[i]; }\n'
    assert re.search(r"more thread-local storage.*\n.*LD_PRELOAD", load_error(make(tmp_path, "lib.so", code)))


def test_an_unknown_message_is_shown(tmp_path):
    path = make(tmp_path, "lib.so", C)
    assert "cannot be opened: out of luck" in str(library_file.diagnose(path, "out of luck"))


def test_damaged_files_raise_library_error(tmp_path):
    whole = make(tmp_path, "lib.so", C).read_bytes()
    path = tmp_path / "damaged.so"
    chance = random.Random(7)
    errors = []
    for _ in range(300):
        raw = bytearray(whole)
        for _ in range(4):
            raw[chance.randrange(4, 0x400)] = chance.randrange(256)
        path.write_bytes(raw[: chance.choice([64, 500, 3000, len(raw)])])
        try:
            library_file.read(path)
        except LibraryError as problem:
            errors.append(str(problem))
    assert len(errors) > 100
    assert all(re.search("is damaged|must be a shared library", text) for text in errors)


@pytest.mark.parametrize(("section", "is_damaged"), [(elf_tables.SHN_UNDEF, False), (1, True)])
def test_a_row_that_a_linker_left_is_no_symbol(tmp_path, section, is_damaged):
    """GNU ld for aarch64 may leave an undefined row with an address of its own memory as its name."""
    rows = [(1, 0x12, 0, 1, 8, 4), (0xD9B57B90, 0x1F, 0x56, section, 0, 0), (5, 0x12, 0, 1, 16, 4)]
    symbols, names = b"".join(struct.pack("<IBBHQQ", *row) for row in rows), b"\0one\0two\0"
    sections = struct.pack("<IIQQQQIIQQ", 0, elf_tables.SHT_DYNSYM, 0, 0, 64, len(symbols), 1, 0, 0, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(symbols), len(names), 0, 0, 0, 0)
    at = 64 + len(symbols) + len(names)
    header = b"\x7fELF\2\1\1" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 183, 1, 0, 0, at, 0, 64, 0, 0, 64, 2, 0)
    path = tmp_path / "k.so"
    path.write_bytes(header + symbols + names + sections)
    with path.open("rb") as file:
        if is_damaged:
            with pytest.raises(elf_tables.Damaged, match="has no end"):
                list(elf_tables.Elf(file).dynamic_symbols())
        else:
            assert [one.name for one in elf_tables.Elf(file).dynamic_symbols()] == ["one", "two"]


def test_names_that_overlap_are_not_read_without_end(tmp_path, monkeypatch):
    """A small file can have as many names as symbols, each as long as its table of names."""
    monkeypatch.setattr(elf_tables, "_MAX_NAME_BYTES", 1 << 20)  # else the test takes half a GiB
    names, count = b"x" * 60_000 + b"\0", 20
    sections = struct.pack("<IIQQQQIIQQ", 0, elf_tables.SHT_SYMTAB, 0, 0, 64, 24 * count, 2, 0, 0, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + 24 * count, len(names), 0, 0, 0, 0)
    header = (3, 62, 1, 0, 0, 64 + 24 * count + len(names), 0, 64, 0, 0, 64, 3, 0)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", *header)
    path = tmp_path / "names.so"
    path.write_bytes(head + bytes(24 * count) + names + bytes(64) + sections)
    with pytest.raises(LibraryError, match="it has more than 1048576 bytes of names"):
        elf.all_names(path)


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        (C + "int Sub(void) { return 0; }", "Ad", r"did you mean Add\? it offers Add, Sub"),
        (C, "Matmul", "it offers Add$"),
        (CC + "int Matmul(int) { return 1; }", "Matmul", r'the C\+\+ function Matmul\(int\): add extern "C"'),
        ("namespace my { int Matmul(int) { return 1; } }", "Matmul", r"my::Matmul\(int\): add extern"),
        (
            "namespace my { int Other(int) { return 1; } }",
            "Matmul",
            r'no C functions, only C\+\+ ones: add extern "C"',
        ),
        ("int data = 1;", "Add", "it offers no C functions$"),
        (
            C + "static int Sub(void) { return 0; }\nint (*keep)(void) = Sub;",
            "Sub",
            r"hides it: is it static",
        ),
        (
            C + "int Sub(void);\nint Neg(void) { return Sub(); }",
            "Sub",
            r"calls that function and does not define it",
        ),
        ("".join(f"int F{i:02}(void) {{ return 0; }}\n" for i in range(15)), "Add", "F00, .*F11 and 3 more"),
    ],
)
def test_missing_symbol_says_where_it_is(tmp_path, code, name, message):
    file = library_file.read(make(tmp_path, "lib.so", code))
    problem = library_file.missing_symbol(file, name, ctypes.CDLL(None)._handle)
    assert isinstance(problem, LibraryError)
    assert re.search(rf"does not offer the function '{name}'\n.*{message}", str(problem))


@pytest.mark.slow(5)
@pytest.mark.parametrize("name", COMPANION)
@pytest.mark.parametrize("strings", [0, 1])
def test_companions_of_a_foreign_header_get_mindspore_s_object(tmp_path, name, strings):
    path = make(tmp_path, "lib.so", FOREIGN + COMPANION[name], f"-D_GLIBCXX_USE_CXX11_ABI={strings}")
    file = library_file.read(path)
    library_file.check_companions(file, "Add")
    assert library_file.strings_of(file) == ("new" if strings or name != "AddInit" else "old")


STRINGS = {
    "libc++": (["_ZNSt3__112basic_stringIcEC1Ev"], "passes the strings of libc++"),
    "both": (["_ZNSsC1EPKcRKSaIcE", "_Z1fNSt7__cxx1112basic_stringIcEE"], "has strings of both ABIs"),
    "dual": (["_ZN15AotExtraDualABI4AttrEv"], "AotExtraDualABI passes names as lists of characters"),
}


@pytest.mark.parametrize(("names", "problem"), STRINGS.values(), ids=STRINGS)
@pytest.mark.parametrize("functions", [("Add", "AddInit"), ("Add",)])
def test_unclear_strings_are_refused(tmp_path, names, problem, functions):
    names = (*names, "_ZN8AotExtra7HasAttrEv")
    file = library_file.LibraryFile(tmp_path / "lib.so", "x86-64", functions, (), None, None, undefined=names)
    with pytest.raises(
        LibraryError, match=f"compiled against another custom_aot_extra.h.*{re.escape(problem)}"
    ) as seen:
        library_file.check_companions(file, "Add")
    assert "polyop build source.cc -o lib.so" in str(seen.value)


def test_a_kernel_without_companions_has_mindspore_s_object_too(tmp_path):
    file = library_file.read(make(tmp_path, "lib.so", FOREIGN, "-D_GLIBCXX_USE_CXX11_ABI=0"))
    library_file.check_companions(file, "Add")
    code = (
        FOREIGN + 'extern "C" int Scale(void *extra) { return ((AotExtra *)extra)->Attr<float>("by") > 0; }\n'
    )
    file = library_file.read(make(tmp_path, "scale.so", code, "-D_GLIBCXX_USE_CXX11_ABI=0"))
    assert library_file.strings_of(file) == "old"


def test_companions_of_polyops_header_and_of_c_are_accepted(tmp_path):
    code = '#include "polyop/custom_aot_extra.h"\nextern "C" int Add() { return 0; }\n' + "".join(
        COMPANION.values()
    )
    file = library_file.read(make(tmp_path, "ours.so", code))
    library_file.check_companions(file, "Add")
    assert library_file.strings_of(file) == ""
    plain = C + "int AddInit(int *d, int64_t **s, const char **t, void *extra) { return 0; }\n"
    file = library_file.read(make(tmp_path, "c.so", plain))
    library_file.check_companions(file, "Add")
    assert library_file.strings_of(file) == ""


def test_a_newer_abi_version_is_refused_with_both_versions(tmp_path):
    path = make(tmp_path, "lib.so", C + f"const int {versions.MARKER} = 7;\n")
    assert library_file.read(path).marker == 7
    with pytest.raises(
        LibraryError, match=r"version 7 of polyop's contract, and this polyop knows 1\n.*update polyop"
    ):
        library_file.check_companions(library_file.read(path), "Add")
