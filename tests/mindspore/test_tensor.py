"""Construction, attributes and methods; expected values by NumPy."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest
import torch

import polyop
import polyop.mindspore as ms
from polyop.mindspore import Parameter, ParameterTuple, Tensor

ARRAY = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]], np.float32)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, ms.float32),
        (1, ms.int64),
        (True, ms.bool_),
        ([1.0, 2.0], ms.float32),
        ([[1, 2]], ms.int64),
        ((True,), ms.bool_),
        (np.float64(1), ms.float64),
        (np.ones(2, np.float16), ms.float16),
        (np.ones(2, ml_dtypes.bfloat16), ms.bfloat16),
        (np.ones(2, ">f4"), ms.float32),
        ([Tensor(1.0), Tensor(2.0)], ms.float32),
        (torch.ones(2, dtype=torch.int16), ms.int16),
    ],
)
def test_dtype_of_the_data(data, dtype):
    result = Tensor(data)
    assert type(result) is Tensor
    assert result.dtype == dtype
    assert result.dtype is dtype


@pytest.mark.parametrize("dtype", [ms.float16, np.float16, "float16", torch.float16, polyop.dtype("float16")])
def test_dtype_in_any_spelling(dtype):
    assert Tensor([1, 2], dtype).dtype == ms.float16
    assert Tensor([1, 2]).astype(dtype).dtype == ms.float16


def test_the_data_is_copied():
    array = ARRAY.copy()
    result = Tensor(array)
    again = Tensor(result)
    array[:] = 0
    result[0, 0] = 7
    assert result.asnumpy()[1, 1] == 4
    assert again.asnumpy()[0, 0] == 3


@pytest.mark.parametrize("data", [None, "text", object(), [None], {1: 2}])
def test_data_without_numbers(data):
    with pytest.raises(TypeError, match="input_data must be a number, a list of numbers"):
        Tensor(data)


def test_rows_of_different_lengths():
    with pytest.raises(TypeError, match="the data are not rectangular"):
        Tensor([[1, 2], [3]])


def test_attributes():
    x = Tensor(ARRAY)
    assert (x.shape, x.size, x.ndim, x.itemsize, x.nbytes, x.strides) == ((2, 3), 6, 2, 4, 24, (12, 4))
    assert isinstance(x.shape, tuple)
    assert str(x.shape) == "(2, 3)"
    assert not x.has_init
    assert x.is_contiguous()
    assert not x.T.is_contiguous()
    assert np.array_equal(x.T.contiguous().asnumpy(), ARRAY.T)
    assert x[0, 0].item() == 3.0


def test_pytorch_sees_its_own_attributes():
    x = Tensor(ARRAY)
    torch.testing.assert_close(torch.sum(x, dim=-1), torch.from_numpy(ARRAY.sum(-1)), check_dtype=True)
    assert torch.nn.functional.cross_entropy(x, Tensor([0, 1])).dtype == ms.float32
    module = torch.nn.MultiheadAttention(4, 2)
    result, _ = module(*[Tensor(np.ones((3, 1, 4), np.float32))] * 3)
    assert type(result) is Tensor


CASES = [  # a call of each kind on the tensor, what NumPy says; the differential table has every method
    ("sum(axis=1)", ARRAY.sum(1)),
    ("max(1)[1]", ARRAY.argmax(1)),
    ("std(0, ddof=1)", ARRAY.std(0, ddof=1)),
    ("transpose(1, 0)", ARRAY.T),
    ("flatten(order='F')", ARRAY.flatten("F")),
    ("astype(ms.int32)", ARRAY.astype(np.int32)),
    ("to(ms.float64)", ARRAY.astype(np.float64)),
    ("init_data()", ARRAY),
    ("move_to('CPU')", ARRAY),
]


@pytest.mark.parametrize(
    ("call", "expected"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_method(call, expected):
    result = eval(f"x.{call}", {"x": Tensor(ARRAY), "ms": ms})
    assert type(result) is Tensor
    assert result.asnumpy().dtype == np.asarray(expected).dtype
    assert np.allclose(result.asnumpy(), expected)
    assert result.shape == np.shape(expected)


def test_max_with_indices():
    values, places = Tensor(ARRAY).max(axis=1, return_indices=True)
    assert values.asnumpy().tolist() == [3.0, 4.0]
    assert places.asnumpy().tolist() == [0, 1]


def test_operations_stay_tensors():
    x, y = Tensor(ARRAY), torch.from_numpy(ARRAY.copy())
    for result in (
        x + 1,
        1 - x,
        x * y,
        y * x,
        x @ x.T,
        x[0],
        -x,
        x == 3,
        torch.stack([x, x]),
        *torch.split(x, 1),
    ):
        assert type(result) is Tensor
    assert type(y) is torch.Tensor
    y.add_(x)
    assert type(y) is torch.Tensor
    assert [type(row) for row in x] == [Tensor, Tensor]


def test_numpy_reads_it():
    assert np.array_equal(np.asarray(Parameter(ARRAY)), ARRAY)
    assert np.array_equal(np.add(ARRAY, np.asarray(Tensor(ARRAY))), ARRAY * 2)
    assert Tensor(ARRAY).astype(ms.bfloat16).asnumpy().dtype == ml_dtypes.bfloat16


def test_copies_and_pickles():
    for result in (copy.deepcopy(Tensor(ARRAY)), pickle.loads(pickle.dumps(Tensor(ARRAY)))):
        assert type(result) is Tensor
        assert np.array_equal(result.asnumpy(), ARRAY)
    parameter = Parameter(ARRAY, name="w", requires_grad=False)
    for result in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert (type(result), result.name, result.requires_grad) == (Parameter, "w", False)
    assert pickle.loads(pickle.dumps(ms.float32)) == ms.float32


def test_assign_value_writes_in_place():
    x = Tensor([1.0, 2.0])
    assert x.assign_value(Tensor([3.0, 4.0])) is x
    assert x.asnumpy().tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("value", "dtype"), [(2.0, ms.float32), (2, ms.int32), (ARRAY, ms.float32), ([1, 2], ms.int64)]
)
def test_parameter(value, dtype):
    parameter = Parameter(value)
    assert parameter.dtype is dtype
    assert isinstance(parameter, torch.nn.Parameter)
    assert type(parameter * 2) is Tensor
    assert type(parameter.value()) is Tensor


def test_parameter_of_a_bool():
    with pytest.raises(TypeError, match="Parameter: the data cannot be a bool"):
        Parameter(True)


def test_set_data():
    parameter = Parameter(Tensor([1.0, 2.0]), name="w")
    assert parameter.set_data(Tensor([3, 4])) is parameter
    assert parameter.asnumpy().tolist() == [3.0, 4.0]
    with pytest.raises(ValueError, match=r"Parameter w: set_data needs data of shape \(2,\), but got \(3,\)"):
        parameter.set_data(Tensor([1.0, 2.0, 3.0]))
    parameter.set_data(Tensor([1.0, 2.0, 3.0]), slice_shape=True)
    assert parameter.shape == (3,)
    assert parameter.requires_grad


@pytest.mark.parametrize(
    ("sizes", "shape"), [({}, (-2,)), ({"shape": [None, 3]}, (-1, 3)), ({"shape": (2,)}, (2,))]
)
def test_a_tensor_without_data_has_mindspore_s_shape(sizes, shape):
    stands_for_an_input = Tensor(dtype=ms.float16, **sizes)
    assert stands_for_an_input.shape == shape
    assert stands_for_an_input.dtype == ms.float16
    assert repr(stands_for_an_input).startswith(f"Tensor(shape={list(shape)}, dtype=Float16")


def test_parameter_tuple():
    pair = ParameterTuple([Parameter(1.0, "a"), Parameter(2.0, "b")])
    copies = pair.clone("moments", init="zeros")
    assert [p.name for p in copies] == ["moments.a", "moments.b"]
    assert [float(p) for p in copies] == [0.0, 0.0]
    with pytest.raises(TypeError, match=r"ParameterTuple\[0\]: must be a Parameter, but got Tensor"):
        ParameterTuple([Tensor(1.0)])


def test_dtype_functions():
    assert ms.dtype_to_nptype(ms.float32) is np.float32
    assert ms.pytype_to_dtype(np.int32) == ms.int32
    assert ms.pytype_to_dtype(float) == ms.float64
    assert {torch.float32: 1}[ms.float32] == 1
    with pytest.raises(TypeError, match="must be one of Bool, Int8"):
        ms.dtype.from_torch(torch.float8_e5m2)
    with pytest.raises(TypeError, match="dtype: must be a known name"):
        Tensor([1], "floaty")
