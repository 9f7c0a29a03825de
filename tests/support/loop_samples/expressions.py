"""The expressions of random programs: elements of tensors, their subscripts, values and conditions.

A variable remembers the symbol that it runs over and how far an index may be shifted, so that nearly all
indices are inside.
"""

from dataclasses import dataclass

FLOATS, HALVES = ("float32", "float64"), ("float16", "bfloat16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint32")
INSIDE = (
    *("{n} - 1 - {v}", "{v} // 2", "{v} % 3", "({v} + {k}) % {n}", "-1 - {v}", "max({v} - {k}, 0)"),
    *("min({v} + {k}, {n} - 1)", "{k} * {v} % {n}", "({v} + {w}) // 2", "abs({v} - {w})", "{v} - {v} % 2"),
    *("({v} - {w}) % {n}", "{v} // 2 + {w} // 2", "max({v}, {w})", "{v} >> 1", "({v} << 1) % {n}"),
)
"""Subscripts that stay below a size n where v and w do."""
GUARDED = (
    *(("{v} + 1 < {n}", "{v} + 1"), ("{v} > 0", "{v} - 1")) * 3,
    *(("{v} + {w} < {n}", "{v} + {w}"), ("{v} >= {w}", "{v} - {w}"), ("2 * {v} < {n}", "2 * {v}")),
    *(("2 * {v} + {w} < {n}", "{w} + 2 * {v}"), ("{n} > 3 and {v} > 2", "3 - {v} % 3")),
)
"""Conditions, and subscripts that they keep inside."""
SMOOTH = (
    *("sin({a})", "tanh({a})", "abs({a})", "exp(-abs({a}))", "sqrt(abs({a}) + 0.5)", "log({a} ** 2 + 0.5)"),
    *("({a} / (abs({b}) + 0.5))", "({a} ** 2)", "atan({a})", "stop_gradient({a})"),
    *("exp2(-abs({a}))", "log1p(abs({a}))", "log2({a} ** 2 + 0.5)", "expm1(-abs({a}))", "cos({a})"),
    *(
        "sinh(tanh({a}))",
        "cosh(tanh({a}))",
        "tan(0.5 * tanh({a}))",
        "asin(0.5 * tanh({a}))",
        "rsqrt(abs({a}) + 0.5)",
    ),
    *("acos(0.5 * tanh({a}))", "sigmoid({a})", "erf({a})", "erfc(tanh({a}))", "lgamma(abs({a}) + 0.5)"),
    *("digamma(abs({a}) + 0.5)", "atan2({a}, abs({b}) + 0.5)"),
)


@dataclass(frozen=True)
class Variable:
    """A loop variable over ``symbol``: from ``low`` to the size less 1 and less ``high``."""

    name: str
    symbol: str
    low: int = 0
    high: int = 0


class Expressions:
    """What makes expressions; ``random`` decides. A subclass declares ``tensors`` and ``sizes`` of symbols."""

    def pick(self, choices):
        return choices[self.random.randrange(len(choices))]

    def chance(self, share):
        return self.random.random() < share

    def new(self, letter):
        return f"{letter}{next(self.numbers)}"

    def into(self, dtype, value):
        """Return a value of the program's dtype converted."""
        if dtype == "bool":
            return f"{value} > {self.dtype}(0)" if not value.isdigit() else f"bool_({value})"
        return value if dtype == self.dtype and not value.isdigit() else f"{dtype}({value})"

    def read(self, text):
        return f"{self.dtype}({text})"

    def index(self, symbol, variables, used, *, write=False):
        fitting = [v for v in variables if v.symbol == symbol]
        kind, size = self.random.random(), self.sizes[symbol][0]
        if self.tidy and fitting and kind < 0.93:
            free = [v for v in fitting if not write or v.name not in used]
            if free:
                v = self.pick(free)
                used.add(v.name)
                if write or self.chance(0.6):
                    return v.name
        if fitting and kind < 0.86:
            v = fitting[-1] if self.chance(0.5) else self.pick(fitting)
            return self.shifted(v, size, variables)
        if self.indirect and self.indirect[1] == symbol and self.chance(0.8):
            through = [v for v in variables if v.symbol == self.indirect[0]]
            if through:
                return f"ix[{self.shifted(self.pick(through), self.sizes[self.indirect[0]][0], variables)}]"
        return self.pick(("0", "0", "0", "-1", f"{size} - 1"))

    def shifted(self, v, size, variables):
        by = self.random.randint(-v.low, v.high) if self.chance(0.5) and v.high >= -v.low else 0
        kind = self.random.random()
        if by == 0 and kind < 0.16:
            w = self.pick([w for w in variables if w.symbol == v.symbol]).name
            return self.pick(INSIDE).format(v=v.name, w=w, n=size, k=self.random.randrange(1, 4))
        if kind > 0.985:
            by += self.pick((-1, 1))
        elif kind > 0.945:  # some iterations count from the end
            by = -v.low - self.random.randint(1, 2)
        return v.name if by == 0 else f"{v.name} {'+' if by > 0 else '-'} {abs(by)}"

    def element(self, name, variables, *, write=False):
        used = set()
        index = [self.index(s, variables, used, write=write) for s in self.tensors[name][1]]
        return f"{name}[{', '.join(index)}]"

    def value(self, variables, scalars, depth):
        kind = self.random.random()
        if depth == 0 or kind < 0.35:
            return self.leaf(variables, scalars)
        one, other = (self.value(variables, scalars, depth - 1) for _ in range(2))
        if kind < 0.8:
            return f"({one} {self.pick(('+', '-', '*', '+'))} {other})"
        if kind < 0.87:
            return f"{self.pick(('max', 'min'))}({one}, {other})"
        if kind < 0.9:
            return self.pick(SMOOTH).format(a=one, b=other) if self.real else f"abs({one})"
        if kind < 0.97:
            return f"({one} if {self.condition(variables, scalars)} else {other})"
        name, test, load = self.guarded(variables)
        return f"({self.read(load)} if {test} else {one})" if name else one

    def leaf(self, variables, scalars):
        kind = self.random.random()
        if scalars and kind < 0.25:
            return self.pick(scalars)
        if kind < 0.8:
            names = [n for n in self.tensors if n != "ix"]
            if self.tidy and self.chance(0.85):
                names = [n for n in names if n in self.inputs and n not in self.written] or names
            name = self.pick(names)
            return self.read(self.element(name, variables))
        if variables and kind < 0.88:
            return f"{self.dtype}({self.pick(variables).name})"
        if self.dtype == "float64" and self.chance(0.3):  # numbers of Python, which take a scalar's dtype
            return self.pick(("0.5", "2.0", "1", "0"))
        floats = self.dtype in FLOATS + HALVES
        return f"{self.dtype}({self.pick(('1.0', '2.0', '0.5', '3') if floats else ('0', '1', '2', '3'))})"

    def guarded(self, variables, names=()):
        """Return a tensor, a condition, and an element of the tensor that only the condition keeps inside."""
        name = self.pick(names or [n for n in self.tensors if n != "ix"])
        axes = self.tensors[name][1]
        places = [(axis, v) for axis, symbol in enumerate(axes) for v in variables if v.symbol == symbol]
        if not places:
            return "", "", ""
        axis, v = self.pick(places)
        index = [self.index(s, variables, set()) for s in axes]
        w = self.pick([w for w in variables if w.symbol == v.symbol]).name
        test, index[axis] = (
            form.format(v=v.name, w=w, n=f"{name}.shape[{axis}]") for form in self.pick(GUARDED)
        )
        if self.indirect == (v.symbol, v.symbol) and self.chance(0.3):
            test, index[axis] = f"ix[{v.name}] > 0", f"ix[{v.name}] - 1"
        return name, test, f"{name}[{', '.join(index)}]"

    def condition(self, variables, scalars):
        kind, v, w = self.random.random(), self.pick(variables).name, self.pick(variables).name
        if kind < 0.35:
            size = self.sizes[self.pick(self.symbols)][0]
            forms = (
                f"{v} < {w}",
                f"{v} <= {w} + 1",
                f"{v} == {w}",
                f"{v} > 0",
                f"{v} == 0",
                f"{v} + 1 < {size}",
            )
            return self.pick((*forms, f"{v} % 2 == 0", f"{v} + {w} > 3", f"{v} != {w}"))
        if kind < 0.75:
            one, other = (self.value(variables, scalars, 0) for _ in range(2))
            return f"{one} {self.pick(('<', '>', '>=', '==', '!='))} {other}"
        if kind < 0.82:
            return f"not ({self.condition(variables, scalars)})"
        name, test, load = self.guarded(variables) if kind < 0.9 else ("", "", "")
        if name:
            return self.pick((f"{test} and {load} > 0", f"not ({test}) or {load} > 0"))
        one, other = (self.condition(variables, scalars) for _ in range(2))
        return f"({one} {self.pick(('and', 'or'))} {other})"
