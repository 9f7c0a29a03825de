"""Texts of values in errors: whole where they are short, cut where they are long."""

from polyop.core.limits import shown


def test_a_value_of_a_few_lines_is_shown_whole():
    lines = ["a" * 90, "b" * 90, "c" * 90]
    assert shown(lines) == repr(lines)


def test_a_longer_value_is_cut():
    lines = ["a" * 90] * 5
    assert shown(lines) == f"{repr(lines)[:400]}..."
