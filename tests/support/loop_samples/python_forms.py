"""Random programs with what a kernel has of Python beside loops: helpers, exits, rows, tuples."""

from loop_samples.generate import Generator

HELPERS = """def clamped(v, w):
    if v > w:
        return w * 0.5
    return v


def folded(v, w):
    total = v
    for step in range(4):
        if total > w:
            return total, step * 0.25
        if step == 1:
            continue
        total += 0.5 + clamped(w, v) * 0.125
    return total, total - w


"""


class PythonForms(Generator):
    """One random program of float64; it has the text of its helpers before it."""

    def __init__(self, random):
        super().__init__(random, real=True)
        key = '    key = allocate((2,), "int64")\n    key[0] = 7\n    key[1] = 11\n'
        head, _, body = self.text.partition("\n")
        self.text = f"{HELPERS}{head}\n{key if '(key, ' in body else ''}{body}"

    def statement(self, depth, variables, scalars):
        kind = self.random.random()
        if kind < 0.12 and depth > 1:
            self.emit(depth, f"if {self.condition(variables, scalars)}:")
            leave = f"return {', '.join(self.outputs)}"
            self.emit(depth + 1, self.pick(("break", "break", "continue", "continue", leave)))
        elif kind < 0.24:
            self.rows(depth, variables, scalars)
        elif kind < 0.32:
            self.called(depth, variables, scalars)
        elif kind < 0.36 and self.left > 0 and depth < 4:
            self.left -= 1
            self.counted(depth, variables, scalars)
        elif kind < 0.42:
            self.pick((self.drawn, self.tabled))(depth, variables, scalars)
        elif kind < 0.46 and len(scalars) > 1:
            one, other = scalars[-2:]
            self.emit(depth, f"{one}, {other} = {other}, {one} - {other}")
        else:
            super().statement(depth, variables, scalars)

    def drawn(self, depth, variables, scalars):
        """Emit a random number, and its store."""
        name, counters = (
            self.new("s"),
            [self.pick(variables).name for _ in range(1 + self.random.randrange(3))],
        )
        word = self.pick(("random", "random_normal")) if self.tidy else "random"
        self.emit(depth, f'{name} = {word}(key, {", ".join(counters)}, dtype="float64")')
        scalars.append(name)
        self.store(depth, variables, scalars, f"{name} * {self.value(variables, scalars, 1)}")

    def tabled(self, depth, variables, scalars):
        """Emit a table of numbers, and a loop that reads it."""
        name, k = self.new("w"), self.new("k")
        items = [self.value(variables, scalars, 1) for _ in range(3)]
        self.depth = max(self.depth, depth)
        self.emit(depth, f"{name} = [{', '.join(items)}]")
        self.emit(depth, f"for {k} in range(3):")
        read = f"{name}[{self.pick((k, k, f'2 - {k}', f'{k} >> 1'))}]"
        self.store(depth + 1, variables, scalars, f"{read} * {self.value(variables, scalars, 0)}")

    def called(self, depth, variables, scalars):
        """Emit a call of a helper, and the store of a result."""
        inputs = f"{self.value(variables, scalars, 1)}, {self.value(variables, scalars, 0)}"
        one, other = self.new("s"), self.new("s")
        if self.chance(0.5):
            self.emit(depth, f"{one}, {other} = folded({inputs})")
            scalars.append(other)
        else:
            self.emit(depth, f"{one} = clamped({inputs}) + {self.value(variables, scalars, 0)}")
        scalars.append(one)
        self.store(depth, variables, scalars, one)

    def counted(self, depth, variables, scalars):
        """Emit a while that runs a few times."""
        name, size = self.new("n"), self.sizes[self.pick(self.symbols)][0]
        self.depth = max(self.depth, depth)
        self.emit(depth, f"{name} = 0")
        self.emit(depth, f"while {name} < {size} and {self.condition(variables, scalars)}:")
        self.emit(depth + 1, f"{name} += {self.pick((1, 2))}")
        self.block(depth + 1, variables, list(scalars))

    def rows(self, depth, variables, scalars):
        """Emit a statement about rows along one symbol."""
        name = self.pick(self.written)
        symbol = self.tensors[name][1][-1]
        part = self.pick(("", "", "", "1:", ":-1", "::2"))
        terms = [self.part_of(n, variables, part) for n in self.tensors if self.along(n, symbol)]
        terms = [self.pick(terms) for _ in range(1 + self.random.randrange(3))] if terms else []
        if not terms:
            self.store(depth, variables, scalars)
            return
        value = terms[0]
        for term in terms[1:]:
            value = f"({value} {self.pick('+-*')} {term})"
        value = f"{value} {self.pick('+*')} {self.value(variables, scalars, 0)}"
        if self.chance(0.3):
            total = self.new("s")
            self.emit(depth, f"{total} = sum({value})")
            scalars.append(total)
            self.store(depth, variables, scalars, f"tanh({total})")
        else:
            target = self.part_of(name, variables, part)
            self.emit(depth, f"{target} {self.pick(('=', '=', '+=', '-='))} {value}")

    def along(self, name, symbol):
        dtype, axes = self.tensors[name]
        return dtype == "float64" and axes[-1] == symbol

    def part_of(self, name, variables, part):
        index = [self.index(s, variables, set()) for s in self.tensors[name][1][:-1]]
        return f"{name}[{', '.join([*index, part or ':'])}]"
