"""Compare compiled and batched calls with plain ones, and run PyTorch's own operator checks."""

from __future__ import annotations

import functools

from . import frameworks
from .case import BrokenRuleError, Case, Check, NotRunError
from .compare import close, near


def compiled(case: Case, host: str) -> None:
    """Compare a call inside a compiled program with an eager one."""
    framework = frameworks.load(host)
    close(case, "the compiled call", framework.compiled(case), framework.run(case), "the eager call")


def compiled_gradient(case: Case, host: str) -> None:
    """Compare gradients from a compiled program with eager ones."""
    case.need_gradient()
    framework = frameworks.load(host)
    rng = case.rng("compiled gradient")
    cotangents = [rng.standard_normal(x.shape).astype(x.dtype) for x in case.run()]
    expected = framework.gradients(case, cotangents)
    for number, (name, grad) in enumerate(framework.compiled_gradients(case, cotangents).items()):
        other = expected[name]
        if (grad is None) != (other is None):
            raise BrokenRuleError(f"gradient of {name}: must exist in both", "one of them")
        if grad is not None and other is not None:
            what = f"the compiled gradient of {name}"
            tolerance = case.tolerance(grad.dtype)
            near(what, number, grad, other, tolerance=tolerance, other="the eager call")


def batched(case: Case, host: str) -> str | None:
    """Compare a batched call of three samples with one call each."""
    import numpy as np

    if not list(case.tensors()):
        raise NotRunError("the sample has no tensor")

    def rolled(k: int) -> Case:
        return case.mapped(lambda _, x: np.roll(x, k) if x.ndim else x)

    samples = [rolled(k) for k in range(3)]
    each = [sample.run() for sample in samples]
    expected = [np.stack(column) for column in zip(*each, strict=True)]
    close(case, "the batched call", frameworks.load(host).batched(samples), expected, "one call per sample")
    return None if case.operator.batch is not None else "by one call per sample"


def opcheck(case: Case) -> str | None:
    """Run ``torch.library.opcheck`` on the registered operator."""
    from .frameworks import torch_compiler

    return torch_compiler.opcheck(case)


_COMPILERS = ("torch", "jax", "mindspore", "paddle")
CHECKS = (
    *(Check("compiled", host, functools.partial(compiled, host=host)) for host in _COMPILERS),
    *(
        Check("compiled, gradient", host, functools.partial(compiled_gradient, host=host))
        for host in _COMPILERS
    ),
    *(Check("batched", host, functools.partial(batched, host=host)) for host in ("torch", "jax")),
    Check("opcheck", "torch", opcheck),
)
