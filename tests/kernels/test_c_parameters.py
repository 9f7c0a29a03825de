"""A C function with other parameters than a kernel has is refused when the operator is defined, not called."""

import itertools

import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentTypeError

COUNT = itertools.count()
X = np.array([1.0, 2.0], np.float32)
FULL = (
    "int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra"
)
BODY = "{ ((float *)params[1])[0] = 5; ((float *)params[1])[1] = nparam; return 0; }"
HELP = "write int f(" + FULL + "); params has the pointers of the inputs, then of the outputs"
C, CXX = "#include <stdint.h>\n#include <stddef.h>\n", "#include <cstdint>\n#include <cstddef>\n"


def define(folder, text, suffix=".c", **options):
    file = folder / f"kernel{suffix}"
    file.write_text(text)
    return file, lambda: polyop.operator(
        f"declared::o{next(COUNT)}(Tensor x) -> Tensor",
        polyop.source(file, function="f", **options) if options else f"{file}:f",
        infer="x",
    )


REFUSED = [
    # the source, after two lines of includes; the line of the function; what it is called with; what was seen
    ("int f(int n, float *x, float *y) { return 0; }", 3, "void ** as argument 2, params",
     "int f(int n, float *x, float *y)"),
    ("int f(float *x, float *y, int n) { return 0; }", 3, "int as argument 1, nparam",
     "int f(float *x, float *y, int n)"),
    ("int\nf(const float *restrict x,\n  float *y) { return 0; }", 4, "int as argument 1, nparam",
     "int f(const float *restrict x, float *y)"),
    ("int f(float x[2], float y[2]) { return 0; }", 3, "int as argument 1, nparam", "int f(float x[2], float y[2])"),
    ("int f(double scale) { return 0; }", 3, "int as argument 1, nparam", "int f(double scale)"),
    ("/* int f(void) {} */\nint f(int n, void *p, float *d) { return 0; } // f(int n) {", 4,
     "int * as argument 3, ndims", "int f(int n, void *p, float *d)"),
    ("int f(int n, void **p, int *d, int64_t *rows) { return 0; }", 3, "int64_t ** as argument 4, shapes",
     "int f(int n, void **p, int *d, int64_t *rows)"),
    ("int f(int n, void **p, int *d, int **rows) { return 0; }", 3, "int64_t ** as argument 4, shapes",
     "int f(int n, void **p, int *d, int **rows)"),
    ("int f(int n, void **p, int64_t *d) { return 0; }", 3, "int * as argument 3, ndims",
     "int f(int n, void **p, int64_t *d)"),
    ("int f(int n, void **p, int *d, int64_t **s, const char **t, int a) { return 0; }", 3,
     "void * as argument 6, stream", "int f(int n, void **p, int *d, int64_t **s, const char **t, int a)"),
    ("typedef float t;\nint f(int n, void **p, int *d, int64_t **s, char **c, void *a, void *b, t *more) { return 0; }",
     4, "7 arguments", "int f(int n, void **p, int *d, int64_t **s, char **c, void *a, void *b, t *more)"),
    ("int g(int n) { return n; }\nint f(int n, size_t rows) { return g(n); }", 4, "void ** as argument 2, params",
     "int f(int n, size_t rows)"),
]  # fmt: skip


@pytest.mark.parametrize("language", ["c", "c++", "a block of C++"])
@pytest.mark.parametrize(("text", "line", "called", "seen"), REFUSED)
def test_refused(tmp_path, text, line, called, seen, language):
    if language != "c":
        text, seen = (part.replace("restrict ", "__restrict ") for part in (text, seen))
    if language == "c++":
        text = "\n".join(
            f'extern "C" {row}' if row.startswith("int f") or row == "int" else row
            for row in text.split("\n")
        )
        seen = f'extern "C" {seen}'
    if language == "a block of C++":
        text = f'extern "C" {{ {text}\n}}'
    file, make = define(tmp_path, (C if language == "c" else CXX) + text, ".c" if language == "c" else ".cc")
    with pytest.raises(ArgumentTypeError) as caught:
        make()
    assert str(caught.value).split("\n") == [
        f"declared::o{int(str(caught.value).split(':')[2][1:])}: f is called with {called}, but got {seen}",
        f"  defined at {file}:{line}",
        f"  {HELP}",
    ]


def test_a_word_of_cpp_may_be_a_name_in_c(tmp_path):
    _, make = define(tmp_path, "int f(int n, float *old, float *new) { return 0; }")
    with pytest.raises(ArgumentTypeError, match=r"void \*\* as argument 2, params, but got int f\(int n, "):
        make()


@pytest.mark.parametrize("result", ["void", "double", "float *"])
def test_result(tmp_path, result):
    _, make = define(tmp_path, f"{result} f(int n) {{ {'' if result == 'void' else 'return 0;'} }}")
    with pytest.raises(
        ArgumentTypeError, match=r"f must return int, where 0 is success, but got .* f\(int n\)"
    ):
        make()


def test_init(tmp_path):
    _, make = define(tmp_path, f"{C}int f(void) {{ return 0; }}\nint fInit(int n, void **p) {{ return 0; }}")
    with pytest.raises(ArgumentTypeError) as caught:
        make()
    rule, where, hint = str(caught.value).splitlines()
    assert rule.endswith(
        "fInit is called with int * as argument 1, ndims, but got int fInit(int n, void **p)"
    )
    assert where.endswith("kernel.c:4")
    assert hint == "  write int fInit(int *ndims, int64_t **shapes, const char **dtypes, void *extra)"


def test_code_and_other_front_ends(tmp_path):
    code = "\n\nint f(float *x) { return 0; }"
    kernel = polyop.source(function="f", language="c", code=code)
    with pytest.raises(ArgumentTypeError, match=r"(?s)argument 1, nparam, but got .*defined at code:3"):
        polyop.operator("declared::code(Tensor x) -> Tensor", kernel, infer="x")
    library = polyop.Library("declared_library")
    library.define("f(Tensor x) -> Tensor")
    library.fake("f", "x")
    library.impl("f", kernel)
    with pytest.raises(ArgumentTypeError, match="declared_library::f: f is called with int as argument 1"):
        library.complete()
    file, _ = define(tmp_path, code)
    with pytest.raises(ArgumentTypeError, match="'func_type': aot, .*: f is called with int as argument 1"):
        polyop.Custom(f"{file}:f", lambda x: x, lambda x: x, "aot")


MACRO = f"#define KERNEL(name) {{}} int name({FULL})\n"
ACCEPTED = [
    # suffix, source
    (".c", f"int f({FULL}) {BODY}"),
    (".c", f"int f(const int nparam, void *const *params) {BODY}"),
    (".c", f"int32_t f(size_t nparam, float **params, const unsigned *d, const size_t *const *s) {BODY}"),
    (".c", f"long f(unsigned nparam, void *params[], int d[], int64_t *s[], char *t[], uintptr_t a, uintptr_t b) {BODY}"),
    (".c", f"typedef void **all;\nint f(int nparam, all params) {BODY}"),
    (".c", f"int f(int nparam, const uintptr_t *params, int *ndims, intptr_t *shapes) {BODY}"),
    (".c", f"int f({FULL}, ...) {BODY}"),
    (".c", f"int f(int nparam, void **params, int *d, int64_t **s, char **t, uintptr_t stream, long extra) {BODY}"),
    (".c", f"#define f helper\nint f(float *x) {{ return 0; }}\n#undef f\nint f({FULL}) {BODY}"),
    (".c", f"int f(nparam, params) int nparam; void **params; {BODY}"),
    (".c", MACRO.format("") + f"KERNEL(f) {BODY}"),
    (".c", f"#define ARGS {FULL}\nint f(ARGS) {BODY}"),
    (".c", f"typedef float real;\n#define float void *\nint f(int nparam, float *params) {BODY.replace('(float', '(real')}"),
    (".c", f"#if 0\nint f(float *x) {{ return 0; }}\n#else\nint f(int nparam, void **params) {BODY}\n#endif"),
    (".c", f"#if 0\nint f(float *x) {{ return 0; }}\n#endif\n{MACRO.format('')}KERNEL(f) {BODY}"),
    (".c", f'char text[] = "int f(float *x) {{"; // int f(float *x) {{\nint f(int nparam, void **params) {BODY}'),
    (".c", f'#ifdef __cplusplus\nextern "C" {{\n#endif\nint f({FULL}) {BODY}\n#ifdef __cplusplus\n}}\n#endif'),
    (".cc", f'extern "C" int f({FULL}) {BODY}\nstruct S {{ void f(float *x) {{ }} }};'),
    (".cc", MACRO.format('extern "C"') + f"float f(float x) {{ return x; }}\nKERNEL(f) {BODY}"),
    (".cc", MACRO.format('extern "C"') + f"namespace n {{ float f(float x) {{ return x; }} }}\nKERNEL(f) {BODY}"),
    (".cc", MACRO.format('extern "C"') + f'const char *text = R"(\nextern "C" int f(float *x) {{)";\nKERNEL(f) {BODY}'),
    (".cc", f'extern "C" {{ extern "C++" int f(float *x) {{ return 0; }}\nint f({FULL}) {BODY} }}'),
    (".cc", f'extern "C" {{ [[maybe_unused]] int f(std::int32_t nparam, void** params, ...) {BODY} }}'),
]  # fmt: skip


def test_a_macro_of_a_header_may_be_several_parameters(tmp_path):
    (tmp_path / "args.h").write_text("#define TENSORS int nparam, void **params\n")
    text = f'#include "args.h"\n{C}int f(TENSORS, int *ndims, int64_t **shapes) {BODY}'
    _, make = define(tmp_path, text)
    assert make()(X).tolist() == [5, 2]


@pytest.mark.parametrize(("suffix", "text"), ACCEPTED, ids=range(len(ACCEPTED)))
def test_accepted_and_run(tmp_path, suffix, text):
    _, make = define(tmp_path, (C if suffix == ".c" else CXX) + text, suffix, flags=["-w"])
    assert make()(X).tolist() == [5, 2]
