"""Random loops over windows: contractions under conditions, and additions to shifted elements, as text.

Sizes are those of the tensors, none of which follows from another: windows are longer than rows, and empty.
"""

import random

import numpy as np

SIZES = (0, 1, 1, 2, 3, 4, 5, 6, 7, 9)
FORMS = ("and", "and", "chain", "nested", "not", "continue", "else")
"""How a condition is written."""


class Windows:
    """A kernel ``f(x, w, z, ...)`` of one to three axes with windows; ``attributes`` are its further arguments.

    ``x`` are images, ``w`` filters, and ``z`` has the size of the result. As a "gather" each element of the
    result sums products, as a "scatter" each product is added to an element.
    """

    def __init__(self, form, seed):
        self.form, self.seed = form, seed
        self.random, self.attributes = random.Random(f"{form} {seed}"), {}
        self.axes = self.pick((1, 1, 1, 2, 2, 3))
        self.grouped = self.chance(0.25)
        self.rows = [self._row(k) for k in range(self.axes)]
        body = self._gather() if form == "gather" else self._scatter()
        names = ", ".join(("x", "w", "z", *self.attributes))
        self.text = "\n".join([f"def f({names}):", *body, "    return y", ""])

    @property
    def types(self):
        """The dtype and number of dimensions of x, w and z."""
        return [("float32", 2 + self.axes), ("float32", 2 + self.axes), ("float32", self.axes)]

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def arrays(self, number, *, special=False):
        """Return tensors of random sizes, with small numbers; ``special``: and infinities, NaNs and -0.0."""
        draw = np.random.default_rng([number, self.seed])
        batch, channels, outputs = (int(n) for n in draw.choice((0, 1, 2, 3, 4)[bool(number) :][:4], 3))
        image, result = (draw.choice(SIZES[: 12 - 2 * self.axes], self.axes).tolist() for _ in range(2))
        window = draw.choice((0, 1, 2, 3, 3, 4, 7)[: 8 - self.axes], self.axes).tolist()
        groups = 1 + self.grouped
        filters = [outputs * groups, channels] if self.form == "gather" else [channels * groups, outputs]
        shapes = [batch, channels * groups, *image], [*filters, *window], result
        arrays = [draw.integers(-2, 3, shape).astype("float32") for shape in shapes]
        for array in (a for a in arrays[:2] if special and a.size):
            array.flat[draw.integers(array.size)] = draw.choice([np.inf, -np.inf, np.nan, 1])
            array.flat[draw.integers(array.size)] = -0.0
        return arrays

    def _row(self, k):
        """Return the index along an axis, by the loops i and p, and the ends of the condition on it."""
        shift = f"- {self.pick((0, 1, 1, 2, 3, 4, -1))}"
        if self.chance(0.15):
            self.attributes["pad"], shift = self.pick((-1, 0, 1, 2, 9)), "- pad"
        dilation = self.pick((1, 1, 1, 2, 3, 4))
        taps = self.pick(
            [f"+ {dilation} * p{k}"] * 4 + [f"- {dilation} * p{k}", f"+ w.shape[{k + 2}] - 1 - p{k}"]
        )
        size = f"{'x' if self.form == 'gather' else 'y'}.shape[{k + 2}]"
        ends = [("0", size)] * 12 + [
            ("1", f"{size} - 1"),
            ("-1", f"{size} + 1"),
            ("0", "3"),
            ("0", ""),
            ("", size),
        ]
        return f"{self.pick((1, 1, 1, 2, 3, 5))} * i{k} {taps} {shift}", *self.pick(ends)

    def _nest(self, heads, depth=1):
        return [f"{'    ' * (depth + k)}for {var} in range({end}):" for k, (var, end) in enumerate(heads)]

    def _guarded(self, depth, target, value):
        """Return the lines of an addition under the conditions on all axes."""
        space, statement = "    " * depth, f"{target} += {value}"
        ends = [(f"h{k}", low, high) for k, (_, low, high) in enumerate(self.rows)]
        inside = [
            t
            for h, low, high in ends
            for t in (f"{h} >= {low}" * bool(low), f"{h} < {high}" * bool(high))
            if t
        ]
        outside = [
            t
            for h, low, high in ends
            for t in (f"{h} < {low}" * bool(low), f"{high} <= {h}" * bool(high))
            if t
        ]
        lines = [f"{space}h{k} = {index}" for k, (index, _, _) in enumerate(self.rows)]
        form = self.pick(FORMS)
        if form == "chain":
            inside = [f"{low or -99} <= {h} < {high or 99}" for h, low, high in ends]
        if form == "not":
            return [*lines, f"{space}if not ({' or '.join(outside)}):", f"{space}    {statement}"]
        if form == "continue":
            return [
                *lines,
                f"{space}if {' or '.join(outside)}:",
                f"{space}    continue",
                f"{space}{statement}",
            ]
        if form == "nested":
            lines += [f"{space}{'    ' * number}if {test}:" for number, test in enumerate(inside)]
            return [*lines, f"{space}{'    ' * len(inside)}{statement}"]
        lines += [f"{space}if {' and '.join(inside)}:", f"{space}    {statement}"]
        return [*lines, f"{space}else:", f"{space}    {target} += 0"] if form == "else" else lines

    def _product(self, *factors):
        more = [self.pick(("2", "0.5", "-1", *factors))] if self.chance(0.2) else []
        factors = self.random.sample([*factors, *more], 2 + len(more))
        return ("-" if self.chance(0.1) else "") + " * ".join(factors)

    def _along(self, var):
        return ", ".join(f"{var}{k}" for k in range(self.axes))

    def _gather(self):
        channel = "o // (w.shape[0] // 2) * w.shape[1] + c" if self.grouped else "c"
        at, sizes = self._along("i"), ", ".join(f"z.shape[{k}]" for k in range(self.axes))
        heads = [("n", "x.shape[0]"), ("o", "w.shape[0]")]
        heads += [(f"i{k}", f"z.shape[{k}]") for k in range(self.axes)]
        sums = [("c", "w.shape[1]" if self.grouped else self.pick(("w.shape[1]", "x.shape[1]")))]
        sums += [(f"p{k}", f"w.shape[{k + 2}]") for k in range(self.axes)]
        target, depth = self.pick(("total", f"y[n, o, {at}]")), 1 + len(heads)
        product = self._product(f"x[n, {channel}, {self._along('h')}]", f"w[o, c, {self._along('p')}]")
        lines = [f"    y = output_tensor((x.shape[0], w.shape[0], {sizes}), x.dtype)", *self._nest(heads)]
        lines += [f"{'    ' * depth}total = 0.0"] if target == "total" else []
        lines += self._nest(sums, depth)
        lines += self._guarded(depth + len(sums), target, product)
        return [*lines, f"{'    ' * depth}y[n, o, {at}] = total"] if target == "total" else lines

    def _scatter(self):
        output, outputs = "o", "w.shape[1]"
        if self.grouped:
            output, outputs = "c // (w.shape[0] // 2) * w.shape[1] + o", "2 * w.shape[1]"
        sizes, heads = [f"z.shape[{k}]" for k in range(self.axes)], [("n", "x.shape[0]"), ("c", "w.shape[0]")]
        whole = self.chance(0.3)  # the result is as long as the additions need
        if whole:
            steps = [(self.pick((1, 2, 3, 5)), self.pick((1, 2, 3, 4))) for _ in self.rows]
            self.rows = [(f"{a} * i{k} + {d} * p{k}", "", "") for k, (a, d) in enumerate(steps)]
            ends = (
                f"{a} * (x.shape[{k + 2}] - 1) + {d} * w.shape[{k + 2}]" for k, (a, d) in enumerate(steps)
            )
            sizes = [f"max(0, {end})" for end in ends]
        heads += [("o", "w.shape[1]"), *((f"i{k}", f"x.shape[{k + 2}]") for k in range(self.axes))]
        heads += [(f"p{k}", f"w.shape[{k + 2}]") for k in range(self.axes)]
        self.random.shuffle(heads)
        depth, target = 1 + len(heads), f"y[n, {output}, {self._along('h')}]"
        value = self._product(f"x[n, c, {self._along('i')}]", f"w[c, o, {self._along('p')}]")
        lines = [
            f"    y = output_tensor((x.shape[0], {outputs}, {', '.join(sizes)}), x.dtype)",
            *self._nest(heads),
        ]
        if not whole:
            return [*lines, *self._guarded(depth, target, value)]
        lines += [f"{'    ' * depth}h{k} = {index}" for k, (index, _, _) in enumerate(self.rows)]
        return [*lines, f"{'    ' * depth}{target} += {value}"]
