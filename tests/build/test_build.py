"""``build``: languages, options, compilers, and its errors."""

import ctypes
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from polyop.build import BuildOptions, build
from polyop.build.paths import include_dir
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, BuildError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)


def answer(library, function="answer"):
    return getattr(ctypes.CDLL(str(library)), function)()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def script(path, text):
    write(path, f"#!/bin/sh\n{text}\n").chmod(0o755)
    return path


CXX_ANSWER = '#include <vector>\nextern "C" int answer() { return std::vector<int>{40, 2}[0] + 2; }\n'


@pytest.mark.parametrize("suffix", [".cc", ".cpp", ".cxx"])
def test_cxx(tmp_path, suffix):
    assert answer(build([write(tmp_path / f"k{suffix}", CXX_ANSWER)])) == 42


def test_c_is_compiled_as_c(tmp_path):
    source = write(tmp_path / "k.c", "int answer(void) { int class = sizeof('a'); return class; }\n")
    assert answer(build([source])) == ctypes.sizeof(ctypes.c_int)


def test_several_files_of_two_languages(tmp_path):
    one = write(tmp_path / "one.c", "int one(void) { return 1; }\n")
    two = write(tmp_path / "two.cc", 'extern "C" int one();\nextern "C" int answer() { return one() + 1; }\n')
    assert answer(build([one, two], flags=["-std=c++20"])) == 2


def test_inline_code():
    assert answer(build(code="int answer(void) { return 7; }", language="c")) == 7
    assert answer(build(code=CXX_ANSWER)) == 42


def test_inline_code_beside_a_file(tmp_path):
    part = write(tmp_path / "part.c", "int part(void) { return 3; }\n")
    assert (
        answer(build([part], code='extern "C" int part();\nextern "C" int answer() { return part(); }')) == 3
    )


def test_flags_override_the_defaults():
    code = 'extern "C" long answer() { return __cplusplus; }'
    assert answer(build(code=code)) == 201703
    assert answer(build(code=code, flags=["-std=c++20"])) == 202002


def test_defines_and_include_paths(tmp_path):
    write(tmp_path / "inc" / "n.h", "#define N 5\n")
    code = '#include "n.h"\nint answer(void) { return N * M; }'
    assert answer(build(code=code, language="c", include_paths=[tmp_path / "inc"], flags=["-DM=2"])) == 10


def test_relative_include_flag_means_the_working_directory(tmp_path, monkeypatch):
    code = '#include "n.h"\nint answer(void) { return N; }'
    for number in (1, 2):
        write(tmp_path / str(number) / "inc" / "n.h", f"#define N {number}\n")
        monkeypatch.chdir(tmp_path / str(number))
        assert answer(build(code=code, language="c", flags=["-Iinc"])) == number


def test_polyops_headers_are_found_with_and_without_their_folder():
    code = '#include "custom_aot_extra.h"\n#include "polyop/abi.h"\nextern "C" int answer() { return POLYOP_ABI_VERSION; }'
    assert answer(build(code=code)) == 1
    assert (include_dir() / "polyop" / "ms_ext.h").is_file()


def test_link_flags_and_flags_that_concern_the_linker():
    code = "#include <omp.h>\nint answer(void) { return omp_get_max_threads() > 0; }"
    assert answer(build(code=code, language="c", flags=["-fopenmp"])) == 1
    with pytest.raises(BuildError, match="code.c: cannot be linked(.|\n)*nowhere"):
        build(
            code="int nowhere(void); int answer(void) { return nowhere(); }",
            language="c",
            link_flags=["-Wl,--no-undefined"],
        )


def test_debug_build_has_debug_information():
    code = "int answer(void) { return 7; }"
    assert b".debug_info" in build(code=code, language="c", debug=True).read_bytes()
    assert b".debug_info" not in build(code=code, language="c").read_bytes()


def test_output_replaces_the_old_file(tmp_path):
    output = tmp_path / "out lib.so"
    assert build(code="int answer(void) { return 1; }", language="c", output=output) == output
    before = output.stat().st_ino
    build(code="int answer(void) { return 2; }", language="c", output=output)
    assert answer(output) == 2
    assert output.stat().st_ino != before  # a process that has the old file open keeps its content
    assert [p.name for p in tmp_path.iterdir() if p.name != "cache"] == ["out lib.so"]


def test_output_folder_missing(tmp_path):
    with pytest.raises(
        BuildError, match=r"output .*no/x\.so: must be a path that can be written, but got No such file"
    ):
        build(code="int answer(void) { return 1; }", language="c", output=tmp_path / "no" / "x.so")


def test_paths_with_spaces_and_signs(tmp_path):
    folder = tmp_path / "a b" / "c$d #e"
    write(folder / "in c" / "n.h", "#define N 9\n")
    source = write(folder / "my k.c", '#include "n.h"\nint answer(void) { return N; }\n')
    assert answer(build([source], include_paths=[folder / "in c"])) == 9
    write(folder / "in c" / "n.h", "#define N 10\n")
    assert answer(build([source], include_paths=[folder / "in c"])) == 10


def test_same_file_name_in_two_folders(tmp_path):
    one, two = (write(tmp_path / n / "k.c", f"int answer(void) {{ return {n}; }}\n") for n in "12")
    assert (answer(build([one])), answer(build([two]))) == (1, 2)
    parts = [write(tmp_path / n / "part.c", f"int part{n}(void) {{ return {n}; }}\n") for n in "34"]
    both = build(parts)
    assert (answer(both, "part3"), answer(both, "part4")) == (3, 4)


def test_compile_error_shows_the_compilers_words(tmp_path):
    source = write(tmp_path / "bad.c", "int fine;\nint f(void) { return missing_name; }\n")
    with pytest.raises(BuildError) as excinfo:
        build([source])
    text = str(excinfo.value)
    assert text.startswith(f"{source}: cannot be compiled\n  defined at {source}:2\n")
    assert "missing_name" in text
    assert "int f(void) { return missing_name; }" in text
    assert f"command: {os.environ.get('CC', '/')}" in text
    assert " -O3 -std=c11 " in text


def test_a_failed_build_is_not_remembered(tmp_path):
    source = write(tmp_path / "k.c", '#include "later.h"\nint answer(void) { return N; }\n')
    for _ in range(2):
        with pytest.raises(BuildError, match=r"later\.h"):
            build([source])
    write(tmp_path / "later.h", "#define N 4\n")
    assert answer(build([source])) == 4


def test_warnings_do_not_stop_a_build():
    assert answer(build(code="#warning careful\nint answer(void) { return 1; }", language="c")) == 1


STRINGS = r"must be a list of strings, but got '-O2'\n  write \['-O2'\]"


@pytest.mark.parametrize(
    ("sources", "options", "error", "message"),
    [
        (
            ["nowhere.c"],
            {},
            BuildError,
            r"nowhere\.c: must be a source file that can be read, but got No such",
        ),
        (
            ["folder.c"],
            {},
            BuildError,
            r"folder\.c: must be a source file that can be read, but got Is a dir",
        ),
        (
            ["k.f90"],
            {},
            BuildError,
            r"k\.f90: must be a source with one of the suffixes \.c \.cc \.cpp \.cxx \.cu \.hip, but got '\.f90'",
        ),
        ([], {}, ArgumentValueError, "build: needs a source file, or code"),
        (
            [],
            {"code": "fn main() {}", "language": "rust"},
            ArgumentValueError,
            r"language: must be one of 'c', 'c\+\+', 'cuda', 'hip', but got 'rust'",
        ),
        ([], {"code": "", "flags": "-O2"}, ArgumentTypeError, f"flags: {STRINGS}"),
        ([], {"code": "", "link_flags": "-O2"}, ArgumentTypeError, f"link_flags: {STRINGS}"),
        ([], {"code": "", "include_paths": "-O2"}, ArgumentTypeError, f"include_paths: {STRINGS}"),
    ],
)
def test_wrong_sources_and_options(tmp_path, sources, options, error, message):
    (tmp_path / "folder.c").mkdir()
    with pytest.raises(error, match=message):
        build([tmp_path / name for name in sources], **options)


def test_options_are_values():
    assert BuildOptions.of(flags=["-O1"]) == BuildOptions(flags=("-O1",))
    assert BuildOptions.of(include_paths=["inc"]).include_paths == (str(Path.cwd() / "inc"),)


def test_named_compiler_is_used_with_its_arguments(monkeypatch, tmp_path):
    log = tmp_path / "log"
    wrapper = script(tmp_path / "my cc", f'echo "$@" >> "{log}"\nexec cc "$@"')
    monkeypatch.setenv("CC", f"'{wrapper}' -DFROM_CC=11")
    assert answer(build(code="int answer(void) { return FROM_CC; }", language="c")) == 11
    assert "-DFROM_CC=11" in log.read_text()


def test_named_compiler_behind_launchers(monkeypatch, tmp_path):
    log = tmp_path / "log"
    launcher = script(tmp_path / "ccache", f'echo "$@" >> "{log}"\nexec "$@"')
    monkeypatch.setenv("CXX", f"env SOME=1 '{launcher}' c++ -DFROM_CXX=6")
    assert answer(build(code='extern "C" int answer() { return FROM_CXX; }')) == 6
    assert "c++ -DFROM_CXX=6" in log.read_text()


@pytest.mark.parametrize(
    ("language", "variable", "value", "compiler", "message"),
    [
        ("c", "PATH", "{folder}", None,
         r"no C compiler was found \(tried cc, gcc, clang\)\n  install gcc or clang, or name a C compiler in CC"),
        ("c++", "PATH", "{folder}", None,
         r"no C\+\+ compiler was found .*\n  install g\+\+ or clang\+\+, or name a C\+\+ compiler in CXX"),
        ("c++", "CXX", "no-such-compiler -x", None,
         r"CXX=no-such-compiler -x: must name a program that exists\n  install g\+\+"),
        ("c++", "CXX", "'{folder}/ccache' no-such-compiler", None,
         "must name a program that exists, but got 'no-such-compiler'"),
        ("c++", "CXX", "'{folder}/ccache'", None,
         r'(?s)must name a compiler behind .*ccache\n  as in CXX="ccache g\+\+"'),
        ("c++", "CXX", "'c++", None, "must be a command as a shell has it"),
        ("c++", "CXX", "true", None, "true: must be a compiler: it ended without an error, and without an"),
        ("c", "CC", "'{folder}/cc'", "echo unhappy; exit 3",
         "must answer --version, but got code 3\n  unhappy"),
        ("c", "CC", "'{folder}/cc'", 'case "$*" in *--version*) exec cc --version;; esac\nkill -9 $$',
         r"cannot be compiled\n  the compiler was killed by SIGKILL; is there enough memory\?"),
    ],
)  # fmt: skip
def test_unusable_compilers(monkeypatch, tmp_path, language, variable, value, compiler, message):
    script(tmp_path / "ccache", 'exec "$@"')
    if compiler is not None:
        script(tmp_path / "cc", compiler)
    monkeypatch.setenv(variable, value.format(folder=tmp_path))
    with pytest.raises(BuildError, match=message):
        build(code="int x;", language=language)


@pytest.mark.parametrize(("output", "name"), [(None, "mine"), ("my-ops.so", "my_ops"), ("2nd.so", "_2nd")])
def test_a_module_is_named_after_its_library(tmp_path, output, name):
    text = """#define TEXT(x) #x
    #define NAME(x) TEXT(x)
    extern "C" const char *name() { return NAME(MS_EXTENSION_NAME); }
    """
    source = write(tmp_path / "mine.cpp", text)
    function = ctypes.CDLL(str(build([source], output=None if output is None else tmp_path / output))).name
    function.restype = ctypes.c_char_p
    assert function().decode() == name
    renamed = ctypes.CDLL(str(build([source], flags=["-DMS_EXTENSION_NAME=other"]))).name
    renamed.restype = ctypes.c_char_p
    assert renamed() == b"other"


def test_another_compiler_version_builds_again(monkeypatch, tmp_path):
    compiler = script(tmp_path / "cc", 'exec cc "$@"')
    monkeypatch.setenv("CC", shlex.quote(str(compiler)))
    one = build(code="int x;", language="c")
    script(compiler, 'case "$*" in *--version*) echo newer 2.0;; esac\nexec cc "$@"')
    assert build(code="int x;", language="c") != one


@pytest.mark.slow
def test_progress_is_a_spinner_on_a_terminal_and_quiet_in_a_pipe(tmp_path):
    compiler = script(tmp_path / "cc", 'case "$*" in *--version*) ;; *) sleep 0.9;; esac\nexec cc "$@"')
    program = "from polyop.build import build; build(code='int x{};', language='c')"
    log = subprocess.run(
        [sys.executable, "-c", program.format(1)],
        env={**os.environ, "CC": shlex.quote(str(compiler))},
        capture_output=True,
        check=True,
    )
    assert log.stderr == b""
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-c", program.format(2)],
        env={**os.environ, "CC": shlex.quote(str(compiler)), "TERM": "xterm"},
        stderr=theirs,
        check=True,
    )
    os.close(theirs)
    assert b"compiling code.c" in os.read(ours, 4096)
