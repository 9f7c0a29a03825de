import collections

import pytest

from polyop.core.dtypes import dtype
from polyop.core.information.data_types import MEMBERS, PREFIXES, SUFFIXES, DataType


def test_there_are_204_members_and_dir_lists_them():
    public = [name for name in dir(DataType) if not name.startswith("_")]
    assert len(public) == 204
    assert set(public) == set(MEMBERS)


def test_counts_per_dtype():
    counts = collections.Counter(member[0] for member in MEMBERS.values())
    assert counts == {
        "": 2, "bool": 13, "int8": 16, "uint8": 16, "int16": 13, "uint16": 13, "int32": 15, "uint32": 13, "int64": 13,
        "uint64": 13, "float16": 20, "float32": 20, "float64": 13, "bfloat16": 20, "complex64": 2, "complex128": 2,
    }  # fmt: skip


@pytest.mark.parametrize(("name", "member"), [
    ("None_None", ("", "")),
    ("None_Default", ("", "DefaultFormat")),
    ("F32_None", ("float32", "")),
    ("F32_Default", ("float32", "DefaultFormat")),
    ("F16_5HD", ("float16", "NC1HWC0")),
    ("U8_FracZ", ("uint8", "FRACTAL_Z")),
    ("BOOL_ChannelLast", ("bool", "ChannelLast")),
    ("I32_NCDHW", ("int32", "NCDHW")),
    ("I8_NC1HWC0", ("int8", "NC1HWC0")),
    ("BF16_FracZNLSTM", ("bfloat16", "FRACTAL_ZN_LSTM")),
    ("F16_FracZNRNN", ("float16", "FRACTAL_ZN_RNN")),
    ("F32_ND_RNNBIAS", ("float32", "ND_RNN_BIAS")),
    ("I64_Default_Tuple", ("int64", "DefaultFormat", "tuple")),
    ("C64_Default_Tuple", ("complex64", "DefaultFormat", "tuple")),
    ("F64_Default_List", ("float64", "DefaultFormat", "list")),
])  # fmt: skip
def test_members(name, member):
    assert getattr(DataType, name) == member


def test_members_that_do_not_exist_upstream_do_not_exist_here():
    for name in ("C64_None", "I16_NCDHW", "F64_DHWCN", "I32_NC1HWC0", "None_NCHW", "BOOL_NDC1HWC0"):
        assert not hasattr(DataType, name), name


def test_every_dtype_is_one_of_ours_and_every_suffix_is_used():
    for name, _ in PREFIXES.values():
        assert not name or dtype(name).name == name
    assert {suffix for _, suffixes in PREFIXES.values() for suffix in suffixes} == set(SUFFIXES)


def test_an_unknown_member_lists_the_nearest():
    with pytest.raises(AttributeError, match="no member 'F32_Defalt'; the nearest are F32_Default"):
        DataType.F32_Defalt
