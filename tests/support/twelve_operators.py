"""The twelve operators of docs/internals/slices.md, with sample inputs.

The sizes are such that eight devices divide them; those of ``uneven=True`` are such that four devices get slices
of different sizes, and some of them none.

The loop kernels are the functions of examples/internals/slices.py; the twelfth operator is C code with dims=.
"""

import ast
import functools
import math
import pathlib
from typing import NamedTuple

import numpy as np

import polyop

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "internals" / "slices.py"
SCHEMAS = {  # by the name of the function: its arguments; the shapes of its tensors, None for an index
    "norm": ("Tensor x, Tensor weight, float eps=1e-5", [(8, 16), (16,)]),
    "matmul": ("Tensor x, Tensor w", [(8, 16), (16, 8)]),
    "softmax": ("Tensor x", [(8, 16)]),
    "column_sums": ("Tensor x", [(8, 16)]),
    "cumulative_sum": ("Tensor x", [(8, 16)]),
    "embedding": ("Tensor index, Tensor table", [None, (8, 16)]),
    "scatter_add": ("Tensor index, Tensor x, int rows=8", [None, (8, 16)]),
    "stencil": ("Tensor x", [(32,)]),
    "window": ("Tensor x, Tensor w", [(16, 16), (3, 2)]),
    "scan": ("Tensor x, Tensor decay, Tensor start", [(8, 16), (16,), (16,)]),
    "scores": ("Tensor q, Tensor k, float scale=1.0", [(8, 8, 16), (8, 8, 16)]),
}
UNEVEN = {
    "norm": [(7, 6), (6,)],
    "matmul": [(7, 6), (6, 5)],
    "softmax": [(7, 6)],
    "column_sums": [(5, 6)],
    "cumulative_sum": [(5, 6)],
    "embedding": [None, (6, 5)],
    "scatter_add": [None, (7, 6)],
    "stencil": [(9,)],
    "window": [(9, 8), (3, 2)],
    "scan": [(4, 6), (6,), (6,)],
    "scores": [(2, 3, 6), (2, 5, 6)],
    "scale": [(7, 6)],
}


class Sample(NamedTuple):
    """An operator, arrays to call it with, and the positions of those that have gradients."""

    name: str
    operator: object
    inputs: tuple
    differentiable: tuple


def twelve_operators(*, uneven=False):
    """Return the samples; the operators are defined at the first call, as ``twelve::<name>``."""
    shapes = UNEVEN if uneven else {name: rows for name, (_, rows) in SCHEMAS.items()} | {"scale": [(8, 16)]}
    rows = enumerate(_operators().items())
    return tuple(
        Sample(name, operator, *_inputs(shapes[name], number, uneven)) for number, (name, operator) in rows
    )


@functools.cache
def _operators():
    tree = ast.parse(EXAMPLE.read_text())
    names, assigned = {"math": math}, {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            code = compile(ast.Module([node], []), EXAMPLE, "exec")  # its lines are those of the file
            exec(code, names)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            assigned[node.targets[0].id] = node.value.value
    operators = {}
    for name, (arguments, _) in SCHEMAS.items():
        results = "(Tensor, Tensor)" if name == "scan" else "Tensor"
        schema = f"twelve::{name}({arguments}) -> {results}"
        operators[name] = polyop.operator(schema, polyop.kernel(names[name]))
    operators["scale"] = polyop.operator(
        "twelve::scale(Tensor x) -> Tensor",
        polyop.source(code=assigned["SCALE"], language="c", function="scale"),
        dims="... -> ...",
        parallel="...",
        gradient=lambda x, out, dout: (2 * dout,),
    )
    return operators


def _inputs(shapes, seed, uneven):
    draw = np.random.default_rng(seed)
    inputs = [
        draw.integers(0, *((6, 7) if uneven else (8, 8)))
        if shape is None
        else draw.uniform(0.5, 1.5, shape).astype(np.float32)
        for shape in shapes
    ]
    return tuple(inputs), tuple(i for i, shape in enumerate(shapes) if shape is not None)
