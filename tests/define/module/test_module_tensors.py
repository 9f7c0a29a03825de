"""ms::Tensor's methods, functions without tensors, and every kind of argument, on NumPy and PyTorch."""

import gc
import pathlib

import numpy as np
import pytest

from polyop.define.module.builder import CustomOpBuilder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
SOURCE = pathlib.Path(__file__).parents[2] / "sources" / "module_tensors.cpp"


@pytest.fixture(scope="session")
def ops():
    return CustomOpBuilder("module_tensors", [str(SOURCE)], backend="CPU").load()


@pytest.fixture(params=[np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def host(request):
    return request.param


def graph(function):
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")


GRID = np.arange(12, dtype=np.float32).reshape(3, 4)
STRIDED = np.arange(24, dtype=np.float32).reshape(4, 6).T[::2, 1:]  # (3, 3)

# name, arguments beside the tensor, the same in NumPy
METHODS = [
    ("reshape", ((2, -1),), lambda x: x.reshape(2, -1) if x.size % 2 == 0 else None),
    ("reshape", ((-1,),), lambda x: x.reshape(-1)),
    ("flatten", (), lambda x: x.reshape(-1)),
    ("flatten", (1,), lambda x: x),
    ("flatten", (-2, -1), lambda x: x.reshape(-1)),
    ("cast", ("int32",), lambda x: x.astype(np.int32)),
    ("cast", ("float32",), lambda x: x),
    ("cast", ("float16",), lambda x: x.astype(np.float16)),
    ("dense", (), lambda x: x),
    ("repeat", ((2, 1),), lambda x: np.tile(x, (2, 1))),
    ("repeat", ((2, 3, 1),), lambda x: np.tile(x, (2, 3, 1))),
    ("repeat_each", (2,), lambda x: np.repeat(x, 2)),
    ("repeat_each", (3, 1), lambda x: np.repeat(x, 3, axis=1)),
    ("repeat_each", (2, -2), lambda x: np.repeat(x, 2, axis=0)),
]


@pytest.mark.slow(1)
@pytest.mark.parametrize("array", [GRID, STRIDED, GRID[:0]], ids=["dense", "strided", "empty"])
@pytest.mark.parametrize(("name", "more", "formula"), METHODS, ids=[f"{row[0]}{row[1]}" for row in METHODS])
def test_methods(ops, name, more, formula, array):
    expected = formula(array) if not (array.size == 0 and -1 in np.ravel(more)) else None
    if expected is None:
        return
    for host in (lambda x: x, lambda x: torch.from_numpy(x.copy()) if x is not STRIDED else strided(x)):
        out = np.asarray(getattr(ops, name)(host(array), *more))
        assert out.dtype == expected.dtype
        np.testing.assert_array_equal(out, expected)


def strided(array):
    return torch.from_numpy(array.base.copy()).reshape(4, 6).t()[::2, 1:] if array.base is not None else array


@pytest.mark.slow(1)
@pytest.mark.parametrize(("name", "more", "formula"), METHODS, ids=[f"{row[0]}{row[1]}" for row in METHODS])
def test_methods_compiled(ops, name, more, formula):
    expected = formula(GRID)
    kinds = {"int32": torch.int32, "float32": torch.float32, "float16": torch.float16}
    arguments = tuple(kinds.get(m, m) if isinstance(m, str) else m for m in more)
    out = graph(lambda x: getattr(ops, name)(x, *arguments))(torch.from_numpy(GRID))
    np.testing.assert_array_equal(out, expected)


def test_chunk(ops, host):
    for chunks, dim in [(2, 0), (2, 1), (3, -1), (1, 0), (9, 1)]:
        parts = ops.chunk(host(GRID), chunks, dim)
        expected = torch.chunk(torch.from_numpy(GRID), chunks, dim)
        assert isinstance(parts, list) and len(parts) == len(expected)
        for part, expected_part in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(part), expected_part)
    assert [p.shape for p in ops.chunk(host(GRID), chunks=2)] == [(2, 4), (1, 4)]


def test_index_select(ops, host):
    index = np.array([2, 0, 2])
    np.testing.assert_array_equal(np.asarray(ops.index_select(host(GRID), 0, host(index))), GRID[index])
    np.testing.assert_array_equal(np.asarray(ops.index_select(host(GRID), -1, host(index))), GRID[:, index])


def test_repeat_by_a_tensor(ops, host):
    times = np.array([2, 0, 1])
    np.testing.assert_array_equal(
        np.asarray(ops.repeat_by(host(GRID), host(times), 0)), np.repeat(GRID, times, axis=0)
    )
    out = ops.repeat_by(host(GRID), host(times), dim=0, size=3)
    np.testing.assert_array_equal(np.asarray(out), np.repeat(GRID, times, axis=0))


def test_repeat_by_a_tensor_compiled_wants_the_size(ops):
    x, times = torch.from_numpy(GRID), torch.tensor([2, 0, 1])
    out = graph(lambda a, t: ops.repeat_by(a, t, 0, 3))(x, times)
    np.testing.assert_array_equal(out, np.repeat(GRID, [2, 0, 1], axis=0))
    with pytest.raises(RuntimeError, match=r"(?s)repeat_by.*shape cannot be derived.*load\(infer="):
        graph(lambda a, t: ops.repeat_by(a, t, 0))(x, times)


def test_tensors_of_numbers(ops):
    seven, half, ints, halves, zeros, ones = ops.made()
    expected = [
        (seven, np.int64, [7]),
        (half, np.float64, [2.5]),
        (ints, np.int32, [1, 2, 3]),
        (halves, np.float16, [0.5, 1.5]),
        (zeros, np.float32, [[0, 0], [0, 0]]),
        (ones, np.int8, [1, 1, 1]),
    ]
    for found, kind, values in expected:
        assert isinstance(found, np.ndarray) and found.dtype == kind
        np.testing.assert_array_equal(found, values)
    assert ops.ones((2, 0)).shape == (2, 0)
    assert ops.ones([1], dtype="int16").dtype == np.int16
    assert ops.ones(shape=[1], dtype=np.float64).dtype == np.float64


def test_what_a_tensor_says_of_itself(ops):
    x = torch.arange(24.0).reshape(4, 6)
    np.testing.assert_array_equal(ops.layout(x), [43, 0, 1, 4, 6, 6, 1])
    np.testing.assert_array_equal(ops.layout(x.double().t()), [44, 0, 0, 6, 4, 1, 6])
    np.testing.assert_array_equal(ops.layout(x.numpy()[::2]), [43, 0, 0, 2, 6, 12, 1])
    np.testing.assert_array_equal(ops.layout(torch.tensor(True)), [30, 0, 1])
    assert ops.text_of_undefined() == "undefined needs"
    with pytest.raises(RuntimeError, match="use_of_undefined.*an undefined tensor was used"):
        ops.use_of_undefined()


def test_arguments_of_every_kind(ops):
    assert ops.kinds(1, 2) == '1 2.000000 off a "b" \\ 4 5 (6,7) 43 none -1'
    found = ops.kinds(
        i=-(2**40),
        f=0.5,
        b=True,
        s="é",
        list=(),
        pair=(1, 2),
        type="bfloat16",
        maybe=9,
        reals=[1, 2.5],
        texts=["x", "y z"],
        narrow=7,
    )
    assert found == f"{-(2**40)} 0.500000 on é (1,2) 45 9 1.000000 2.500000 x y z 7"


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((1.5, 2), TypeError, "argument i: must be int"),
        ((1, "2"), TypeError, "argument f: must be float"),
        ((1, 2, False, 3), TypeError, "argument s: must be str"),
        ((1, 2, False, "", 3), TypeError, r"argument list: must be int\[\]"),
        ((1, 2, False, "", [], [1, 2, 3]), (TypeError, ValueError), "pair"),
        ((1, 2, False, "", [], [1, 2], "nonsense"), (TypeError, ValueError), "nonsense"),
        ((1,), TypeError, "f"),
    ],
)
def test_arguments_of_a_wrong_kind(ops, arguments, kind, message):
    with pytest.raises(kind, match=f"module_tensors::kinds.*{message}"):
        ops.kinds(*arguments)


@pytest.mark.slow
def test_a_number_that_does_not_fit(ops):
    with pytest.raises(RuntimeError, match=f"the number {2**40} does not fit the type of the C.. argument"):
        ops.kinds(1, 2, narrow=2**40)
    with pytest.raises((OverflowError, TypeError, ValueError)):
        ops.kinds(2**70, 2)


def test_results_of_every_kind(ops):
    assert ops.results() == (1, 2.5, True, "téxt")
    assert list(ops.range(4)) == [0, 1, 2, 3]
    assert ops.nothing() is None
    assert ops.add_ints(2, 3) == 5


def test_functions_of_tensors_with_defaults_and_names(ops, host):
    x = host(np.float32([1, 2]))
    np.testing.assert_array_equal(np.asarray(ops.scaled(x)), [2.5, 5])
    np.testing.assert_array_equal(np.asarray(ops.scaled(x, 2)), [2, 4])
    np.testing.assert_array_equal(np.asarray(ops.scaled(factor=3.0, x=x)), [3, 6])
    np.testing.assert_array_equal(np.asarray(ops.by_object(x)), [3, 6])
    np.testing.assert_array_equal(np.asarray(ops.by_lambda(x)), [5, 10])
    np.testing.assert_array_equal(np.asarray(ops.by_caller(x, 4.0)), [4, 8])
    double, triple = ops.pair_of(x)
    np.testing.assert_array_equal(np.asarray(double), [2, 4])
    np.testing.assert_array_equal(np.asarray(triple), [3, 6])
    assert ops.unit(x) is None
    np.testing.assert_array_equal(np.asarray(x), [1, 1])


def test_names_docs_and_schemas(ops):
    assert ops.reshape.__doc__ == "Return x in another shape."
    assert ops.by_caller.__doc__ == "Return x times a factor."
    assert ops.by_object.__doc__ == "Return 3 x."
    assert ops.made.__doc__ == "Return tensors of numbers." and ops.made.__name__ == "made"
    assert str(ops.scaled.schema) == "module_tensors::scaled(Tensor x, float factor=2.5) -> Tensor"
    assert str(ops.pair_of.schema) == "module_tensors::pair_of(Tensor arg0) -> (Tensor, Tensor)"
    assert "scaled" in dir(ops) and repr(ops).startswith("<polyop module module_tensors of ")
    assert {f.__name__ if hasattr(f, "__name__") else f.schema.name for f in ops} >= {"made", "scaled"}
    with pytest.raises(AttributeError, match=r"Custom op 'nobody' is neither in .* has reshape, flatten"):
        ops.nobody
    assert torch.ops.module_tensors.scaled(torch.ones(1)).item() == 2.5


def test_lists_with_absent_tensors(ops, host):
    x = host(np.float32([4]))
    np.testing.assert_array_equal(np.asarray(ops.first_defined([None, x])), [4])
    with pytest.raises(RuntimeError, match="first_defined.*needs at least one tensor"):
        ops.first_defined([None])


@pytest.mark.slow(1)
def test_a_list_that_may_be_absent(ops, host):
    x, last = host(np.float32([4, 5])), host(np.float32([1]))
    for more, expected in [(None, 102), ([], 2), ([x, x, x], 5)]:
        np.testing.assert_array_equal(np.asarray(ops.longest(x, more, last)), [expected])
        y = torch.tensor([4.0, 5.0])
        arguments = None if more is None else [y] * len(more)
        out = graph(lambda a, b, arguments=arguments: ops.longest(a, arguments, b))(y, torch.tensor([1.0]))
        np.testing.assert_array_equal(out, [expected])


def test_a_dtype_by_default(ops, host):
    assert str(ops.cast.schema) == 'module_tensors::cast(Tensor x, ScalarType dtype="float64") -> Tensor'
    assert np.asarray(ops.cast(host(np.float32([1])))).dtype == np.float64
    out = graph(lambda x: ops.cast(x))(torch.ones(1))
    assert out.dtype == torch.float64


def test_tensors_in_and_a_number_out(ops):
    with pytest.raises(ValueError, match="takes tensors and returns something else: return tensors"):
        ops.mean(np.ones(1, np.float32))


@pytest.mark.slow(1)
def test_tensors_kept_after_the_call(ops, host):
    x = host(np.float32([[1, 2], [3, 4]]))
    ops.keep(x)
    del x
    gc.collect()
    other = host(np.float32([7, 7, 7]))
    for twice, factor in [(True, 2), (False, 1)]:
        for from_end, expected in [(1, [1, 2, 3, 4]), (2, [[2, 4], [6, 8]]), (3, [[1, 2], [3, 4]])]:
            out = ops.kept_one(other, from_end, twice)
            assert out is not other
            np.testing.assert_array_equal(np.asarray(out), np.multiply(expected, factor))
    assert ops.forget() >= 3


def test_tensors_kept_from_a_dry_run(ops):
    ops.forget()
    graph(lambda x: ops.keep(x))(torch.ones(5, 3))
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match="has no data: it was kept from a run in which only shapes were"
        ):
            ops.kept_one(torch.ones(2), ops.forget_but_first(), True)
        with pytest.raises(
            RuntimeError, match="has no data: it was kept from a run in which only shapes were"
        ):
            ops.kept_one(torch.ones(2), 1, False)
    assert ops.forget() == 1


def test_tensors_kept_from_a_call_with_a_gradient(ops):
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    ops.keep(x)
    y = torch.tensor([5.0], requires_grad=True)
    out = ops.kept_one(y, 3, False)
    np.testing.assert_array_equal(out.detach(), [[1, 2]])
    with pytest.raises(RuntimeError, match="outside of the Apply of a Function"):
        out.sum().backward()
    assert x.grad is None and y.grad is None
    ops.forget()


def test_tensors_on_a_thread_of_the_modules_own(ops, host):
    with pytest.raises(
        RuntimeError, match="the thread says: a tensor was used outside of a call .* on a thread"
    ):
        ops.on_a_thread(host(np.float32([1])))


THROWN = [
    ("int", "it threw an exception that is no std::exception"),
    ("bad_alloc", "bad_alloc"),
    ("log", "logged 42"),
    ("kind", "ValueError: of a kind"),
    ("null", "is null"),
    ("kernel", "in a kernel"),
    ("kernel int", "no std::exception"),
    ("aclnn", "aclnnNobodyHasThis"),
    ("arguments", "aclnnMul: takes"),
    ("negative", "a tensor cannot have the size -1 in dimension 1"),
    ("type", "a tensor cannot have the TypeId 99"),
    ("undefined", "the function returned an undefined tensor"),
    ("reshape", "a tensor of 2 elements cannot be viewed as one of 1000"),
    ("chunk", "chunk needs at least 1 chunk"),
    ("dim", "dimension 9 of a tensor with 1"),
    ("vector", "vector"),
]


@pytest.mark.parametrize(("what", "message"), THROWN, ids=[row[0] for row in THROWN])
def test_exceptions_of_every_kind(ops, host, what, message):
    x = host(np.float32([1, 2]))
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=f"(?s)module_tensors::throws: the C.. function failed: .*{message}"
        ):
            ops.throws(x, what)
    np.testing.assert_array_equal(np.asarray(ops.throws(x, "")), [1, 2])  # and works again
