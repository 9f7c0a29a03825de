"""``check`` tries the claims of ``dims=``: true ones pass, a false one is named with its smallest case."""

import itertools
import string

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import polyop
from polyop.core.dims.dims import Dims
from polyop.testing import check, samples
from polyop.testing.case import Case
from polyop.testing.dims import outcomes
from polyop.testing.dims.checks import not_refused
from polyop.testing.sizes import resized

UNARY = "(Tensor x) -> Tensor"
LINEAR = "(Tensor x, Tensor w) -> Tensor"
_numbers = itertools.count()


def define(signature, kernel, dims, **options):
    """Return an operator with a unique name."""
    return polyop.operator(f"check_dims::op{next(_numbers)}{signature}", kernel, dims=dims, **options)


def rows(op, *args, **attributes):
    """Return (status, detail) of each check of dims= by its name."""
    report = check(op, *args, hosts=["numpy"], raise_on_failure=False, **attributes)
    return {r.check: (r.status, r.detail) for r in report.results if r.check.startswith("dims")}


def matmul(x, w):
    return x @ w


def stencil(x):
    padded = np.pad(x, 1)
    return padded[:-2] + 2 * padded[1:-1] + padded[2:]


def correlate(x, w):
    return np.correlate(x, w, "valid").astype(x.dtype)


def windows(x, w):
    views = np.lib.stride_tricks.sliding_window_view(x, w.shape)
    return np.einsum("hwab,ab->hw", views, w).astype(x.dtype)


def differences(x):
    return np.abs(np.diff(x)).sum(dtype=x.dtype)


def add_rows(index, x, rows):
    y = np.zeros((rows, x.shape[1]), x.dtype)
    np.add.at(y, index, x)
    return y


def accumulate(x, y):
    x += y


@polyop.kernel
def loop_matmul(x, w):
    y = output_tensor((x.shape[0], w.shape[1]), x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            y[i, j] = 0
            for k in range(x.shape[1]):
                y[i, j] += x[i, k] * w[k, j]
    return y


@polyop.kernel
def loop_running_sum(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        y[i] = total
    return y


@polyop.kernel
def loop_window(x, w):
    y = output_tensor((x.shape[0] - w.shape[0] + 1,), x.dtype)  # noqa: F821
    for n in range(y.shape[0]):
        y[n] = 0
        for k in range(w.shape[0]):
            y[n] += x[n + k] * w[k]
    return y


@polyop.kernel
def loop_add(x, y):
    z = output_tensor(x.shape, x.dtype)  # noqa: F821
    for n in range(x.shape[0]):
        z[n] = x[n] + y[n]
    return z


INDEX = np.array([[0, 3, 2]])
TABLE = np.arange(15, dtype=np.float32).reshape(5, 3)

TRUE = [  # signature, kernel, dims, options, samples, attributes
    (LINEAR, matmul, "b i, i o -> b o", {"parallel": "b o", "sum": "i"}, (), {}),
    (LINEAR, loop_matmul, "b i, i o -> b o", {"parallel": "b o", "sum": "i"}, (), {}),
    (UNARY, lambda x: x.sum(0), "m n -> n", {"parallel": "n", "sum": "m"}, (), {}),
    (UNARY, lambda x: x.max(0), "m n -> n", {"parallel": "n", "max": "m"}, (), {}),
    (UNARY, lambda x: x.min((0, 1)), "m n ->", {"min": "m n"}, (), {}),
    (UNARY, lambda x: x - x.mean(-1, keepdims=True), "... n -> ... n", {}, (), {}),
    (UNARY, stencil, "n -> n", {"halo": {"n": (1, 1)}}, (), {}),
    (UNARY, stencil, "n -> n", {"halo": {"n": (3, 2)}}, (), {}),
    (
        "(Tensor x, Tensor c) -> (Tensor, Tensor)",
        lambda x, c: (stencil(x), 2 * c),
        "n, m -> n, m",
        {"halo": {"n": (1, 1)}},
        (),
        {},
    ),
    (LINEAR, correlate, "n, k -> n-k+1", {"halo": {"n": (0, "k-1")}}, (np.ones(6), np.ones(3)), {}),
    (LINEAR, windows, "h w, a b -> h-a+1 w-b+1", {"halo": {"h": (0, "a-1"), "w": (0, "b-1")}}, (), {}),
    (UNARY, differences, "n ->", {"sum": "n", "halo": {"n": (0, 1)}}, (), {}),
    (UNARY, lambda x: x[::2], "n -> n/2", {"halo": {"n": (0, 0)}}, (np.ones(6),), {}),
    (
        "(Tensor index, Tensor table) -> Tensor",
        lambda index, table: table[index],
        "..., v d -> ... d",
        {"parallel": "... d", "infer": "table"},
        (INDEX, TABLE),
        {},
    ),
    (
        "(Tensor index, Tensor x, int rows) -> Tensor",
        add_rows,
        "k, k d -> rows d",
        {"parallel": "d", "sum": "k", "infer": "x"},
        (np.array([0, 3, 0]), TABLE[:3]),
        {"rows": 4},
    ),
    (
        "(Tensor x, int times) -> Tensor",
        lambda x, times: np.repeat(x, times),
        "n -> n*times",
        {"parallel": "n"},
        (),
        {"times": 3},
    ),
    ("(Tensor(a!) x, Tensor y) -> ()", accumulate, "n, n ->", {"parallel": "n"}, (), {}),
    ("(Tensor[] xs) -> Tensor", sum, "b n* -> b n", {"parallel": "b n"}, (), {}),
]


@pytest.mark.parametrize(("signature", "kernel", "dims", "options", "args", "attributes"), TRUE)
def test_true_claims_pass(signature, kernel, dims, options, args, attributes):
    op = define(signature, kernel, dims, **options)
    results = rows(op, *args, **attributes)
    assert "failed" not in {status for status, _ in results.values()}, results
    claims = list(outcomes(case_of(op, args, attributes), op.operator.dims))
    assert claims
    assert {outcome.status for outcome in claims} == {"passed"}, claims


def case_of(op, args=(), attributes=None):
    arguments = samples.arguments(op.operator, args, attributes or {}, 0)
    return Case(op, arguments, None, ("numpy",), 0)


CUMULATIVE = """
parallel="n" is false: for n=2, the slices 0:1, 1:2 of n differ from the whole
x = [1., 0.]
whole:  output 0 = [1., 1.]
slices: output 0 = [1., 0.]"""
BIAS = """
sum="i" is false: for b=1, i=2, o=1, the slices 0:1, 1:2 of i differ from the whole
x = [[0., 0.]]
w = [[0.], [0.]]
bias = [1.]
whole:  output 0 = [[1.]]
slices: output 0 = [[2.]]"""
MEAN = """
sum="m" is false: for m=2, n=1, the slices 0:1, 1:2 of m differ from the whole
x = [[0.], [1.]]
whole:  output 0 = [0.5]
slices: output 0 = [1.]"""
TILED = """
parallel="n" is false: for n=2, the slices 0:1, 1:2 of n differ from the whole
x = [0., 1.]
times = 3
whole:  output 0 = [0., 1., 0., 1., 0., 1.]
slices: output 0 = [0., 0., 0., 1., 1., 1.]"""
NARROW = """
halo={"n": (1, 0)} is false: for n=2, the slices 0:1, 1:2 of n differ from the whole
x = [0., 1.]
whole:  output 0 = [1., 2.]
slices: output 0 = [0., 2.]"""
CENTRED = """
output 0: the slice 0:1 with its halo, 0:2, does not give element 0 of the output, which belongs to it"""

FALSE = [  # signature, kernel, dims, options, attributes, the row, the end of its text
    (UNARY, np.cumsum, "n -> n", {"parallel": "n"}, {}, "parallel", CUMULATIVE),
    (UNARY, loop_running_sum, "n -> n", {"parallel": "n"}, {}, "parallel", CUMULATIVE),
    (
        "(Tensor x, Tensor w, Tensor bias) -> Tensor",
        lambda x, w, bias: x @ w + bias,
        "b i, i o, o -> b o",
        {"parallel": "b o", "sum": "i"},
        {},
        "reductions",
        BIAS,
    ),
    (UNARY, lambda x: x.mean(0), "m n -> n", {"sum": "m"}, {}, "reductions", MEAN),
    (UNARY, lambda x: x.max(0), "m n -> n", {"min": "m"}, {}, "reductions", 'min="m" is false'),
    (
        UNARY,
        lambda x: x - x.mean(),
        "... -> ...",
        {},
        {},
        "parallel",
        'parallel="..." is false: for ...=(2,)',
    ),
    (
        "(Tensor x, int times) -> Tensor",
        lambda x, times: np.tile(x, times),
        "n -> n*times",
        {"parallel": "n"},
        {"times": 3},
        "parallel",
        TILED,
    ),
    (UNARY, stencil, "n -> n", {"halo": {"n": (1, 0)}}, {}, "halo", NARROW),
    (UNARY, np.cumsum, "n -> n", {"halo": {"n": (1, 1)}}, {}, "halo", "is false: for n=3, the slices"),
    (
        LINEAR,
        windows,
        "h w, a b -> h-a+1 w-b+1",
        {"halo": {"h": (1, "a-2")}},
        {},
        "halo",
        "which belongs to it",
    ),
    (UNARY, lambda x: x[2:] + x[:-2], "n -> n-2", {"halo": {"n": (1, 1)}}, {}, "halo", CENTRED),
]


@pytest.mark.parametrize(("signature", "kernel", "dims", "options", "attributes", "row", "text"), FALSE)
def test_a_false_claim_is_named_with_the_smallest_case(
    signature, kernel, dims, options, attributes, row, text
):
    op = define(signature, kernel, dims, **options)
    status, detail = rows(op, **attributes)[f"dims, {row}"]
    assert status == "failed"
    assert detail.startswith(f"{op.name}: ")
    assert text.strip() in detail


def stencil_gradient(x, out, g):
    return (stencil(g),)


def shifted_gradient(x, out, g):
    return (stencil(np.append(g[1:], 0 * g[:1])),)


def test_gradients_of_slices_with_a_halo_overlap():
    halo = {"n": (1, 1)}
    right = define(UNARY, stencil, "n -> n", halo=halo, gradient=stencil_gradient)
    assert rows(right)["dims, gradient"] == ("passed", 'halo={"n": (1, 1)}')
    wrong = define(UNARY, stencil, "n -> n", halo=halo, gradient=shifted_gradient)
    status, detail = rows(wrong)["dims, gradient"]
    assert status == "failed"
    assert 'halo={"n": (1, 1)} does not hold for the gradient: for n=3, the slices' in detail


def test_gradients_that_do_not_exist_are_reported():
    op = define(UNARY, np.copy, "n -> n", parallel="n", gradient=lambda x, out, g: (None,))
    status, detail = rows(op)["dims, gradient"]
    assert status == "not run"
    assert "no tensor has a gradient" in detail


LOOPS = [  # function, schema, samples, what check says of each row that ran
    (
        loop_matmul,
        LINEAR,
        (polyop.Spec((2, 3), "float32"), polyop.Spec((3, 4), "float32")),
        {"parallel": 'derived parallel="i", parallel="j"', "reductions": 'derived sum="k"'},
    ),
    (
        loop_window,
        LINEAR,
        (polyop.Spec((6,), "float32"), polyop.Spec((3,), "float32")),
        {"halo": 'derived halo={"n": (0, "k-1")}'},
    ),
    (loop_running_sum, UNARY, (polyop.Spec((5,), "float32"),), {}),
]


@pytest.mark.slow(1)
@pytest.mark.parametrize(("function", "schema", "args", "expected"), LOOPS)
def test_what_is_proved_of_loops_is_tried(function, schema, args, expected):
    op = polyop.operator(f"check_dims::op{next(_numbers)}{schema}", function)
    results = rows(op, *args)
    gradients = results.pop("dims, gradient")
    assert {row: detail for row, (status, detail) in results.items() if status == "passed"} == {
        f"dims, {row}": text for row, text in expected.items()
    }
    assert results["dims, refusals"][0] == "not run"
    assert gradients[0] == ("passed" if expected else "not run")


def test_the_sizes_of_a_sample_that_a_proof_excludes_are_named():
    add = polyop.operator(f"check_dims::op{next(_numbers)}{LINEAR}", loop_add)
    status, detail = rows(add, np.ones(3), np.ones(4))["dims, parallel"]
    assert status == "not run"
    assert "what is proved of slices holds for equal sizes" in detail


def test_claims_of_any_rule_are_tried():
    op = polyop.operator(f"check_dims::op{next(_numbers)}{UNARY}", loop_running_sum)
    wrong = Dims.parse("n -> n", op.operator.schema, parallel="n")
    (outcome,) = outcomes(case_of(op, (np.ones(4, np.float32),)), wrong)
    assert (outcome.claim, outcome.status) == ('parallel="n"', "failed")
    assert outcome.detail == CUMULATIVE.split(" is false: ")[1]


def test_claims_that_could_not_be_tried_are_reported():
    no_number = define(UNARY, lambda x: np.full_like(x, np.nan), "n -> n", parallel="n")
    status, detail = rows(no_number)["dims, parallel"]
    assert status == "not run"
    assert 'parallel="n" could not be tried: the results have no finite element' in detail

    def refuses(x):
        if len(x) != 7:
            raise ValueError("x has 7 elements")
        return x * 2

    status, detail = rows(define(UNARY, refuses, "n -> n", parallel="n"), np.ones(7))["dims, parallel"]
    assert status == "not run"
    assert "is refused: " in detail
    assert "x has 7 elements" in detail


def test_samples_fit_the_rule():
    def transposed(x, w):
        return (x.T @ w).astype(x.dtype)

    op = define(LINEAR, transposed, "n n, n 3 -> n 3")
    first, second = samples.arguments(op.operator, (), {}, 0)
    assert first.shape[0] == first.shape[1] == second.shape[0]
    assert second.shape[1] == 3
    half = define("(Tensor x, int k) -> Tensor", lambda x, k: x[::2][k:], "n k -> n/2-k")
    (x, k) = samples.arguments(half.operator, (), {"k": 2}, 0)
    assert x.shape[1] == k == 2
    assert x.shape[0] % 2 == 0
    assert x.shape[0] > 4


def test_gradients_of_slices_combine():
    def gradient(x, w, out, g):
        return g @ w.T, x.T @ g

    def mean_gradient(x, w, out, g):
        return g @ w.T, x.T @ g / len(x)

    claims = {"parallel": "b o", "sum": "i"}
    right = define(LINEAR, matmul, "b i, i o -> b o", gradient=gradient, **claims)
    assert rows(right)["dims, gradient"] == ("passed", 'parallel="b", parallel="o", sum="i"')
    wrong = define(LINEAR, matmul, "b i, i o -> b o", gradient=mean_gradient, **claims)
    status, detail = rows(wrong)["dims, gradient"]
    assert status == "failed"
    assert 'parallel="b" does not hold for the gradient: for b=2, i=1, o=1' in detail
    assert "slices: gradient of w = " in detail


def test_sizes_that_do_not_fit_are_tried():
    op = define(LINEAR, matmul, "b i, i o -> b o")
    assert rows(op)["dims, refusals"] == ("passed", "4 calls are refused")
    wide = Dims.parse("b i, i i -> b i", op.operator.schema)  # not the rule that the operator refuses by
    problems, count = not_refused(case_of(op, (np.ones((2, 3)), np.ones((3, 3)))), wide)
    assert count == 5
    assert problems == [
        "w: dimension i enlarged: must be refused, but a kernel would run on (x float64[2, 3], w float64[3, 4])"
    ]


def test_a_crash_on_slices_is_reported():
    code = """
    int twice(int n, void **p, int *ndims, void *shapes, void *types, void *stream, void *extra) {
        const long long size = ((long long **)shapes)[0][0];
        if (size == 1) { *(volatile int *)8 = n; }
        for (long long i = 0; i < size; i++) { ((float *)p[1])[i] = 2 * ((float *)p[0])[i]; }
        return 0;
    }"""
    kernel = polyop.source(code=code, language="c", function="twice")
    even = polyop.Spec((4,), "float32")
    status, detail = rows(define(UNARY, kernel, "n -> n", parallel="n"), even)["dims, parallel"]
    assert status == "failed"
    assert 'parallel="n" is false: SIGSEGV ended the kernel when it ran on slices of n' in detail


def test_a_shape_of_the_rule_that_is_wrong_in_another_size():
    op = define(UNARY, lambda x: np.repeat(x, 2)[: len(x) + (len(x) == 2)], "n -> n", parallel="n")
    results = rows(op, np.ones(6, np.float32))
    status, detail = results["dims, shapes"]
    assert status == "failed"
    assert detail.startswith("output 0: the infer rule gives float32[2], but got float32[3] from pyfunc ")
    assert detail.endswith("for x float32[2]")
    assert results["dims, parallel"] == ("not run", "the shapes of dims= are wrong")


def test_other_sizes_fit_the_rule():
    op = define("(Tensor x, Tensor w, int k) -> Tensor", lambda x, w, k: x, "n n 3, m k -> n n 3")
    case = case_of(op, (np.ones((4, 4, 3)), np.ones((4, 2))), {"k": 2})
    assert [[value.shape for _, value in variant.tensors()] for variant in resized(case)] == [
        [(5, 5, 3), (5, 2)],
        [(13, 13, 3), (13, 2)],
    ]
    halves = define(UNARY, lambda x: x[::2], "n -> n/2")
    case = case_of(halves, (np.ones(6),))
    assert [value.shape for variant in resized(case) for _, value in variant.tensors()] == [(12,), (30,)]


def test_a_claim_that_is_false_for_large_sizes_only_is_found_in_the_sample():
    def blocks(x):
        y = x.copy()
        y[: len(x) // 8 * 8] += 1
        return y

    status, detail = rows(define(UNARY, blocks, "n -> n", parallel="n"), polyop.Spec((40,), "float32"))[
        "dims, parallel"
    ]
    assert status == "failed"
    assert "for n=8, the slices 0:1, 1:8 of n differ from the whole" in detail


def test_a_claim_that_is_false_from_five_elements_on_is_found_by_a_smaller_sample():
    def blocks(x):
        return x + (np.arange(len(x)) < len(x) // 5 * 5)

    status, detail = rows(define(UNARY, blocks, "n -> n", parallel="n"), np.ones(4))["dims, parallel"]
    assert status == "failed"
    assert "for n=5, the slices 0:1, 1:5 of n differ from the whole" in detail


LETTERS = string.ascii_lowercase[:4]


@st.composite
def contractions(draw):
    """Draw an einsum of two tensors as text, and its rule: free dimensions are parallel, others summed."""
    left = draw(st.permutations(LETTERS).map(lambda p: p[:2]))
    right = draw(st.permutations(LETTERS).map(lambda p: p[:2]))
    names = list(dict.fromkeys([*left, *right]))
    free = draw(st.permutations(names).flatmap(lambda p: st.integers(0, len(p)).map(lambda n: p[:n])))
    return left, right, free, [name for name in names if name not in free]


def einsum_operator(left, right, free, function, **claims):
    dims = f"{' '.join(left)}, {' '.join(right)} -> {' '.join(free)}"
    return define(LINEAR, function, dims, **claims)


@pytest.mark.slow
@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(contractions())
def test_true_claims_of_a_contraction_pass_and_false_ones_are_found(contraction):
    left, right, free, summed = contraction
    text = f"{''.join(left)},{''.join(right)}->{''.join(free)}"

    def contract(x, w):
        return np.einsum(text, x, w).astype(x.dtype)

    true = einsum_operator(left, right, free, contract, parallel=" ".join(free), sum=" ".join(summed))
    assert {o.status for o in outcomes(case_of(true), true.operator.dims)} <= {"passed"}
    for kind in ("max", "min"):
        if summed:
            false = einsum_operator(left, right, free, contract, **{kind: summed[0]})
            (outcome,) = outcomes(case_of(false), false.operator.dims)
            assert outcome.status == "failed"
            assert f'{kind}="{summed[0]}"' == outcome.claim
    for name in free:
        axis = free.index(name)
        false = einsum_operator(
            left, right, free, lambda x, w, a=axis: np.cumsum(contract(x, w), a, dtype=x.dtype), parallel=name
        )
        (outcome,) = outcomes(case_of(false), false.operator.dims)
        assert outcome.status == "failed"
        assert f"{name}=2" in outcome.detail
