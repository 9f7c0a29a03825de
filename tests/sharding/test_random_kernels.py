"""Random loop kernels on a mesh: whatever is proved of their slices, values and gradients are those of the whole.

    python tests/sharding/test_random_kernels.py --seed 7 --minutes 10

The interpreter runs them, so nothing is compiled, and an element that is read before it is written is NaN. Half
of them are any programs, of which few can be split; the others are made of axes that can be.
"""

import argparse
import random
import sys
import time
import traceback
import warnings
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import numpy_mesh
import polyop
from loop_samples.generate import Generator, function_of
from polyop.core.errors import GradientError
from polyop.loops.ir.interpret import interpret
from polyop.rules.loops.parts import all_attributes, specs

MESHES = ((2,), (3,), (5,), (2, 2))
ABSENT = np.zeros((), bool)
SEEDS = 2**32
LARGEST = 1e7
"""Larger values lose too many digits to compare."""


def interpreted(bound, arguments):
    """Run a loop kernel by the interpreter, as ``numpy_mesh`` calls an operator."""
    tensors, attributes = bound.schema.tensors_and_attributes(arguments)
    attributes = all_attributes(bound.operator, attributes)
    kernel = bound.operator.kernels[0]
    loops = kernel.for_all_sizes(specs(tensors), attributes)
    names = [name for name in loops.parameters if name in loops.buffers]
    types = [loops.buffers[name] for name in names]
    arrays = [
        ABSENT if one.dtype == "bool" and not one.shape else x for one, x in zip(types, tensors, strict=True)
    ]
    results = interpret(loops, arrays, {name: attributes[name] for name in loops.attributes})
    for name, result in zip(loops.outputs, results, strict=True):
        if loops.buffers[name].role == "inplace":
            tensors[names.index(name)][...] = result
    return results


class Nest:
    """A random loop nest: each axis is mapped, a window, a stencil with borders, or reduced.

    It has what ``Generator`` has: ``text``, ``inputs``, ``outputs``, ``function`` and ``arrays``.
    """

    def __init__(self, draw):
        self.draw = draw
        self.kinds = [draw.choice(("map", "window", "stencil", "reduce")) for _ in range(draw.randint(1, 3))]
        self.reach = [draw.randint(1, 3) for _ in self.kinds]
        axes = range(len(self.kinds))
        self.kept = [k for k in axes if self.kinds[k] != "reduce"] or [0]
        self.kinds = [
            "map" if kind == "reduce" and k in self.kept else kind for k, kind in enumerate(self.kinds)
        ]
        self.second = [k for k in axes if self.kinds[k] in ("map", "reduce") and draw.random() < 0.6]
        self.inputs = {"x": len(self.kinds)} | ({"w": len(self.second)} if self.second else {})
        self.outputs = ["y"]
        self.text = "\n".join([f"def f({', '.join(self.inputs)}):", *self.lines(), "    return y", ""])

    def size(self, axis):
        return f"x.shape[{axis}]{f' - {self.reach[axis]}' if self.kinds[axis] == 'window' else ''}"

    def lines(self):
        shape = "".join(f"{self.size(k)}, " for k in self.kept)
        yield f'    y = output_tensor(({shape}), "float64")'
        reduced = [k for k in range(len(self.kinds)) if k not in self.kept]
        order = [*self.kept, *reduced]
        self.draw.shuffle(order)
        for depth, axis in enumerate(order, 1):
            yield f"{'    ' * depth}for i{axis} in range({self.size(axis)}):"
        indent = "    " * (len(order) + 1)
        guards = []
        for k, kind in enumerate(self.kinds):
            if kind == "stencil":
                below, above = (self.draw.randint(0, self.reach[k]) for _ in range(2))
                guards.append((k, below, above))
        test = " and ".join(f"i{k} >= {b} and i{k} < x.shape[{k}] - {a}" for k, b, a in guards)
        at = f"y[{', '.join(f'i{k}' for k in self.kept)}]"
        value = self.value({k: (-b, a) for k, b, a in guards})
        op = self.draw.choice(("+=", "max", "min")) if reduced else self.draw.choice(("=", "+="))
        store = f"{at} = {op}({at}, {value})" if op[0] == "m" else f"{at} {op} {value}"
        if test:
            yield f"{indent}if {test}:"
            yield f"{indent}    {store}"
            if self.draw.random() < 0.5 and not reduced:
                yield f"{indent}else:"
                yield f"{indent}    {at} = x[{', '.join(f'i{k}' for k in range(len(self.kinds)))}]"
        else:
            yield f"{indent}{store}"

    def value(self, shifts):
        terms = []
        for _ in range(self.draw.randint(1, 3)):
            index = []
            for k, kind in enumerate(self.kinds):
                low, high = shifts.get(k, (0, self.reach[k] if kind == "window" else 0))
                index.append(f"i{k} + {self.draw.randint(low, high)}")
            terms.append(f"x[{', '.join(index)}]")
        if self.second:
            terms.append(f"w[{', '.join(f'i{k}' for k in self.second)}]")
        text = terms[0]
        for term in terms[1:]:
            text = self.draw.choice(("({} + {})", "({} * {})", "({} - {})")).format(text, term)
        if self.draw.random() < 0.15:
            text = f"{text} * (i{self.draw.randrange(len(self.kinds))} + 1)"
        return self.draw.choice(("{}", "sin({})", "{}")).format(text)

    def function(self):
        return function_of(self.text)

    def arrays(self):
        sizes = [self.draw.randint(self.reach[k], 9) for k in range(len(self.kinds))]
        return [np.zeros(sizes), np.zeros([sizes[k] for k in self.second])][: len(self.inputs)]


def source_of(seed):
    """The random program of a seed."""
    draw = random.Random(seed)
    return Nest(draw) if seed % 2 else Generator(draw, real=True)


def operator_of(source, number):
    """The operator of a random program; a tensor that it returns is written in place."""
    inputs = [f"Tensor{'(a!)' if name in source.outputs else ''} {name}" for name in source.inputs]
    outputs = [f"Tensor{'(a!)' if name in source.inputs else ''}" for name in source.outputs]
    returns = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    schema = f"random_kernels::f{number}({', '.join(inputs)}) -> {returns}"
    return polyop.operator(schema, polyop.kernel(source.function()))


def check(seed):
    """Compare a random kernel and its gradient with themselves on meshes; return how many plans were tried."""
    source = source_of(seed)
    if any(f"{name}[" not in source.text for name in source.inputs):
        return 0  # a parameter that is no tensor is an attribute
    bound = operator_of(source, seed)
    draw = np.random.default_rng(seed)
    arguments = tuple(
        draw.uniform(-1.5, 1.5, a.shape) if a.dtype == np.float64 else a for a in source.arrays()
    )
    try:
        outputs = numpy_mesh.whole_outputs(bound, arguments)
    except (IndexError, OverflowError):
        return 0
    if not all(np.isfinite(y).all() and (np.abs(y) < LARGEST).all() for y in outputs):
        return 0
    count = numpy_mesh.check_every_strategy(bound, arguments, MESHES)
    if not bound.schema.mutates:
        grads = [draw.uniform(-1, 1, y.shape) if y.dtype == np.float64 else None for y in outputs]
        try:
            call = numpy_mesh.gradient_call(bound, arguments, grads)
        except GradientError:
            call = None
        if call is not None:
            count += numpy_mesh.check_every_strategy(*call, MESHES)
    return count


@settings(max_examples=8)
@given(st.integers(0, SEEDS))
def test_random_kernels_on_meshes(seed):
    with mock.patch.object(numpy_mesh, "call", interpreted):
        check(seed)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one; the others follow")
    parser.add_argument("--minutes", type=float, default=1.0)
    options = parser.parse_args()
    numpy_mesh.call = interpreted
    warnings.simplefilter("ignore", polyop.UninitialisedWarning)
    end, seed, plans, findings = time.monotonic() + 60 * options.minutes, options.seed, 0, 0
    while time.monotonic() < end:
        try:
            plans += check(seed)
        except Exception:
            findings += 1
            text = source_of(seed).text
            print(f"\nfinding: seed {seed}: {traceback.format_exc(limit=-3)}\n{text}", flush=True)
        seed += 1
    print(f"{seed - options.seed} kernels, {plans} plans, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
