"""Every member, on dask arrays in chunks, returns what it returns on NumPy arrays; its gradient too."""

import warnings

import cases
import numpy as np
import pytest
from test_contract import compare

import polyop
from polyop.core.errors import UnsupportedError
from polyop.kernels.module.kernel import ModuleKernel
from polyop.testing.case import as_list

da = pytest.importorskip("dask.array", reason="dask is not installed")


def on_chunks(case):
    """The case with each tensor in chunks of half its sizes."""
    return case.mapped(lambda _, x: da.from_array(x, chunks=tuple(max(1, size // 2) for size in x.shape)))


def pulled(case, grads):
    args, keywords = case.operator.schema.split(case.arguments)
    outputs, pull = case.bound.vjp(*args, **keywords)
    rows = pull(grads if isinstance(outputs, (tuple, list)) else grads[0])
    return [grad for row in rows for grad in (row if isinstance(row, (tuple, list)) else (row,))]


@pytest.mark.parametrize("name", cases.names("eager"))
def test_a_member_on_chunks(name):
    case = cases.all_members()[name].case
    args, keywords = case.operator.schema.split(on_chunks(case).arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", polyop.FallbackWarning)  # many members claim nothing
        if case.operator.schema.mutates:
            with pytest.raises(UnsupportedError, match="writes an argument in place"):
                case.bound(*args, **keywords)
            return
        results = as_list(case.bound(*args, **keywords))
    for number, (result, expected) in enumerate(zip(results, case.run(), strict=True)):
        compare(name, f"output {number}", result.compute(scheduler="sync"), expected)


@pytest.mark.parametrize("name", cases.names("differentiated"))
def test_the_gradient_of_a_member_on_chunks(name):
    case = cases.all_members()[name].case
    grads = cases.cotangents(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", polyop.FallbackWarning)
        if any(isinstance(kernel, ModuleKernel) for kernel in case.operator.kernels):
            with pytest.raises(UnsupportedError, match="records its gradient while it runs"):
                pulled(on_chunks(case), grads)
            return
        results = pulled(on_chunks(case), [da.from_array(np.asarray(grad), chunks=-1) for grad in grads])
    for number, (result, expected) in enumerate(zip(results, pulled(case, grads), strict=True)):
        assert (result is None) == (expected is None)
        if result is not None:
            compare(name, f"gradient {number}", result.compute(scheduler="sync"), expected)
