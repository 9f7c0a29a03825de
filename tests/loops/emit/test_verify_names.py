"""The verifier of printed text finds each name that nothing around its line declares, and says who printed it."""

import functools
import re

import numpy as np
import pytest

import polyop
from loop_samples import reference
from loop_samples.programs import PROGRAMS
from polyop.loops.derive.forms import derive
from polyop.loops.emit.c import prefetch
from polyop.loops.emit.common.entry import Entry
from polyop.loops.emit.printer import source
from polyop.loops.emit.verify_names import undeclared
from polyop.loops.pipeline import schedule

FUNCTION = """
struct kernel {{
  const f32* x;
  int64_t x_n0;
}};
static void part0(void* context, int64_t begin, int thread) {{
  struct kernel* const k = context;
  const f32* const restrict x = k->x;
  {}
}}
"""
MOST = 20
"""Declarations that are left out of a text, one after the other."""
# lines in a function, and what nothing around them declares
LINES = [
    ("for (int64_t i = begin; i < thread; ++i) {\n x[i];\n }", ""),
    ("for (int64_t i = begin; i < thread; ++i) {\n }\n x[i];", "i"),
    ("for (int64_t i = 0, i_end = x[begin]; i < i_end; ++i) x[i];", ""),
    ("for (int64_t i = 0; i < thread; ++i) x[i];\n x[i];", "i"),
    ("for (int64_t i = 0; i < j; ++i) x[i];", "j"),
    ("for (; i < 3;) {\n int64_t i = 0;\n }", "i"),
    ("const int64_t lo = 0, hi = max_i64(lo, begin), n = hi;\n x[n];", ""),
    ("const int64_t lo = 0, hi = max_i64(lo, last), n = hi;", "last"),
    ("const int64_t a = b, b = 0;", "b"),
    ("f32v8 s_r0_u0 = {0}, *const t = &s_r0_u0, u = t[0];\n u + t;", ""),
    ("x[({ int64_t q0 = begin; polyop_inside(k, &q0, thread, 1) ? q0 : 0; })];", ""),
    ("x[({ int64_t q0 = begin; q0; })] + q0;", "q0"),
    ("f32 t[POLYOP_LANES(4)] = {0}; for (int l = 0; l < 4; ++l) t[l] = x[l];\n load_f32v4(t);", ""),
    ("for (int l = 0; l < 4; ++l) x[({ f32 t[2] = {0}; t[l]; }) + l];\n x[l];", "l"),
    ("f32* b0_strip[4] __attribute__((aligned(64)));\n x[b0_strip[0]];", ""),
    ("k->x[k->x_n0];", ""),
    ("k->at_n;", "->at_n"),
    ("(int64_t)sizeof(f32) * begin * POLYOP_VB;", ""),
    ("polyop_fuel -= POLYOP_CALL;", "polyop_fuel"),
    ("polyop_run(part0, k, begin, thread);", ""),
    ("polyop_run(part1, k, begin, thread);", "part1"),
    ('polyop_fail(k, "no } name \\" in here {"); /* nor here { */', ""),
    ("x[begin + 1e-05f + 0x1p3 + 1.5e0 + 10ull];", ""),
    ("if (thread) {\n int64_t größe = 0;\n }\n else {\n größe;\n }", "größe"),
    ("if (const char* wrong = polyop_run(k))\n  return wrong;", ""),
    ("if (const char* wrong = polyop_run(k))\n  return wrong;\n wrong;", "wrong"),
    ("f32 s = 0;\n {\n f32 s = 0;\n }\n s;", ""),
    ("f32v4 s = {0};\n s = s + other * s;", "other"),
]


@pytest.mark.parametrize(("lines", "wrong"), LINES)
def test_a_line(lines, wrong):
    assert [fault.name for fault in undeclared(FUNCTION.format(lines))] == wrong.split()


@functools.cache
def scheduled(name):
    """Return the gradient of a program after all passes."""
    program = next(one for one in PROGRAMS if one.function.__name__ == name)
    return schedule(derive(reference.forward(program), "backward"))


@pytest.mark.slow(2)
@pytest.mark.parametrize("target", ["avx512", "neon", "cuda"])
@pytest.mark.parametrize("name", ["linear", "softmax", "two_stencils"])
def test_no_declaration_can_be_left_out(name, target):
    lines = source(scheduled(name), target, "f").splitlines()
    code = [re.sub(r"/\*.*\*/", "", line) for line in lines]
    tried = 0
    for place, line in enumerate(lines):
        found = re.fullmatch(r" +(?:const )?\w+\*? (?:const |restrict )*(\w+) = .*;", line)
        start = max((k for k in range(place) if re.match(r"\w", lines[k])), default=0)
        end = next((k for k in range(place, len(lines)) if lines[k].startswith("}")), len(lines))
        before, after = (
            set(re.findall(r"(?<![.>\w])\w+", "\n".join(code[slice(*part)])))
            for part in ((start, place), (place + 1, end))
        )
        if found and found[1] in after - before and tried < MOST:
            tried += 1
            faults = undeclared("\n".join([*lines[:place], *lines[place + 1 :]]))
            assert found[1] in {fault.name for fault in faults}, line
    assert tried > 3, "the names of this text are not declared on lines of their own"


@pytest.mark.parametrize(
    ("target", "printer", "who"),
    [
        ("avx2", (prefetch, "line_of_row"), r"emit/c/tile\.py:\d+ \(_prefetch\)"),
        ("cuda", (Entry, "bytes"), r"emit/device/program\.py:\d+ \(\w+\)"),
    ],
)
def test_a_wrong_name_is_found_with_its_printer(target, printer, who, monkeypatch):
    monkeypatch.setattr(*printer, lambda *_: "gone_")
    with pytest.raises(
        AssertionError, match=f"channels__backward for {target} names .*gone_ in .*, printed by {who}"
    ):
        source(scheduled("channels"), target, "f")


@polyop.kernel
def named_as_in_headers(int64_t, uint8_t, cudaError_t: int = 1, INT64_MAX: float = 2.0):
    y = output_tensor(int64_t.shape, int64_t.dtype)  # noqa: F821 - a word of the loop language
    for i in range(int64_t.shape[0]):
        y[i] = int64_t[i] * uint8_t[i] * INT64_MAX + cudaError_t
    return y


@pytest.mark.filterwarnings("error")
def test_names_of_the_headers_can_be_those_of_arguments():
    x = np.arange(3.0)
    np.testing.assert_array_equal(named_as_in_headers(x, x + 1), x * (x + 1) * 2 + 1)
