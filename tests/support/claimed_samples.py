"""Operators with claims of their dimensions, in NumPy, each with arguments of a call."""

import functools

import numpy as np

import polyop


def draw(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


def _windows(x, w):
    return np.stack([(x[i : i + len(w)] * w).sum() for i in range(len(x) - len(w) + 1)])


def _window_grid(x, w):
    (h, v), (a, b) = x.shape, w.shape
    return np.array(
        [[(x[i : i + a, j : j + b] * w).sum() for j in range(v - b + 1)] for i in range(h - a + 1)]
    )


def _neighbours(x):
    around = np.zeros_like(x)
    around[1:-1] = x[:-2] - 2 * x[1:-1] + x[2:]
    return around


def _scale_in_place(x, y):
    x *= y


def _offset(x, b):
    return x + 1 if b is None else x + b


def _add_table(table, index, x):
    np.add.at(table, index, x)
    return table


def _scatter(index, x, rows):
    return _add_table(np.zeros((rows, x.shape[1]), x.dtype), index, x)


ROWS = (  # name and schema, kernel, claims, arguments, the strategies that split a dimension
    (
        "linear(Tensor x, Tensor w) -> Tensor", lambda x, w: x @ w,
        {"dims": "b i, i o -> b o", "parallel": "b o", "sum": "i"}, (draw(5, 7), draw(7, 3)),
        ("b: S(0), R -> S(0)", "i: S(1), S(0) -> P(sum)", "o: R, S(1) -> S(1)"),
    ),
    (
        "batched(Tensor x, Tensor w) -> Tensor", np.matmul,
        {"dims": "... m k, ... k n -> ... m n", "parallel": "... m n", "sum": "k"}, (draw(2, 3, 4, 5), draw(2, 3, 5, 2)),
        ("...0: S(0), S(0) -> S(0)", "...1: S(1), S(1) -> S(1)", "m: S(2), R -> S(2)",
         "k: S(3), S(2) -> P(sum)", "n: R, S(3) -> S(3)"),
    ),
    (
        "softmax(Tensor x) -> Tensor", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
        {"dims": "... n -> ... n", "parallel": "..."}, (draw(3, 4, 5),),
        ("...0: S(0) -> S(0)", "...1: S(1) -> S(1)"),
    ),
    (
        "together(Tensor[] xs) -> Tensor", sum,
        {"dims": "m n* -> m n", "parallel": "m n"}, ((draw(4, 3), draw(4, 3, seed=1), draw(4, 3, seed=2)),),
        ("m: S(0), S(0), S(0) -> S(0)", "n: S(1), S(1), S(1) -> S(1)"),
    ),
    (
        "offset(Tensor x, Tensor? b=None) -> Tensor", _offset,
        {"dims": "m n, n -> m n", "parallel": "m n"}, (draw(4, 3), draw(3)),
        ("m: S(0), R -> S(0)", "n: S(1), S(0) -> S(1)"),
    ),
    (
        "offset_by_one(Tensor x, Tensor? b=None) -> Tensor", _offset,
        {"dims": "m n, n -> m n", "parallel": "m n"}, (draw(4, 3), None),
        ("m: S(0) -> S(0)", "n: S(1) -> S(1)"),
    ),
    (
        "scale_in_place(Tensor(a!) x, Tensor y) -> ()", _scale_in_place,
        {"dims": "m n, n ->", "parallel": "m n"}, (draw(4, 3), draw(3)),
        ("m: S(0), R -> S(0)", "n: S(1), S(0) -> S(1)"),
    ),
    (
        "sum_and_size(Tensor x) -> Tensor", lambda x: x.sum(0), {"dims": "m n -> n", "parallel": "n", "sum": "m"},
        (np.arange(20, dtype=np.int64).reshape(5, 4),), ("m: S(0) -> P(sum)", "n: S(1) -> S(0)"),
    ),
    (
        "largest(Tensor x) -> Tensor", lambda x: x.max(0), {"dims": "m n -> n", "parallel": "n", "max": "m"},
        (draw(5, 4) - 9,), ("m: S(0) -> P(max)", "n: S(1) -> S(0)"),
    ),
    (
        "smallest(Tensor x) -> Tensor", lambda x: x.min(0), {"dims": "m n -> n", "parallel": "n", "min": "m"},
        (np.arange(20, dtype=np.int64).reshape(5, 4) + 3,), ("m: S(0) -> P(min)", "n: S(1) -> S(0)"),
    ),
    (
        "neighbours(Tensor x) -> Tensor", _neighbours, {"dims": "n -> n", "halo": {"n": (1, 1)}}, (draw(9),),
        ("n: S(0) -> S(0), halo (1, 1)",),
    ),
    (
        "windows(Tensor x, Tensor w) -> Tensor", _windows, {"dims": "n, k -> n-k+1", "halo": {"n": (0, "k-1")}},
        (draw(9), draw(3)), ("n: S(0), R -> S(0), halo (0, 2)",),
    ),
    (
        "window_grid(Tensor x, Tensor w) -> Tensor", _window_grid,
        {"dims": "h w, a b -> h-a+1 w-b+1", "halo": {"h": (0, "a-1"), "w": (0, "b-1")}}, (draw(8, 7), draw(3, 2)),
        ("h: S(0), R -> S(0), halo (0, 2)", "w: S(1), R -> S(1), halo (0, 1)"),
    ),
    (
        "roughness(Tensor x) -> Tensor", lambda x: np.abs(x[1:] - x[:-1]).sum(),
        {"dims": "n ->", "sum": "n", "halo": {"n": (0, 1)}}, (draw(9),), ("n: S(0) -> P(sum), halo (0, 1)",),
    ),
    (
        "pairs(Tensor x) -> Tensor", lambda x: x[::2] + x[1::2], {"dims": "n m -> n/2 m", "parallel": "m"},
        (draw(6, 3),), ("m: S(1) -> S(1)",),
    ),
    (
        "doubled(Tensor x) -> Tensor", lambda x: np.repeat(x, 2, 0), {"dims": "n m -> 2*n m", "halo": {"n": (0, 0)}},
        (draw(6, 3),), (),
    ),
    (
        "outer(Tensor x) -> Tensor", lambda x: x[:, None] * x, {"dims": "n -> n n"}, (draw(4),), (),
    ),
    (
        "scatter(Tensor index, Tensor x, int rows) -> Tensor", _scatter,
        {"dims": "k, k d -> rows d", "parallel": "d", "sum": "k", "infer": "x"},
        (np.array([1, 0, 1, 3]), draw(4, 2), 5), ("k: S(0), S(0) -> P(sum)", "d: R, S(1) -> S(1)"),
    ),
    (
        "both(Tensor x) -> (Tensor, Tensor)", lambda x: (x.sum(0), x * 2),
        {"dims": "m n -> n, m n", "parallel": "n", "sum": "m"}, (draw(5, 4),),
        ("m: S(0) -> P(sum), S(0)", "n: S(1) -> S(0), S(1)"),
    ),
    (
        "product(Tensor x, Tensor y) -> Tensor", np.multiply, {"batch": "elementwise", "infer": "broadcast"},
        (draw(4, 1, 3), draw(5, 1)), ("...0: S(0), R -> S(0)", "...1: R, S(0) -> S(1)", "...2: S(2), R -> S(2)"),
    ),
)  # fmt: skip


def _broadcast(x, y):
    return polyop.Spec(np.broadcast_shapes(x.shape, y.shape), x.dtype)


@functools.cache
def samples():
    """Return for each operator the arguments of a call, and the strategies that split a dimension."""
    rows = []
    for schema, kernel, claims, arguments, strategies in ROWS:
        own = {**claims, "infer": _broadcast} if claims.get("infer") == "broadcast" else claims
        rows.append((polyop.operator(f"claimed::{schema}", kernel, **own), arguments, strategies))
    return rows
