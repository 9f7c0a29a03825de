"""PyTorch extensions of the package index that register operators: how each is built, and calls of its operators.

A call has NumPy arguments and a reference: plain PyTorch, or the package's own Python. ``jit`` and ``gradient``
are True, or the words of the error: an operator whose shapes depend on data, or without a gradient, has to say so.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

DATA = "does not know the shapes of its outputs without running it"
NO_GRADIENT = "has no gradient: its author registers none in PyTorch"


@dataclass(frozen=True)
class Call:
    """A call of one operator. ``infer`` is a rule for JAX, where the package registers no fake."""

    operator: str
    arguments: Sequence[Any]
    reference: Callable[..., Any]
    gradient: bool | str = False
    jit: bool | str = True
    infer: Any = None


@dataclass(frozen=True)
class Package:
    """A package: its sources (globs), flags, and the places where its Python expects the library.

    ``left_out`` are files of the archive that describe the build of its author.
    """

    name: str
    version: str
    sources: Sequence[str]
    calls: Callable[[], Sequence[Call]]
    include_paths: Sequence[str] = ()
    cflags: str = ""
    ldflags: str = ""
    links: Sequence[str] = ()
    module: str = ""
    folder: str = "."
    left_out: Sequence[str] = ()


def _numbers(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(len(shape)).uniform(0.1, 0.9, shape).astype(dtype)


def _spec(shape: Sequence[int], dtype: Any) -> Any:
    import polyop

    return polyop.Spec(tuple(shape), dtype)


def _scatter() -> Sequence[Call]:
    import torch

    x, rows = _numbers(6, 3), np.array([0, 0, 1, 2, 2, 1])
    index = np.repeat(rows[:, None], 3, 1)

    def resized(src: Any, index: Any, dim: int, out: Any, size: int) -> Any:
        return _spec([size if n == dim else old for n, old in enumerate(src.shape)], src.dtype)

    def with_argument(*arguments: Any) -> Any:
        return resized(*arguments), _spec(resized(*arguments).shape, "int64")

    def summed(x: Any, index: Any, *_: Any) -> Any:
        return torch.zeros(3, 3).index_add(0, index[:, 0], x)

    def largest(x: Any, index: Any, *_: Any) -> Any:
        return torch.zeros(3, 3).scatter_reduce(0, index, x, "amax", include_self=False)

    def segments(x: Any, starts: Any, _: Any) -> Any:
        return torch.stack([x[i:j].sum(0) for i, j in itertools.pairwise(starts)])

    return [
        Call("scatter_sum", [x, index, 0, None, 3], summed, gradient=True, infer=resized),
        Call("scatter_max", [x, index, 0, None, 3], largest, gradient=True, infer=with_argument),
        Call("scatter_mul", [x, index, 0, None, None], lambda x, i, *_: torch.zeros(3, 3).scatter_reduce(
            0, i, x, "prod", include_self=False), jit=DATA),
        Call("segment_sum_csr", [x, np.array([0, 2, 5, 6]), None], segments, gradient=True,
             infer=lambda x, starts, _: _spec((starts.shape[0] - 1, *x.shape[1:]), x.dtype)),
    ]  # fmt: skip


def _spline() -> Sequence[Call]:
    import torch
    import torch_spline_conv as package

    pseudo, sizes, is_open = _numbers(5, 2), np.array([4, 4]), np.array([1, 1], np.uint8)
    basis, knots = package.spline_basis(*map(torch.tensor, (pseudo, sizes, is_open)), 1)

    def weighted(x: Any, weight: Any, basis: Any, knots: Any) -> Any:
        return torch.einsum("es,ei,esio->eo", basis, x, weight[knots])

    return [
        Call("spline_basis", [pseudo, sizes, is_open, 1], package.spline_basis, gradient=True,
             infer=lambda p, k, o, degree: (
                 _spec((p.shape[0], (degree + 1) ** p.shape[1]), p.dtype),
                 _spec((p.shape[0], (degree + 1) ** p.shape[1]), "int64"))),
        Call("spline_weighting", [_numbers(5, 3), _numbers(16, 3, 2), basis.numpy(), knots.numpy()], weighted,
             gradient=True, infer=lambda x, w, b, i: _spec((x.shape[0], w.shape[2]), x.dtype)),
    ]  # fmt: skip


def _cluster() -> Sequence[Call]:
    import torch_cluster as package

    x, y, starts = _numbers(8, 2), _numbers(3, 2) + np.float32(0.05), np.array([0, 8])

    def cells(pos: Any, size: Any, start: Any, end: Any) -> Any:
        number = ((pos - start) / size).long()
        return number[:, 0] + number[:, 1] * (int((end[0] - start[0]) / size[0]) + 1)

    half, zero, one = (np.array([v, v], np.float32) for v in (0.3, 0.0, 1.0))
    return [
        Call("grid", [x, half, zero, one], cells, infer=lambda x, *_: _spec(x.shape[:1], "int64")),
        Call("knn", [x, y, None, None, 2, False, 1], lambda x, y, *_: package.knn(x, y, 2), jit=DATA),
        Call("fps", [x, starts, np.array([0.5], np.float32), False],
             lambda x, *_: package.fps(x, ratio=0.5, random_start=False), jit=DATA),
    ]  # fmt: skip


def _sparse() -> Sequence[Call]:
    import torch

    start, column = np.array([0, 2, 3, 5]), np.array([0, 2, 1, 0, 3])
    row = np.array([0, 0, 1, 2, 2])
    order = np.argsort(column, kind="stable")
    columns = np.searchsorted(column[order], np.arange(5))

    def product(row: Any, start: Any, column: Any, value: Any, columns: Any, order: Any, x: Any) -> Any:
        return torch.zeros(3, 2).index_add(0, row, value[:, None] * x[column])

    sample = [row, start, column, _numbers(5), columns, order, _numbers(4, 2)]
    return [
        Call("spmm_sum", sample, product, gradient=True,
             infer=lambda r, start, c, v, p, o, x: _spec((start.shape[0] - 1, x.shape[1]), x.dtype)),
        Call("ptr2ind", [start, 5], lambda start, n: torch.repeat_interleave(start.diff()),
             infer=lambda start, n: _spec((n,), start.dtype)),
        Call("ind2ptr", [row, 3], lambda row, n: torch.nn.functional.pad(torch.bincount(row, minlength=n), (1, 0))
             .cumsum(0), infer=lambda row, n: _spec((n + 1,), row.dtype)),
    ]  # fmt: skip


def _lpc() -> Sequence[Call]:
    import torch

    def filtered(x: Any, a: Any, zi: Any) -> Any:
        past, out = zi, []
        for t in range(x.shape[1]):
            out.append(x[:, t] - (a[:, t] * past).sum(1))
            past = torch.cat([out[-1][:, None], past[:, :-1]], 1)
        return torch.stack(out, 1)

    def scanned(x: Any, decay: Any, start: Any) -> Any:
        out = [start]
        for t in range(x.shape[1]):
            out.append(out[-1] * decay[:, t] + x[:, t])
        return torch.stack(out[1:], 1)

    return [
        Call("lpc", [_numbers(2, 7), _numbers(2, 7, 3), _numbers(2, 3)], filtered, NO_GRADIENT, infer="a"),
        Call("scan", [_numbers(2, 7), _numbers(2, 7), _numbers(2)], scanned, NO_GRADIENT, jit=DATA),
    ]


def _lanms() -> Sequence[Call]:
    import torch

    box = np.array([0, 0, 1, 0, 1, 1, 0, 1.0])
    quads = np.array([[*box, 0.9], [*(box + 0.01), 0.5], [*(box + 5), 0.7]])
    apart = np.array([[*box, 0.9], [*(box + 5), 0.7]])  # neither overlaps the other: they come back
    return [
        Call("merge_quadrangle_n9", [apart, 0.3], lambda q, _: q, jit=DATA),
        Call("merge_quadrangle_n9", [quads, 0.3], torch.ops.lanms.merge_quadrangle_n9, jit=DATA),
    ]


def _harmonics() -> Sequence[Call]:
    import torch

    def to_one(xyz: Any, _: int) -> Any:
        x, y, z = (xyz / xyz.norm(dim=1, keepdim=True)).unbind(1)
        zero = torch.full_like(x, (1 / (4 * torch.pi)) ** 0.5)
        one = (3 / (4 * torch.pi)) ** 0.5
        return torch.stack([zero, one * y, one * z, one * x], 1)

    def to_one_solid(xyz: Any, _: int) -> Any:
        return to_one(xyz, _) * torch.cat(
            [torch.ones_like(xyz[:, :1]), xyz.norm(dim=1, keepdim=True).expand(-1, 3)], 1
        )

    xyz = _numbers(5, 3)
    return [
        Call("spherical_harmonics", [xyz, 1], to_one, gradient=True),
        Call("solid_harmonics", [xyz, 1], to_one_solid, gradient=True),
    ]


def _beam() -> Sequence[Call]:
    import torch

    scores = np.log(np.random.default_rng(7).dirichlet(np.ones(5), (2, 4, 3)).astype(np.float32))
    options = [None, 0, 0, 0.6, None, 0, 1.0, True]
    return [
        Call("length_penalty", [np.array([1, 4, 9], np.int32), 0.6], lambda n, a: ((5 + n) / 6) ** a),
        Call("decode", [scores, *options], torch.ops.beamgrad.decode, gradient=True),
    ]


PACKAGES = (
    Package("torch-spline-conv", "1.2.2", ["csrc/*.cpp", "csrc/cpu/*.cpp"], _spline, ["csrc"], module="torch_spline_conv",
            links=[f"torch_spline_conv/_{one}_cpu.so" for one in ("version", "basis", "weighting")]),
    Package("torchlpc", "0.7.2", ["torchlpc/csrc/scan_cpu.cpp"], _lpc, links=["torchlpc/_C.so"]),
    Package("lanms-pytorch", "1.0.3", ["adaptor.cpp", "include/clipper/clipper.cpp"], _lanms, ["include"]),
    Package("torch-scatter", "2.1.2", ["csrc/*.cpp", "csrc/cpu/*.cpp"], _scatter, ["csrc"]),
    Package("sphericart-torch", "2.0.4",
            ["src/torch.cpp", "sphericart/src/sphericart.cpp", "sphericart/src/*cuda_stub.cpp"], _harmonics,
            ["include", "sphericart/include"], "-fopenmp", "-fopenmp", module="sphericart.torch", folder="python",
            links=["python/sphericart/torch/torch-{torch}/lib/libsphericart_torch.so"]),
    Package("beamgrad", "2.3.0", ["python/csrc/cpu_ops.cpp", "src/*.cpp"], _beam, ["include", "src"],
            "-ffp-contract=off", module="beamgrad", folder="python", links=["python/beamgrad/_C.abi3.so"],
            left_out=["python/beamgrad/_build_info.py"]),
    Package("torch-cluster", "1.6.3", ["csrc/*.cpp", "csrc/cpu/*.cpp"], _cluster, ["csrc"], module="torch_cluster",
            links=[f"torch_cluster/_{one}_cpu.so" for one in (
                "version", "grid", "graclus", "fps", "rw", "sampler", "nearest", "knn", "radius")]),
    Package("torch-sparse", "0.6.18", ["csrc/*.cpp", "csrc/cpu/*.cpp"], _sparse,
            ["csrc", "third_party/parallel-hashmap"]),
)  # fmt: skip
