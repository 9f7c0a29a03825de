"""A function of a C++ module, bound as an operator that programs can call."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...call.bound import BoundOperator
from ...call.host import find_host, specs
from ...call.operator import Operator
from ...call.overlap import Layout, check_apart, check_overlap
from ...call.prepare import normalise
from ...core.dims.dims import Dims
from ...core.dims.infer import infer_from_dims
from ...core.errors import ArgumentTypeError, InferError, KernelError
from ...core.infer import FromSpecs
from ...core.origin import Origin
from ...core.schema import Return, Schema, alias_names
from ...core.spec import are_numbers
from ...core.tracebacks import quiet
from ...core.untraced import untraced
from ...kernels.module.function_table import ModuleFunction
from ...kernels.module.infer import ModuleBesideDims, ModuleInfer, per_argument
from ...kernels.module.kernel import Derived, ModuleKernel
from ...rules.dims import with_dims_batch
from ...rules.module.pure_operators import make_backward, make_saving
from ...rules.module.recorded import Recorded
from ...rules.module.second import saved_again
from .dims import Notation, with_marks


class ModuleOperator(BoundOperator):
    """An operator whose schema, shapes and gradient come from a C++ function.

    The C++ signature does not show which arguments the function writes, or which outputs are arguments.
    The first call shows it, and the schema is corrected then.
    """

    is_module = True

    def __init__(
        self,
        function: ModuleFunction,
        path: Path,
        *,
        device: str = "cpu",
        infer: Callable[..., Any] | str | None = None,
        dims: Notation | None = None,
        origin: Origin | None = None,
    ) -> None:
        """Bind a function of the module at ``path``; ``infer`` as in :func:`polyop.operator`."""
        self.signature = function.signature
        self.author_infer = infer
        schema = function.signature.schema
        kernel = ModuleKernel(path, function.name, function.address, function.signature, schema, device)
        recorded = Recorded(kernel)
        operator = Operator(
            schema=schema,
            infer=self._rule(kernel, schema, None),
            kernels=(kernel,),
            gradient=recorded,  # type: ignore[arg-type]  # hosts look for this kind of rule
            unpacks=function.signature.unpacks,
            doc=function.doc,
            origin=origin,
        )
        if dims is not None:
            operator = self._with_dims(operator, dims)
        super().__init__(operator)
        backward = make_backward(self)
        gradient: Any = dataclasses.replace(
            recorded,
            backward=backward,
            saving_part=make_saving(self, backward),
            again=functools.partial(saved_again, self.name, kernel),
        )
        self.update(dataclasses.replace(self.operator, gradient=gradient))

    def set_dims(self, notation: Notation) -> None:
        """Give the operator a rule in index notation, in place of the one that it has."""
        self.replace(self._with_dims(self.operator, notation))

    def _with_dims(self, operator: Operator, notation: Notation) -> Operator:
        self.author_infer = notation.infer
        kernel: Any = operator.kernels[0]
        infer = self._rule(kernel, operator.schema, notation.dims)
        return with_dims_batch(dataclasses.replace(operator, infer=infer, dims=notation.dims, batch=None))

    def refine_schema(self, arguments: tuple[Any, ...]) -> None:
        """Mark in the schema the arguments that the function writes, if they are not marked yet."""
        if self.operator.dims is not None and not are_numbers(arguments):
            return  # C++ takes no symbols: the outputs are those of dims=
        inputs, attributes = self.schema.tensors_and_attributes(arguments)
        kernel: Any = self.operator.kernels[0]
        try:
            derived = kernel.derive(inputs, attributes)
        except InferError:
            return  # the outputs depend on data; the native core calls _wrote() after the call
        flags = per_argument(inputs, derived.written)
        tensors = self.schema.tensor_arguments
        if any(flag and not a.type.writes for a, flag in zip(tensors, flags, strict=True)):
            self._replace_schema(_with_marks(self.schema, inputs, flags, derived))
        elif self.schema.mutates:
            self._check_aliases(inputs, flags, derived)

    def _check_aliases(self, inputs: Any, flags: list[bool], derived: Derived) -> None:
        """Raise ``KernelError`` if other outputs are arguments than in the call that corrected the schema."""
        schema = self.schema
        # for each flat tensor: the position of its argument if that is written, else -1
        owner: list[int] = []
        for position, value, flag in zip(schema.tensor_positions, inputs, flags, strict=True):
            owner += [position if flag else -1] * (len(value) if isinstance(value, tuple) else 1)
        aliases = [owner[alias] if alias >= 0 else -1 for alias in derived.aliases]
        declared = [
            schema.alias_of(i) if result.type.alias else -1 for i, result in enumerate(schema.returns)
        ]
        if aliases != declared:
            rule = f"for these arguments it writes or returns others than its schema says: {schema.signature}"
            hint = "bind two functions, one that works in place and one that does not"
            raise KernelError(self.name, rule, where=self.operator.kernels[0], hint=hint)

    def _replace_schema(self, schema: Schema) -> None:
        old: Any = self.operator.kernels[0]
        kernel = dataclasses.replace(old, schema=schema)
        gradient: Any = Recorded(kernel)
        operator = dataclasses.replace(
            self.operator, schema=schema, kernels=(kernel,), gradient=gradient, unpacks=False
        )
        if operator.dims is not None:
            notation = Notation(with_marks(operator.dims, schema), self.author_infer)
            return self.replace(self._with_dims(operator, notation))
        return self.replace(dataclasses.replace(operator, infer=self._rule(kernel, schema, None)))

    def _rule(self, kernel: ModuleKernel, schema: Schema, dims: Dims | None) -> Any:
        if dims is not None:
            rule = infer_from_dims(dims, schema, self.author_infer)
            return ModuleBesideDims(rule, self._own_rule(kernel, schema))
        if self.author_infer is None:
            return self._own_rule(kernel, schema)
        return FromSpecs(self.author_infer, schema)

    def _own_rule(self, kernel: ModuleKernel, schema: Schema) -> ModuleInfer:
        """Return the infer rule that the function itself gives."""
        return ModuleInfer(kernel, schema)

    @untraced
    @quiet
    def _prepare(self, arguments: tuple[Any, ...], rows: tuple[Any, ...] = ()) -> tuple[Any, bool] | None:
        host = find_host(self.operator, arguments)
        self.refine_schema(normalise(self.operator, specs(host, self.operator, arguments)))
        return super()._prepare(arguments, rows)

    @untraced
    @quiet
    def _slow(self, /, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self.as_schema_arguments(args, kwargs)
        return super()._slow(*args, **kwargs)

    def as_schema_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call, each list of lists of tensors as one list and its lengths."""
        return flatten_rows(self._nested_lists, args, kwargs) if self.signature.rows else (args, kwargs)

    @property
    def _nested_lists(self) -> tuple[tuple[int, str, str], ...]:
        names = [argument.name for argument in self.schema.arguments]
        return tuple((names.index(name), name, rows) for name, rows in self.signature.rows.items())

    @untraced
    @quiet
    def _failed(self, code: int, text: str, threw: bool, kernel: str) -> None:
        del code, threw
        raise KernelError(self.name, f"the C++ function failed: {text}", where=kernel)

    @untraced
    @quiet
    def _check_written(self, rows: list[tuple[str, int, tuple[int, ...], tuple[int, ...], int]]) -> None:
        # called by the native core before a call that writes a tensor which is not dense; each row has the
        # name of the argument, the address, the shape, the strides in elements and the size of an element
        for name, _, shape, strides, _ in rows:
            check_overlap(self.operator, name, shape, strides)
        written = [
            (name, Layout(address, shape, [size * step for step in strides], size))
            for name, address, shape, strides, size in rows
        ]
        check_apart(self.operator, written)

    @untraced
    def _wrote(self, written: tuple[Any, ...]) -> None:
        # called by the native core, with written tensors that the schema does not mark
        torch = sys.modules.get("torch")
        for tensor in written:
            if torch is not None and isinstance(tensor, torch.Tensor):
                torch.autograd.graph.increment_version(tensor)


def flatten_rows(
    rows: tuple[tuple[int, str, str], ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, each list of lists of tensors as one list and its lengths."""
    positional, named = list(args), dict(kwargs)
    for position, name, lengths in rows:
        value = positional[position] if position < len(positional) else named.get(name)
        if lengths in named or value is None:
            continue
        if not all(isinstance(row, (list, tuple)) for row in value):
            rule = "must be a list of lists of tensors"
            raise ArgumentTypeError(f"argument {name}", rule, type(value).__name__)
        flat = [item for row in value for item in row]
        if position < len(positional):
            positional[position] = flat
        else:
            named[name] = flat
        named[lengths] = [len(row) for row in value]
    return tuple(positional), named


def _with_marks(schema: Schema, inputs: Any, flags: list[bool], derived: Derived) -> Schema:
    """Return the schema with an alias mark on each written argument and on each output that is one."""
    names = alias_names()
    marks: dict[int, str] = {}
    arguments, flat = list(schema.arguments), 0
    for position, value, flag in zip(schema.tensor_positions, inputs, flags, strict=True):
        if flag:
            mark = f"{next(names)}!"
            kind = dataclasses.replace(arguments[position].type, alias=mark)
            arguments[position] = dataclasses.replace(arguments[position], type=kind)
            marks[flat] = mark
        flat += len(value) if isinstance(value, tuple) else 1
    tensor = Return(dataclasses.replace(schema.arguments[schema.tensor_positions[0]].type, suffixes=()))
    returns = tuple(
        dataclasses.replace(tensor, type=dataclasses.replace(tensor.type, alias=marks.get(alias, "")))
        for alias in derived.aliases
    )
    return dataclasses.replace(schema, arguments=tuple(arguments), returns=returns)
