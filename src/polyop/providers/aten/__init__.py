"""PyTorch's operators, and those that others registered with PyTorch, by name."""

from __future__ import annotations

from typing import Any

from ...call.bound import BoundOperator
from ...core.errors import HostError


def aten(name: Any) -> BoundOperator:
    """Return an operator of PyTorch as one that every host present can call.

    ``name`` is ``"leaky_relu"``, ``"add.Tensor"``, ``"torchvision::nms"``, or an object such as
    ``torch.ops.mine.op``. Without an overload the default one is taken, or else the one called
    ``Tensor``, or else the only one. Asking twice gives the same object.

    PyTorch tensors reach PyTorch's own operator, with its own autograd, ``vmap`` and compiler.
    Other tensors are passed by their memory; what is a view in PyTorch is a new tensor there.

    >>> import numpy as np
    >>> aten("leaky_relu")(np.array([-1.0, 2.0]), 0.5)
    array([-0.5,  2. ])

    Raises ``ArgumentValueError`` for a name that PyTorch does not know or that needs an
    overload, ``UnsupportedError`` for an operator whose results are no tensors, and
    ``HostError`` without PyTorch.
    """
    _need_torch(f"aten({name!r})")
    from .operator import find

    return find(name)


def listing(word: str = "") -> list[tuple[str, str]]:
    """Return schema, and why :func:`aten` refuses it or "", of each operator with ``word`` in its name.

    Without a word these are the operators of ``aten::`` alone, otherwise those of every namespace.
    Raises ``HostError`` without PyTorch.
    """
    _need_torch("the list of PyTorch's operators")
    from .names import matching

    return matching(word)


def _need_torch(subject: str) -> None:
    try:
        import torch  # noqa: F401 - what follows needs it
    except ImportError as problem:
        rule = f"needs PyTorch, which cannot be imported ({problem})"
        raise HostError(subject, rule, hint="pip install torch") from problem
