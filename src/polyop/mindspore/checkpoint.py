"""Checkpoints in MindSpore's format: it reads what is written here, and the other way round.

A file is a sequence of records, one per parameter: its name, its sizes, the name of its dtype and its
bytes. They are messages of MindSpore's ``checkpoint.proto`` in the encoding of Protocol Buffers. The few
fields are read and written here, because MindSpore's generated classes come with MindSpore only.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from ..build import atomic
from ..core.dtypes import dtype as dtype_named
from ..core.errors import ArgumentTypeError, ArgumentValueError
from . import dtype as dtypes
from .cell import Cell
from .parameter import Parameter
from .tensor import Tensor, data_of

SUFFIX = ".ckpt"
SLICE = 1 << 29
"""The bytes of a parameter that one record holds; a larger one has several records."""

# fields of the messages, as (number << 3) | kind of encoding
_VALUE, _NAME, _TENSOR = 0x0A, 0x0A, 0x12
_SIZE, _DTYPE, _CONTENT = 0x08, 0x12, 0x1A


def save_checkpoint(save_obj: Any, ckpt_file_name: str, append_dict: Mapping[str, Any] | None = None) -> None:
    """Write the parameters of a cell, a dictionary of them, or a list of ``{"name":, "data":}``.

    ``append_dict`` has more tensors and numbers by name. The suffix ``.ckpt`` is added if it is not there.

    An old file is replaced when the new one is complete. Raises ``ArgumentTypeError`` for other objects.
    """
    values = {**_by_name(save_obj), **(append_dict or {})}
    tensors = {n: v if isinstance(v, torch.Tensor) else Parameter(v) for n, v in values.items()}
    path = pathlib.Path(ckpt_file_name)
    path = path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)
    with atomic.replacing(path) as name, pathlib.Path(name).open("wb") as file:
        for key, tensor in tensors.items():
            file.writelines(_records(key, tensor))


def load_checkpoint(ckpt_file_name: str, net: Any = None) -> dict[str, Any]:
    """Return the parameters of a file by their names; with ``net``, write them into it too.

    Raises ``ArgumentValueError`` for a file that is not a checkpoint.
    """
    data = memoryview(pathlib.Path(ckpt_file_name).read_bytes())
    parts: dict[str, tuple[list[int], str, list[Any]]] = {}
    try:
        for field, record in _fields(data):
            name, sizes, kind, content = _read(field, record)
            part = parts.setdefault(name, (sizes, kind, []))
            _must_be_slice(name, part[:2], (sizes, kind))
            part[2].append(content)
        loaded = {name: _parameter(name, *part) for name, part in parts.items()}
    except (ValueError, IndexError, TypeError, UnicodeDecodeError, KeyError, AttributeError) as problem:
        rule = "must be a checkpoint of MindSpore's format, without encryption"
        raise ArgumentValueError("load_checkpoint", rule, f"{ckpt_file_name}: {problem}") from None
    if net is not None:
        load_param_into_net(net, loaded)
    return loaded


def load_param_into_net(net: Any, parameter_dict: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Write parameters into a cell by name; return the names without a partner: the cell's, the file's.

    Raises ``ArgumentValueError`` for a parameter of another shape; then none of them is written.
    """
    own = net.parameters_dict()
    values = {name: parameter_dict[name] for name in own if name in parameter_dict}
    values = {n: v if isinstance(v, torch.Tensor) else data_of(v, None) for n, v in values.items()}
    for name, value in values.items():
        if tuple(value.shape) != tuple(own[name].shape):
            rule = f"parameter {name} needs data of shape {tuple(own[name].shape)}"
            raise ArgumentValueError("load_param_into_net", rule, tuple(value.shape))
    for name, value in values.items():
        own[name].set_data(value)
    return [n for n in own if n not in parameter_dict], [n for n in parameter_dict if n not in own]


def _by_name(save_obj: Any) -> dict[str, Any]:
    if isinstance(save_obj, Cell):
        return dict(save_obj.parameters_dict())
    if isinstance(save_obj, Mapping):
        return dict(save_obj)
    if isinstance(save_obj, list) and all(
        isinstance(item, Mapping) and {"name", "data"} <= item.keys() for item in save_obj
    ):
        return {item["name"]: item["data"] for item in save_obj}
    rule = "save_obj must be a Cell, a dictionary of parameters or a list of {'name':, 'data':}"
    raise ArgumentTypeError("save_checkpoint", rule, type(save_obj).__name__)


def _records(name: str, tensor: Any) -> Iterator[bytes]:
    array = tensor.detach().asnumpy()
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    head = b"".join(bytes([_SIZE]) + _varint(size) for size in array.shape)
    head += _field(_DTYPE, str(tensor.dtype).encode())
    for start in range(0, max(len(content), 1), SLICE):
        body = head + _field(_CONTENT, bytes(content[start : start + SLICE]))
        yield _field(_VALUE, _field(_NAME, name.encode()) + _field(_TENSOR, body))


def _read(key: int, record: Any) -> tuple[str, list[int], str, Any]:
    if key != _VALUE:
        raise ValueError(f"field {key}")
    fields = dict(_fields(record))
    sizes: list[int] = []
    kind, content = "", memoryview(b"")
    for field, value in _fields(fields[_TENSOR]):
        if field == _SIZE:
            sizes.append(value)
        elif field == _DTYPE:
            kind = bytes(value).decode()
        elif field == _CONTENT:
            content = value
    return bytes(fields[_NAME]).decode(), sizes, kind, content


def _must_be_slice(name: str, first: tuple[list[int], str], other: tuple[list[int], str]) -> None:
    if first != other:
        raise ValueError(f"two parameters are named {name}: {first} and {other}")


def _parameter(name: str, sizes: list[int], kind: str, contents: list[Any]) -> Any:
    row = getattr(dtypes, kind.lower() if kind != "Bool" else "bool_")
    joined = bytearray().join(contents)
    array = np.frombuffer(joined, dtype_named(kind.lower()).numpy)
    shape = () if sizes == [0] and array.size == 1 else tuple(sizes)
    return Parameter(Tensor(array.reshape(shape), row), name=name)


def _field(key: int, content: bytes) -> bytes:
    return bytes([key]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _number(data: Any, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _fields(data: Any) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        value, at = _number(data, at)
        if key & 7 == 0:
            yield key, value
        elif key & 7 == 2 and at + value <= len(data):
            yield key, data[at : at + value]
            at += value
        else:
            raise ValueError(f"field {key} at byte {at}")
