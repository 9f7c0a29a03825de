"""What documentation says on the verdicts, and what peers can do that polyop cannot."""

from __future__ import annotations

WARP = "https://nvidia.github.io/warp/v1.19/user_guide/differentiability.html"
TAICHI = "https://docs.taichi-lang.org/docs/differentiable_programming/"
TORCH = "https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd"
JAX = "https://docs.jax.dev/en/latest/_autosummary/jax.lax.while_loop.html"
STACK = "https://github.com/taichi-dev/taichi/issues/8027"
REPORT = "https://github.com/taichi-dev/taichi/issues/8356"

Words = tuple[str, str, str]
"""What happened, where it is documented, and the other way of writing it."""

_DYNAMIC = f"[dynamic loops]({WARP}#dynamic-loops) are not replayed in the backward pass"
_WRITTEN = f"[an array written after it was read]({WARP}#array-overwrite-tracking) has a wrong gradient"
_RULE_1 = f"[rule 1]({TAICHI}): an element that was read must not be changed"
_LOCAL = f"no rule of [its page]({TAICHI}) that we found excludes it; [an open report]({REPORT}) is alike"

DOCUMENTED: dict[tuple[str, str], Words] = {
    ("warp", "rms_norm"): (
        "no error",
        _DYNAMIC,
        "two kernels, the sums of the rows in an array between them",
    ),
    ("warp", "scan"): ("no error", _WRITTEN, "input and result in two arrays"),
    ("warp", "overwritten"): ("no error", _WRITTEN, "local values, no array"),
    ("warp", "newton"): ("no error", _DYNAMIC, "twelve steps in a loop that Warp unrolls, with `if`"),
    ("taichi", "rms_norm"): ("no error", _LOCAL, "two kernels, the sums of the rows in a field between them"),
    ("taichi", "scan"): ("no error", _RULE_1, "input and result in two fields"),
    ("taichi", "max_pool"): ("no error", _LOCAL, "`ti.static`, which unrolls the window"),
    ("taichi", "n_body"): ("no error", _LOCAL, "`+=` into the field of forces, over all pairs"),
    ("taichi", "overwritten"): ("no error", _RULE_1, "local values, no field"),
    ("taichi", "newton"): (
        "an error",
        f"[its page]({TAICHI}) does not name `while`",
        "twelve steps by `ti.static`, with `if`",
    ),
    ("torch", "scan"): ("an error", f"[in-place operations]({TORCH})", "a list of the steps, stacked"),
    ("torch", "overwritten"): ("an error", f"[in-place operations]({TORCH})", "a new tensor"),
    ("jax", "newton"): ("an error", f"[`while_loop`]({JAX})", "40 steps of `fori_loop`, with `where`"),
}

WARP_PLATFORMS = "https://nvidia.github.io/warp/v1.19/user_guide/compatibility.html"
TAICHI_HELLO = "https://docs.taichi-lang.org/docs/hello_world"
NUMBA = "https://numba.readthedocs.io/en/stable/user/installing.html"

WHERE_IT_RUNS = f"[Warp]({WARP_PLATFORMS}), [Taichi]({TAICHI_HELLO}), [Numba]({NUMBA})"

CANNOT: tuple[tuple[str, str, str], ...] = (
    (
        "run on a GPU",
        "CUDA code of loop kernels is compiled; it was never run on hardware",
        f"{WHERE_IT_RUNS}, PyTorch, JAX: documented, not tried",
    ),
    (
        "macOS and Windows",
        "Linux only",
        f"{WHERE_IT_RUNS}, PyTorch, JAX: documented, not tried",
    ),
    (
        "vectors and matrices as values",
        "three scalars in its `n_body`, or rows of tensors",
        "Warp (`wp.vec3`), Taichi (`ti.Vector`): tried, in their `n_body`",
    ),
    (
        "run without a C compiler",
        "loop kernels need gcc or clang, unless a wheel has them compiled",
        "all the others: tried with `rms_norm` and an empty `PATH`",
    ),
)
"""What it is, what polyop has, and who can."""

CHECKERS = f"""\
Warp and Taichi have checkers, which are off by default and are not part of this run. Tried once with these
versions: Warp's [`wp.config.verify_autograd_array_access`]({WARP}#array-overwrite-tracking) warns of `scan`
and `overwritten`, and says nothing of `rms_norm` and `newton`. Taichi's
[`ti.ad.Tape(loss, validation=True)`]({TAICHI}) with `ti.init(debug=True)` raises an error for `scan` and
`overwritten`, and none for `rms_norm` and `max_pool`. `ti.ad.Tape` and `kernel.grad()` gave the same
gradients in `rms_norm`, `scan`, `max_pool`, `overwritten` and `n_body`."""
