"""MindSpore's own scenarios for modules without a gradient (B1 to B6), on NumPy and PyTorch."""

import itertools
import pathlib

import numpy as np
import pytest

from polyop.define.module.builder import CustomOpBuilder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
NUMBERS = itertools.count()
SOURCE = pathlib.Path(__file__).parents[2] / "sources" / "module_scenarios.cpp"


@pytest.fixture(scope="session")
def ops():
    return CustomOpBuilder("module_scenarios", [str(SOURCE)], backend="CPU").load()


@pytest.fixture
def fresh_ops():
    """The same module, of which nothing has been called."""
    return CustomOpBuilder(f"module_scenarios_{next(NUMBERS)}", [str(SOURCE)]).load()


@pytest.fixture(params=[np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def host(request):
    return request.param


def cube(seed):
    return np.random.default_rng(seed).integers(-99, 99, (9, 9, 9), dtype=np.int32)


def ints(*values):
    return np.array(values, dtype=np.int32)


def compiled(function):
    return torch.compile(function, fullgraph=True, backend="aot_eager")


@pytest.mark.slow
def test_b1_a_kernel_walks_the_strides(ops, host):
    x, y = cube(0), cube(1)
    out = ops.add_strided(host(x)[:4, 6:, 3:7], host(y)[5:, :3, 4:8])
    np.testing.assert_array_equal(np.asarray(out), x[:4, 6:, 3:7] + y[5:, :3, 4:8])


def test_b1_a_dense_tensor_is_the_authors_error(ops, host):
    with pytest.raises(RuntimeError, match=r"module_scenarios::add_strided.*wants strided tensors"):
        ops.add_strided(host(cube(0)), host(cube(1)))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, ::2, 1:],
        lambda x: x.swapaxes(0, 2),
        lambda x: x[0, :, :],
        lambda x: x[:0],
        lambda x: x[0, 0, 0:1].reshape(()),
    ],
    ids=["steps", "transposed", "row", "empty", "scalar"],
)
def test_a_strided_kernel_takes_every_layout(ops, host, view):
    x, y = cube(2), cube(3)
    out = ops.add_any(view(host(x)), view(host(y)))
    assert tuple(out.shape) == view(x).shape
    np.testing.assert_array_equal(np.asarray(out), view(x) + view(y))


@pytest.mark.slow
def test_reversed_and_broadcast_arrays(ops):
    x = cube(4)
    row = np.broadcast_to(x[0], x.shape)  # stride 0
    np.testing.assert_array_equal(ops.add_any(x[::-1], row), x[::-1] + row)
    np.testing.assert_array_equal(ops.add_dense(x[::-1], row), x[::-1] + row)
    expanded = torch.from_numpy(x[0]).expand(9, 9, 9)
    np.testing.assert_array_equal(ops.add_any(torch.from_numpy(x), expanded), x + row)


def test_b2_inputs_are_made_dense_for_a_plain_kernel(ops, host):
    x, y = cube(0), cube(1)
    out = ops.add_dense(host(x)[:4, 6:, 3:7], host(y)[5:, :3, 4:8])
    np.testing.assert_array_equal(np.asarray(out), x[:4, 6:, 3:7] + y[5:, :3, 4:8])


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", ["add_any", "add_dense", "add_called"])
def test_compiled_as_one_graph(ops, name):
    x, y = torch.from_numpy(cube(0)), torch.from_numpy(cube(1))
    function = getattr(ops, name)
    run = compiled(lambda a, b: function(a[:, 2:], b[:, 2:]) * 2)
    torch.testing.assert_close(run(x, y), (x[:, 2:] + y[:, 2:]) * 2)
    torch.testing.assert_close(run(x[:5], y[:5]), (x[:5, 2:] + y[:5, 2:]) * 2)  # another size


def test_b4_a_list_of_tensors(ops, host):
    x, y, z = host(ints(1, 2)), host(ints(3, 4)), host(ints(5, 6))
    np.testing.assert_array_equal(np.asarray(ops.add4(x, y, [z])), [9, 12])
    np.testing.assert_array_equal(np.asarray(ops.add4(x, y, [z, z])), [14, 18])
    np.testing.assert_array_equal(np.asarray(ops.add4(x, y, [])), [4, 6])


def test_b5_a_list_of_lists(ops, host):
    x, y, z = host(ints(1, 2)), host(ints(3, 4)), host(ints(5, 6))
    np.testing.assert_array_equal(np.asarray(ops.add5(x, y, [[z]])), [9, 12])
    np.testing.assert_array_equal(np.asarray(ops.add5(x, y, [[z], [], [x, y]])), [13, 18])
    with pytest.raises(TypeError, match="must be a list of lists of tensors"):
        ops.add5(x, y, [z])


def test_b4_and_b5_compiled(ops):
    x, y, z = torch.tensor([1, 2]).int(), torch.tensor([3, 4]).int(), torch.tensor([5, 6]).int()
    np.testing.assert_array_equal(compiled(lambda a, b, c: ops.add4(a, b, [c]))(x, y, z), [9, 12])
    np.testing.assert_array_equal(compiled(lambda a, b, c: ops.add5(a, b, [[c], [a, b]]))(x, y, z), [13, 18])


def test_b6_writes_into_a_given_list(ops, host):
    x, y, z = host(ints(1, 2)), host(ints(3, 4)), host(ints(5, 6))
    out = host(ints(0, 0))
    assert ops.add6(x, y, z, [out]) is None
    np.testing.assert_array_equal(np.asarray(out), [9, 12])
    ops.add6(out, y, z, [out])
    np.testing.assert_array_equal(np.asarray(out), [17, 22])


def test_b6_moves_the_version_and_is_compiled_after_a_call(ops):
    x, y, z, out = (torch.tensor(v).int() for v in ([1, 2], [3, 4], [5, 6], [0, 0]))
    before = out._version
    ops.add6(x, y, z, [out])
    assert out._version > before

    def function(a, b, c):
        out = torch.zeros_like(a)
        ops.add6(a, b, c, [out])
        return out + 1

    np.testing.assert_array_equal(compiled(function)(x, y, z), [10, 13])


def test_swap_through_a_workspace(ops, host):
    x, y = np.array([1, 2, 3], np.float32), np.array([7, 8, 9], np.float32)
    a, b = host(x.copy()), host(y.copy())
    assert ops.swap(a, b) is None
    np.testing.assert_array_equal(np.asarray(a), y)
    np.testing.assert_array_equal(np.asarray(b), x)
    assert "(a!)" in str(ops.swap) and "(b!)" in str(ops.swap)  # learned


def test_swap_of_strided_tensors(ops, host):
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(12, 24, dtype=np.float32).reshape(3, 4)
    a, b = host(x.copy()), host(y.copy())
    assert ops.swap(a[:, ::2], b[:, 1::2]) is None
    x[:, ::2], y[:, 1::2] = y[:, 1::2].copy(), x[:, ::2].copy()
    np.testing.assert_array_equal(np.asarray(a), x)
    np.testing.assert_array_equal(np.asarray(b), y)


@pytest.mark.slow
def test_swap_of_strided_tensors_that_no_dry_run_has_seen(fresh_ops, host):
    x, y = np.arange(6, dtype=np.float32), np.arange(6, 12, dtype=np.float32)
    a, b = host(x.copy()), host(y.copy())
    fresh_ops.swap(a[::2], b[1::2])
    np.testing.assert_array_equal(np.asarray(a), [7, 1, 9, 3, 11, 5])
    np.testing.assert_array_equal(np.asarray(b), [6, 0, 8, 2, 10, 4])


def test_arrays_of_every_sort(ops):
    x = ints(1, 2, 3)
    fixed = x.copy()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(ops.add_dense(fixed, x.astype(">i4")), [2, 4, 6])
    np.testing.assert_array_equal(ops.add_any(np.int32(5), np.int32(6)), 11)
    with pytest.raises(TypeError, match="must have no mask"):
        ops.add_any(np.ma.masked_array(x, [0, 0, 1]), x)
    with pytest.raises((TypeError, RuntimeError), match="numpy.*torch|torch.*numpy"):
        ops.add_any(x, torch.from_numpy(x))
    with pytest.raises(TypeError, match="add_any: argument arg0: must be a tensor"):
        ops.add_any([1, 2], x)


def test_swap_compiled_after_a_call(ops):
    ops.swap(torch.zeros(3), torch.zeros(3))

    def function(x, y):
        a, b = x.clone(), y.clone()
        ops.swap(a, b)
        return a - b

    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([7.0, 9.0, 5.0])
    torch.testing.assert_close(compiled(function)(x, y), y - x)


def test_swap_refuses_what_cannot_be_written(ops):
    fixed = np.zeros(3, np.float32)
    fixed.flags.writeable = False
    with pytest.raises((ValueError, RuntimeError), match="read-only"):
        ops.swap(np.ones(3, np.float32), fixed)
    with pytest.raises(RuntimeError, match="swap needs tensors of one shape"):
        ops.swap(np.ones(3, np.float32), np.ones(4, np.float32))
    with pytest.raises(RuntimeError, match="leaf"):
        ops.swap(torch.zeros(3, requires_grad=True), torch.zeros(3))


def test_several_outputs(ops, host):
    low, high = ops.min_max(host(ints(4, -3, 7)))
    assert (int(low), int(high), tuple(low.shape)) == (-3, 7, ())


def test_several_outputs_compiled(ops):
    low, high = compiled(lambda x: ops.min_max(x))(torch.tensor([4, -3, 7]).int())
    assert (int(low), int(high)) == (-3, 7)


def test_a_wrong_number_of_outputs_is_told(ops, host):
    with pytest.raises(RuntimeError, match=r"three_of_two.*output size should be equal to 3, but got 2"):
        ops.three_of_two(host(ints(1, 2)))


def test_aclnn_runner(ops, host):
    np.testing.assert_array_equal(np.asarray(ops.abs(host(np.float32([-1.5, 2])))), [1.5, 2])
    run = compiled(lambda x: ops.abs(x) + 1)
    torch.testing.assert_close(run(torch.tensor([-3.0, 4.0])), torch.tensor([4.0, 5.0]))


def test_a_runner_without_a_function_has_no_gradient(ops):
    x = torch.tensor([-3.0, 4.0], requires_grad=True)
    out = ops.abs(x)
    with pytest.raises(RuntimeError, match="outside of the Apply of a Function"):
        out.sum().backward()
    with torch.no_grad():
        assert not ops.abs(x).requires_grad
