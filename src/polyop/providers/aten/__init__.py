"""Operators of PyTorch, and operators that other packages registered with it, looked up by name."""

from __future__ import annotations

import functools
from typing import Any

from ...call.bound import BoundOperator
from ...core.errors import ArgumentTypeError, HostError


def aten(name: Any, *, batch: Any = None, infer: Any = None) -> BoundOperator:
    """Return an operator of PyTorch as one that every host present can call.

    ``name`` is ``"leaky_relu"``, ``"add.Tensor"``, ``"torchvision::nms"``, or an object such as
    ``torch.ops.mine.op``. A name without an overload means the default one, else the one called
    ``Tensor``, else the only one. The same name always returns the same object. Its ``help()`` shows
    PyTorch's schema, and ``aten.search("roi")`` lists the names with a word in them.

    ``batch`` says how ``vmap`` is done on other hosts than PyTorch, as for ``polyop.operator``:
    ``"elementwise"`` or a function. It makes a new operator; gradients get no batch rule, and calls with
    ``size=`` or a key are refused.

    ``infer`` gives the shapes and dtypes of the outputs where PyTorch needs the data to find them, as
    ``linalg_lstsq`` in ``jax.jit``: as for ``polyop.operator``. It makes a new operator, too.

    PyTorch tensors are passed to PyTorch's own operator, with its autograd, ``vmap`` and compiler.
    Other tensors are passed by their memory; a result that is a view in PyTorch is a new tensor for
    them. For JAX a written argument is a result too, also the running statistics of batch norm in
    training: they come last.

    >>> import numpy as np
    >>> aten("leaky_relu")(np.array([-1.0, 2.0]), 0.5)
    array([-0.5,  2. ])

    A result that is no tensor (bool, int, float) is a Python value, and a dtype is its name. While JAX
    traces a program, such a result of data raises ``InferError``; one of shapes or dtypes is known.

    Where the shape of a result depends on data, ``size=`` gives it a fixed one: the result is cut, or
    filled with ``fill_value=``. Programs that JAX compiles need it.

    >>> aten("nonzero")(np.array([0, 5, 7]), size=3, fill_value=-1)
    array([[ 1],
           [ 2],
           [-1]])

    An operator without a tensor among its arguments returns an array of ``host=``, which is ``"numpy"``,
    ``"torch"``, ``"jax"`` or ``"mindspore"``, or of the framework of ``like=``. A graph of MindSpore takes no
    ``host=``: call it before, as the result is a constant. One that draws random numbers takes a key as
    ``generator=``: ``jax.random.key(0)``, or an array of one or two integers. The same key gives the same
    numbers in every mode. A compiled program and a gradient need one.

    >>> aten("arange")(3, host="numpy")
    array([0, 1, 2])

    Raises ``ArgumentValueError`` for a name that PyTorch does not know or that needs an
    overload, ``UnsupportedError`` for a type that only PyTorch has, such as a class of TorchScript,
    and ``HostError`` without PyTorch.
    """
    _need_torch(f"aten({name!r})")
    import torch

    from .operator import compiled_call, find

    if torch.compiler.is_compiling():  # torch.compile traces this branch; batch= is for other hosts
        return functools.partial(compiled_call, name)  # type: ignore[return-value]
    return find(name, batch, infer)


def search(word: str) -> list[str]:
    """Return the names with ``word`` in them that :func:`aten` takes, of all namespaces; perhaps none.

    It is ``polyop.aten.search``. Upper and lower case are equal.

    >>> search("leaky_relu_backward")
    ['aten::leaky_relu_backward', 'aten::leaky_relu_backward.grad_input']

    Raises ``HostError`` without PyTorch.
    """
    if not isinstance(word, str):
        raise ArgumentTypeError("aten.search", "takes a word", repr(word))
    _need_torch("the list of PyTorch's operators")
    from .overloads import names_with

    return names_with(word)


aten.search = search  # type: ignore[attr-defined]


def listing(word: str = "") -> list[tuple[str, str]]:
    """Return (schema, reason) for each operator with ``word`` in its name.

    The reason says why :func:`aten` refuses the operator, or is "". Without a word the list has the
    operators of ``aten::`` only, otherwise those of all namespaces.
    Raises ``HostError`` without PyTorch.
    """
    _need_torch("the list of PyTorch's operators")
    from .overloads import matching

    return matching(word)


def spelled(name: str) -> str | None:
    """Return PyTorch's spelling of a name that is written in another way; None if it has no such operator.

    >>> spelled("LogAddExp"), spelled("MaxDim"), spelled("EqTensor")
    ('logaddexp', 'max.dim', 'eq.Tensor')

    Raises ``HostError`` without PyTorch.
    """
    _need_torch("the list of PyTorch's operators")
    from .overloads import by_letters, letters

    return by_letters().get(letters(name))


def _need_torch(subject: str) -> None:
    try:
        import torch  # noqa: F401 - the files of this folder import it
    except ImportError as problem:
        rule = f"needs PyTorch, which cannot be imported ({problem})"
        raise HostError(subject, rule, hint="pip install torch") from problem
