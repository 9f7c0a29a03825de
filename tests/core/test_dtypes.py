import ml_dtypes
import numpy as np
import pytest

from polyop.core.dtypes import DTYPES, dtype, dtype_of_type_id
from polyop.core.errors import ArgumentTypeError


def test_names_codes_and_type_ids_are_unique():
    assert len({row.name for row in DTYPES}) == len(DTYPES)
    assert len({row.dlpack for row in DTYPES}) == len(DTYPES)
    numbers = [row.type_id for row in DTYPES if row.type_id]
    assert len(set(numbers)) == len(numbers)


def test_sizes_agree_with_dlpack_bits():
    for row in DTYPES:
        assert row.itemsize * 8 == row.dlpack[1], row


@pytest.mark.parametrize(
    "spelling", ["float32", "Float32", "torch.float32", "float", np.float32, np.dtype("f4"), np.dtype(">f4")]
)
def test_spellings_of_float32(spelling):
    assert dtype(spelling).name == "float32"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        (bool, "bool"),
        (int, "int64"),
        (float, "float64"),
        (ml_dtypes.bfloat16, "bfloat16"),
        ("half", "float16"),
    ],
)
def test_python_types_and_aliases(spelling, name):
    assert dtype(spelling).name == name


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("float33", "must be a known name, but got 'float33'\n  did you mean 'float32'"),
        ("flaot32", "must be a known name, but got 'flaot32'\n  did you mean 'float32'"),
        ("quad", "must be one of bool, int8, .*float8_e8m0fnu, but got 'quad'$"),
        (object(), "must be one that kernels take: bool, integers, float8 to float64, .*but got <object"),
        (np.dtype("U3"), "must be one that kernels take: .*but got dtype"),
        (None, "must be one that kernels take: .*but got None"),
        (3, "must be one that kernels take: .*but got 3"),
    ],
)
def test_anything_else_is_an_error_that_says_what_there_is(wrong, words):
    with pytest.raises(ArgumentTypeError, match=f"^dtype: {words}"):
        dtype(wrong)


def test_torch_dtypes_are_known():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for row in DTYPES:
        if hasattr(torch, row.name):
            assert dtype(getattr(torch, row.name)) is row


def test_type_ids_are_those_of_mindspore():
    assert [dtype_of_type_id(n).name for n in (30, 34, 43, 44)] == ["bool", "int32", "float32", "float64"]
    assert dtype_of_type_id(7) is None
