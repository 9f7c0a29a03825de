"""PyTorch extensions of the package index that register operators: how each is built, and calls of its operators.

A call has NumPy arguments and a reference: plain PyTorch, or the package's own Python. ``jit`` and ``gradient``
are True, or the words of the error: an operator whose shapes depend on data, or without a gradient, has to say so.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import schemas

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

    ``left_out`` are files of the archive that describe the build of its author. ``schemas`` is C++ of
    schemas.py; ``calls`` tells PyTorch the rest.
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
    schemas: str = ""


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


def _registered(operator: str, fake: Callable[..., Any], backward: Any = None, keep: Any = None) -> None:
    import torch

    torch.library.register_fake(operator, fake)
    if backward is not None:
        torch.library.register_autograd(operator, backward, setup_context=keep)


def _discounted() -> Sequence[Call]:
    import torch

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output, inputs[1])

    def backward(ctx: Any, grad: Any) -> Any:
        (output, gamma), ops = ctx.saved_tensors, torch.ops.discounted
        return ops.left(grad, gamma), (ops.right(output, gamma)[:, 1:] * grad[:, :-1]).sum(1)

    def summed(x: Any, gamma: Any) -> Any:
        out = [x[:, -1]]
        for t in range(x.shape[1] - 2, -1, -1):
            out.append(x[:, t] + gamma * out[-1])
        return torch.stack(out[::-1], 1)

    _registered("discounted::left", lambda x, gamma: torch.empty_like(x))
    _registered("discounted::right", lambda x, gamma: torch.empty_like(x), backward, keep)
    return [
        Call("right", [_numbers(3, 6), _numbers(3)], summed, gradient=True),
        Call("left", [_numbers(3, 6), _numbers(3)], lambda x, gamma: summed(x.flip(1), gamma).flip(1),
             NO_GRADIENT),
    ]  # fmt: skip


def _householder() -> Sequence[Call]:
    import torch

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output, *inputs)

    def backward(ctx: Any, grad: Any) -> Any:
        return torch.ops.householder.orgqr_backward(grad, *ctx.saved_tensors)

    def product(param: Any) -> Any:
        out = torch.eye(*param.shape[1:], dtype=param.dtype).expand_as(param)
        for j in reversed(range(param.shape[2])):
            u = param[:, :, j : j + 1]
            out = out - 2 * u @ (u.mT @ out)
        return out

    _registered("householder::orgqr", torch.empty_like, backward, keep)
    _registered("householder::orgqr_backward", lambda grad, m, param: torch.empty_like(param))
    param = _numbers(2, 4, 3, dtype="float64")
    return [Call("orgqr", [param / np.linalg.norm(param, axis=1, keepdims=True)], product, gradient=True)]


def _quads() -> Sequence[Call]:
    import torch

    def boxes(*places: Any) -> Any:
        corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
        return np.stack([corners * size + np.array(start, np.float32) for *start, size in places])

    def of_boxes(a: Any, b: Any, _: bool) -> Any:
        low, high = torch.maximum(a.amin(1)[:, None], b.amin(1)), torch.minimum(a.amax(1)[:, None], b.amax(1))
        both = (high - low).clamp(min=0).prod(-1)
        areas = [(x.amax(1) - x.amin(1)).prod(-1) for x in (a, b)]
        return both / (areas[0][:, None] + areas[1] - both)

    _registered("quad::iou", lambda a, b, sort=True: a.new_empty(a.shape[0], b.shape[0]))
    a, b = boxes((0, 0, 3), (2, 1, 2)), boxes((1, 1, 2), (0, 0, 3.5), (7, 7, 1))
    return [Call("iou", [a, b, True], of_boxes, NO_GRADIENT)]


def _farthest() -> Sequence[Call]:
    from torch_fps import _reference

    mask, start = np.array([[True] * 7, [True] * 6 + [False]]), np.array([0, 3])
    return [
        Call("fps", [_numbers(2, 7, 3), mask, start, 3], _reference.fps_reference,
             infer=lambda x, mask, start, k: _spec((x.shape[0], k), "int64")),
        Call("fps_knn", [_numbers(2, 7, 3), mask, start, 3, 2], _reference.fps_knn_reference,
             infer=lambda x, mask, start, k, near: (
                 _spec((x.shape[0], k), "int64"), _spec((x.shape[0], k, near), "int64"))),
    ]  # fmt: skip


def _clusters() -> Sequence[Call]:
    import dbscan_torch as package
    import torch

    _registered("dbscan::labels", lambda x, eps, least: x.new_empty(x.shape[0], dtype=torch.int32))
    x = np.array([[0, 0], [0.1, 0], [0, 0.1], [5, 5], [5.1, 5], [9, 0]], np.float32)
    known = torch.tensor([0, 0, 0, 1, 1, -1], dtype=torch.int32)
    return [
        Call("labels", [x, 0.3, 2], lambda *_: known),
        Call("labels", [_numbers(40, 2), 0.1, 3], package.dbscan2d),
    ]


def _projectors() -> Sequence[Call]:
    import torch_projectors as package

    image = np.fft.rfft2(_numbers(1, 8, 8)).astype(np.complex64)
    turn = np.array([[[[1, 0], [0, 1]], [[0.8, -0.6], [0.6, 0.8]]]], np.float32)
    return [
        Call("project_2d_forw", [image, turn, None, [8, 8], "linear", 1.0, None],
             lambda image, turn, shifts, shape, *_: package.project_2d_forw(image, turn, shifts, shape),
             infer=lambda x, turn, shifts, shape, *_: _spec(
                 (x.shape[0], turn.shape[1], shape[0], shape[1] // 2 + 1), x.dtype)),
    ]  # fmt: skip


def _entropy() -> Sequence[Call]:
    import torch

    ops = torch.ops.torch_ans
    weights = np.array([[1, 2, 3, 2], [2, 2, 2, 2]], np.float32)
    table = np.array([[0, 4, 12, 24, 32], [0, 8, 16, 24, 32]], np.int32)
    symbols = np.array([[0, 1, 2], [2, 1, 0]], np.int32)  # the last one of a table is for what it has not
    rows = np.array([[0, 1, 0], [1, 1, 0]], np.int32)
    tables = [rows, table, np.full(2, 5, np.int32), np.zeros(2, np.int32)]
    stream = ops.rans32_init_stream(2, 1, 64)
    ops.rans32_push(stream, *map(torch.tensor, (symbols, *tables)), 2, 5)

    def cumulated(weights: Any, precision: int) -> Any:
        return torch.nn.functional.pad(weights.cumsum(1), (1, 0)).mul(2**precision).int()

    def inverse(tables: Any, precision: int, bits: int) -> Any:
        starts = torch.arange(2**bits) << (precision - bits)
        return torch.cat([tables, torch.searchsorted(tables, starts.repeat(2, 1), right=True) - 1], 1).int()

    return [
        Call("rans_pmf_to_quantized_cdf", [weights / 8, 5], cumulated,
             infer=lambda x, _: _spec((*x.shape[:-1], x.shape[-1] + 1), "int32")),
        Call("rans_build_inverse_cdf", [table, 5, 3], inverse,
             infer=lambda x, _, bits: _spec((x.shape[0], x.shape[1] + 2**bits), "int32")),
        Call("rans32_pop", [stream.numpy(), *tables, 2, 5], lambda *_: torch.tensor(symbols),
             infer=lambda stream, rows, *_: _spec(rows.shape, "int32")),
    ]  # fmt: skip


def _points() -> Sequence[Call]:
    import torch

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[1:])
        ctx.m = inputs[0].shape[2]

    def backward(ctx: Any, grad: Any) -> Any:
        return torch.ops.points.interpolated_back(grad.contiguous(), *ctx.saved_tensors, ctx.m), None, None

    def farthest(x: Any, count: int) -> Any:
        chosen = torch.zeros(x.shape[0], count, dtype=torch.int64)
        least = torch.full(x.shape[:2], torch.inf)
        for k in range(1, count):
            last = x[torch.arange(x.shape[0]), chosen[:, k - 1]]
            least = torch.minimum(least, (x - last[:, None]).norm(dim=2))
            chosen[:, k] = least.argmax(1)
        return chosen

    def nearest(support: Any, query: Any, k: int) -> Any:
        distances, index = torch.cdist(query, support).square().topk(k, largest=False)
        return index, distances

    def interpolated(
        features: Any, index: Any, weight: Any
    ) -> Any:  # no gradient of the weight, as the package
        rows = zip(features, index, weight.detach(), strict=True)
        return torch.stack([(x[:, i] * w).sum(-1) for x, i, w in rows])

    _registered("points::interpolated", lambda x, index, weight: x.new_empty(*x.shape[:2], index.shape[1]),
                backward, keep)  # fmt: skip
    _registered("points::interpolated_back", lambda g, i, w, m: g.new_empty(*g.shape[:2], m))
    support, query = _numbers(2, 7, 3), _numbers(2, 4, 3) + np.float32(0.02)
    index = np.arange(12).reshape(2, 2, 3) % 5
    return [
        Call("farthest", [support, 3], farthest, infer=lambda x, n: _spec((x.shape[0], n), "int64")),
        Call("nearest", [support, query, 2], nearest, infer=lambda x, query, k: (
            _spec((*query.shape[:2], k), "int64"), _spec((*query.shape[:2], k), x.dtype))),
        Call("interpolated", [_numbers(2, 4, 5), index, _numbers(2, 2, 3)], interpolated, gradient=True),
    ]  # fmt: skip


_OPENMP = ("-fopenmp", "-fopenmp")
_STABLE = (
    "-DTORCH_ANS_STABLE_ABI=1 -DTORCH_TARGET_VERSION=0x020a000000000000"  # its operators, for PyTorch >= 2.10
)

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
    Package("torch-projectors", "0.13.1", ["csrc/torch_projectors.cpp", "csrc/cpu/*/*.cpp"], _projectors, (), *_OPENMP,
            module="torch_projectors", links=["torch_projectors/_C.so"]),
    Package("torch-discounted-cumsum", "1.1.0", ["torch_discounted_cumsum/*_cpu.cpp"], _discounted,
            schemas=schemas.DISCOUNTED),
    Package("torch-householder", "1.0.1", ["torch_householder/householder.cpp"], _householder, schemas=schemas.HOUSEHOLDER),
    Package("torch-fps", "0.6.0", ["torch_fps/csrc/*.cpp"], _farthest, (), *_OPENMP, module="torch_fps",
            schemas=schemas.FARTHEST),
    Package("dbscan-torch", "0.2.0", ["csrc/extension.cpp", "csrc/cpu/*.cpp"], _clusters, (), *_OPENMP,
            module="dbscan_torch", links=["dbscan_torch/_C.so"], left_out=["dbscan_torch/_build_info.py"],
            schemas=schemas.CLUSTERS),
    Package("quad-iou", "0.2.0", ["src/core/quad_iou_tensors.cpp", "src/core/*_bind_cpu.cpp"], _quads, (), *_OPENMP,
            schemas=schemas.QUADS),
    Package("torch-points-kernels", "0.7.0", [f"cpu/src/{one}.cpp" for one in (
                "bindings", "ball_query", "fps", "interpolate", "knn")], _points, ["cpu/include"], "-DVERSION_GE_1_3",
            schemas=schemas.POINTS),
    # its Python is left alone: that builds the sources again at the first use, and waits without end for a build that
    # was killed
    Package("torch-ans", "0.4.0", [f"torch_ans/{one}.cpp" for one in ("lib", "rans", "rans_cpu", "tans_cpu")], _entropy,
            ["torch_ans"], _STABLE),
)  # fmt: skip
