"""``mindspore.common.parameter``: ``Parameter`` and ``ParameterTuple`` under an older path."""

from ..parameter import Parameter, ParameterTuple

__all__ = ["Parameter", "ParameterTuple"]
