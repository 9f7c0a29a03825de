"""Time a loop kernel of polyop and of MindSpore's AKG in graphs, alternately; the last line printed is JSON.

For each of the two it has the seconds of the first call, which compiles, and of the turns. The program fails
if AKG does not compile the kernel, or disagrees with NumPy. Sources are written into the working directory.
"""

import ast
import importlib.util
import inspect
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mindspore as ms
import numpy as np
from loops import akg, npbench
from loops.table import Row, results
from measure import keep_memory, settle

import polyop


class _Fixed(ast.NodeTransformer):
    """Replaces names by numbers, and casts literals."""

    def __init__(self, numbers: dict[str, Any], cast: str | None) -> None:
        self.numbers, self.cast = numbers, cast

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.visit_Constant(ast.Constant(self.numbers[node.id])) if node.id in self.numbers else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if self.cast is None or not isinstance(node.value, float):
            return node
        return ast.Call(ast.Name(self.cast, ast.Load()), [node], [])


def fixed(kernel: Callable[..., Any], arguments: tuple[Any, ...], who: str, cast: str | None) -> Any:
    """Return the kernel as a function of its tensors, with its numbers as literals."""
    tree = ast.parse(inspect.getsource(kernel))
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    tensors = sum(isinstance(a, np.ndarray) for a in arguments)
    names = [a.arg for a in function.args.args]
    numbers = dict(zip(names[tensors:], arguments[tensors:], strict=True))
    function.args.args = function.args.args[:tensors]
    if ast.get_docstring(function):
        del function.body[0]
    path = Path(f"{who}.py").resolve()
    path.write_text(ast.unparse(ast.fix_missing_locations(_Fixed(numbers, cast).visit(tree))))
    spec = importlib.util.spec_from_file_location(who, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function.name)


def akg_operator(row: Row, arguments: tuple[Any, ...], expected: tuple[Any, ...]) -> Any:
    """Return MindSpore's operator with the output specs, which AKG cannot infer for every kernel."""
    # AKG types a literal as float32, whatever the other operand is
    cast = None if row.dtype == "float32" else row.dtype
    function = fixed(getattr(akg, row.kernel.__name__), arguments, "theirs", cast)
    shapes = tuple(list(e.shape) for e in expected)
    types = tuple(getattr(ms, e.dtype.name) for e in expected)
    output_form = (shapes, types) if len(expected) > 1 else (shapes[0], types[0])
    shape_of, type_of = (lambda *_, value=value: value for value in output_form)
    return ms.ops.Custom(ms.ops.kernel(function), shape_of, type_of, func_type="akg")


class Contestant:
    """An operator in a graph."""

    def __init__(self, row: Row, operator: Any) -> None:
        class Net(ms.nn.Cell):
            def construct(self, *tensors: Any) -> Any:
                return operator(*tensors)

        self.row, self.net = row, Net()
        self.arrays = [a for a in row.arguments(row.bench) if isinstance(a, np.ndarray)]
        self.tensors = [ms.Tensor(a) for a in self.arrays]

    def run(self) -> tuple[float, list[Any]]:
        """Call on the initial data; return the seconds until the outputs are computed, and the outputs."""
        for position in self.row.updates:
            self.tensors[position] = ms.Tensor(self.arrays[position])
        start = time.perf_counter()
        returned = self.net(*self.tensors)
        outputs = [o.asnumpy() for o in (returned if isinstance(returned, tuple) else (returned,))]
        return time.perf_counter() - start, outputs


def main(name: str, turns: int) -> None:
    keep_memory()
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    row = npbench.ROWS[name]
    arguments = row.arguments(row.bench)
    expected = tuple(np.array(e) for e in results(row, row.arguments(row.bench))[0])
    ours = polyop.Custom(fixed(row.kernel, arguments, "ours", None), func_type="hybrid")
    both = [Contestant(row, ours), Contestant(row, akg_operator(row, arguments, expected))]
    times: list[dict[str, Any]] = []
    for who, one in zip(("polyop", "AKG"), both, strict=True):
        first, outputs = one.run()
        times.append({"first": first, "turns": []})
        tolerance = 1e-3 if row.dtype == "float32" else 1e-8
        for reference, output in zip(expected, outputs, strict=True):
            if not np.allclose(output, reference, rtol=tolerance, atol=tolerance):
                raise RuntimeError(f"{who} does not agree with NumPy")
        print(f"{who} agrees with NumPy", flush=True)
    for turn in range(turns):
        for i in (0, 1) if turn % 2 else (1, 0):
            settle(both[i].run)
            times[i]["turns"].append(both[i].run()[0])
    print(json.dumps(times))


main(sys.argv[1], int(sys.argv[2]))
