"""Compare values with a reference, across frameworks, and for other layouts and sizes of the inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.sizes import real_shape
from . import frameworks
from .case import Case, Check, NotRunError, one_line
from .compare import close, same_bits, same_specs
from .crash import must_refuse_politely
from .memory_layouts import NUMPY_LAYOUTS, TORCH_LAYOUTS, Layout
from .sizes import reshaped, resized


def against_reference(case: Case) -> str | None:
    """Compare with the reference, in the sample's sizes and others."""
    expected = case.expected()
    if expected is None:
        raise NotRunError("no reference (give reference=, to check or to the operator)")
    close(case, "the operator", case.run(), expected, "the reference")
    remark = None
    for variant in resized(case):
        try:
            results = variant.run()
            reference = variant.expected()
        except Exception as problem:  # noqa: BLE001 - other sizes may be refused in any way
            remark = f"other sizes are refused: {one_line(problem)}"
            continue
        assert reference is not None
        close(variant, f"the operator for {variant}", results, reference, "the reference")
    return remark


def across_hosts(case: Case, host: str) -> None:
    """Compare a framework's results with NumPy's, or with the reference's where no kernel runs on the CPU."""
    if "numpy" not in case.hosts:
        raise NotRunError("hosts= leaves out numpy")
    other = "NumPy" if case.has_cpu_kernel else "the reference"
    close(case, frameworks.FRAMEWORKS[host], frameworks.load(host).run(case), case.on_cpu(), other)


def _each_tensor(case: Case) -> Iterator[str]:
    """Yield the names of the tensors that have another layout at all."""
    return (name for name, value in case.tensors() if value.ndim and value.size)


def numpy_layouts(case: Case) -> None:
    """Compare each layout of each input with a dense copy of the same values."""

    def run(variant: Case, name: str, layout: Callable[[Any], Any]) -> list[Any]:
        if case.writes(name) and layout.__name__ == "expanded":
            return variant.run()  # elements that share memory cannot be written one by one
        arguments = variant.map(lambda n, x: layout(x) if n == name else x.copy())
        return [np.asarray(x) for x in variant.call(arguments)]

    _layouts(case, NUMPY_LAYOUTS, run, Case.run)


def torch_layouts(case: Case) -> None:
    """Compare each layout of each tensor with a dense copy of the same values."""
    from .frameworks import torch as framework
    from .frameworks import torch_tensors

    def run(variant: Case, name: str, layout: Callable[[Any], Any]) -> list[Any]:
        if case.writes(name) and layout.__name__ == "torch_expanded":
            return framework.run(variant)

        def tensor(n: str, value: Any) -> Any:
            dense = torch_tensors.to_torch(value, case.torch_device)
            return layout(dense) if n == name else dense

        return torch_tensors.to_arrays(variant.call(variant.map(tensor)))

    _layouts(case, TORCH_LAYOUTS, run, framework.run)


def _layouts(case: Case, layouts: Any, run: Any, dense: Any) -> None:
    names = list(_each_tensor(case))
    if not names:
        raise NotRunError("the sample has no tensor of at least one dimension")
    for name in names:
        for label, change, layout in layouts:
            variant = case if change is None else _changed(case, name, change)
            what = f"{name} with {label}"
            same_bits(what, run(variant, name, layout), dense(variant), "a dense copy of the same values")


def zero_size(case: Case) -> str | None:
    """Call with each size of the sample replaced by 0, one by one; outputs must have the inferred specs."""
    sizes = sorted({size for _, value in case.tensors() for size in value.shape})
    variants = [_zeroed(case, size) for size in sizes]
    return _accepted(variants, "zero-size inputs")


def _changed(case: Case, name: str, change: Layout) -> Case:
    return case.mapped(lambda other, value: change(value) if other == name else value)


def _zeroed(case: Case, zero: int) -> Case:
    return reshaped(case, lambda shape: tuple(0 if size == zero else size for size in shape))


def zero_dimensional(case: Case) -> str | None:
    """Call with 0-dimensional inputs; outputs must have the inferred specs and the reference's values."""
    return _accepted([reshaped(case, lambda _: ())], "0-dimensional inputs")


def _accepted(variants: list[Case], what: str) -> str | None:
    """Check the variants that the operator accepts; it may refuse others with an error."""
    refused: list[str] = []
    for variant in variants:
        must_refuse_politely(variant)
        try:
            expected = variant.prepare().outputs
            results = variant.run()
        except Exception as problem:  # noqa: BLE001 - an operator may refuse them in any way
            refused.append(one_line(problem))
            continue
        fresh = results[: len(expected)]
        rows = zip(expected, fresh, strict=True)
        empty = [np.empty(real_shape(spec.shape, x.shape), spec.dtype.numpy) for spec, x in rows]
        same_specs(f"the operator for {variant}", fresh, empty, "the infer rule")
        try:
            reference = variant.expected()
        except Exception:  # noqa: BLE001, S112 - a reference may refuse inputs that a kernel takes
            continue
        if reference is not None:
            close(variant, f"the operator for {variant}", results, reference, "the reference")
    if len(refused) == len(variants):
        raise NotRunError(f"{what} are refused: {refused[0]}" if refused else "the sample has no sizes")
    return f"some {what} are refused: {refused[0]}" if refused else None


CHECKS = (
    Check("values, reference", "numpy", against_reference),
    *(
        Check("values, across hosts", host, functools.partial(across_hosts, host=host))
        for host in frameworks.FRAMEWORKS
        if host != "numpy"
    ),
    Check("layouts", "numpy", numpy_layouts),
    Check("layouts", "torch", torch_layouts),
    Check("zero-size", "numpy", zero_size),
    Check("0-dimensional", "numpy", zero_dimensional),
)
