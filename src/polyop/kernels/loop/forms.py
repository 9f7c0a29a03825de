"""The forms of derived kernels, a row each: all that is particular to a gradient, a tangent, a batch.

    GRADIENT   f__backward(inputs, outputs, output gradients) -> input gradients
    TANGENT    f__tangent(inputs, input tangents) -> output tangents
    BATCHED    f__batched(inputs of all samples) -> outputs of all samples
    PLACED     f__placed(a slice of the inputs, where it is) -> a slice of the outputs
    SAVING     f__saving(inputs) -> outputs, and temporaries that the gradient reads

The rules of ``rules/loops`` call the operators around these kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.errors import ArgumentValueError
from ...core.spec import Spec
from ...core.spec_key import SpecKey
from ...loops.ir.grammar import Kernel
from ...loops.ir.types import is_real
from ...loops.library.derivations import derivation
from ..base import flatten
from .adjoints import Adjoints, Flags
from .derived import DerivedKernel, Form
from .kernel import Attributes, Inputs
from .temporaries import Numbers, saving_kernel

Axes = tuple[int | None, ...]


# gradient


def _gradient(kernel: DerivedKernel, inputs: Inputs, attributes: Attributes) -> Kernel:
    """Return the adjoint for the gradients that there are and those that the key wants."""
    adjoints, present, wanted = _gradient_call(kernel, inputs, attributes)
    return adjoints.within_limit(present, wanted).kernel


def _gradient_of_all_sizes(kernel: DerivedKernel, inputs: Inputs, attributes: Attributes) -> Kernel:
    """Return the same without checkpointing, which depends on the sizes."""
    adjoints, present, wanted = _gradient_call(kernel, inputs, attributes)
    return adjoints.adjoint(present, wanted).kernel


def _sizes_of_gradients(kernel: DerivedKernel, inputs: Inputs, attributes: Attributes) -> Mapping[Any, Any]:
    """Return the sizes that follow: an output's gradient has its shape."""
    from ...loops.dims.derive import sizes_from_forward

    adjoints, present, wanted = _gradient_call(kernel, inputs, attributes)
    return sizes_from_forward(adjoints.forward, adjoints.adjoint(present, wanted).kernel)


def _check_tapes(kernel: DerivedKernel, inputs: Inputs, attributes: Attributes) -> None:
    """Raise ``GradientError`` if the tapes of a call take more than ``tape_bytes``."""
    adjoints, present, wanted = _gradient_call(kernel, inputs, attributes)
    adjoints.check_tapes(adjoints.within_limit(present, wanted))


def _gradient_call(
    kernel: DerivedKernel, inputs: Inputs, attributes: Attributes
) -> tuple[Adjoints, Flags, Flags]:
    """Return the adjoints for a call, which output gradients there are, and which gradients it wants."""
    tensors = list(flatten(tuple(inputs)))
    key = SpecKey.parse(attributes[kernel.key_attribute])
    present = tuple(spec is not None for spec in tensors[-kernel.base.results :])
    return Adjoints(kernel, key.specs, attributes, sizes=tensors), present, key.needs_gradient


GRADIENT = Form(
    suffix="backward",
    words="gradient",
    kind="BackwardKernel",
    typed=_gradient,
    for_outputs=("out{}", "d_out{}"),  # one that it does not read is None
    key="polyop_tensors",  # a SpecKey: the base's tensors, and which of their gradients are wanted
    results=lambda base: base.tensors,
    linear=lambda base: base.results,  # the gradients of the outputs
    for_all_sizes=_gradient_of_all_sizes,
    known_sizes=_sizes_of_gradients,
    check_tapes=_check_tapes,
)


# tangent


def _tangent(kernel: DerivedKernel, inputs: Inputs, attributes: Attributes) -> Kernel:
    """Return forward mode for the tangents that there are."""
    base, tensors = kernel.base, list(flatten(tuple(inputs)))
    primal = base.for_all_sizes(SpecKey.parse(attributes[kernel.key_attribute]).specs, attributes)
    rows = zip(tensors[base.tensors :], primal.tensor_parameters, strict=True)
    active = tuple(spec is not None and is_real(primal, name) for spec, name in rows)
    return kernel.derived((id(primal), active), lambda: derivation("tangent", primal, active))


TANGENT = Form(
    suffix="tangent",
    words="tangent",
    kind="TangentKernel",
    typed=_tangent,
    for_inputs=("t_{}",),  # a tensor that it does not read is None, and so is an absent tangent
    key="polyop_tensors",  # a SpecKey: the base's tensors
    linear=lambda base: base.tensors,  # the tangents
)


# batch


def axes_text(axes: Sequence[int | None]) -> str:
    """Return the sample axis of each tensor as text; ``-`` is a tensor without samples.

    >>> axes_text([0, None])
    '0 -'
    """
    return " ".join("-" if axis is None else str(axis) for axis in axes)


def parse_axes(text: str) -> Axes:
    """Return the axes of a text by :func:`axes_text`.

    >>> parse_axes("0 -")
    (0, None)
    """
    return tuple(None if word == "-" else int(word) for word in text.split())


def _batched(kernel: DerivedKernel, inputs: Inputs, attributes: Attributes) -> Kernel:
    """Return the base with a loop over samples. The sizes of one sample decide on checkpointing."""
    axes = parse_axes(attributes[kernel.key_attribute])
    sample = kernel.base.typed(_sample(inputs, axes), attributes)
    return kernel.derived((id(sample), axes), lambda: derivation("batched", sample, axes))


def _check_tapes_of_sample(kernel: DerivedKernel, inputs: Inputs, attributes: Attributes) -> None:
    """Raise ``GradientError`` if the tapes of one sample take more than ``tape_bytes``."""
    if isinstance(kernel.base, DerivedKernel):
        sample = _sample(inputs, parse_axes(attributes[kernel.key_attribute]))
        kernel.base.check_tapes(sample, attributes)


def _sample(inputs: Inputs, axes: Axes) -> list[Spec | None]:
    """Return the specs of one sample's tensors: without the axis of samples."""
    specs = list(flatten(tuple(inputs)))
    return [
        spec
        if spec is None or axis is None
        else Spec((*spec.shape[:axis], *spec.shape[axis + 1 :]), spec.dtype)
        for spec, axis in zip(specs, axes, strict=True)
    ]


BATCHED = Form(
    suffix="batched",
    words="batch",
    kind="BatchedKernel",
    typed=_batched,
    key="polyop_samples",  # the axis of samples of each tensor, by axes_text; outputs have them first
    linear=lambda base: base.linear_tensors,  # one sample is
    check_tapes=_check_tapes_of_sample,
)


# slice


def _placed(kernel: DerivedKernel, inputs: Inputs, attributes: Attributes) -> Kernel:
    """Return the base for a slice. Raises ``ArgumentValueError`` for a dimension that is whole."""
    from ...loops.dims.placed import Place, placed_kernel

    base, cut_along = kernel.base, attributes[kernel.key_attribute]
    whole, slicings = base.slicings(inputs, attributes)
    rows = {row.dimension.name: row for row in slicings if row.kind != "whole"}
    if cut_along not in rows:
        rule = f"can be cut into slices along {', '.join(rows) or 'none'}"
        raise ArgumentValueError(str(kernel), rule, cut_along, where=base.where)

    def make() -> Kernel:
        known, place = base.known_sizes(inputs, attributes), Place(*kernel.number_attributes)
        placed, _ = placed_kernel(whole, rows[cut_along], known, place)
        return replace(placed, name=f"{whole.name}__{kernel.form.suffix}")

    return kernel.derived((id(whole), cut_along), make)


PLACED = Form(
    suffix="placed",
    words="slice",
    kind="PlacedKernel",
    typed=_placed,  # its tensors are cut as a slice with its halo
    key="polyop_dimension",  # the name of the dimension, as ``polyop explain`` shows it
    numbers=("begin", "end", "start", "size"),  # where the slice is: see loops/dims/placed.py
    has_rules=False,  # gradients and batches are those of the whole, and are sliced
)


# saving


def _saving(kernel: DerivedKernel, inputs: Inputs, attributes: Attributes) -> Kernel:
    """Return the base with its temporaries as further outputs."""
    tensors = list(flatten(tuple(inputs)))
    found = saving_kernel(kernel.base, tensors, attributes, kernel.form.omitted)
    assert found is not None, kernel.name
    return found


def saving(temporaries: int, omitted: Numbers) -> Form:
    """Return the saving form that returns so many temporaries, without those that are omitted."""
    return replace(SAVING, temporaries=temporaries, omitted=omitted)


SAVING = Form(suffix="saving", words="saving form", kind="SavingKernel", typed=_saving)

FORMS: Mapping[str, Form] = {form.suffix: form for form in (GRADIENT, TANGENT, BATCHED, PLACED, SAVING)}
"""By suffix."""
