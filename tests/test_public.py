"""The public face: what is documented can be imported, and nothing else is promised."""

import pytest

import polyop


def test_names_exist_and_have_docstrings():
    for name in polyop.__all__:
        assert getattr(polyop, name).__doc__, name


def test_names_are_sorted_and_complete():
    assert list(polyop.__all__) == sorted(polyop.__all__)
    seeds = {"Custom", "CustomRegOp", "DataType", "custom_info_register"}
    assert seeds <= set(polyop.__all__)


def test_a_renamed_name_works_and_says_its_new_name():
    with pytest.warns(DeprecationWarning, match=r"polyop.library is now polyop.prebuilt"):
        assert polyop.library is polyop.prebuilt
