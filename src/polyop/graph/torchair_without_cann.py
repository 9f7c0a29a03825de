"""Import torchair on a machine without CANN: graphs are built, and none is run."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.errors import HostError

_NATIVE = "torchair.core._torchair"
_STAND_IN = Path(__file__).parents[1] / "providers" / "npu" / "stand_in"
_numbers = itertools.count(1)


class _AnyAttribute(type):
    """A class whose unknown attributes are distinct numbers, as the native module's enumerations have."""

    def __getattr__(cls, name: str) -> int:
        if name.startswith("__"):
            raise AttributeError(name)
        number = next(_numbers)
        setattr(cls, name, number)
        return number


def _nothing(*_args: Any, **_kwargs: Any) -> str:
    return ""


class _AnyObject(metaclass=_AnyAttribute):
    """An object of the native module; every method takes any arguments and does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


class _Native(ModuleType):
    """Replaces torchair's native module: it has classes and functions of any name, which do nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value: Any = type(name, (_AnyObject,), {}) if name[:1].isupper() else _nothing
        setattr(self, name, value)
        return value


def rehearse() -> ModuleType:
    """Return torchair from the torch-npu wheel, imported without CANN.

    It is for tests. Converters can be registered, functions written by :func:`generate` run, and
    graphs are GE protobuf. Nothing is compiled or executed, and torchair finds everything
    compatible. If torchair is imported already, that module is returned.

    Set TORCH_DEVICE_BACKEND_AUTOLOAD=0 before PyTorch is imported: else PyTorch imports torch-npu,
    which fails without CANN. Raises ``HostError`` if torch-npu, or a package that torchair imports,
    is not installed, and with POLYOP_ASCEND=rehearse, where ``torchair`` is polyop's stand-in.
    """
    loaded = sys.modules.get("torchair")
    _refuse_stand_in(getattr(loaded, "__file__", None))
    if loaded is not None and hasattr(loaded, "register_fx_node_ge_converter"):
        return loaded
    spec = importlib.util.find_spec("torch_npu")
    if spec is None or not spec.submodule_search_locations:
        raise HostError(
            "torchair", "is part of torch-npu, which is not installed", hint="pip install torch-npu"
        )
    _refuse_stand_in(spec.origin)
    folder = Path(spec.submodule_search_locations[0]) / "dynamo"
    before = set(sys.modules)
    sys.modules[_NATIVE] = _Native(_NATIVE)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("torchair")
    except ImportError as problem:
        for name in set(sys.modules) - before:
            if name.split(".")[0] == "torchair":
                del sys.modules[name]
        hint = "torchair needs protobuf, packaging, sympy, pyyaml, attrs and decorator"
        raise HostError("torchair", f"could not be imported: {problem}", hint=hint) from problem
    finally:
        sys.path.remove(str(folder))


def _refuse_stand_in(file: str | None) -> None:
    """Raise ``HostError`` for a file of the packages that stand in for torch-npu."""
    if file is not None and _STAND_IN in Path(file).parents:
        rule = "is polyop's stand-in here, as POLYOP_ASCEND=rehearse says, and builds no graph"
        hint = "run it in a process without POLYOP_ASCEND, with torch-npu installed"
        raise HostError("torchair", rule, hint=hint)
