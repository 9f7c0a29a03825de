"""What ``Custom`` derives from a loop kernel: its attributes and its outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import ArgumentValueError, InformationError
from ..core.information import Information, need
from ..core.operator import Kernel


def loop_kernel(
    func: Callable[..., Any], func_type: str, information: Sequence[Information], subject: str
) -> Kernel:
    """Return the loop kernel of a function.

    Its first parameters are tensors; those named as attributes in the information are numbers.
    Raises what the static checks raise, and ``InformationError`` for attributes that are not
    registered, or registered under another name.
    """
    from ..kernels.loops.kernel import LoopKernel
    from ..kernels.loops.parse import outline

    found = outline(func)
    where = f"{found.file}:{found.line}"
    scalars = [n for n in found.parameters if n not in found.tensors and n not in found.defaults]
    registered = [a.name for a in information[0].call_attributes] if information else []
    if not information:
        need(func_type, (), scalars, subject, where)
    foreign = [name for name in registered if name not in found.parameters]
    missing = [name for name in scalars if name not in registered] if information else []
    if foreign or (missing and len(missing) > _unregistered_inputs(information, found.parameters, registered)):
        rule = (
            f"the attributes of a loop kernel are registered under the names of its parameters "
            f"{list(found.parameters)}"
        )
        seen = f"registered are {registered}" + (f"; {missing} are not" if missing else "")
        raise InformationError(subject, rule, seen, where=where)
    wrong = [name for name in registered if name in found.tensors]
    if wrong:
        rule = "an attribute is a number, and the function uses it as a tensor"
        raise InformationError(subject, rule, ", ".join(wrong), where=where)
    options = getattr(func, "compile_attrs", {})
    return LoopKernel(
        func,
        tuple(registered),
        precise=bool(options.get("precise")),
        debug=bool(options.get("debug")),
    )


def _unregistered_inputs(
    information: Sequence[Information], parameters: Sequence[str], registered: Sequence[str]
) -> int:
    """Return how many parameters may be tensors that the function never looks into."""
    del parameters, registered
    return 0 if information[0].inputs else 1 << 30


def loop_inputs(kernel: Any) -> int:
    """Return how many parameters are tensors: not attributes, and not numbers with a default."""
    outline = kernel.outline
    numbers = {*kernel.attributes, *(n for n in outline.defaults if n not in outline.tensors)}
    return sum(name not in numbers for name in outline.parameters)


def loop_outputs(kernel: Any, declared: int | None) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the number of outputs, and which of them are inputs written in place.

    Raises ``ArgumentValueError`` where the author declares another number.
    """
    outputs = len(kernel.outline.outputs)
    if declared is not None and declared != outputs:
        rule = f"returns {outputs} tensors, and out_shape, out_dtype or the information speak of another number"
        raise ArgumentValueError(str(kernel), rule, declared, where=kernel.where)
    return outputs, kernel.outline.inplace
