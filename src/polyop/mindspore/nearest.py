"""The error for a name that polyop.mindspore does not have, with the nearest name that it has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

# PyTorch's name: MindSpore's name; of cells in nn, and of the package
OF_NN = {
    "Linear": "nn.Dense",
    "Module": "nn.Cell, with construct in place of forward",
    "ModuleList": "nn.CellList",
    "Sequential": "nn.SequentialCell",
    "Parameter": "ms.Parameter",
    "NLLLoss": "ops.nll_loss, a function",
    "BCEWithLogitsLoss": "ops.binary_cross_entropy_with_logits, a function",
    "functional": "ops, as in ops.relu",
}
OF_ALL = {
    "autograd": "ms.grad, and ms._Function for a gradient of one's own",
    "compile": "ms.jit",
    "from_numpy": "ms.Tensor(array)",
    "manual_seed": "ms.set_seed",
    "no_grad": "ops.stop_gradient",
    "optim": "nn, as in nn.SGD",
}


def missing(
    module: str, name: str, names: Iterable[str], of_pytorch: Mapping[str, str] | None = None
) -> AttributeError:
    """Return the error for ``module.name``; ``of_pytorch`` has MindSpore's names for PyTorch's.

    >>> print(missing("polyop.mindspore.ops", "Sigmoids", ["Sigmoid", "Mul"]))
    module 'polyop.mindspore.ops' has no attribute 'Sigmoids': this layer has what \
custom-operator programs use, and MindSpore itself the rest; the nearest is 'Sigmoid'
    """
    if of_pytorch and name in of_pytorch:
        text = f"module {module!r} has no attribute {name!r}, which is PyTorch's name"
        return AttributeError(f"{text}; MindSpore's is {of_pytorch[name]}")
    # compare without regard to case; of Relu and relu, the later entry, with the same initial, wins
    candidates = sorted(names, key=lambda other: other[:1].isupper() == name[:1].isupper())
    by_lower = {other.lower(): other for other in candidates if not other.startswith("_")}
    nearest = " or ".join(repr(by_lower[c]) for c in _close(name.lower(), by_lower))
    text = (
        f"{'class' if module == 'Tensor' else 'module'} {module!r} has no attribute {name!r}: this layer has "
    )
    text += "what custom-operator programs use, and MindSpore itself the rest"
    return AttributeError(f"{text}; the nearest is {nearest}" if nearest else text)


def _close(name: str, others: Iterable[str]) -> list[str]:
    """Return at most three names near to ``name``: first those that it shortens, or that shorten it.

    >>> _close("absolute", ["outer", "abs"]), _close("absolut", ["outer"])
    (['abs'], [])
    """
    others = list(others)
    short = [o for o in others if min(len(o), len(name)) > 2 and (name.startswith(o) or o.startswith(name))]
    short.sort(key=lambda other: abs(len(other) - len(name)))
    close = difflib.get_close_matches(name, others, n=3, cutoff=0.75 if short else 0.6)
    return list(dict.fromkeys([*short, *close]))[:3]
