"""Deployment graphs: operator prototypes (REG_OP), and the Python functions that build GE graphs.

Converters for torchair are in :mod:`polyop.graph.torchair`, ONNX is in :mod:`polyop.graph.onnx`.

>>> from polyop.graph import parse
>>> [prototype] = parse("REG_OP(Not).INPUT(x, DT_BOOL).OUTPUT(y, DT_BOOL).OP_END_FACTORY_REG(Not)")
>>> prototype.inputs[0].name
'x'
"""

from __future__ import annotations

from .from_operator import prototype_of
from .generate import Generated, Skipped, generate
from .header import header
from .parse import parse
from .prototype import AttributeItem, Prototype, TensorItem, Types

__all__ = [
    "AttributeItem",
    "Generated",
    "Prototype",
    "Skipped",
    "TensorItem",
    "Types",
    "generate",
    "header",
    "parse",
    "prototype_of",
]
