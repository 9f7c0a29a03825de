"""Meshes and layouts as programs write them: names of mesh axes, or values of PyTorch and of JAX.

    mesh        {"data": 2, "model": 4}, a DeviceMesh of PyTorch, a Mesh of JAX
    layout      ("data", None)           for each dimension of the tensor the mesh axes that split it
                PartitionSpec("data")    the same in JAX, alone or in a NamedSharding
                [Shard(0), Replicate()]  for each axis of the mesh a placement, PyTorch's or polyop's
                None                     the whole tensor on each device

Values of frameworks are recognised by their attributes; no framework is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentTypeError, ArgumentValueError
from .placement import REPLICATE, Partial, Placement, Placements, Replicate, Shard

Mesh = dict[str, int]
"""The number of devices along each axis of a mesh, by its name."""
_OPS = ("sum", "max", "min")


def mesh_axes(mesh: Any) -> Mesh:
    """Return the axes of a mesh; those of a ``DeviceMesh`` without names are ``"0"``, ``"1"``, ...

    Raises ``ArgumentTypeError`` for what is no mesh, and ``ArgumentValueError`` for a size below 1.

    >>> mesh_axes({"data": 2, "model": 4})
    {'data': 2, 'model': 4}
    """
    shape = mesh if isinstance(mesh, Mapping) else getattr(mesh, "shape", None)
    if isinstance(shape, Mapping):  # polyop's, or Mesh.shape of JAX
        axes = {str(name): size for name, size in shape.items()}
    elif hasattr(mesh, "mesh_dim_names") and shape is not None:  # DeviceMesh
        names = mesh.mesh_dim_names or map(str, range(len(shape)))
        axes = dict(zip(names, map(int, shape), strict=True))
    else:
        rule = 'must be sizes by name, as {"data": 2, "model": 4}, a DeviceMesh or a Mesh of JAX'
        raise ArgumentTypeError("mesh", rule, type(mesh).__name__)
    for name, size in axes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ArgumentValueError("mesh", f"the axis {name!r} must have 1 device or more", repr(size))
    return axes


def layout_of(value: Any, mesh: Mesh, dimensions: Sequence[str], subject: str) -> Placements:
    """Return the placements of a tensor on a mesh.

    ``dimensions`` are the names of the tensor's dimensions in messages, and ``subject`` begins them. Raises
    ``ArgumentTypeError`` and ``ArgumentValueError`` for what is no layout of such a tensor.

    >>> layout_of((None, "model"), {"data": 2, "model": 4}, ("b", "i"), "x")
    (Replicate(), Shard(dim=1))
    """
    value = getattr(value, "spec", value)  # a NamedSharding
    if value is None:
        return (REPLICATE,) * len(mesh)
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        rule = 'must have an entry for each dimension, as ("data", None), or a placement for each mesh axis'
        raise ArgumentTypeError(subject, rule, repr(value))
    entries = tuple(value)
    if any(_is_placement(entry) for entry in entries):
        return _by_axis(entries, mesh, dimensions, subject)
    return _by_dimension(entries, mesh, dimensions, subject)


def _is_placement(entry: Any) -> bool:
    return isinstance(entry, Placement) or hasattr(entry, "is_shard")


def _by_dimension(entries: Sequence[Any], mesh: Mesh, dimensions: Sequence[str], subject: str) -> Placements:
    """Return the placements of a layout that has the mesh axes of each dimension; missing ones are whole."""
    if len(entries) > len(dimensions):
        rule = f"the layout may have {_count(dimensions)}"
        raise ArgumentValueError(subject, rule, f"{entries} with {len(entries)}")
    placements: dict[str, Placement] = {}
    for number, entry in enumerate(entries):
        for name in _names(entry, subject):
            if name not in mesh:
                rule = f"dimension {dimensions[number]} can be split over the mesh axes {', '.join(mesh)}"
                raise ArgumentValueError(subject, rule, repr(name))
            before = placements.get(name)
            if isinstance(before, Shard):
                rule = f"the mesh axis {name!r} may split one dimension"
                seen = f"{dimensions[before.dim]} and {dimensions[number]}"
                raise ArgumentValueError(subject, rule, seen)
            placements[name] = Shard(number)
    return tuple(placements.get(name, REPLICATE) for name in mesh)


def _count(dimensions: Sequence[str]) -> str:
    entries = "1 entry" if len(dimensions) == 1 else f"{len(dimensions)} entries"
    return f"{entries}, one for each dimension ({', '.join(dimensions)})" if dimensions else "no entries"


def _names(entry: Any, subject: str) -> Iterator[str]:
    """Yield the mesh axes that split one dimension."""
    if entry is None:
        return
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, (tuple, list)):
        yield from map(str, entry)
    else:
        rule = "an entry of the layout must be a mesh axis, a tuple of them, or None"
        raise ArgumentTypeError(subject, rule, repr(entry))


def _by_axis(entries: Sequence[Any], mesh: Mesh, dimensions: Sequence[str], subject: str) -> Placements:
    """Return the placements of a layout that has one for each mesh axis."""
    if len(entries) != len(mesh):
        rule = f"needs {len(mesh)} placements, one for each mesh axis ({', '.join(mesh)})"
        raise ArgumentValueError(subject, rule, f"{len(entries)}")
    return tuple(_placement(entry, len(dimensions), subject) for entry in entries)


def _placement(entry: Any, rank: int, subject: str) -> Placement:
    """Return one placement, of PyTorch or of polyop."""
    kind = type(entry).__name__
    if isinstance(entry, Replicate) or kind == "Replicate":
        return REPLICATE
    if kind == "Shard":
        dim = entry.dim + rank if entry.dim < 0 else entry.dim
        if not 0 <= dim < rank:
            raise ArgumentValueError(subject, f"has {rank} dimensions", repr(entry))
        return Shard(dim)
    op = entry.op if isinstance(entry, Partial) else getattr(entry, "reduce_op", "")
    if kind == "Partial" and op in _OPS:
        return Partial(op)
    rule = f"a placement must be Shard, Replicate, or Partial with one of {', '.join(_OPS)}"
    raise ArgumentTypeError(subject, rule, repr(entry))
