"""The base of kernels that are a C function: of seven arguments (`polyop/abi.h`) or of another kind."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from ..core.dtypes import DTYPES
from ..core.errors import KernelError
from ..core.lru_cache import LruCache
from ..core.spec import Spec
from .base import Accepts, KernelBase, flatten

ROW_OF_DTYPE = {row.name: number for number, row in enumerate(DTYPES)}
"""Name of a dtype -> its number in the native core."""
MOST_LAUNCHES, MOST_WITH_INIT = 8192, 128
"""How many launches a kernel keeps: one takes about a kilobyte, but what ``Init`` keeps has no known size."""
_kept: dict[int, Any] = {}
"""Owners of code, by ``id``. Programs may call it as long as the process lives, like that of a library."""


def keep(owner: Any, address: int) -> None:
    """Keep a function as long as the process lives: the object that owns it, and the library it is in.

    An object need not own its library: cffi closes the one of a function whose ``Lib`` is dropped.
    """
    _kept[id(owner)] = owner
    file, _, _ = _core.symbol_at(address)
    if not file:
        return
    try:
        ctypes.CDLL(file, mode=os.RTLD_NOW | os.RTLD_NOLOAD | os.RTLD_NODELETE)
    except OSError:  # the program itself, or a library whose file is gone: the name leads to no library
        return


def read_capsule(capsule: Any) -> tuple[bytes | None, int]:
    """Return the name of a capsule and its pointer, 0 for a null pointer."""
    api = ctypes.pythonapi  # prototypes of its own: those of pythonapi belong to the whole process
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    name = get_name(capsule)
    return name, get_pointer(capsule, name) or 0


class CFunctionKernel(KernelBase):
    """The C function called ``name`` at an address; a subclass says where it comes from."""

    accepts: Accepts

    strings = ""
    """The std::string of the object that ``extra`` points to, "old" or "new"; "" for polyop's C struct."""

    def __init__(self, address: int, name: str, accepts: Accepts) -> None:
        self._address, self.name, self.accepts = address, name, accepts
        self._launches: LruCache[Any] = LruCache(MOST_LAUNCHES)

    @property
    def address(self) -> int:
        """Where the function is in this process."""
        return self._address

    @property
    def native(self) -> bool:
        """Whether the core calls it without Python: always."""
        return True

    @property
    def device(self) -> str:
        """The device type it runs on."""
        return self.accepts.device

    @property
    def has_infer_shape(self) -> bool:
        """Whether a function beside it infers the shapes of outputs."""
        return False

    @property
    def has_infer_type(self) -> bool:
        """Whether a function beside it infers the dtypes of outputs."""
        return False

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why these specs are refused, or None."""
        del outputs
        return self.accepts.refuse(inputs)

    def launch(self, inputs: Sequence[Any], outputs: tuple[Spec, ...], attributes: Mapping[str, Any]) -> Any:
        """Return the native launch for these specs; ``initialise`` runs once for each set of them.

        Raises ``KernelError`` when that fails.
        """
        return self._cached_launch(inputs, outputs, attributes, allocates=True)

    def _cached_launch(
        self,
        inputs: Sequence[Any],
        outputs: tuple[Spec, ...],
        attributes: Mapping[str, Any],
        *,
        allocates: bool,
    ) -> Any:
        specs = tuple(flatten(inputs))
        key = (specs, outputs, repr(attributes), allocates)  # the order of attributes may matter
        launch = self._launches.get(key)
        if launch is None:
            rows = [(list(spec.shape), ROW_OF_DTYPE[spec.dtype.name]) for spec in outputs if allocates]
            launch = self.new_launch(specs, outputs, attributes, rows)
            self._launches.put(key, launch)
        return launch

    def launch_into(
        self, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Mapping[str, Any]
    ) -> Any:
        """Return the launch for these specs that gets the outputs from its caller, behind the inputs."""
        return self._cached_launch(inputs, tuple(outputs), attributes, allocates=False)

    def new_launch(
        self,
        inputs: tuple[Spec | None, ...],
        outputs: tuple[Spec, ...],
        attributes: Mapping[str, Any],
        allocated: list[tuple[list[int], int]],
    ) -> Any:
        """Return a new launch, which allocates outputs of these shapes and rows of dtypes."""
        extra = self.extra_of(attributes)
        self.initialise([*inputs, *outputs], extra)
        return _core.make_launch(self._address, allocated, extra, str(self))

    def initialise(self, specs: Sequence[Spec | None], extra: Any) -> None:
        """Prepare the kernel for specs: a subclass runs the function's ``Init``."""

    def extra_of(self, attributes: Mapping[str, Any]) -> Any:
        """Return what ``extra`` points to; raises ``KernelError`` for an attribute that C cannot have."""
        try:
            return _core.make_extra(dict(attributes), self.strings)
        except TypeError as problem:
            raise KernelError(self, f"an attribute cannot be passed to it: {problem}") from None
