"""torchair on a machine without CANN: graphs are built, and no graph runs."""

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
_numbers = itertools.count(1)


class _AnyAttribute(type):
    """A class whose unknown attributes are numbers, all different: enumerations of the native module."""

    def __getattr__(cls, name: str) -> int:
        if name.startswith("__"):
            raise AttributeError(name)
        number = next(_numbers)
        setattr(cls, name, number)
        return number


def _nothing(*_args: Any, **_kwargs: Any) -> str:
    return ""


class _AnyObject(metaclass=_AnyAttribute):
    """What a class of the native module makes: every method takes anything and does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


class _Native(ModuleType):
    """Stands for torchair's native module: classes and functions of any name, and no runtime behind."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made: Any = type(name, (_AnyObject,), {}) if name[:1].isupper() else _nothing
        setattr(self, name, made)
        return made


def rehearse() -> ModuleType:
    """Return torchair from the torch-npu wheel, imported without CANN.

    For tests: converters register, functions that :func:`generate` wrote run, and graphs are
    GE protobuf; nothing is compiled or executed, and every compatibility question is
    answered with yes. A torchair that is imported already is returned as it is.

    The process needs TORCH_DEVICE_BACKEND_AUTOLOAD=0, as PyTorch imports torch-npu otherwise,
    which fails without CANN. Raises ``HostError`` where torch-npu, or what torchair imports,
    is not installed.
    """
    loaded = sys.modules.get("torchair")
    if loaded is not None and hasattr(loaded, "register_fx_node_ge_converter"):
        return loaded
    spec = importlib.util.find_spec("torch_npu")
    if spec is None or not spec.submodule_search_locations:
        raise HostError(
            "torchair", "is part of torch-npu, which is not installed", hint="pip install torch-npu"
        )
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
