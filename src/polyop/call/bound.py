"""The object that programs call: an operator, bound to the hosts that are present.

A plain call goes through the native core, which recognises the tensors, finds the kernel that is prepared for
their specs and runs it. Every other call comes to :meth:`BoundOperator._slow`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, cast

from .. import _core
from ..core import late, locks
from ..core.arguments import bind, check_kinds
from ..core.dtypes import DTYPES, dtype
from ..core.errors import ArgumentTypeError, UnsupportedError
from ..core.origin import Origin, calling_frame
from ..core.schema import MISSING, Schema
from ..core.signature import signature_of
from ..core.spec import Spec
from ..core.tracebacks import hide_own, quiet
from ..core.untraced import untraced
from ..kernels.base import KernelBase, LoopKernelBase
from . import presented, record, registry, tracing
from .failures import failure
from .host import GraphHost, Host, find_host, load, need, specs, start_early, torch_host
from .native_schema import alias_plan, letter
from .operator import Operator
from .pickled import reference
from .prepare import Prepared, normalise, prepare
from .rule import Rule, output_gradients
from .tracing import function_of

PLAIN, TUPLE, LIST = 0, 1, 2  # how the native core returns outputs (Pack in csrc/gather.h)

_core.set_dtypes([(row.name, *row.dlpack, row.numpy, row.type_id) for row in DTYPES])


class _Definition(type):
    """The class of the classes of operators: no other thread, and no fork, sees an operator half made."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make an operator, with ``locks.define`` held until the last constructor has ended.

        A class with ``constructor_compiles`` takes the lock itself, after it has compiled.
        """
        start_early()  # before the lock, which the thread that imports the host may need
        if cls.constructor_compiles:  # type: ignore[attr-defined]
            return super().__call__(*args, **kwargs)
        with locks.define:
            return super().__call__(*args, **kwargs)


class BoundOperator(_core.Call, metaclass=_Definition):
    """An operator that can be called on any host's tensors.

    >>> import numpy as np, polyop
    >>> double = polyop.operator("doc::double(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
    >>> double(np.array([1.0, 2.0]))
    array([2., 4.])
    """

    operator: Operator
    constructor_compiles = False
    by_signature = False
    """Whether the schema depends on the kinds of the arguments of a call."""
    is_module = False
    records: tuple[Any, ...] = ()
    """The parameters of a loop kernel that are records of attributes."""
    runs_on_data = False
    """Whether JAX runs its kernel at once, on the data, in a call outside of a compiled program."""
    takes_data_sizes = False
    """Whether ``dims=`` may have sizes that depend on data."""
    defined_in = ""
    """The name of the module that defined it, for other processes."""
    own_attributes: tuple[str, ...] = ()
    """What ``dir`` lists of a subclass alone."""
    name_note = ""
    """Why it has another name than the one that follows from its definition."""
    torch_overload: Any
    """The operator in ``torch.ops``, once the PyTorch host has registered it."""
    dtensor_call: Any = None
    """The function for plain calls with DTensors: bound arguments to new outputs. The PyTorch host sets it.

    It returns ``NotImplemented`` for calls that are not plain.
    """

    def __init__(self, operator: Operator, *, register: bool = True) -> None:
        """Bind an operator; with ``register``, under its name in the registry and in ``torch.ops``."""
        self._set(operator)
        load("numpy")  # not in the first call: a process that is forked during an import waits for ever
        old = registry.add(self) if register else None
        try:
            # after add(): a host that another thread starts now attaches this operator itself
            host = torch_host()
            if host is not None:  # not in the first call, which may be inside torch.compile
                host.attach(self)
            if old is not None:
                old.retire()
            if host is not None and register:
                host.offer(self)  # torch.ops.<namespace>.<name> exists from now on
        except Exception:
            if register:
                registry.discard(self)  # after a failed definition the name is free
            raise

    def __init_subclass__(cls) -> None:
        """Give the subclass the native call slots, and have tracers know its methods."""
        super().__init_subclass__()
        if not record.path():
            _core.Call.rearm(cls)
        for mark in tracing.marks:
            mark(cls)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs: one tensor, a tuple of several, or None."""
        torch = tracing.torch
        if torch is not None and torch.compiler.is_compiling():  # torch.compile traces this branch
            if self.is_module or self.records:
                args, kwargs = self.as_schema_arguments(args, kwargs)
            kinds = _kinds(torch.Tensor, (*args, *kwargs.values()))
            route = kinds if self.by_signature else ""
            if register_late(self._key, route, kinds, tuple(kwargs)):
                overload = getattr(self, f"torch_overload{route}")
                return self.traced(overload(*args, **kwargs), args, kwargs)
        return self._slow(*args, **kwargs)

    _torchdynamo_orig_callable = property(function_of)
    """What ``torch.compile(op)`` compiles: PyTorch's compiler asks for it by this name, with the next one."""
    _torchdynamo_wrapper_id = property(id)
    __code__ = property(lambda self: function_of(self).__code__)  # by which ms.grad(op) knows what it has run

    def as_schema_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments as the schema has them; a module also takes lists of lists, for example."""
        return args, kwargs

    __signature__ = presented.CallSignature()

    def __repr__(self) -> str:
        """Return two lines: the schema; gradient, batching and where it is defined."""
        return presented.text(self.operator)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return presented.table(self.operator)

    def __dir__(self) -> list[str]:
        """Return the attributes that users call or read."""
        return sorted({*dir(object), *presented.ATTRIBUTES, *self.own_attributes})

    @property
    def schema(self) -> Schema:
        """The operator's schema."""
        return self.operator.schema

    @property
    def name(self) -> str:
        """``namespace::name``."""
        return self.operator.name

    @property
    def origin(self) -> Origin | None:
        """Where it is defined."""
        return self.operator.origin

    def route_to_torch(self, route: str) -> Any:
        """Return the overload for a traced call; ``route`` matters to operators of several signatures."""
        del route
        return self.torch

    @property
    def torch(self) -> Any:
        """The operator as ``torch.ops.<namespace>.<name>.default``; needs PyTorch."""
        need("torch")
        host = torch_host()
        assert host is not None
        return host.overload(self)

    __parse_method__ = "mindspore_graph"
    """The attribute that MindSpore's graph compiler parses in place of ``__call__``."""

    @property
    def mindspore_graph(self) -> Any:
        """The call as a method that MindSpore's graph compiler can read; needs MindSpore."""
        return cast("GraphHost", need("mindspore")).graph(self)

    def source(self, /, *inputs: Any, **attributes: Any) -> str:
        """Return the C code of a loop kernel for these tensors or specs, or for those of the last call.

        Raises ``UnsupportedError`` for an operator whose kernel is not compiled from Python.
        """
        kernel: Any = next((k for k in self.operator.kernels if isinstance(k, LoopKernelBase)), None)
        if kernel is None:
            rule = "has no source that polyop wrote: its kernel is not a loop kernel"
            raise UnsupportedError(self.name, rule, where=self.operator.origin)
        for x in inputs:
            if not isinstance(x, Spec) and not hasattr(x, "shape"):
                rule = "takes tensors, arrays or specs: Spec((2, 3), dtype('float32'), 'cpu')"
                raise ArgumentTypeError(f"{self.name}.source", rule, repr(x))
        specs = [x if isinstance(x, Spec) else Spec(tuple(x.shape), dtype(x.dtype), "cpu") for x in inputs]
        text: str = kernel.source(specs, attributes)
        return text

    @property
    def gradient(self) -> Any:
        """The gradient rule: the author's function, or the rule that polyop derived, or None.

        A derived rule has two members for inspection: ``op.gradient.source(x)`` is the C code for these
        inputs, and ``op.gradient.backward`` is the operator that it calls.
        """
        return self.operator.gradient

    @quiet
    def vjp(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the output, and a function from its gradient to the tuple of input gradients.

        With several outputs both take tuples. The function can be called more than once.
        Raises ``GradientError`` when there is no gradient rule or it breaks its contract.
        """
        arguments = normalise(self.operator, bind(self.operator.schema, args, kwargs, self.operator.origin))
        outputs, pullback = find_host(self.operator, arguments).vjp(self, arguments)
        operator = self.operator
        listed = operator.schema.returns_list and not operator.unpacks
        single = len(outputs) == 1 and not operator.returns_tuple and not listed

        def pull(grads: Any) -> tuple[Any, ...]:
            result: tuple[Any, ...] = pullback(
                output_gradients(operator, outputs, (grads,) if single else tuple(grads))
            )
            return result

        return (outputs[0] if single else outputs), pull

    def communication(
        self,
        mesh: Any,
        *,
        placements: Sequence[Any],
        shapes: Sequence[Any],
        dtype: Any = "float32",
        outputs: Sequence[Any] | None = None,
        **attributes: Any,
    ) -> Any:
        """Return a ``Communication``: the collectives and the bytes per device of a call and its gradient.

        Nothing runs, and the mesh need not exist: ``{"data": 1024, "model": 8}``, or a ``DeviceMesh``, or a
        ``Mesh`` of JAX. ``shapes`` are those of the whole tensors, or specs or arrays, one for each tensor of
        the schema. ``placements`` has a layout for each: the mesh axes by dimension, as ``("data", None)``,
        None for a whole tensor, or PyTorch's placements, or a ``PartitionSpec``. ``outputs`` has the layouts
        that outputs shall get; without it they stay as the call gives them, except that sums are combined.
        ``dtype`` is that of all shapes, or a list.

        Raises ``ArgumentTypeError`` and ``ArgumentValueError`` for layouts that do not fit, and what a call
        with tensors of these shapes raises.

        >>> import polyop
        >>> claims = {"dims": "b i, i o -> b o", "parallel": "b o", "sum": "i"}
        >>> schema = "doc::linear(Tensor x, Tensor w) -> Tensor"
        >>> linear = polyop.operator(schema, lambda x, w: x @ w, **claims)
        >>> layouts = (None, "model"), ("model", None)
        >>> linear.communication({"model": 4}, placements=layouts, shapes=[(64, 32), (32, 16)]).forward
        (Collective(kind='all-reduce', axis='model', tensor='out', bytes=6144),)
        """
        return late.load("sharding", "communication").communication(
            self, mesh, placements, shapes, dtype, outputs, attributes
        )

    def report(
        self,
        /,
        *inputs: Any,
        path: Any = None,
        against: Sequence[str] = (),
        measure: bool = True,
        **attributes: Any,
    ) -> Any:
        """Return a ``Report`` for these tensors, arrays or specs: one HTML page, from Python to machine code.

        A notebook shows it; ``path=`` writes it to a file, and ``report.save(path)`` later. It needs no
        server and loads nothing. ``against``: peers to measure beside it, as ``"torch:softmax(dim=-1)"``.
        ``measure=False`` leaves times and roofs out. Tensors give their values to what is measured; for specs
        values are drawn; None stands for an absent tensor. ``attributes`` are those of the operator.

        Raises ``BuildError`` without Jinja2 and Pygments (``pip install 'polyop[report]'``),
        ``ScheduleError``, and what a call with such tensors raises.

        >>> import numpy as np, polyop
        >>> double = polyop.operator("doc::reported(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
        >>> report = double.report(np.ones(3, np.float32), measure=False)
        >>> report, "<title>doc::reported" in report.html
        (Report(name='doc::reported', path=None), True)
        """
        return late.load("report", "report").report(
            self, inputs, attributes, path, against=against, measure=measure
        )

    @staticmethod
    def alive() -> Iterator[BoundOperator]:
        """Yield all operators that still exist, without those that wait for their first use."""
        yield from (bound for bound in registry.objects() if "operator" in vars(bound))

    def await_first_use(self) -> None:
        """Prepare an object that is bound later: calls find it, and read ``operator`` before all else."""
        start_early()  # a framework that is imported finds it by its name
        self._key = str(id(self))
        registry.note(self)
        self.configure("", (), (), 0, MISSING, False, PLAIN, PLAIN, False)

    def retire(self) -> None:
        """Leave the name to a new definition at the same place. This object can still be called."""
        with locks.define:
            host = torch_host()
            if host is not None:
                host.forget(self)
            for rule in self.operator.rules:
                if isinstance(rule, Rule):
                    for part in rule.parts_made():
                        part.retire()
            name = registry.unique(self.schema.namespace, f"{self.schema.name}_replaced")
            schema = dataclasses.replace(self.schema, name=name)
            self.update(dataclasses.replace(self.operator, schema=schema))

    def __copy__(self) -> BoundOperator:
        """Return the operator itself: copying a network must not define its operators again."""
        return self

    def __deepcopy__(self, memo: Any) -> BoundOperator:
        """Return the operator itself, for the same reason."""
        return self

    def __reduce__(self) -> Any:
        """Pickle by definition: another process finds it by name and digest, or imports its module."""
        return reference(self)

    def traced(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the outputs of ``torch.ops`` as a plain call returns them. ``torch.compile`` traces this."""
        if self._aliases:
            fresh = list(outputs) if isinstance(outputs, tuple) else [] if outputs is None else [outputs]
            results = []
            for position, name in self._aliases:
                if position < 0:
                    results.append(fresh.pop(0))
                else:
                    results.append(args[position] if position < len(args) else kwargs[name])
            return results[0] if len(results) == 1 else tuple(results)
        if self.operator.unpacks:
            return outputs[0] if len(outputs) == 1 else tuple(outputs) or None
        return (outputs,) if self.operator.returns_tuple and not isinstance(outputs, tuple) else outputs

    def pack(self, outputs: tuple[Any, ...]) -> Any:
        """Return outputs as a plain call returns them: one tensor, a tuple, a list, or None."""
        operator = self.operator
        if operator.schema.returns_list and not operator.unpacks:
            return list(outputs)
        if len(outputs) == 1 and not operator.returns_tuple:
            return outputs[0]
        return outputs or None

    def prepare(self, host: Host, arguments: tuple[Any, ...]) -> Prepared:
        """Choose and prepare a kernel for a host's tensors."""
        return prepare(self.operator, specs(host, self.operator, arguments))

    def check_traced(self, arguments: tuple[Any, ...]) -> None:
        """Raise ``UnsupportedError`` for a call that a compiled program cannot contain."""

    def update(self, operator: Operator) -> None:
        """Replace the operator; every kernel prepared for the old one is dropped."""
        with locks.define:
            self._set(operator)
            host = torch_host()
            if host is not None:
                host.attach(self)

    def replace(self, operator: Operator) -> None:
        """Replace the operator, in ``torch.ops`` too."""
        with locks.define:
            host = torch_host()
            if host is not None:
                host.forget(self)
            self.update(operator)
            if host is not None:
                host.offer(self)

    def _set(self, operator: Operator) -> None:
        if not self.takes_data_sizes and operator.dims is not None and operator.dims.data_sizes:
            rule = "has a size that depends on data, which only polyop.operator takes"
            raise UnsupportedError(operator.name, rule, str(operator.dims), where=operator.origin)
        self.defined_in = self.defined_in or calling_frame().f_globals.get("__name__", "")
        self._key = str(id(self))
        of_loops = any(isinstance(kernel, LoopKernelBase) for kernel in operator.kernels)
        kinds = "".join(letter(a, numbers=of_loops) for a in operator.schema.arguments)
        names = tuple(operator.attribute_names.get(a.name, a.name) for a in operator.schema.arguments)
        defaults = tuple(a.default for a in operator.schema.arguments)
        keyword = any(a.keyword_only and a.default is MISSING for a in operator.schema.arguments)
        positional = sum(not a.keyword_only for a in operator.schema.arguments)
        if "__wrapped__" not in vars(self):  # else the author's function has given them
            self.__name__ = self.__qualname__ = operator.schema.name
            self.__module__ = self.defined_in
        self.__doc__ = operator.doc or f"The operator {operator}."
        self._aliases = alias_plan(operator.schema)
        self.native = any(kernel.native for kernel in operator.kernels)
        plain = (
            self.native and not operator.schema.mutates and operator.target in (None, "cpu") and not keyword
        )
        listed = operator.schema.returns_list
        pack = LIST if listed and not operator.unpacks else TUPLE if operator.returns_tuple else PLAIN
        inner = LIST if listed else PLAIN
        self.configure(kinds, names, defaults, positional, MISSING, plain, pack, inner, self.is_module)
        self.reads_rows = of_loops
        self.operator = operator  # last: whoever sees it sees the rest
        self.forget()  # what another thread planned meanwhile, for the old operator
        self._watch()
        registry.note(self)

    def _watch(self) -> None:
        """Tell the native core which names a call looks at: it warns if one has got another value."""
        self.watched = tuple(one for kernel in self.operator.kernels for one in kernel.watched()) or None

    @untraced
    def _warn_of_changes(self) -> None:
        # called by the native core when a name that it watches has another value
        try:
            for kernel in self.operator.kernels:
                kernel.warn_of_changes()
        finally:
            self._watch()

    @untraced
    def _slow(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            arguments = bind(self.operator.schema, args, kwargs, self.operator.origin)
            if self.dtensor_call is not None:
                outputs = self.dtensor_call(arguments)
                if outputs is not NotImplemented:
                    return self.pack(outputs)
            arguments = normalise(self.operator, arguments)
            return self.pack(find_host(self.operator, arguments).call(self, arguments))
        except Exception as problem:
            hide_own(problem)
            raise

    @untraced
    @quiet
    def _prepare(self, arguments: tuple[Any, ...], rows: tuple[Any, ...] = ()) -> tuple[Any, bool] | None:
        # called by the native core for specs that have no prepared kernel; rows are kernels.loop.rows.Found
        prepared = self.prepare(find_host(self.operator, arguments), arguments)
        launch, lasts = prepared.launch_in_rows(rows) if rows else (prepared.launch(), True)
        if launch is not None and prepared.attributes:
            self.decides(prepared.deciding())
        return None if launch is None else (launch, prepared.repeatable and lasts)

    @untraced
    @quiet
    def _failed(self, code: int, text: str, threw: bool, kernel: str) -> None:
        # called by the native core when a kernel returned non-zero or threw
        found = next((k for k in self.operator.kernels if str(k) == kernel), KernelBase())
        raise failure(self.operator, found, code, text, threw=threw, label=kernel)


def _kinds(tensor: type, values: tuple[Any, ...]) -> str:
    """Return the kinds of a traced call's arguments, as a text ``/kind/kind``."""
    return "".join(f"/{kind}" for kind in signature_of(values, lambda value: isinstance(value, tensor)))


def register_late(key: str, route: str, kinds: str, names: tuple[str, ...]) -> bool:
    """Register an operator with PyTorch while a call is being traced; return True.

    ``key`` is :attr:`BoundOperator._key`, ``kinds`` and ``names`` describe the arguments as text, because
    ``torch.compile`` must take the call for a constant. Raises the errors of a plain call for arguments that
    the schema does not have, and for some of a wrong type.
    """
    bound = next(bound for bound in registry.objects() if bound._key == key)  # noqa: SLF001
    if not route:
        argument_kinds = kinds.split("/")[1:]
        count = len(argument_kinds) - len(names)
        keywords = dict(zip(names, argument_kinds[count:], strict=True))
        check_kinds(bound.schema, argument_kinds[:count], keywords, bound.operator.origin)
    return bound.route_to_torch(route) is not None


# torch.compile runs the function while it traces, and treats the result as a constant
register_late._dynamo_marked_constant = True  # type: ignore[attr-defined]  # noqa: SLF001


if record.path():  # calls go through Python, which times them
    record.start(BoundOperator)
else:
    _core.Call.rearm(BoundOperator)
