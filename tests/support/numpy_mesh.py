"""A mesh of devices in NumPy: it runs a plan slice by slice, and puts the whole outputs together.

Whatever its plan, a call on a mesh has to give what it gives on the whole tensors. Nothing is moved between
devices: each device's part of an input is cut from the whole, as its placement says.
"""

import itertools

import numpy as np

from polyop.call.foreign import flatten, text_values, unflatten, written_tensors
from polyop.rules.loops.parts import joined, specs
from polyop.sharding.local_call import local_call
from polyop.sharding.of_call import sharding_rule
from polyop.sharding.placement import Partial, Shard
from polyop.sharding.plan import Plan, combinations
from polyop.sharding.ranges import Range, Slice, chunks, input_range, output_offset, slices

COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def rule_of(bound, arguments):
    """The sharding rule of a call with arrays."""
    flat = specs(flatten(bound.schema, arguments))
    return sharding_rule(bound.operator, with_tensors(bound.schema, arguments, flat))


def with_tensors(schema, arguments, tensors):
    """The arguments with other tensors in the place of those that are present."""
    return unflatten(schema, text_values(schema, arguments), [*tensors])


def plan_with(strategies):
    """The plan that runs these strategies, one for each mesh axis; its inputs lie as they need them."""
    inputs, outputs = (
        (*zip(*side, strict=True),)
        for side in ([s.inputs for s in strategies], [s.outputs for s in strategies])
    )
    return Plan(tuple(strategies), inputs, outputs, ())


def whole_outputs(bound, arguments):
    """The outputs of a call on the whole tensors: the new ones, then those that are written in place."""
    own = with_tensors(bound.schema, arguments, [np.array(x) for x in flatten(bound.schema, arguments)])
    return _outputs(bound.schema, own, call(bound, own))


def call(bound, arguments):
    """What an operator returns; a test that must not compile runs it otherwise."""
    return bound(*arguments)


def run(bound, arguments, mesh, plan, seed=0):
    """The same, of a call that runs on a mesh by a plan.

    A partial input is split into random addends. Raises ``AssertionError`` if devices that should have the
    same output differ.
    """
    return _Run(bound, arguments, mesh, plan, seed).outputs()


class _Run:
    def __init__(self, bound, arguments, mesh, plan, seed):
        self.bound, self.arguments, self.mesh, self.plan = bound, arguments, mesh, plan
        self.rule = rule_of(bound, arguments)
        draw = np.random.default_rng(seed)
        self.flat = [
            _Addends(np.asarray(x), placements, mesh, draw)
            for x, placements in zip(flatten(bound.schema, arguments), plan.inputs, strict=True)
        ]

    def outputs(self):
        local = {device: self.on(device) for device in itertools.product(*map(range, self.mesh))}
        for axis in reversed(range(len(self.mesh))):
            groups = {}
            for device, results in sorted(local.items()):
                groups.setdefault(device[:axis], []).append(results)
            local = {device: self.combined(rows, axis) for device, rows in groups.items()}
        return local[()]

    def combined(self, rows, axis):
        """The outputs of the devices along the last axis as one device's."""
        return [self.one([row[k] for row in rows], self.plan.outputs[k][axis]) for k in range(len(rows[0]))]

    def one(self, parts, placement):
        match placement:
            case Shard(dim):
                return np.concatenate(parts, dim)
            case Partial(op):
                return COMBINE[op].reduce(parts)
        for part in parts[1:]:
            np.testing.assert_array_equal(parts[0], part)
        return parts[0]

    def on(self, device):
        """The outputs of one device, each cut to its chunk."""
        pieces = self.pieces(device)
        splits = {
            strategy.name: (axis, strategy, pieces[axis])  # of a chunk of a chunk the inner one
            for axis, strategy in enumerate(self.plan.strategies)
            if strategy.name
        }
        if any(not piece.output.size for _, _, piece in splits.values()):
            return [self.empty(k, splits) for k in range(len(self.rule.outputs))]
        inputs = [x.of(device) for x in self.flat]
        for k, spec in enumerate(self.rule.inputs):
            for axis, strategy, piece in splits.values():
                placement = self.plan.inputs[k][axis]
                if isinstance(placement, Shard):
                    kept = input_range(strategy, piece, spec.shape[placement.dim])
                    inputs[k] = inputs[k].take(range(*kept), placement.dim)
        arguments = with_tensors(self.bound.schema, self.arguments, map(np.ascontiguousarray, inputs))
        bound, values = local_call(self.bound, self.plan.strategies, pieces, arguments)
        outputs = _outputs(self.bound.schema, arguments, call(bound, values))
        return [self.cut(k, output, splits) for k, output in enumerate(outputs)]

    def pieces(self, device):
        """What a device computes along each mesh axis; a dimension that is split twice has chunks of a chunk."""
        pieces, outer = [], {}
        for axis, strategy in enumerate(self.plan.strategies):
            if not strategy.name:
                pieces.append(None)
                continue
            if strategy.name in outer:
                around = outer[strategy.name].own
                begin, end = chunks(around.size, self.mesh[axis])[device[axis]]
                own = Range(around.begin + begin, around.begin + end)
                piece = Slice(own, own, own)
            else:
                piece = slices(self.rule, strategy, self.mesh[axis])[device[axis]]
            pieces.append(piece)
            outer[strategy.name] = piece
        return pieces

    def cut(self, number, output, splits):
        """What belongs to a device of what it computed."""
        for axis, _, piece in splits.values():
            placement = self.plan.outputs[number][axis]
            if isinstance(placement, Shard):
                offset = output_offset(piece)
                assert offset + piece.output.size <= output.shape[placement.dim], "too few elements"
                output = output.take(range(offset, offset + piece.output.size), placement.dim)
        return output

    def empty(self, number, splits):
        """The output of a device that has nothing to compute: without elements, or what changes no result."""
        spec = self.rule.outputs[number]
        shape, dtype = list(spec.shape), np.dtype(spec.dtype.name)
        value = 0
        for axis, _, piece in splits.values():
            match self.plan.outputs[number][axis]:
                case Shard(dim):
                    shape[dim] = piece.output.size
                case Partial(op) if op != "sum":
                    infinite = np.inf if dtype.kind == "f" else None
                    least, most = (
                        (-infinite, infinite) if infinite else (np.iinfo(dtype).min, np.iinfo(dtype).max)
                    )
                    value = least if op == "max" else most
        return np.full(shape, value, dtype)


class _Addends:
    """One input: the whole, or a part of it for each device along the axes where it is partial."""

    def __init__(self, whole, placements, mesh, draw):
        self.axes = [axis for axis, placement in enumerate(placements) if isinstance(placement, Partial)]
        counts = [mesh[axis] for axis in self.axes]
        shape = (*counts, *whole.shape)
        numbers = draw.integers(-5, 5, shape) if whole.dtype.kind in "iub" else draw.uniform(-1, 1, shape)
        self.parts = numbers.astype(whole.dtype)
        last = tuple(n - 1 for n in counts)
        self.parts[last] = 0
        self.parts[last] = (
            whole - self.parts.sum(tuple(range(len(counts))), dtype=whole.dtype) if counts else whole
        )

    def of(self, device):
        return self.parts[tuple(device[axis] for axis in self.axes)].copy()  # it may be written


def _outputs(schema, arguments, result):
    results = () if result is None else joined(result)
    if not schema.returns_list:
        results = [x for x, row in zip(results, schema.returns, strict=True) if not row.type.alias]
    return [*results, *written_tensors(schema, arguments)]


def gradient_call(bound, arguments, grads):
    """The operator ``f__backward`` and the arguments with which it is called; None where none is computed."""
    call = bound.operator.gradient.at(arguments).part_call(
        arguments, whole_outputs(bound, arguments), grads, (True,) * len(arguments)
    )
    return (call.part, call.arguments) if call.arguments else None


def check_every_strategy(bound, arguments, meshes):
    """Assert that each combination of strategies gives the whole outputs; return how many were tried."""
    rule, whole, tried = rule_of(bound, arguments), whole_outputs(bound, arguments), 0
    for mesh in meshes:
        for strategies in combinations(rule, mesh):
            parts = run(bound, arguments, mesh, plan_with(strategies), tried)
            for one, other in zip(parts, whole, strict=True):
                assert one.dtype == other.dtype
                tolerance = 1e-9 if other.dtype.itemsize == 8 else 1e-4
                text = f"{' and '.join(map(str, strategies))} on {mesh}"
                np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=text)
            tried += 1
    return tried
