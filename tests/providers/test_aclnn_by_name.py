"""aclnn names that PyTorch's operators do not run: what the error says."""

import sys

import pytest

from polyop.providers.aclnn import launch
from polyop.providers.aclnn.through_aten import row_of


@pytest.mark.parametrize("name", ["Bernoulli", "Multinomial", "Dropout", "RandLike"])
def test_random_numbers_are_refused(name):
    with pytest.raises(
        NotImplementedError, match=rf"aclnn{name}: draws random numbers, by a seed.*\n  register it"
    ):
        launch(name, [])


def test_without_pytorch_the_error_says_that_it_would_help(monkeypatch):
    row_of.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        NotImplementedError,
        match=r"aclnnSelu: .*this has none\n  .*install PyTorch \(pip install torch\).*; or register it",
    ):
        launch("Selu", [])
