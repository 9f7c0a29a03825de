"""Deployment graphs: operator prototypes (REG_OP), the Python that builds GE graphs, torchair converters.

ONNX is in :mod:`polyop.graph.onnx`.

>>> from polyop.graph import parse
>>> [found] = parse("REG_OP(Not).INPUT(x, DT_BOOL).OUTPUT(y, DT_BOOL).OP_END_FACTORY_REG(Not)")
>>> found.inputs[0].name
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
