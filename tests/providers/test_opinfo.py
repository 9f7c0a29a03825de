"""A part of PyTorch's test database through ``polyop.aten``, and the table of what is refused.

The whole is `make sweep`. The part is drawn by a seed, so a failure comes again.
"""

import random
import warnings

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
jax = pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("expecttest", reason="PyTorch's test database imports expecttest, which is not installed")

PART = 30


@pytest.fixture(scope="module")
def database():
    """The database; a fixture, because its import takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opinfo import entries
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield entries
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def table(database):
    """The outcomes that are no success, by entry and mode."""
    from opinfo import sweep

    return sweep.table()


@pytest.mark.slow(3)
@pytest.mark.parametrize("number", range(PART))
def test_an_entry_is_right_or_refused_as_the_table_says(database, table, number):
    name = random.Random(2).sample(sorted(database.entries()), PART)[number]
    outcomes = {mode: database.outcome(database.entries()[name], mode) for mode in database.MODES}
    assert outcomes == {mode: table.get((name, mode), "") for mode in database.MODES}, name


def test_the_table_has_entries_of_pytorch_and_no_wrong_results(database, table):
    assert {name for name, _ in table} <= set(database.entries())
    categories = {category for _, category in database.CATEGORIES} | set(database.NOT_COUNTED)
    assert set(table.values()) <= categories


def test_the_shares_of_what_is_right_are_not_smaller(database, table):
    for mode, least in {"numpy": 99, "jax": 99, "jit": 97.5, "grad": 99}.items():
        outcomes = [table.get((name, mode), "") for name in database.entries()]
        counted = [outcome for outcome in outcomes if outcome not in database.NOT_COUNTED]
        assert 100 * counted.count("") >= least * len(counted), mode
