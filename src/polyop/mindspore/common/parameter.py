"""``mindspore.common.parameter``: another name for what ``mindspore`` has."""

from ..parameter import Parameter, ParameterTuple

__all__ = ["Parameter", "ParameterTuple"]
