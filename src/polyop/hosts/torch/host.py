"""The PyTorch host: the protocol ``Host``, implemented with the files beside this one."""

from __future__ import annotations

import contextlib
import pathlib
import types
from typing import Any

import torch
import torch.fx

from ... import _core
from ...call import registry, tracing
from ...call.bound import BoundOperator
from ...call.host import with_aliases
from ...call.rule import no_gradient
from ...core.errors import HostError, adapt_with
from ...core.spec import Spec
from ...core.untraced import exclude_with
from ...rules.module.recorded import Recorded
from ...sharding.of_call import is_splittable
from . import direct, on_demand, register, tensors
from .autograd_arguments import Layout
from .compiling import adapt, definitions
from .leaving import BusyError


class TorchHost:
    """PyTorch tensors of every kind; anything unusual goes through ``torch.ops``."""

    name = "torch"

    def __init__(self) -> None:
        """Find PyTorch's exchange table and guards; raises ``HostError`` before PyTorch 2.10."""
        if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
            rule = "must be 2.10 or later (its tensors have no DLPack exchange table)"
            raise HostError("PyTorch", rule, torch.__version__)
        folder = pathlib.Path(torch.__file__).parent / "lib"
        self.missing_guards = _core.start_torch(
            torch,
            *(str(folder / name) for name in ("libc10.so", "libtorch_cpu.so", "libtorch_python.so")),
        )
        exclude_with(_skip)
        adapt_with(adapt)
        _core.locate_keys(*_key_samples())
        with torch.inference_mode():
            _core.note_inference_mode()

    def start(self) -> None:
        """Take in the operators that were defined before PyTorch was imported, and watch for look-ups."""
        tracing.torch = torch
        on_demand.watch()
        for bound in BoundOperator.alive():
            self.attach(bound)
            if _has_name(bound):
                self.offer(bound)

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is a tensor, of any subclass, or stands for one in ``symbolic_trace``."""
        return isinstance(value, (torch.Tensor, torch.fx.Proxy))

    def spec(self, tensor: Any) -> Spec:
        """Return shape (symbolic while tracing), dtype and device type."""
        return tensors.spec(tensor)

    def attach(self, bound: BoundOperator) -> None:
        """Give the native call its gradient; what PyTorch keeps of an older definition is not found again."""
        direct.attach(bound)
        if "torch_overload" in bound.__dict__:
            definitions.note(bound)

    def offer(self, bound: BoundOperator) -> None:
        """Put the operator into ``torch.ops``, unless PyTorch refuses its schema: a call of it says so."""
        with contextlib.suppress(register.RefusedError, BusyError):
            register.register(bound)

    def state(self, bound: BoundOperator) -> str:
        """Return how calls are made, in words."""
        refusal = self.refusal(bound)
        if refusal:
            return f"none: it does not take this schema: {refusal}"
        if self.missing_guards:
            every = "fallback: every call goes through torch.ops"
            return f"present; {every}, as this PyTorch lacks {self.missing_guards}"
        return f"present, with the guarded native call{_gathering(bound)}"

    def refusal(self, bound: BoundOperator) -> str:
        """Return why PyTorch does not take the operator, in its words, or an empty text."""
        try:
            if _has_name(bound):
                register.register(bound)
        except register.RefusedError as problem:
            return problem.reason
        return ""

    def overload(self, bound: BoundOperator) -> Any:
        """Return the operator's ``torch.ops`` overload; raises ``SchemaError`` where PyTorch refuses it."""
        return register.register(bound)

    def forget(self, bound: BoundOperator) -> None:
        """Take the operator's name out of ``torch.ops``."""
        register.unregister(bound)

    def call(self, bound: BoundOperator, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the operator through PyTorch's dispatcher."""
        fresh = register.call_overload(bound, arguments)
        return with_aliases(bound.operator, arguments, fresh)

    def vjp(self, bound: BoundOperator, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the outputs, and the function from output gradients to input gradients."""
        if bound.operator.gradient is None:
            raise no_gradient(bound.operator)
        if isinstance(bound.operator.gradient, Recorded):
            return _vjp_recorded(bound, arguments)
        outputs = self.call(bound, arguments)
        layout = Layout(bound)
        flat = layout.flatten(arguments)
        return outputs, lambda grads: layout.unflatten(flat, layout.gradients(flat, outputs, grads))

    def zeros(self, spec: Spec, like: torch.Tensor) -> torch.Tensor:
        """Return a tensor of zeros where ``like`` is."""
        if tensors.is_distributed(like):
            zeros: torch.Tensor = like.new_zeros(spec.shape, dtype=tensors.TORCH_DTYPES[spec.dtype.name])
            return zeros
        return tensors.empty(spec, like.device).zero_()

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy."""
        return tensor.clone()

    def namespace(self) -> Any:
        """Return PyTorch's functions under the array API's names."""
        import array_api_compat.torch

        return array_api_compat.torch

    def pull_back(self, function: Any, inputs: Any, grads: Any) -> tuple[Any, ...]:
        """Return the gradients of ``function`` at the inputs; they can be differentiated again."""
        _, pull = torch.func.vjp(function, *inputs)
        input_grads: tuple[Any, ...] = pull(tuple(grads))
        return input_grads

    def alive(self, values: Any) -> list[Any]:
        """Return tensors without what is left of transforms that have ended; a new one refuses these."""
        unwrap = torch._C._functorch.unwrap_if_dead
        return [unwrap(value) if isinstance(value, torch.Tensor) else value for value in values]


def _skip(code: types.CodeType) -> None:
    """Keep ``torch.compile`` from tracing a function and what it calls, where C++ calls it."""
    frame = torch._C._dynamo.eval_frame
    skip = frame._FrameAction.SKIP
    frame.set_code_exec_strategy(code, frame._FrameExecStrategy(skip, skip))


def _has_name(bound: BoundOperator) -> bool:
    return registry.known(bound.name) is bound and not bound.by_signature


def _gathering(bound: BoundOperator) -> str:
    """Return what becomes of sharded tensors, if the operator has ``dims=`` and no dimension can be split."""
    if bound.operator.dims is None or is_splittable(bound.operator):
        return ""
    return "; fallback: sharded tensors are gathered, because no dimension can be split"


def _vjp_recorded(bound: BoundOperator, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """Return the outputs of a module's function and its gradient, through autograd."""

    def leaf(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().requires_grad_(tensor.is_floating_point() or tensor.is_complex())

    leaves = tensors.map_arguments(leaf, arguments)
    with torch.enable_grad():
        outputs = tensors.as_outputs(bound(*leaves))
    flat: list[torch.Tensor] = []
    tensors.map_arguments(flat.append, leaves)
    smooth = [tensor for tensor in flat if tensor.requires_grad]

    def pullback(grads: tuple[Any, ...]) -> tuple[Any, ...]:
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad and g is not None]
        leaf_grads = torch.autograd.grad(
            [o for o, _ in pairs], smooth, [g for _, g in pairs], allow_unused=True, retain_graph=True
        )
        by_id = dict(zip(map(id, smooth), leaf_grads, strict=True))
        grads_by_argument = tensors.map_arguments(lambda tensor: by_id.get(id(tensor)), leaves)
        rows = zip(bound.schema.arguments, grads_by_argument, strict=True)
        return tuple(value if argument.type.is_tensor else None for argument, value in rows)

    return tuple(output.detach() for output in outputs), pullback


# a tensor with one of these keys is more than its data
_UNUSUAL = [
    "Conjugate",
    "Negative",
    "ZeroTensor",
    "Python",
    "Functionalize",
    "FuncTorchBatched",
    "FuncTorchGradWrapper",
]


def _key_samples() -> tuple[list[tuple[Any, int, int]], int]:
    """Return tensors of different kinds, an ordinary one first, with where they are and their keys.

    Also the mask of unusual keys.
    """
    plain = torch.zeros(2)
    kinds = [plain, torch.zeros(3, dtype=torch.complex64).conj(), torch._neg_view(plain)]
    kinds += [torch.zeros(1, device="meta"), torch.zeros(1, requires_grad=True), torch.nn.Parameter(plain)]
    samples = [(x, x._cdata, torch._C._dispatch_keys(x).raw_repr()) for x in kinds]
    mask = 0
    for name in _UNUSUAL:
        key = getattr(torch._C.DispatchKey, name)
        mask |= torch._C.DispatchKeySet(key).raw_repr()
    return samples, mask


HOST = TorchHost()
