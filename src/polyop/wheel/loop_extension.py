"""``LoopExtension``: the loop kernels that a setup.py has compiled into a wheel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from setuptools import Extension

from ..core.errors import ArgumentTypeError, ArgumentValueError
from .signatures import FORM, Signature, check_dtype, is_general, signature


class LoopExtension(Extension):  # type: ignore[misc]
    """The loop kernels of one Python module, compiled ahead of time for every instruction set.

    ``name``       the module, such as ``myops.kernels``. It is imported when the wheel is built.
    ``functions``  a signature, or a list of them, for the name of each function to compile:
                   ``{"scale": "T[:,:], float"}``. A tensor is a dtype with a colon for each dimension, a
                   number is ``int``, ``float`` or ``bool``. ``T[...]`` has the dimensions
                   that uses in the loops tell. An optional tensor that is missing is ``None``,
                   and a string is its value: ``"T[:], None, 'mean'"``. The last numbers may be left out
                   if they have defaults.
    ``dtypes``     the dtypes that ``T`` stands for.
    ``gradients``  the functions whose derived gradient is compiled too, for every signature.

    >>> LoopExtension("myops.kernels", {"scale": "T[:], float"}, dtypes=["float32"]).signatures
    {'scale': [Signature(tensors=(('float32', 1),), numbers=(<class 'float'>,))]}

    Raises ``ArgumentTypeError`` and ``ArgumentValueError`` for arguments that cannot be used.
    """

    def __init__(
        self,
        name: str,
        functions: Mapping[str, str | Sequence[str]],
        *,
        dtypes: Sequence[str] = ("float32", "float64"),
        gradients: Sequence[str] = (),
    ) -> None:
        """Check the arguments."""
        if not all(part.isidentifier() for part in name.split(".")):
            raise ArgumentValueError("LoopExtension", "its name must be that of a module", repr(name))
        subject = f"LoopExtension {name}"
        if not isinstance(functions, Mapping) or not functions:
            rule = "needs the signatures of its functions"
            raise ArgumentTypeError(subject, rule, repr(functions), hint='{"scale": "T[:,:], float"}')
        if isinstance(dtypes, str):
            raise ArgumentTypeError(subject, "dtypes must be a list", repr(dtypes), hint=f"[{dtypes!r}]")
        for dtype in dtypes:
            check_dtype(f"{subject}: dtypes", dtype)
        self.signatures = {
            function: _signatures(f"{subject}: {function}", texts, dtypes)
            for function, texts in functions.items()
        }
        self.gradients = _listed(subject, gradients, functions)
        super().__init__(name, [])


def _listed(subject: str, gradients: Sequence[str], functions: Mapping[str, object]) -> list[str]:
    if isinstance(gradients, str):
        rule = "gradients must be a list"
        raise ArgumentTypeError(subject, rule, repr(gradients), hint=f"[{gradients!r}]")
    unknown = [name for name in gradients if name not in functions]
    if unknown:
        raise ArgumentValueError(subject, "gradients must name functions of the list", repr(unknown[0]))
    return list(gradients)


def _signatures(subject: str, texts: str | Sequence[str], dtypes: Sequence[str]) -> list[Signature]:
    signatures: list[Signature] = []
    for text in [texts] if isinstance(texts, str) else texts:
        if not isinstance(text, str):
            raise ArgumentTypeError(subject, "a signature must be a text", repr(text), hint=FORM)
        signatures += (signature(subject, text, dtype) for dtype in (dtypes if is_general(text) else ("",)))
    if not signatures:
        raise ArgumentValueError(subject, "needs a signature, and a dtype for T", hint=FORM)
    return list(dict.fromkeys(signatures))
