"""Stencils, the scan of a recurrent network, and rows selected by index."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

from loops.data import spread

from .table import Gradient, scattered


def stencil(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = a[i, j] * (a[i + 1, j] - a[i - 1, j]) + 0.1 * (a[i, j - 1] + a[i, j + 1])
    return b


def stencil_data(dtype: Any, n: int) -> tuple[Any, ...]:
    return (spread((n, n), dtype, -1.0, 1.0),)


def stencil_inner(a: Any) -> Any:
    return a[1:-1, 1:-1] * (a[2:, 1:-1] - a[:-2, 1:-1]) + 0.1 * (a[1:-1, :-2] + a[1:-1, 2:])


def stencil_torch(a: Any) -> Any:
    import torch

    return torch.nn.functional.pad(stencil_inner(a), (1, 1, 1, 1))


def stencil_jax(a: Any) -> Any:
    import jax

    return jax.numpy.pad(stencil_inner(a), 1)


def reaction(x, q):
    """Diffuse and react for one step per source; the border only takes the source."""
    u = output_tensor(q.shape, q.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            u[0, i, j] = x[i, j] + q[0, i, j]
    for t in range(1, q.shape[0]):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                if i > 0 and i < x.shape[0] - 1 and j > 0 and j < x.shape[1] - 1:
                    around = u[t - 1, i - 1, j] + u[t - 1, i + 1, j] + u[t - 1, i, j - 1] + u[t - 1, i, j + 1]
                    old = u[t - 1, i, j]
                    u[t, i, j] = old + 0.1 * (around - 4.0 * old) + 0.1 * old * (1.0 - old) + q[t, i, j]
                else:
                    u[t, i, j] = u[t - 1, i, j] + q[t, i, j]
    return u


def reaction_data(dtype: Any, t: int, n: int) -> tuple[Any, ...]:
    return spread((n, n), dtype), spread((t, n, n), dtype, high=0.01, which=1)


def reaction_step(u: Any) -> Any:
    """Return the change of the inner points in a step."""
    old = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return 0.1 * (around - 4.0 * old) + 0.1 * old * (1.0 - old)


def reaction_torch(x: Any, q: Any) -> Any:
    import torch

    states = [x + q[0]]
    for source in q[1:]:
        change = torch.nn.functional.pad(reaction_step(states[-1]), (1, 1, 1, 1))
        states.append(states[-1] + change + source)
    return torch.stack(states)


def reaction_jax(x: Any, q: Any) -> Any:
    import jax

    def step(u: Any, source: Any) -> tuple[Any, Any]:
        new = u + jax.numpy.pad(reaction_step(u), 1) + source
        return new, new

    first = x + q[0]
    return jax.numpy.concatenate([first[None], jax.lax.scan(step, first, q[1:])[1]])


def gru(z, c, h0):
    h = output_tensor(z.shape, z.dtype)
    for b in range(z.shape[1]):
        h[0, b] = h0[b]
    for t in range(1, z.shape[0]):
        for b in range(z.shape[1]):
            h[t, b] = (1.0 - z[t, b]) * h[t - 1, b] + z[t, b] * tanh(c[t, b] + h[t - 1, b])
    return h


def gru_data(dtype: Any, t: int, n: int) -> tuple[Any, ...]:
    states = spread((t, n), dtype, -1.0, 1.0, which=1)
    return spread((t, n), dtype), states, spread((n,), dtype, -1.0, 1.0, which=2)


def gru_torch(z: Any, c: Any, h0: Any) -> Any:
    import torch

    h = [h0]
    for zt, ct in zip(z[1:], c[1:], strict=True):
        h.append((1 - zt) * h[-1] + zt * torch.tanh(ct + h[-1]))
    return torch.stack(h)


def gru_jax(z: Any, c: Any, h0: Any) -> Any:
    import jax

    def step(h: Any, row: Any) -> tuple[Any, Any]:
        new = (1 - row[0]) * h + row[0] * jax.numpy.tanh(row[1] + h)
        return new, new

    return jax.numpy.concatenate([h0[None], jax.lax.scan(step, h0, (z[1:], c[1:]))[1]])


def gather(x, index):
    y = output_tensor((index.shape[0], x.shape[1]), x.dtype)
    for i in range(index.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[index[i], j]
    return y


def gather_data(dtype: Any, rows: int, n: int, picked: int) -> tuple[Any, ...]:
    return spread((rows, n), dtype, -1.0, 1.0), scattered(picked, rows)


def scatter(x, index, start):
    y = output_tensor(start.shape, x.dtype)
    for i in range(start.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = start[i, j]
    for i in range(index.shape[0]):
        for j in range(x.shape[1]):
            y[index[i], j] += x[i, j]
    return y


def scatter_data(dtype: Any, rows: int, n: int, picked: int) -> tuple[Any, ...]:
    start = spread((rows, n), dtype, -1.0, 1.0)
    return spread((picked, n), dtype, -1.0, 1.0, which=1), scattered(picked, rows), start


PROGRAMS = (
    Gradient(
        name="stencil",
        kernel=stencil,
        make=stencil_data,
        torch=stencil_torch,
        jax=stencil_jax,
        small={"n": 9},
        bench={"n": 4096},
        dtype="float64",
        written="stencil",
    ),
    Gradient(
        name="iterated stencil",
        kernel=reaction,
        make=reaction_data,
        torch=reaction_torch,
        jax=reaction_jax,
        small={"t": 4, "n": 7},
        bench={"t": 32, "n": 512},
    ),
    Gradient(
        name="scan",
        kernel=gru,
        make=gru_data,
        torch=gru_torch,
        jax=gru_jax,
        small={"t": 5, "n": 6},
        bench={"t": 200, "n": 4096},
    ),
    Gradient(
        name="gather",
        kernel=gather,
        make=gather_data,
        torch=lambda x, index: x[index],
        jax=lambda x, index: x[index],
        small={"rows": 7, "n": 5, "picked": 11},
        bench={"rows": 20000, "n": 128, "picked": 40000},
    ),
    Gradient(
        name="scatter",
        kernel=scatter,
        make=scatter_data,
        torch=lambda x, index, start: start.index_add(0, index, x),
        jax=lambda x, index, start: start.at[index].add(x),
        small={"rows": 7, "n": 5, "picked": 11},
        bench={"rows": 20000, "n": 128, "picked": 40000},
    ),
)
