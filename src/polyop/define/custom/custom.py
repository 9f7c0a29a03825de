"""``Custom``: MindSpore's constructor for an operator, with its names, forms and rules."""

from __future__ import annotations

import dataclasses
import keyword
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...call import registry
from ...call.bound import BoundOperator
from ...call.host import is_tensor
from ...call.operator import Kernel, Operator
from ...core import locks
from ...core.errors import ArgumentTypeError, ArgumentValueError, HostError, UnsupportedError
from ...core.information import registration
from ...core.information.information import Information, check_function, check_required
from ...core.origin import caller, of_function
from ...core.schema import Schema
from ...core.signature import Signature, signature_of
from ...core.spec import TARGETS
from ...core.takes import check_takes
from ...core.tracebacks import quiet
from ...core.untraced import untraced
from ...kernels.library import prebuilt
from ...kernels.provider import ProviderKernel
from ...kernels.python import PythonKernel
from ...kernels.reference_name import resolve_path, split_reference
from ...kernels.source import is_source, source
from ...kernels.triton.kernel import refuse_triton
from ...rules.loops.rules import with_derived, without_derived
from ..operator import check_rule
from .derive import derive_infer, derive_schema, input_count, output_count
from .loops import completed, definition, fixed_attributes, is_marked, loop_inputs, loop_kernel, loop_outputs

LOOPS = ("hybrid", "akg")
FUNC_TYPES = ("hybrid", "akg", "tbe", "aicpu", "aot", "pyfunc", "julia")

ALTERNATIVES = {  # kinds of MindSpore that polyop does not run: what to use instead
    "tbe": "TBE compiles only for Ascend; write an 'aot' kernel in C++, or name an aclnn operator",
    "aicpu": "AICPU kernels run inside the Ascend device; write an 'aot' kernel in C++ for the CPU",
    "julia": "MindSpore removed it after 2.7.0; write an 'aot' kernel in C or a 'pyfunc'",
}
DEVICES = {target: device for device, target in TARGETS.items()}


class Custom(BoundOperator):
    """An operator from a library, a source or a Python function, as MindSpore's ``ops.Custom``.

    ``func``       aot: ``"file:function"``, the file a library or a C, C++ or CUDA source; or
                   the name of a provider's operator. pyfunc: a function over NumPy arrays.
    ``out_shape``, ``out_dtype``  a function of the inputs' shapes (lists) or dtypes, a
                   constant, a tuple of these for several outputs; None asks the library's
                   ``<func>InferShape`` and ``<func>InferType``. pyfunc: ``(), ()`` for no
                   output, ``()`` with a dtype for a scalar.
    ``func_type``  "aot", "pyfunc", "hybrid" or "akg" (both: a loop nest in Python, compiled). A function of
                   ``@kernel`` is hybrid where no ``out_shape`` is given.
                   For MindSpore's other kinds the error says what to use instead.
    ``bprop``      inputs, output, output gradient (tuples for several outputs) -> tuple of
                   input gradients, None where there is none.
    ``reg_info``   operator information: what ``CustomRegOp().get_op_info()`` returns, its
                   JSON text, or a list of these.

    >>> import numpy as np
    >>> from polyop import Custom
    >>> square = Custom(lambda x: x * x, lambda x: x, lambda x: x, "pyfunc")
    >>> square(np.array([1.0, 4.0, 9.0], np.float32))
    array([ 1., 16., 81.], dtype=float32)

    Raises ``ArgumentTypeError``, ``ArgumentValueError``, ``InformationError``,
    ``LibraryError``, ``BuildError``, ``UnsupportedError``.
    """

    constructor_compiles = True
    keeps_first_information = False
    """Whether other ``reg_info`` for a function and target is ignored with a warning, and no error."""

    def __init__(
        self,
        func: Any,
        out_shape: Any = None,
        out_dtype: Any = None,
        func_type: str = "pyfunc",
        bprop: Callable[..., Any] | None = None,
        reg_info: Any = None,
    ) -> None:
        """Check everything that can be checked before the first call."""
        if func_type == "pyfunc" and out_shape is None and out_dtype is None and is_marked(func):
            func_type = "hybrid"
        self.subject = f"For 'Custom', 'func_type': {func_type}, 'func': {_shown(func)}"
        self.func, self.func_type = func, func_type
        self.out_shape, self.out_dtype = out_shape, out_dtype
        self._variants: dict[Signature, BoundOperator] = {}
        self._signature: Signature = ()
        _check_func_type(func_type, self.subject)
        _check_func(func, func_type, self.subject)
        if bprop is not None and not callable(bprop):
            raise ArgumentTypeError(self.subject, "'bprop' must be of type function", str(type(bprop)))
        self._information = self._register(reg_info)
        self.by_signature = func_type not in LOOPS and not (self._information and self._information[0].inputs)
        _check_kind(func, func_type, self._information, self.subject)
        kernels = self._kernels()
        loops = func_type in LOOPS
        known = completed(kernels[0], self._information, _name(func)) if loops else self._information
        self._count = input_count(out_shape, out_dtype, func if callable(func) else None, known)
        start = Operator(
            schema=Schema("custom", registry.unique("custom", _name(func)), (), ()),
            infer=_unknown,
            kernels=kernels,
            gradient=bprop,
            information=self._information,
            attributes=fixed_attributes(kernels[0], self._information) if loops else {},
            origin=caller(),
        )
        self._known = self._count is not None
        with locks.define:
            if self._count is None:
                self._set(start)  # the number of inputs is known at the first call
            else:
                self._signature = ("T",) * self._count
                super().__init__(self._derive(start, self._signature), register=False)
                registry.add_generated(self)

    def add_prim_attr(self, name: str, value: Any) -> Custom:
        """Fix an attribute of the operator; return the operator, so that calls chain.

        ``"primitive_target"`` ("CPU") makes tensors of another device come to this device's
        kernel and the results go back; ``"path_from_env"`` reads the file of ``func`` from
        the environment variable of that name; any other name reaches the kernel.
        """
        if name == "primitive_target":
            return self.set_device(value)
        operator = self.operator
        if name == "path_from_env":
            self._path_from_env = bool(value)
            return self._change(kernels=(self._kernel(),))
        return self._change(attributes={**operator.attributes, name: value})

    def set_device(self, target: str) -> Custom:
        """Choose the device whose kernel runs: "CPU", "GPU" or "Ascend". Returns the operator."""
        if target not in DEVICES:
            raise ArgumentValueError(self.subject, f"the target must be one of {list(DEVICES)}", repr(target))
        if isinstance(self.operator.kernels[0], ProviderKernel):
            kernel = ProviderKernel(self.func, for_ascend=target == "Ascend")
            return self._change(kernels=(kernel,), target=None if target == "Ascend" else DEVICES[target])
        return self._change(target=DEVICES[target])

    def vjp(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the output, and a function from its gradient to the tuple of input gradients."""
        operator = self._for((*args, *kwargs.values()))
        return BoundOperator.vjp(operator, *args, **kwargs)

    def route_to_torch(self, route: str) -> Any:
        """Return the ``torch.ops`` overload for a signature, as ``"/T/T"``; it also becomes an attribute."""
        signature = tuple(route.split("/")[1:])
        overload = self._of(signature).torch if signature else self.torch
        self.__dict__[f"torch_overload{route}"] = overload
        return overload

    @property
    def torch(self) -> Any:
        """The operator as a ``torch.ops`` overload; its inputs must be known."""
        if not self._known:
            rule = (
                "the number of inputs is known only at the first call, and PyTorch's tracers need it before"
            )
            hint = "call it once on real tensors, or give reg_info with the inputs"
            raise HostError(self.subject, rule, where=self.operator.origin, hint=hint)
        return super().torch

    @untraced
    @quiet
    def _slow(self, /, *args: Any, **kwargs: Any) -> Any:
        operator = self._for((*args, *kwargs.values()))
        if operator is self:
            return super()._slow(*args, **kwargs)
        return operator(*args, **kwargs)

    def _for(self, args: tuple[Any, ...]) -> BoundOperator:
        """Return the operator for the signature of these arguments: itself, or a variant."""
        if not self.by_signature:
            return self
        signature = signature_of(args, is_tensor)
        return self._of(signature) if signature else self

    def _of(self, signature: Signature) -> BoundOperator:
        """Return the operator of a signature; the first signature is that of this object."""
        with locks.define:
            if not self._known:
                derived = self._derive(self.operator, signature)
                self._known, self._signature = True, signature
                BoundOperator.__init__(self, derived, register=False)
                registry.add_generated(self)
            if signature == self._signature:
                return self
            if len(signature) != len(self._signature) and self._count is not None:
                return self  # its number of inputs is fixed: binding the arguments raises the error
            if signature not in self._variants:
                name = registry.unique("custom", self.operator.schema.name)
                start = dataclasses.replace(self.operator, schema=Schema("custom", name, (), ()))
                self._variants[signature] = BoundOperator(self._derive(start, signature), register=False)
            return self._variants[signature]

    def _change(self, **fields: Any) -> Custom:
        with locks.define:
            changed = dataclasses.replace(self.operator, **fields)
            if self._known:
                self.update(self._derive(changed, self._signature))
            else:
                self._set(changed)
            for signature, variant in self._variants.items():
                variant.update(self._derive(dataclasses.replace(variant.operator, **fields), signature))
            return self

    def _derive(self, operator: Operator, signature: Signature) -> Operator:
        """Return the operator with schema, infer rule and derived rules for a signature."""
        operator = without_derived(operator)
        outputs, as_tuple = output_count(self.out_shape, self.out_dtype, len(signature), self._information)
        inplace: tuple[tuple[int, int], ...] = ()
        information = self._information
        if self.func_type in LOOPS:
            information = completed(operator.kernels[0], information, operator.schema.name)
            outputs, inplace = loop_outputs(operator.kernels[0], outputs if self._declares() else None)
            as_tuple = outputs > 1
        schema, names = derive_schema(operator.schema.name, signature, outputs, information, inplace)
        where = of_function(self.func) if callable(self.func) else operator.origin
        for given in self._information:
            check_function(
                given, self._function_inputs(operator.kernels[0]), outputs, None, self.subject, where
            )
        check_rule("bprop", operator.gradient, schema, operator.origin)
        if self.func_type == "pyfunc":
            names_given = [argument.name for argument in schema.arguments]
            check_takes("the kernel", self.func, names_given, schema, where, operator.attributes)
        operator = dataclasses.replace(operator, attribute_names=names)
        infer = derive_infer(self.out_shape, self.out_dtype, schema, operator, self.subject)
        reference = None
        if self.func_type in LOOPS:
            reference = definition(operator.kernels[0], schema, operator.attributes)
        whole = dataclasses.replace(
            operator,
            schema=schema,
            infer=infer,
            returns_tuple=as_tuple,
            reference=reference,
        )
        return with_derived(whole) if self.func_type in LOOPS else whole

    def _declares(self) -> bool:
        """Whether the author declares the number of outputs."""
        if self._information and self._information[0].outputs:
            return True
        constant = self.out_shape is not None and not callable(self.out_shape)
        return constant or self.out_dtype is not None  # a function out_shape would have to be called

    def _function_inputs(self, kernel: Any) -> int | None:
        if self.func_type in LOOPS:
            return loop_inputs(kernel)
        if not callable(self.func):
            return None
        count = input_count(None, None, self.func, ())
        return (
            None
            if count is None or not self._information
            else count - len(self._information[0].call_attributes)
        )

    def _register(self, reg_info: Any) -> tuple[Information, ...]:
        if reg_info is None and callable(self.func):
            reg_info = registration.of_decorated(self.func)
        if reg_info is None:
            return ()
        information = Information.from_any(reg_info, subject=self.subject, func_type=self.func_type)
        if self.func_type in LOOPS and callable(self.func):
            loop_kernel(
                self.func, self.func_type, tuple(information), self.subject
            )  # checked before it is registered
        return registration.register(
            self.func, information, subject=self.subject, keep_first=self.keeps_first_information
        )

    def _kernels(self) -> tuple[Kernel, ...]:
        """Return the kernel; for a loop nest also the one for GPUs, which is compiled at its first call."""
        kernel: Any = self._kernel()
        return (kernel, kernel.on("cuda")) if self.func_type in LOOPS else (kernel,)

    def _kernel(self) -> Kernel:
        if self.func_type in LOOPS:
            return loop_kernel(self.func, self.func_type, self._information, self.subject)
        if self.func_type == "pyfunc":
            return PythonKernel(self.func, scalars=True)
        if ":" not in self.func and self.func.strip() and callable(self.out_shape):
            for_ascend = any(information.target == "Ascend" for information in self._information)
            return ProviderKernel(
                self.func, for_ascend=for_ascend
            )  # a name without ":" is a provider's operator
        text, function = split_reference(self.func, self.subject)
        from_env = getattr(self, "_path_from_env", False)
        if not from_env and not Path(text).exists() and text in os.environ:
            return ProviderKernel(self.func)  # a placeholder until add_prim_attr("path_from_env", True)
        path = resolve_path(text, from_env)
        device = next((DEVICES[i.target] for i in self._information if len(self._information) == 1), None)
        if is_source(path):
            kernel = source(path, function=function, device=device)
            kernel.check_declared(self.subject)
            return kernel
        return prebuilt(path, function, device=device)


class _Unknown:
    """The infer rule until the number of inputs is known; nothing calls it."""

    repeatable = False

    def __call__(self, arguments: Any) -> Any:
        raise NotImplementedError


_unknown = _Unknown()


def _shown(func: Any) -> str:
    return func if isinstance(func, str) else getattr(func, "__name__", repr(func))


def _name(func: Any) -> str:
    text = func.rsplit(":", 1)[-1] if isinstance(func, str) else getattr(func, "__name__", "function")
    clean = "".join(c if c.isalnum() and c.isascii() else "_" for c in text).strip("_")
    return clean if clean[:1].isalpha() and not keyword.iskeyword(clean) else f"op_{clean}"


def _check_func_type(func_type: Any, subject: str) -> None:
    if func_type not in FUNC_TYPES:
        raise ArgumentValueError(subject, f"'func_type' must be one of {list(FUNC_TYPES)}", repr(func_type))


def _check_func(func: Any, func_type: str, subject: str) -> None:
    refuse_triton(func, "Custom", subject, caller())
    if func_type == "aot":
        if not isinstance(func, str):
            hint = None
            if callable(func):
                hint = "the func of an aot kernel is 'file:function'; the information goes to reg_info"
            raise ArgumentTypeError(subject, "'func' must be of type str", str(type(func)), hint=hint)
        return
    if not callable(func) and not isinstance(func, str):
        raise ArgumentTypeError(subject, "'func' must be of type function or str", str(type(func)))
    if func_type not in ("aicpu", "julia") and not callable(func):
        raise ArgumentTypeError(subject, "'func' must be of type function", str(type(func)))


def _check_kind(func: Any, func_type: str, information: tuple[Information, ...], subject: str) -> None:
    if func_type not in ALTERNATIVES:
        return
    where = of_function(func) if callable(func) else None
    if not information:
        check_required(func_type, (), (), subject, where)
    raise UnsupportedError(
        subject, "polyop does not run this kind of kernel", where=where, hint=ALTERNATIVES[func_type]
    )
