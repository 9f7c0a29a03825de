# ruff: noqa: F821 - kernels, whose words are no names here
"""The typed kernel of a function, and its outline."""

import gc
import inspect
import linecache
import math
import re
import weakref

import numpy as np
import pytest

import polyop
from polyop import custom_info_register
from polyop.loops.frontend.language import WORDS
from polyop.loops.frontend.parse import outline, parse, run_static_checks
from polyop.loops.ir.grammar import (
    FLOAT,
    INT,
    Assign,
    Buffer,
    Const,
    For,
    Kernel,
    Load,
    Op,
    Size,
    Store,
    Type,
    Var,
    statements,
    walk,
)
from polyop.loops.ir.verify import violations


def from_text(text):
    file = f"<text {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"math": math, "np": np}
    exec(compile(text, file, "exec"), names)
    return names["f"]


def body(*lines, dtype="float32", dimensions=1, **attributes):
    """Return the statements of ``f(x, ...)`` with an output ``y`` like ``x`` and these lines."""
    names = ", ".join(["x", *attributes])
    head = [f"def f({names}):", "    y = output_tensor(x.shape, x.dtype)"]
    function = from_text("\n".join([*head, *(f"    {line}" for line in lines), "    return y", ""]))
    kernel = parse(function, [(dtype, dimensions)], attributes)
    assert violations(kernel) == []
    return kernel.body


def last(*lines, **options):
    """Return the last statement, the innermost one of a nest."""
    return list(statements(body(*lines, **options)))[-1]


LOOP = "for i in range(x.shape[0]):"
I, N = Var("i", INT), Size("x", 0)
X = Load("x", (I,), Type("float32"), 4)


@pytest.mark.parametrize(
    ("line", "op"),
    [
        ("y[i] = y[i] + x[i]", "+"), ("y[i] += x[i]", "+"), ("y[i] = x[i] + y[i]", "+"),
        ("y[i] *= x[i]", "*"), ("y[i] = max(y[i], x[i])", "max"), ("y[i] = min(x[i], y[i])", "min"),
        ("y[i] = x[i]", ""), ("y[i] /= x[i]", ""), ("y[i] = x[i] - y[i]", ""), ("y[i] = y[i - 1] + x[i]", ""),
        ("y[i] *= y[i]", ""), ("y[i] = y[i] + y[i]", ""), ("y[i] += float64(x[i])", ""),
        ("y[int(y[i])] += x[i]", ""), ("y[i] = max(y[i], x[i], 0)", ""),
    ],
)  # fmt: skip
def test_reductions_of_elements(line, op):
    store = last(LOOP, f"    {line}")
    assert isinstance(store, Store) and store.op == op and store.buffer == "y"
    if op:
        assert store.value == X and store.index == (I,)


def test_a_reduction_may_read_other_elements_of_its_buffer():
    store = last(LOOP, "    for j in range(i):", "        y[i] -= y[j] * x[j]")
    assert store.op == "+"
    assert {e.index[0] for e in walk(store.value) if isinstance(e, Load)} == {Var("j", INT)}
    assert last(LOOP, "    y[i] = min(y[i], y[i - 1] + 1)").op == "min"


def test_a_difference_is_a_sum_of_the_negative():
    assert last(LOOP, "    y[i] -= x[i]").value == Op("neg", (X,), Type("float32"))
    assert last(LOOP, "    y[i] -= 2").value == Const(-2.0, Type("float32"))
    unsigned = last(LOOP, "    y[i] = y[i] - x[i]", dtype="uint8")
    assert (unsigned.op, unsigned.value.name, unsigned.value.type) == ("+", "neg", Type("uint8"))


def test_integers_may_be_cut_before_a_sum_as_well_as_after_it():
    wide = last(LOOP, "    y[i] += int64(x[i])", dtype="int16")
    assert wide.op == "+" and wide.value.type == Type("int16") and wide.value.name == "cast"
    assert last(LOOP, "    y[i] = max(y[i], int64(x[i]))", dtype="int16").op == ""


def test_reductions_of_scalars():
    first, loop, store = body("s = 0", LOOP, "    s += x[i]", "y[0] = s")
    assert first == Assign("s", Const(0.0, Type("float32")), line=3)  # the type in which all assignments meet
    (update,) = loop.body
    assert (update.op, update.type, store.value) == ("+", Type("float32"), Var("s", Type("float32")))
    assert last("s = 0", LOOP, "    s = max(s, i)").type == INT
    assert [s.type for s in body("s = 1", "t = s / 2", "s = t")] == [FLOAT, FLOAT, FLOAT]


def test_sizes_and_constants_are_written_out():
    (loop,) = body("n = x.shape[0]", "half = n // 2", "e = 1e-3", "for i in range(half - 1):", "    y[i] = e")
    assert loop.hi == Op("-", (Op("//", (N, Const(2, INT)), INT), Const(1, INT)), INT)
    assert loop.body[0].value == Const(float(np.float32(1e-3)), Type("float32"))
    assert last("r = 1 / x.shape[0]", "y[0] = r").value.args == (Var("r", FLOAT),)
    (first, *_) = body("n = x.shape[0]", "n += 1", "y[0] = n")
    assert first == Assign("n", N, line=3)  # assigned twice: a variable


def test_indices_are_affine_in_the_end():
    store = last("for i in range(1, x.shape[0] - 1):", "    y[i + 1 - 1] = x[i - 1] + x[-1] + x[1 + i]")
    assert store.index == (I,)
    indices = [e.index[0] for e in walk(store) if isinstance(e, Load)]
    assert indices == [
        Op("-", (I, Const(1, INT)), INT), Op("-", (N, Const(1, INT)), INT), Op("+", (I, Const(1, INT)), INT),
    ]  # fmt: skip
    indirect = last(LOOP, "    y[x[i]] = 1", dtype="int8").index[0]
    assert indirect.name == "cast" and indirect.type == INT


def test_loops_run_upwards_by_one():
    (loop,) = body("for i in range(x.shape[0] - 1, -1, -1):", "    y[i] = 1")
    assert (loop.lo, loop.hi) == (Const(0, INT), N)
    assert loop.body[0].index == (
        Op("+", (Op("-", (N, Const(1, INT)), INT), Op("*", (Const(-1, INT), I), INT)), INT),
    )
    (loop,) = body("for i in range(2, x.shape[0], 3):", "    y[i] = 1")
    assert loop.hi == Op("//", (N, Const(3, INT)), INT)  # (n - 2 + 2) // 3
    assert loop.body[0].index[0] == Op("+", (Op("*", (Const(3, INT), I), INT), Const(2, INT)), INT)


def test_hints_and_lines_are_kept():
    for word, hint in (("range", ""), ("serial", "serial"), ("vectorize", "vectorize"), ("reduce", "reduce")):
        (loop,) = body(f"for i in {word}(x.shape[0]):", "    y[i] = 1")
        assert (loop.hint, loop.line, loop.body[0].line) == (hint, 3, 4)


def test_names_are_unique():
    loops = body(LOOP, "    t = x[i]", "    y[i] = t", LOOP, "    t = 2", "    y[i] = t")
    assert [s.var for s in loops] == ["i", "i_1"]
    assert [s.name for s in statements(loops) if isinstance(s, Assign)] == ["t", "t_1"]
    assert [s.type for s in statements(loops) if isinstance(s, Assign)] == [Type("float32"), INT]
    nest = body("arg_0 = 1.5", "arg_0 += 1", "for arg in grid(x.shape):", "    y[arg] = arg_0", dimensions=2)
    assert [s.var for s in statements(nest) if isinstance(s, For)] == ["arg_0_1", "arg_1"]


def test_a_bound_that_the_loop_changes_is_computed_before():
    _, saved, loop = body("n = 2", "for i in range(n):", "    n += 1")
    assert (saved.name, saved.value, loop.hi) == ("end", Var("n", INT), Var("end", INT))
    saved, loop = body("for i in range(int(y[0])):", "    y[0] += 1")
    assert isinstance(saved, Assign) and loop.hi == Var(saved.name, INT)
    (loop,) = body("for i in range(int(x[0])):", "    y[0] += 1")
    assert isinstance(loop.hi, Op)


def test_values_are_converted_where_they_meet():
    store = last(LOOP, "    y[i] = x[i] * 0.5 + i", dtype="float16")
    assert {e.type.dtype for e in walk(store.value)} == {"float16", "int64"}
    assert [e.name for e in walk(store.value) if isinstance(e, Op)] == ["+", "*", "cast"]
    assert last(LOOP, "    y[i] = x[i] / 2", dtype="int32").value.name == "cast"
    assert last(LOOP, "    y[i] = k", k=2.0, dtype="int32").value == Op(
        "cast", (Var("k", FLOAT),), Type("int32")
    )
    double = last(LOOP, "    t = i", "    y[i] = t", dtype="int64")
    assert double.value == Var("t", INT)  # a Python int has the dtype already


def test_buffers():
    def f(x, k, n=3):
        t = allocate((x.shape[0] + n, 2), "bool")
        z = output_tensor(t.shape[:1] + x.shape[1:], np.float64)
        x[0, 0] = t[0, 0] + k
        return z, x

    kernel = parse(f, [("int8", 2)], {"k": 1.5})
    line = inspect.getsourcelines(f)[1]
    rows = Op("+", (N, Var("n", INT)), INT)
    assert kernel.buffers == {
        "x": Buffer("x", "int8", (N, Size("x", 1)), "inplace", line),
        "t": Buffer("t", "bool", (rows, Const(2, INT)), "local", line + 1, zeroed=True),
        "z": Buffer("z", "float64", (rows, Size("x", 1)), "output", line + 2, zeroed=True),
    }
    assert (
        isinstance(kernel, Kernel) and kernel.outputs == ("z", "x") and kernel.parameters == ("x", "k", "n")
    )
    assert kernel.attributes == {"k": FLOAT, "n": INT} and violations(kernel) == []
    assert kernel.where(line + 3) == f"{__file__}:{line + 3}"
    assert kernel.source[line + 3].strip() == "x[0, 0] = t[0, 0] + k"


@custom_info_register('{"op_name": "behind_a_decorator"}')
@polyop.kernel(
    compile_attrs={"precise": True}  # in several lines
)
def behind_a_decorator(a, b, scale=1.0):
    """Say something in a docstring
    that is not indented."""
    c = output_tensor(b.shape, b.dtype)
    for arg in grid(b.shape):
        a[arg] += b[arg] * scale
    return c, a


def test_outline():
    parts = outline(behind_a_decorator)
    assert (parts.name, parts.parameters, parts.outputs) == (
        "behind_a_decorator",
        ("a", "b", "scale"),
        ("c", "a"),
    )
    assert (parts.inplace, parts.tensors, parts.defaults) == (((1, 0),), ("a", "b"), {"scale": 1.0})
    assert parts.file == __file__
    lines = inspect.getsource(inspect.getmodule(test_outline)).splitlines()
    assert lines[parts.line - 1].startswith("def behind_a_decorator")


def test_line_numbers_are_those_of_the_file():
    kernel = parse(behind_a_decorator, [("float32", 1), ("float32", 1)], {})
    lines = inspect.getsource(inspect.getmodule(test_outline)).splitlines()
    for statement in statements(kernel.body):
        assert lines[statement.line - 1] == kernel.source[statement.line]
        assert lines[statement.line - 1].strip().startswith("for" if isinstance(statement, For) else "a[arg]")


def test_one_parse_for_each_dtype_and_checks_once():
    run_static_checks(behind_a_decorator)
    for name in ("float16", "bfloat16", "int32", "bool"):
        kernel = parse(behind_a_decorator, [(name, 2), (name, 2)], {"scale": 2})
        assert {b.dtype for b in kernel.buffers.values()} == {name} and violations(kernel) == []


@pytest.mark.slow
def test_nothing_keeps_a_function_alive():
    function = from_text("def f(x):\n    x[0] = 1\n    return x\n")
    assert parse(function, [("int8", 1)], {}).body
    reference = weakref.ref(function)
    del function
    gc.collect()
    assert reference() is None


def test_numbers_from_outside():
    scale, half = 3, np.float32(0.5)

    def f(x):
        y = output_tensor((LIMIT,), x.dtype)
        y[0] = scale * half + math.pi
        return y

    store = parse(f, [("float64", 1)], {}).body[0]
    assert {e.type for e in walk(store.value) if isinstance(e, Const)} == {Type("float32")}
    assert parse(f, [("float64", 1)], {}).buffers["y"].shape == (Const(7, INT),)


LIMIT = 7

WRONG = [
    (Store("y", (I,), X), "i is read before it is bound"),
    (Store("y", (), Const(0.0, Type("float32"))), "y has 1 dimensions and 0 indices"),
    (Store("y", (Const(0, INT),), Const(0, INT)), "y is float32 and its value int"),
    (Store("x", (Const(0, INT),), Const(0.0, Type("float32"))), "the input x is written"),
    (Store("z", (), Const(0, INT)), "z is not declared"),
    (Assign("t", Op("+", (Const(1, INT), Const(1.0, FLOAT)), INT)), r"\+ gives int of float64, int64"),
    (Assign("t", Op("&", (Const(1.0, FLOAT),) * 2, FLOAT)), "& takes biu and is given float64"),
    (Assign("t", Op("<", (Const(1, INT),) * 2, INT)), "< gives int"),
    (Assign("t", Const(1, INT), op="+"), "t is updated before it is assigned"),
    (For("i", Const(0.0, FLOAT), N, ()), "a bound is float"),
    (For("i", N, N, (For("i", N, N, ()),)), "i is bound twice"),
]


@pytest.mark.parametrize(("statement", "words"), WRONG, ids=[w[1] for w in WRONG])
def test_the_verifier_rejects(statement, words):
    buffers = {n: Buffer(n, "float32", (N,), r) for n, r in (("x", "input"), ("y", "output"))}
    violation = violations(Kernel("f", ("x",), {}, buffers, ("y",), (statement,)))[0]
    assert re.search(words, violation), violation


DTYPE_CHOICES = [  # a condition, and the dtypes for which it holds
    ("x.dtype == np.float64", {"float64"}),
    ("np.float64 == x.dtype", {"float64"}),
    ("x.dtype != float64", {"float32", "int32"}),
    ('x.dtype == np.dtype("float64")', {"float64"}),
    ("x.dtype in (np.float32, float64)", {"float32", "float64"}),
    ('x.dtype not in ("float32", np.float64)', {"int32"}),
    ("x.dtype == np.float32 and x.ndim == 1", {"float32"}),
]


@pytest.mark.parametrize(("condition", "dtypes"), DTYPE_CHOICES, ids=[c for c, _ in DTYPE_CHOICES])
def test_a_choice_by_dtype_is_made_when_the_kernel_is_compiled(condition, dtypes):
    lines = [f"if {condition}:", "    y[0] = 1", "else:", "    y[0] = 2"]
    for name in ("float32", "float64", "int32"):
        (store,) = body(*lines, dtype=name)  # one branch
        assert store.value.value == (1 if name in dtypes else 2)
        chosen = eval(condition, {"x": np.zeros(1, name), "np": np, "float64": WORDS["float64"].meaning})
        assert chosen == (name in dtypes)  # as in Python


def test_a_loop_that_only_breaks_has_no_flag_for_the_rest_of_an_iteration():
    inside = ["    if x[i] < 0:", "        if x[i] < -1:", "            break", "        y[i] = 1"]
    found = body("for i in range(x.shape[0]):", *inside, "    y[i] += 2")
    assert {node.name for node in statements(found) if isinstance(node, Assign)} == {"stop"}
