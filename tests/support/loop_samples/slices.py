"""Try on numbers what is proved of a kernel's dimensions: a kernel on slices beside the kernel on the whole."""

import itertools
import operator

import numpy as np

from polyop.loops.dims.placed import placed_kernel
from polyop.loops.ir.grammar import Const, Op, Size, Var
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.rewriter import rewrite

COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum}
ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "max": max,
    "min": min,
}
CUTS = ((), (1,), (2,), (3,), (1, 2), (2, 4), (3, 4))
"""Where a dimension is cut; cuts beyond its size are left out."""


class Trial:
    """A kernel with the sizes of its dimensions, and random inputs."""

    def __init__(self, kernel, slicings, sizes, attributes, draw, known=None):
        self.kernel, self.attributes, self.known = kernel, attributes, known or {}
        self.tensors = [n for n in kernel.parameters if n in kernel.buffers]
        self.sizes = {
            (r.dimension.size.buffer, r.dimension.size.axis): sizes[r.dimension.name] for r in slicings
        }
        self.axes = {axis: r.dimension.size for r in slicings for axis in r.dimension.axes}
        self.inputs = [self.array(name, draw) for name in self.tensors]
        self.smallest = min(self.sizes.values(), default=1)

    def extent(self, name, axis):
        """The size of an input along an axis: that of its dimension, or one that follows from it."""
        expr = self.known.get((name, axis), Size(name, axis))

        def one(e):
            size = self.axes.get((e.buffer, e.axis)) if isinstance(e, Size) else None
            return e if size is None else size

        return self.value(rewrite(expr, one))

    def value(self, expr):
        match expr:
            case Const(value=value):
                return value
            case Var(name=name):
                return self.attributes[name]
            case Size(buffer=buffer, axis=axis):
                return self.sizes[buffer, axis]
            case Op(name=name, args=args):
                return ARITHMETIC[name](*map(self.value, args))
        raise TypeError(expr)

    def array(self, name, draw):
        buffer = self.kernel.buffers[name]
        shape = tuple(self.extent(name, axis) for axis in range(len(buffer.shape)))
        if buffer.dtype == "bool":
            return draw.random(shape) < 0.5
        if "int" in buffer.dtype:
            return draw.integers(0, max(1, min(self.sizes.values(), default=1)), shape).astype(buffer.dtype)
        return draw.uniform(0.5, 1.5, shape).astype(buffer.dtype)

    def run(self, inputs):
        copies = [np.array(x) for x in inputs]
        return interpret(self.kernel, copies, self.attributes)

    def run_slice(self, slicing, inputs, place):
        if not slicing.placed:
            return self.run(inputs)
        kernel, names = placed_kernel(self.kernel, slicing, self.known)
        values = dict(zip((names.begin, names.end, names.start, names.size), place, strict=True))
        return interpret(kernel, [np.array(x) for x in inputs], {**self.attributes, **values})

    def is_possible(self, slicing):
        """Whether the outputs have an element along the dimension: without, there is nothing to compute."""
        axes = [
            (y, slicing.dimension.axis_of(n))
            for n, y in zip(self.kernel.outputs, self.run(self.inputs), strict=True)
        ]
        return all(axis is None or y.shape[axis] for y, axis in axes)

    def mistakes(self, slicing):
        """Yield what of a dimension is not as proved."""
        size = slicing.dimension.size
        n = self.sizes[size.buffer, size.axis]
        before, after = self.width(slicing.halo.before), self.width(slicing.halo.after)
        whole = self.run(self.inputs)
        for cuts in CUTS:
            if cuts and cuts[-1] >= n:
                continue
            places = [0, *cuts, n]
            lengths = [y.shape[slicing.dimension.axis_of(name)] for name, y in zip(self.kernel.outputs, whole, strict=True)
                       if slicing.dimension.axis_of(name) is not None]  # fmt: skip
            slices = [
                self.slice(slicing, a, b, n, before, after)
                for a, b in itertools.pairwise(places)
                if a < min(lengths, default=n)  # no output has elements of the others
            ]
            yield from self.compare(slicing, whole, slices, cuts, n)

    def width(self, form):
        values = {f"{b}.n{a}": n for (b, a), n in self.sizes.items()} | self.attributes
        return sum(c * values[name] if name else c for name, c in form.items())

    def slice(self, slicing, a, b, n, before, after):
        """Run a slice with its halo; return the slice's part of each output."""
        before, after = max(0, before), max(0, after)
        start, end = max(0, a - before), min(n, b + after)
        inputs = []
        for name, x in zip(self.tensors, self.inputs, strict=True):
            axis = slicing.dimension.axis_of(name)
            if axis is not None:
                shorter = x.shape[axis] - n
                x = np.take(x, range(start, end + shorter), axis)  # noqa: PLW2901
            inputs.append(x)
        results = []
        for name, y in zip(
            self.kernel.outputs, self.run_slice(slicing, inputs, (a, b, start, n)), strict=True
        ):
            axis = slicing.dimension.axis_of(name)
            length = y.shape[axis] if axis is not None else 0
            results.append(y if axis is None else np.take(y, range(a - start, min(b - start, length)), axis))
        return results

    def compare(self, slicing, whole, slices, cuts, n):
        for k, name in enumerate(self.kernel.outputs):
            axis = slicing.dimension.axis_of(name)
            parts = [results[k] for results in slices]
            if axis is not None:
                joined = np.concatenate(parts, axis)
            elif slicing.kind in COMBINE:
                joined = parts[0]
                for part in parts[1:]:
                    joined = COMBINE[slicing.kind](joined, part)
            else:
                joined = parts[0]
            exact = whole[k].dtype.kind in "biu"
            tolerance = 1e-9 if exact else {1: 0.3, 2: 0.1, 4: 1e-3}.get(whole[k].dtype.itemsize, 1e-9)
            largest = max(1.0, float(np.nanmax(np.abs(whole[k].astype(np.float64)), initial=1.0)))
            if joined.shape != whole[k].shape or not np.allclose(
                joined.astype(np.float64),
                whole[k].astype(np.float64),
                tolerance,
                tolerance * largest,
                equal_nan=True,
            ):
                yield f"{slicing.dimension.name} is not {slicing.kind}: {name} cut at {cuts} of {n}"
