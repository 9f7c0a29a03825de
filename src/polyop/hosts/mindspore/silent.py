"""Give an operator without outputs a result in a graph: MindSpore removes nodes that have none."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...call import registry
from ...call.bound import BoundOperator
from ...call.flat_tensors import with_tensors
from ...call.foreign import flatten
from ...call.host import load
from ...call.operator import Operator
from ...core.derived_names import derived_from
from ...core.infer import ShapeAndDtype
from ...core.parse import parse
from ...kernels.tensors import TensorKernel


def with_a_result(bound: Any, arguments: tuple[Any, ...]) -> tuple[BoundOperator, tuple[Any, ...]]:
    """Return an operator that makes this call and returns a number, and its arguments."""
    operator: Operator = bound.operator
    namespace = operator.schema.namespace

    def run(inputs: Any) -> tuple[Any, ...]:
        host = load("numpy")
        assert host is not None
        host.call(bound, with_tensors(bound.schema, arguments, inputs))
        return (np.zeros((), np.int32),)

    name = registry.unique(namespace, f"{operator.schema.name}_done")
    done = Operator(
        schema=derived_from(bound.schema, "silent", parse(f"{namespace}::{name}(Tensor[] inputs) -> Tensor")),
        infer=ShapeAndDtype((), "int32", 1, operator.name),
        kernels=(TensorKernel(run, f"a call of {operator.name}"),),
        part_of=operator.part_of or operator.name,
        origin=operator.origin,
    )
    return BoundOperator(done, register=False), (tuple(flatten(bound.schema, arguments)),)
