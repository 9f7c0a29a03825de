"""A call of an operator in a graph, as an ``ops.Custom`` of MindSpore with fixed attributes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import mindspore
import numpy as np
from mindspore import ops
from mindspore.ops.signature import make_sig, sig_rw
from mindspore.train import serialization

from ... import _core
from ...call import registry
from ...call.bound import BoundOperator
from ...call.flat_tensors import with_tensors
from ...call.foreign import call_text, flatten, written_tensors
from ...call.host import load
from ...call.operator import Operator
from ...call.prepare import prepare
from ...core.derived_names import derived_from
from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError, HostError, PolyopError, UnsupportedError
from ...core.infer import ShapeAndDtype
from ...core.parse import parse
from ...core.schema import Schema
from ...core.spec import Spec
from ...kernels.python import TensorKernel
from . import bprop, unknown_sizes
from .tensors import MS_DTYPES
from .unknown_sizes import Shape

_EXPORT = serialization._save_mindir.__code__  # noqa: SLF001 - the function that writes MindIR files

FUNCTION = "polyop_launch"
"""The function of the native core that MindSpore launches for every call (csrc/hosts/mindspore_extra.cc)."""

_operators: dict[str, Any] = {}  # by the text of a call: kept alive because a graph may run at any time


class Launch(ops.Custom):  # type: ignore[misc]
    """A call with fixed attributes. It returns a tuple: the new outputs, then what it wrote."""

    silent = False
    """Whether the operator has no outputs: what the launch returns is not the operator's."""

    @classmethod
    def of(cls, bound: Any, arguments: tuple[Any, ...]) -> Launch:
        """Return the launch of a call with bound arguments; any object may stand for a tensor."""
        silent = not bound.schema.returns and not bound.schema.mutates
        if silent:
            bound, arguments = with_a_result(bound, arguments)
        launch = cls._new()
        launch.fill(bound, arguments)
        launch.silent = silent
        if launch.written or silent:
            launch.pass_by_reference()
        return launch

    @classmethod
    def _new(cls) -> Launch:
        return cls(f"{_core.__file__}:{FUNCTION}", out_shape=(), out_dtype=(), func_type="aot")

    def by_value(self) -> Launch:
        """Return the same launch without a side effect, for ``ms.vmap``: it only returns what it wrote."""
        launch = self._new()
        launch.fill(self.bound, self.arguments)
        launch.silent = self.silent
        return launch

    def fill(self, bound: Any, arguments: tuple[Any, ...]) -> None:
        """Set the attributes of the launch, and find its outputs among the schema's returns."""
        schema: Schema = bound.schema
        self.bound, self.arguments = bound, arguments
        self.inputs = sum(1 for _ in flatten(schema, arguments))
        self.name_call(with_rules=False)
        self.add_prim_attr("polyop_inputs", self.inputs)
        self.dtypes: list[Any] | None = None  # of the tensors, for unknown sizes
        self.bprop: Any = None
        self.ordered = False  # whether it has a side effect, so MindSpore keeps its order
        indices = with_tensors(schema, arguments, itertools.count())
        written_indices = written_tensors(schema, indices)
        fresh = [] if schema.returns_list else list(schema.fresh)
        # (index of the tensor, index of its new value among the launch's outputs)
        self.written = [(index, len(fresh) + k) for k, index in enumerate(written_indices)]
        # per return, its index among the launch's outputs; empty if the return is one list of all of them
        self.return_indices: list[int] = []
        output_of = dict(self.written)
        self.output_count = len(fresh) + len(written_indices)
        for i in [] if schema.returns_list and not schema.mutates else range(len(schema.returns)):
            output = fresh.index(i) if i in fresh else output_of.get(_single(indices[schema.alias_of(i)]))
            if output is None:
                rule = "returns a list of tensors that it writes, which MindSpore's graphs cannot have"
                raise UnsupportedError(bound.name, rule, where=bound.operator.origin)
            self.return_indices.append(output)

    def name_call(self, *, with_rules: bool) -> None:
        """Set the text that names the call, which the native core reads when the graph runs."""
        self.text = call_text(self.bound, self.arguments, with_rules=with_rules)
        _operators[self.text] = self.bound
        self.add_prim_attr("polyop_call", self.text)

    def pass_by_reference(self) -> None:
        """Make MindSpore pass the tensors themselves, and keep this launch in program order.

        Otherwise MindSpore copies a tensor that is read here and written later, and a copy of a
        float64 tensor goes through float32.
        """
        self.ordered = True
        self.add_prim_attr("side_effect_mem", True)
        indices = {index for index, _ in self.written}
        modes = (sig_rw.RW_WRITE if i in indices else sig_rw.RW_READ for i in range(self.inputs))
        self.set_signatures(tuple(make_sig(f"a{i}", mode) for i, mode in enumerate(modes)))

    def get_bprop(self) -> Any:
        """Return the gradient function, made when MindSpore first asks for it."""
        if self.bprop is None:
            self.bprop = bprop.bprop_of(self)
            self.name_call(with_rules=True)  # a kept graph has the gradient too, which an edit can change
            if self.dtypes is not None:
                self.register_sizes()
        return self.bprop

    def __infer__(self, *tensors: Any) -> dict[str, Any]:
        """Return shapes and dtypes of the outputs, in the form that MindSpore expects.

        Each tensor comes as a dict with its shape, dtype, and value if it is a constant.
        """
        if _is_exported() and registry.known(self.bound.name) is None:
            rule = "cannot be written to a MindIR file: another process would not find it"
            hint = "a gradient rule that MindSpore's compiler can read needs no such operator"
            raise UnsupportedError(self.bound.name, rule, where=self.bound.operator.origin, hint=hint)
        for number, _ in self.written:
            if tensors[number]["value"] is not None:
                rule = "is written and is a constant of the graph, where what reads it sees the old values"
                hint = (
                    "a tensor of the program: pass it as an argument of its own (or in ms.mutable(list)), "
                    "or make it a Parameter with requires_grad=False; one of the graph: make it of an input, "
                    "as ops.zeros_like(x) does"
                )
                subject = f"{self.bound.name}: tensor {number}"
                raise UnsupportedError(subject, rule, where=self.bound.operator.origin, hint=hint)
        if self.dtypes is None:
            for i, one in enumerate(tensors):
                self.spec_of(i, one["shape"], one["dtype"])  # raises for an unknown size
        kinds = [self.dtype_of(i, one["dtype"]) for i, one in enumerate(tensors)]
        shapes, dtypes = self._inferred([tuple(one["shape"]) for one in tensors], kinds)
        for kind in dtypes:
            if kind.name not in MS_DTYPES:
                rule = f"gives a dtype that MindSpore's tensors do not have: {', '.join(MS_DTYPES)}"
                raise ArgumentTypeError(self.bound.name, rule, kind.name)
        return {
            "shape": tuple(map(list, shapes)),
            "dtype": tuple(mindspore.TensorType(MS_DTYPES[kind.name]) for kind in dtypes),
            "value": None,
        }

    def for_unknown_sizes(self, dtypes: Sequence[Any]) -> Launch:
        """Return the same launch for tensors of these dtypes, of whose sizes some are known when it runs.

        MindSpore asks the native core for its shapes, which asks :mod:`.unknown_sizes`.
        """
        launch = self.by_value()
        launch.dtypes = [self.dtype_of(i, kind) for i, kind in enumerate(dtypes)]
        attributes = {"cpp_infer_shape": True, "multi_output": True, "reg_op_name": self.bound.name}
        for name, value in attributes.items():
            launch.add_prim_attr(name, value)
        launch.register_sizes()
        return launch

    def register_sizes(self) -> None:
        """Make this launch the one that the native core asks for shapes, by the names of call and dtypes."""
        assert self.dtypes is not None  # made by for_unknown_sizes
        names = ",".join(kind.name for kind in self.dtypes)
        self.add_prim_attr("polyop_dtypes", names)
        unknown_sizes.register(self.text, names, self)

    def output_shapes(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Return the shapes of the outputs, where some sizes may be unknown."""
        assert self.dtypes is not None  # made by for_unknown_sizes
        return self._inferred(shapes, self.dtypes)[0]

    def _inferred(self, shapes: Sequence[Shape], kinds: Sequence[Any]) -> tuple[list[Shape], list[Any]]:
        """Return the shapes and the dtypes of the outputs."""
        dtypes: list[Any] = []

        def infer(shapes: Sequence[Shape]) -> list[Shape]:
            specs = self.output_specs([Spec(s, d, "cpu") for s, d in zip(shapes, kinds, strict=True)])
            dtypes[:] = [spec.dtype for spec in specs]
            return [spec.shape for spec in specs]

        return unknown_sizes.shapes_for(shapes, infer), dtypes

    def output_specs(self, specs: Sequence[Spec]) -> list[Spec]:
        """Return the specs of the outputs, for those of the tensors."""
        bound = self.bound
        arguments = with_tensors(bound.schema, self.arguments, specs)
        operator = bound.operator
        if hasattr(bound, "refine_schema"):
            bound.refine_schema(arguments)
        if bound.operator.schema != operator.schema:
            rule = "writes an argument in place, which was not known before this call"
            hint = "call it once on tensors before the graph is compiled"
            raise HostError(bound.name, rule, where=operator.origin, hint=hint)
        prepared = prepare(bound.operator, arguments, infer=True)
        return [*prepared.outputs, *written_tensors(bound.schema, arguments)]

    def spec_of(self, number: int, sizes: Any, kind: Any) -> Spec:
        """Return the spec of a tensor that the compiler describes; raises for an unknown size or dtype."""
        if not unknown_sizes.is_known(sizes):
            rule = "must have sizes that are known when the graph is compiled"
            hint = (
                "where the operator writes an argument, has no outputs, or runs under ms.vmap, "
                "and in the gradient of a loop kernel or of a C++ module"
            )
            subject, where = f"{self.bound.name}: tensor {number}", self.bound.operator.origin
            raise UnsupportedError(subject, rule, str(sizes), where=where, hint=hint)
        return Spec(tuple(sizes), self.dtype_of(number, kind), "cpu")

    def dtype_of(self, number: int, kind: Any) -> Any:
        """Return the dtype of a tensor that the compiler describes; raises for one that no kernel takes."""
        element = kind.element_type() if hasattr(kind, "element_type") else kind
        try:
            return dtype(element)
        except PolyopError:
            rule = f"must be one of {', '.join(MS_DTYPES)}"
            subject = f"{self.bound.name}: tensor {number}: dtype"
            raise ArgumentTypeError(subject, rule, str(element)) from None


def _single(index: Any) -> int:
    return -1 if isinstance(index, tuple) else int(index)  # a tuple: a list of tensors is returned


def _is_exported() -> bool:
    """Whether the graph is compiled for a MindIR file."""
    frame: Any = sys._getframe()  # noqa: SLF001 - MindSpore tells it in no other way
    while frame is not None and frame.f_code is not _EXPORT:
        frame = frame.f_back
    return frame is not None


def with_a_result(bound: Any, arguments: tuple[Any, ...]) -> tuple[BoundOperator, tuple[Any, ...]]:
    """Return an operator that makes this call and returns a number, and its arguments.

    MindSpore leaves out a node of a graph that has no result.
    """
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
