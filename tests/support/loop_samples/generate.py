"""Random loop programs as Python text, and inputs for them.

Sizes are symbols A, B, C that axes of several tensors share. A loop remembers the symbol that it
runs over and how far an index may be shifted, so that nearly all indices are inside; the few that
are not have to be refused by everything that runs the program.
"""

import itertools
import linecache
import random
from collections import Counter

import ml_dtypes
import numpy as np

from loop_samples.expressions import FLOATS, HALVES, INTEGERS, Expressions, Variable

EXACT = {"float16": 2**10, "bfloat16": 2**7, "float32": 2**22, "float64": 2**50}
"""Up to here whole numbers and their halves are exact: sums in any order are the same."""
_files = itertools.count()


def function_of(text):
    """Return the function ``f`` of a text; inspect finds its source, as if it were in a file."""
    file = f"<random program {next(_files)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {}
    exec(compile(text, file, "exec"), names)
    return names["f"]


def chain(seed):
    """Return the text of loop nests in a row, each of which reads neighbouring rows of what others write."""
    pick = random.Random(seed)
    timed = pick.random() < 0.5
    lines = ["def f(a, b, c):"]
    if timed:
        lines.append("    for s in range(2):")
    for number in range(pick.randint(2, 5)):
        target = pick.choice("abc")
        before, after = pick.randint(0, 3), pick.randint(0, 3)
        terms = [f"{target}[i{number}, j]"] if pick.random() < 0.4 else []
        for _ in range(pick.randint(1, 2)):
            row, column = pick.randint(-before, after), pick.randint(-1, 1)
            other = pick.choice([name for name in "abc" if name != target])
            terms.append(f"{other}[i{number} + {row}, j + {column}]")
        text = f" {pick.choice('+-')} ".join(terms)
        indent = "        " if timed else "    "
        lines += [
            f"{indent}for i{number} in range({before}, a.shape[0] - {after}):",
            f"{indent}    for j in range(1, a.shape[1] - 1):",
            f"{indent}        {target}[i{number}, j] = {text}",
        ]
    return "\n".join([*lines, "    return a, b, c", ""])


def narrow_product(seed):
    """Return the text of a product of matrices of narrow integers, and the dtypes of its tensors.

    Factors are the elements, or small functions of them. Operands lie in rows or in columns; a sum starts with
    a number or an element, runs over a part of the terms, and is used in an expression.
    """
    pick = random.Random(seed)
    types = [pick.choice(["int8", "uint8", "int16", "bool"]) for _ in range(2)]
    types += [pick.choice(["int8", "uint8"]), pick.choice(["int8", "int32"])]
    (m, a, across), (n, b, other) = (
        ("a.shape[0]", "a[i, k]", "a.shape[1]")
        if pick.random() < 0.7
        else ("a.shape[1]", "a[k, i]", "a.shape[0]"),
        ("b.shape[0]", "b[j, k]", "b.shape[1]")
        if pick.random() < 0.5
        else ("b.shape[1]", "b[k, j]", "b.shape[0]"),
    )
    forms = ["int32({0})"] * 3 + ["(int32({0}) & 15)", "(int32({0}) >> 3)", "(int32({0} & 7) - 4)", "min(int32({0}), 5)",
             "(int32({0}) - int32({1}))", "(int32({0}) * 2)", "(3 - int32({0}))"]  # fmt: skip
    total = pick.choice(["int32", "int32", "uint32"])

    def product():
        factors = [pick.choice(forms).format(a, "p[i]"), pick.choice(forms).format(b, "q[j]")]
        pick.shuffle(factors)
        text = " * ".join(factors)
        return text if total == "int32" else f"uint32({text})"

    use, dtype = pick.choice([("t", total), ("float32(t) * 0.5", "float32"), ("t // 7 + int32(p[i])", "int64"),
                              ("max(t, 0)", total), ("t", "int8"), ("t * 0.25", "float64")])  # fmt: skip
    lines = [
        "def f(a, b, p, q):",
        f"    c = output_tensor(({m}, {n}), '{dtype}')",
        f"    for i in range({m}):",
        f"        for j in range({n}):",
        f"            t = {total}({pick.choice(['0', '9', 'q[j]', 'p[i]'])})",
        f"            for k in range({pick.choice([0, 0, 1])}, min({across}, {other}) - {pick.choice([0, 0, 2])}):",
        *(f"                t += {product()}" for _ in range(pick.choice([1, 1, 2]))),
        f"            c[i, j] = {use}",
        "    return c",
        "",
    ]
    return "\n".join(lines), types, "a[i, k]" in a, "b[j, k]" in b


class Generator(Expressions):
    """One random program, by the choices of ``random`` (which hypothesis may shrink).

    With ``real``, all tensors but one of indices are float64, and smooth functions occur.
    """

    def __init__(self, random, *, real=False):
        self.random, self.real = random, real
        self.lines, self.numbers = [], itertools.count()
        self.depth = 0
        self.tidy, self.dense = self.chance(0.65), self.chance(0.25)
        self.dtype = "float64" if real else self.pick(FLOATS * 5 + HALVES + INTEGERS)
        # a float that no unsigned integer can hold becomes whatever the machine makes of it
        whole = self.dtype in INTEGERS
        self.others = INTEGERS if whole else (*FLOATS, *(d for d in INTEGERS if d[0] != "u"))
        self.others = (self.dtype,) if real else self.others
        self.symbols = ["A", "B", "C"][: 1 + random.randrange(3)]
        self.tensors, self.sizes = {}, {}
        self.declare_inputs()
        self.declare_outputs()
        self.left = 6
        for _ in range(1 + self.chance(0.5)):
            if self.dense and self.chance(0.7):
                self.contraction(1)
            else:
                self.loop(1, [], [])
        self.emit(1, f"return {', '.join(self.outputs)}")
        self.text = "\n".join([f"def f({', '.join(self.inputs)}):", *self.lines]) + "\n"

    # tensors

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    def axes(self, max_axes=3):
        return [
            self.pick(self.symbols) for _ in range(2 if self.dense else 1 + self.random.randrange(max_axes))
        ]

    def declare_inputs(self):
        for k in range(1 + self.random.randrange(3)):
            dtype = self.dtype if self.real or self.chance(0.8) else self.pick((*self.others, "bool"))
            self.tensors[f"x{k}"] = (dtype, self.axes())
        self.indirect = None
        if self.chance(0.25):
            self.indirect = (self.pick(self.symbols), self.pick(self.symbols))
            self.tensors["ix"] = ("int64" if self.real else self.pick(("int32", "int64")), [self.indirect[0]])
        self.inputs = dict(self.tensors)
        for name, (_, axes) in self.inputs.items():
            for axis, symbol in enumerate(axes):
                self.sizes.setdefault(symbol, []).append(f"{name}.shape[{axis}]")
        self.symbols = list(self.sizes)

    def declare_outputs(self):
        self.written, self.outputs = [], []
        for k in range(1 + self.chance(0.25)):
            dtype = self.dtype if self.chance(0.85) else self.pick(self.others)
            self.make(f"y{k}", "output_tensor", dtype, self.axes())
            self.outputs.append(f"y{k}")
        if self.chance(0.3):
            name = self.pick([n for n in self.inputs if n != "ix"])
            self.written.append(name)
            self.outputs.append(name)
        if self.chance(0.3):
            self.make("t", "allocate", self.dtype, self.axes(2))
        self.row = self.pick(self.symbols) if self.chance(0.35) else None
        if self.row:
            self.emit(1, f'r = allocate(({self.pick(self.sizes[self.row])},), "{self.dtype}")')

    def make(self, name, word, dtype, axes):
        self.tensors[name] = (dtype, axes)
        self.written.append(name)
        shape = "".join(f"{self.pick(self.sizes[s])}, " for s in axes)
        self.emit(1, f'{name} = {word}(({shape}), "{dtype}")')

    # statements

    def loop(self, depth, variables, scalars):
        self.depth = max(self.depth, depth)
        name, symbol = self.new("i"), self.pick(self.symbols)
        head, low, high = self.range_of(symbol, [v for v in variables if v.symbol == symbol])
        self.emit(depth, f"for {name} in {head}:")
        self.block(depth + 1, [*variables, Variable(name, symbol, low, high)], list(scalars))

    def range_of(self, symbol, outer):
        """Return the head of a loop, and how far its variable stays from both ends."""
        size, kind = self.pick(self.sizes[symbol]), self.random.random()
        word = self.pick(("parallel", "vectorize", "reduce", "serial")) if self.chance(0.05) else "range"
        if kind < 0.2:
            low, high = self.random.randrange(3), self.random.randrange(3)
            return f"{word}({low}, {size}{f' - {high}' if high else ''})", low, high
        if kind < 0.3 and outer:
            v = self.pick(outer)
            forms = [
                (f"range({v.name})", 0, v.high + 1),
                (f"range({v.name} + 1)", 0, v.high),
                (f"range({v.name} + 1, {size})", v.low + 1, 0),
                (f"range({v.name}, {size})", v.low, 0),
            ]
            return self.pick(forms)
        if kind < 0.36:
            return f"range({size} - 1, -1, -1)", 0, 0
        if kind < 0.42:
            return f"range(0, {size}, 2)", 0, 0
        return f"{word}({size})", 0, 0

    def block(self, depth, variables, scalars):
        for _ in range(1 + self.chance(0.5) + self.chance(0.2)):
            self.statement(depth, variables, scalars)

    def statement(self, depth, variables, scalars):
        kind, self.left = self.random.random(), self.left - 1
        if self.row and depth < 4 and self.chance(0.3):
            self.row_temporary(depth, variables, scalars)
        elif kind < 0.35 and depth < 4 and self.left > 0:
            if self.chance(0.35):
                self.reduction(depth, variables, scalars)
            else:
                self.loop(depth, variables, scalars)
        elif kind < (0.4 if self.tidy else 0.47) and self.left > 0:
            self.emit(depth, f"if {self.condition(variables, scalars)}:")
            self.block(depth + 1, variables, list(scalars))
            if self.chance(0.4):
                self.emit(depth, "else:")
                self.block(depth + 1, variables, list(scalars))
        elif kind < 0.49:
            name = self.new("s")
            self.emit(depth, f"if {self.condition(variables, scalars)}:")
            self.emit(depth + 1, f"{name} = {self.value(variables, scalars, 1)}")
            self.emit(depth, "else:")
            self.emit(depth + 1, f"{name} = {self.value(variables, scalars, 1)}")
            scalars.append(name)
        elif kind < 0.57:
            name = self.new("s")
            self.emit(depth, f"{name} = {self.value(variables, scalars, 2)}")
            scalars.append(name)
            self.store(depth, variables, scalars, name)
        elif kind < 0.6 and self.left > 0:
            self.place(depth, variables, scalars)
        elif kind < 0.63:
            self.guarded_store(depth, variables, scalars)
        elif kind < 0.68 and scalars:
            name, value = self.pick(scalars), self.value(variables, scalars, 1)
            factor = f"tanh({value})" if self.real else value
            forms = (f"+= {value}", f"-= {value}", f"= {value}", f"*= {factor}", f"= max({name}, {value})")
            self.emit(depth, f"{name} {self.pick(forms)}")
        else:
            self.store(depth, variables, scalars)

    def place(self, depth, variables, scalars):
        """Emit a whole number that is used as a subscript: read from a tensor, or computed by a loop from its data."""
        name, symbol = self.new("k"), self.pick(self.symbols)
        inside = [v for v in variables if v.symbol == symbol]
        size, place = self.sizes[symbol][0], Variable(name, symbol)
        if inside and self.chance(0.5):
            self.emit(depth, f"{name} = {self.index(symbol, inside, set())}")
        else:
            own = Variable(self.new("i"), symbol)
            self.depth, within = max(self.depth, depth), [*variables, own, place]
            self.emit(depth, f"{name} = 0")
            self.emit(depth, f"for {own.name} in range({size}):")
            self.emit(depth + 1, f"if {self.condition([*variables, own], scalars)}:")
            self.emit(depth + 2, f"{name} = {self.pick((own.name, f'({name} + 1) % {size}'))}")
            if self.chance(0.5):
                self.store(depth + 1 + self.chance(0.5), within, scalars)
        self.block(depth, [*variables, place], scalars)

    def guarded_store(self, depth, variables, scalars):
        """Emit a store to an element that is inside the tensor only under a condition."""
        name, test, at = self.guarded(variables, self.written)
        if name:
            self.emit(depth, f"if {test}:")
            value = self.into(self.tensors[name][0], self.value(variables, scalars, 2))
            self.emit(
                depth + 1,
                f"{at} {'=' if self.tensors[name][0] == 'bool' else self.pick(('=', '+='))} {value}",
            )
        else:
            self.store(depth, variables, scalars)

    def row_temporary(self, depth, variables, scalars):
        """Emit a row that each iteration fills and then reads, perhaps under a condition."""
        self.depth = max(self.depth, depth)
        symbol, row = self.row, "r"
        if self.chance(0.4):
            symbol, row = self.pick(self.symbols), self.new("r")
            self.emit(depth, f'{row} = allocate(({self.pick(self.sizes[symbol])},), "{self.dtype}")')
        size, outer = self.pick(self.sizes[symbol]), self.pick(variables).name
        test = self.pick((f"{outer} > 0", f"{outer} < 2", f"{outer} % 2 == 0"))
        if self.chance(0.3):
            test = self.condition(variables, scalars)
        fill, use = Variable(self.new("p"), symbol), Variable(self.new("q"), symbol)
        inside = [*variables, fill]
        value, deeper = self.value(inside, scalars, 1), depth
        if self.chance(0.15):  # filled by some iterations only
            self.emit(depth, f"if {test}:")
            deeper += 1
        if self.chance(0.25):  # a scan
            self.emit(deeper, f"{row}[0] = {self.value(variables, scalars, 1)}")
            self.emit(deeper, f"for {fill.name} in range(1, {size}):")
            self.emit(deeper + 1, f"{row}[{fill.name}] = {row}[{fill.name} - 1] {self.pick('+-')} {value}")
        else:
            at = f"{row}[{self.index(symbol, [fill], set())}]"
            self.emit(deeper, f"for {fill.name} in range({size}):")
            self.emit(deeper + 1, f"{at} {self.pick(('=', '=', '+='))} {value}")
            if self.chance(0.4):
                self.emit(deeper + 1, f"if {test}:")
                self.emit(deeper + 2, f"{at} = {at} * {self.value(inside, scalars, 0)}")
        self.emit(depth, f"for {use.name} in range({size}):")
        read = f"{row}[{self.index(symbol, [*variables, use], set())}]"
        deeper = depth + 1
        if self.chance(0.3):
            self.emit(deeper, f"if {test}:")
            deeper += 1
        elif self.chance(0.5):
            read = f"({read} if {test} else {self.value([*variables, use], scalars, 0)})"
        self.store(deeper, [*variables, use], scalars, read)

    def reduction(self, depth, variables, scalars):
        """Emit a scalar, a loop that reduces to it, and its store."""
        name, inner = self.new("s"), Variable(self.new("r"), self.pick(self.symbols))
        self.depth = max(self.depth, depth)
        self.emit(depth, f"{name} = {self.value(variables, scalars, 0)}")
        self.emit(depth, f"for {inner.name} in range({self.pick(self.sizes[inner.symbol])}):")
        deeper, inside = depth + 1, [*variables, inner]
        value = self.value(inside, scalars, 2)
        if self.chance(0.25):
            self.emit(deeper, f"if {self.condition(inside, scalars)}:")
            deeper += 1
        op = self.pick(("+=", "+=", "max", "min", "-="))
        self.emit(deeper, f"{name} = {op}({name}, {value})" if op[0] == "m" else f"{name} {op} {value}")
        scalars.append(name)
        self.store(depth, variables, scalars, name)

    def store(self, depth, variables, scalars, value=None):
        name = self.pick(self.written)
        if self.tidy:
            have = Counter(v.symbol for v in variables)
            fit = [n for n in self.written if not Counter(self.tensors[n][1]) - have]
            if not fit and depth < 4 and self.chance(0.8):
                self.loop(depth, variables, scalars)
                return
            name = self.pick(fit) if fit else name
        at = self.element(name, variables, write=True)
        value = self.value(variables, scalars, 2) if value is None else value
        value = self.into(self.tensors[name][0], value)
        factor = (
            f"tanh({value})" if self.real else value
        )  # a product of large ones has derivatives beyond all bounds
        forms = [f"{at} {op} {value}" for op in ("=", "=", "=", "=", "+=", "+=", "+=", "-=")]
        forms.append(f"{at} *= {factor}")
        forms += [f"{at} = {op}({at}, {value})" for op in ("max", "min")]
        self.emit(depth, forms[0] if self.tensors[name][0] == "bool" else self.pick(forms))

    def contraction(self, depth):
        """Emit loops in any order around a sum of products."""
        name = self.pick(self.written)
        dtype, axes = self.tensors[name]
        free = [Variable(self.new("f"), s) for s in axes]
        nest = [
            *free,
            *(Variable(self.new("k"), self.pick(self.symbols)) for _ in range(1 + self.chance(0.2))),
        ]
        total = self.new("s") if self.chance(0.4) else ""
        if not total and self.chance(0.6):
            self.random.shuffle(nest)
        at = f"{name}[{', '.join(v.name for v in free)}]"
        for number, v in enumerate(nest):
            if total and number == len(free):
                self.emit(depth + number, f"{total} = {self.into(dtype, '0')}")
            outer = [w for w in nest[:number] if w.symbol == v.symbol]
            head = f"range({self.pick(self.sizes[v.symbol])})"
            if outer and self.chance(0.25):
                head = self.pick((f"range({outer[-1].name})", f"range({outer[-1].name} + 1)"))
            self.emit(depth + number, f"for {v.name} in {head}:")
        self.depth = max(self.depth, depth + len(nest) - 1)
        product = " * ".join(self.factor(nest) for _ in range(2))
        target = total or at
        op = self.pick(("+=", "+=", "-="))
        op = "+=" if dtype == "bool" else op
        self.emit(depth + len(nest), f"{target} {op} {self.into(dtype, product)}")
        if total:
            self.emit(depth + len(free), f"{at} = {total}")

    def factor(self, nest):
        name = self.pick([n for n in self.inputs if n != "ix"])
        index = []
        for symbol in self.inputs[name][1]:
            fitting = [v.name for v in nest if v.symbol == symbol]
            index.append(self.pick(fitting) if fitting else "0")
        return self.read(f"{name}[{', '.join(index)}]")

    # running it

    def function(self):
        """Return the program as a function whose text can be read."""
        return function_of(self.text)

    @property
    def types(self):
        """Dtype and number of dimensions of each input."""
        return [(dtype, len(axes)) for dtype, axes in self.inputs.values()]

    def arrays(self, *, ragged=False):
        """Return inputs: small whole numbers."""
        random = self.random
        top = {1: 70, 2: 40, 3: 18}.get(self.depth, 8)
        least = 3 if self.chance(0.7) else 0
        size = {s: random.randrange(least, 10) if not ragged else top - random.randrange(5) for s in "ABC"}
        if self.chance(0.5):
            size = dict.fromkeys("ABC", size["A"])
        generator = np.random.default_rng(random.randrange(2**31))
        inputs = []
        for name, (dtype, axes) in self.inputs.items():
            shape = [size[s] for s in axes]
            low = 0 if dtype[0] == "u" or dtype == "bool" else -2
            high = 2 if dtype == "bool" else 3
            if name == "ix":
                high = max(1, size[self.indirect[1]])
                low = -1 if self.chance(0.2) else 0
            inputs.append(
                generator.integers(low, high, shape).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
            )
        return inputs


def exact(arrays, dtype):
    """Return whether results are so small that sums in ``dtype`` are exact, and so do not depend on the order."""
    for array in arrays:
        wide = array.astype(np.float64)
        limit = EXACT.get(array.dtype.name, min(EXACT[dtype], 2**31) if dtype in EXACT else np.inf)
        if not (np.isfinite(wide).all() and (np.abs(wide) <= limit).all()):
            return False
    return True
