"""A function of tvm-ffi called through polyop, beside tvm-ffi's own Python with an allocated output."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from kernels import FOLDER, need_torch
from measure import Missing, Row, Timed, beside

PEER = "tvm-ffi's Python call, with empty_like for its output"
ALLOCATE = "out = empty_like(x); f(x, out)"


def rows() -> list[Row]:
    torch = need_torch()
    ours, peer = _functions()
    x, array = torch.ones(4), np.ones(4, np.float32)
    out = torch.empty_like(x)
    peer(x, out)
    assert torch.equal(ours(x), out)

    def pair(x: Any, empty_like: Any) -> Any:
        return beside(
            Timed("f(x)", {"f": ours, "x": x}),
            Timed(ALLOCATE, {"f": peer, "x": x, "empty_like": empty_like}),
        )

    return [
        Row("tvm-ffi function, torch call, 4 elements", PEER, 1.0, pair(x, torch.empty_like)),
        Row("tvm-ffi function, NumPy call, 4 elements", PEER, 1.0, pair(array, np.empty_like)),
    ]


def _functions() -> tuple[Any, Any]:
    """Return the function of peers/tvm_ffi_square.cc as polyop's operator, and as tvm-ffi's object."""
    import polyop
    from polyop.build import build

    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None or not spec.submodule_search_locations:
        raise Missing("apache-tvm-ffi is not installed")
    folder = Path(spec.submodule_search_locations[0])
    links = [f"-L{folder / 'lib'}", "-ltvm_ffi"]
    path = build(
        [FOLDER / "peers" / "tvm_ffi_square.cc"], include_paths=[folder / "include"], link_flags=links
    )
    import tvm_ffi

    square = polyop.operator("bench::tvm_ffi_square(Tensor x) -> Tensor", f"{path}:square", infer="x")
    return square, tvm_ffi.load_module(str(path))["square"]
