"""An operator of ``polyop.operator`` whose ``dims=`` has sizes that depend on data: ``k<=n``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ..call import registry
from ..call.batching import BatchedCall
from ..call.bound import BoundOperator
from ..call.host import load, specs
from ..call.operator import Operator
from ..call.padded import check_fill_value, padded_schema, refuse_data_sizes
from ..call.rule import Rule
from ..core.dims.dims import Dims
from ..core.dims.entry import AtMost, Entry, Name
from ..core.dims.infer import FromDims
from ..core.errors import SchemaError, UnsupportedError
from ..core.schema import Schema
from ..core.spec import Spec
from ..core.tracebacks import quiet
from ..core.untraced import untraced
from ..kernels.python import PythonKernel, empty


class DataSizedOperator(BoundOperator):
    """An operator with outputs whose size only the kernel knows.

    A plain call returns outputs of the real size. A call with ``size=`` goes to ``padded``, the operator with
    ``size`` and ``fill_value``, whose sizes do not depend on data.
    """

    runs_on_data = True
    takes_data_sizes = True

    def __init__(self, operator: Operator) -> None:
        """Bind the operator and its padded form; raises ``UnsupportedError`` or ``SchemaError``."""
        _check(operator)
        batch = _NoBatch(operator) if operator.batch is None else operator.batch
        super().__init__(dataclasses.replace(operator, batch=batch))
        try:
            self.padded = BoundOperator(padded_operator(operator))
        except Exception:
            registry.discard(self)  # after a failed definition the name is free
            raise

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs. torch.compile traces this function."""
        if "size" in kwargs:
            return self.padded(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def vjp(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the output of the real size, and the function from its gradient to input gradients."""
        if "size" in kwargs:
            return self.padded.vjp(*args, **kwargs)
        return super().vjp(*args, **kwargs)

    def check_traced(self, arguments: tuple[Any, ...]) -> None:
        """Raise ``UnsupportedError``: a program needs the sizes before the kernel runs."""
        del arguments
        refuse_data_sizes(self.operator, "a compiled program needs sizes before the kernel runs")

    @untraced
    @quiet
    def _slow(self, /, *args: Any, **kwargs: Any) -> Any:
        if "size" in kwargs:
            return self.padded(*args, **kwargs)
        return super()._slow(*args, **kwargs)


class _NoBatch(Rule):
    """The batch rule that refuses: samples have outputs of different sizes."""

    batching = "refused: the size of an output depends on data, so samples have different sizes"

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def __call__(self, in_dims: Sequence[Any], inputs: Sequence[Any], call: BatchedCall) -> NoReturn:
        """Raise ``UnsupportedError``."""
        del in_dims, inputs, call
        refuse_data_sizes(self.operator, "vmap needs one size for all samples")
        raise AssertionError(self.operator.name)


def padded_operator(operator: Operator) -> Operator:
    """Return the operator with ``size`` and ``fill_value``, which has no gradient.

    Outputs are cut to the size. What is shorter is filled: with ``fill_value`` in the first output, with 0
    in others.
    """
    dims, kernel = operator.dims, operator.kernels[0]
    assert dims is not None
    assert isinstance(operator.infer, FromDims)
    assert isinstance(kernel, PythonKernel)
    schema = padded_schema(operator.schema, operator.schema.namespace, f"{operator.schema.name}_padded")
    outputs = tuple(map(_with_size, dims.outputs))
    sized = dataclasses.replace(dims, operator=schema.qualified_name, outputs=outputs)
    return Operator(
        schema=schema,
        infer=_PaddedSpecs(operator.infer, sized, schema),
        kernels=(_PaddedKernel(kernel.function, kernel.device, accepts=kernel.accepts, first=operator),),
        dims=sized,
        batch=None,
        attributes=operator.attributes,
        autocast=operator.autocast,
        doc=f"{operator.schema}, with outputs that are cut or filled to a size.",
        origin=operator.origin,
    )


class _PaddedSpecs(FromDims):
    """The infer rule of a padded operator; it also checks the value that fills."""

    def __init__(self, rule: FromDims, dims: Dims, schema: Schema) -> None:
        super().__init__(dims, schema)
        self.dtypes = rule.dtypes

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError`` or ``ArgumentValueError``."""
        outputs = super().__call__(arguments)
        check_fill_value(self.schema, arguments[-1], outputs[0].dtype)
        return outputs


@dataclass(eq=False)
class _PaddedKernel(PythonKernel):
    """The kernel of ``first``, whose outputs are cut or filled to the size that the call gives."""

    first: Operator | None = None

    def call(
        self,
        schema: Schema,
        arguments: Sequence[Any],
        outputs: Sequence[Spec],
        fixed: Mapping[str, Any],
        new: Callable[[Spec], Any] = empty,
    ) -> list[Any]:
        """Return the new outputs, allocated by ``new``; raises what the kernel of ``first`` raises."""
        del schema
        *inputs, _, fill = arguments
        first, host = self.first, load("numpy")
        assert first is not None
        assert host is not None
        real = super().call(first.schema, inputs, first.infer(specs(host, first, inputs)), fixed)
        padded = []
        for number, (array, spec) in enumerate(zip(real, outputs, strict=True)):
            result = new(spec)
            result[...] = 0 if number else fill
            part = tuple(map(slice, map(min, array.shape, spec.shape)))
            result[part] = array[part]
            padded.append(result)
        return padded


def _with_size(entry: Entry) -> Entry:
    """Return the entry with ``size`` in place of each size that depends on data."""
    sizes = tuple(Name("size") if isinstance(size, AtMost) else size for size in entry.dimensions)
    return dataclasses.replace(entry, dimensions=sizes)


def _check(operator: Operator) -> None:
    subject, where = operator.name, operator.origin
    kernel = next((k for k in operator.kernels if not isinstance(k, PythonKernel)), None)
    if kernel is not None:
        rule = "has a size that depends on data, which only a kernel that is a Python function can have"
        raise UnsupportedError(subject, rule, str(kernel), where=where, hint="wrap it in a Python function")
    for name in ("size", "fill_value"):
        if any(argument.name == name for argument in operator.schema.arguments):
            rule = f"has an argument {name}, which calls of an operator whose sizes depend on data add"
            raise SchemaError(subject, rule, where=where, hint="give the argument another name")
    if operator.dims is not None and "size" in {*operator.dims.names, *operator.attributes}:
        rule = "has a dimension size, which calls of an operator whose sizes depend on data add"
        raise SchemaError(subject, rule, where=where, hint="give the dimension another name")
