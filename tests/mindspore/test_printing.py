"""Printing, against what MindSpore's documents show."""

import numpy as np
import pytest

import polyop.mindspore as ms
from polyop.mindspore import Tensor

# values, dtype, what repr() shows
REPR = [
    (6.0, ms.float32, "Tensor(shape=[], dtype=Float32, value= 6)"),
    (-1.26986, ms.float32, "Tensor(shape=[], dtype=Float32, value= -1.26986)"),
    (1e-9, ms.float32, "Tensor(shape=[], dtype=Float32, value= 1e-09)"),
    (True, ms.bool_, "Tensor(shape=[], dtype=Bool, value= True)"),
    ([1, 20, -3], ms.int64, "Tensor(shape=[3], dtype=Int64, value= [ 1, 20, -3])"),
    (
        [[0.298142403, 0.447213590], [0.149071202, 0.298142403]],
        ms.float32,
        (
            "Tensor(shape=[2, 2], dtype=Float32, value=\n"
            "[[ 2.98142403e-01,  4.47213590e-01],\n"
            " [ 1.49071202e-01,  2.98142403e-01]])"
        ),
    ),
    (
        [[0, 6], [15, -4]],
        ms.float32,
        (
            "Tensor(shape=[2, 2], dtype=Float32, value=\n"
            "[[ 0.00000000e+00,  6.00000000e+00],\n"
            " [ 1.50000000e+01, -4.00000000e+00]])"
        ),
    ),
    (
        [[[1, 2]], [[3, 4]]],
        ms.float16,
        (
            "Tensor(shape=[2, 1, 2], dtype=Float16, value=\n"
            "[[[ 1.0000e+00,  2.0000e+00]],\n"
            " [[ 3.0000e+00,  4.0000e+00]]])"
        ),
    ),
    ([True, False], ms.bool_, "Tensor(shape=[2], dtype=Bool, value= [ True, False])"),
    ([1.5, 2], ms.bfloat16, "Tensor(shape=[2], dtype=BFloat16, value= [1.5,   2])"),
    ([], ms.float32, "Tensor(shape=[0], dtype=Float32, value= )"),
]


@pytest.mark.parametrize(("values", "dtype", "text"), REPR)
def test_repr(values, dtype, text):
    assert repr(Tensor(values, dtype)) == text


def test_more_than_six_entries_are_left_out_of_a_matrix():
    shown = repr(Tensor(np.arange(72).reshape(8, 9))).splitlines()
    assert shown[1] == "[[ 0,  1,  2 ...  6,  7,  8],"
    assert shown[3:6] == [" [18, 19, 20 ... 24, 25, 26],", " ...", " [45, 46, 47 ... 51, 52, 53],"]


def test_a_vector_of_floats_has_twelve_on_a_line():
    lines = repr(Tensor(np.arange(30, dtype=np.float32))).splitlines()
    assert [line.count("e+") for line in lines] == [12, 12, 6]


def test_a_vector_is_whole_up_to_a_thousand():
    assert "..." not in repr(Tensor(np.arange(1000)))
    assert repr(Tensor(np.arange(1001))).endswith("[   0,    1,    2 ...  998,  999, 1000])")


def test_str_is_numpy_s():
    assert str(Tensor(12.0)) == "12.0"
    assert str(Tensor([[0.0, -0.001], [-0.002, 1.0]])) == "[[ 0.    -0.001]\n [-0.002  1.   ]]"
    assert f"{Tensor(2.5):.2f} {Tensor([1, 2])}" == "2.50 [1 2]"


def test_containers_show_the_repr():
    assert str((Tensor(6.0),)) == "(Tensor(shape=[], dtype=Float32, value= 6),)"


def test_parameter():
    expected = "Parameter (name=scale, shape=(2,), dtype=Float32, requires_grad=True)"
    parameter = ms.Parameter(Tensor([1.0, 2.0]), name="scale")
    assert repr(parameter) == str(parameter) == expected


def test_dtypes():
    assert [str(x) for x in (ms.float32, ms.bool_, ms.bfloat16, ms.uint8)] == [
        "Float32",
        "Bool",
        "BFloat16",
        "UInt8",
    ]
    assert repr((ms.float32,)) == "(mindspore.float32,)"


def test_a_tensor_without_data_says_so():
    shown = repr(Tensor([1.0, 2.0]).to("meta"))
    assert shown == "Tensor(shape=[2], dtype=Float32, value= <uninitialized>)"
