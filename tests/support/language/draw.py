"""Draw a random kernel from the table of constructs; every choice is made by one ``random.Random``."""

import random as random_module
import re
from collections import Counter

from language import contractions
from language.constructs import EXPRESSIONS, PARTS, STATEMENTS
from language.holes import DEPTH, Fill, Missing
from language.program import CHOICES, Program, kind_of

PALETTES = (
    ("double", 3, {"real": 1, "int": 1}),
    ("floats", 3, {"real": 2, "int": 2, "bool": 1}),
    ("integers", 4, {"real": 1, "int": 4, "bool": 1}),
    ("halves", 2, {"real": 3, "int": 1}),
    ("complex", 3, {"complex": 2, "real": 1, "int": 1}),
    ("float8", 1, {"float8": 1, "real": 1, "int": 1}),
)
"""Which kinds of tensors a kernel has, how often, and of how many dtypes."""
INDICES = (
    *(("{v}", 8), ("{int} % {n}", 1), ("{n} - 1 - {v}", 0.7), ("max({v} - 1, 0)", 0.4), ("{v} - 1", 0.7)),
    *(("min({v} + 1, {n} - 1)", 0.4), ("({v} + {digit}) % {n}", 0.5), ("0", 0.4), ("-1", 0.3)),
)
"""Subscripts that are inside: {v} is a loop variable over the same size n."""
PARAMETERS = (
    ("key", "key"),
    ("keys", "keys"),
    ("w", 'w: "Tensor | None" = None'),
    ("n", "n: int = 2"),
    ("alpha", "alpha: float = 0.5"),
    ("flag", "flag: bool = True"),
    ("mode", 'mode: Literal["sum", "mean"] = "sum"'),
    ("p", "p: Window = Window()"),
    ("q", "q: Options = Options()"),
)
TRIES = 12
"""How often a row without a place is drawn again."""
OF_TYPES = {
    "int64": ("int64",),
    "narrow": ("int8", "int16", "int32"),
    "unsigned": ("uint8", "uint16", "uint32", "uint64"),
}
FLAT = {
    row.construct for row in EXPRESSIONS if not re.search(r"\{(int|real|num|bool|complex|row)\}", row.text)
}
"""Expressions without others inside."""


class Draw:
    """One random kernel."""

    def __init__(self, random):
        self.random = random
        self.counts, self.numbers, self.left = Counter(), 0, 10
        self.palette, _, kinds = self.weighted(PALETTES, [row[1] for row in PALETTES])
        self.kinds = {kind: self.some(kind, count) for kind, count in kinds.items()}
        self.sizes = {s: self.some_size() for s in "NM"}
        self.inputs, self.written = {}, {}
        self.scopes, self.loops, self.lines = [], 0, []
        self.used = set()
        self.part, self.symbol = ":", "N"

    def some(self, kind, count):
        if self.palette == "double":
            return ("float64",) if kind == "real" else ("int64",)
        return tuple(self.random.sample(CHOICES[kind], min(count, len(CHOICES[kind]))))

    def some_size(self):
        """Return a size: a few elements, now and then none, or more than the lanes of a vector."""
        return self.weighted(
            (0, 1 + self.random.randrange(6), 7 + self.random.randrange(14)), (0.04, 0.74, 0.22)
        )

    # choices

    def pick(self, choices):
        return choices[self.random.randrange(len(choices))]

    def chance(self, share):
        return self.random.random() < share

    def weighted(self, rows, weights):
        return self.random.choices(rows, weights)[0]

    def allowed(self, row):
        return not row.only or row.only in self.kinds

    def drawn(self, table, kinds, depth):
        """Return the text of a random row of these kinds; the rows that have no place are drawn again."""
        rows = [row for row in table if row.kind in kinds and self.allowed(row)]
        if depth <= 0:
            rows = [row for row in rows if row.construct in FLAT] or rows
        for _ in range(TRIES):
            row = self.weighted(rows, [row.weight for row in rows])
            before, numbers = self.counts.copy(), self.numbers
            self.counts[row.construct] += 1
            try:
                return row, Fill(self, row, depth).text()
            except Missing:
                self.counts, self.numbers = before, numbers
        raise Missing(kinds)

    # names

    def new(self, letter="s"):
        self.numbers += 1
        return f"{letter}{self.numbers}"

    def names(self, *kinds):
        return [name for scope in self.scopes for name in scope if name.kind in kinds]

    def tensor(self, kind, *, written=False, rank=None, symbol=None):
        """Return the name of a tensor of a kind, or of a group of dtypes; now and then one that is written."""
        dtypes = OF_TYPES.get(kind) or CHOICES.get(kind) or sum(CHOICES.values(), ())
        tables = self.written if written or (self.written and self.chance(0.15)) else self.inputs
        fit = [
            name
            for name, (dtype, axes) in tables.items()
            if dtype in dtypes and rank in (None, len(axes)) and (symbol is None or axes[-1:] == (symbol,))
        ]
        if not fit:
            raise Missing(kind)
        return self.pick(fit)

    def size(self, symbol):
        """Return the text of a size."""
        places = [(name, axes.index(symbol)) for name, (_, axes) in self.inputs.items() if symbol in axes]
        name, axis = self.pick(places)
        return f"{name}.shape[{axis}]"

    def index(self, symbol, depth):
        variables = [v.name for v in self.names("index") if v.symbol == symbol]
        rows = [row for row in INDICES if variables or "{v}" not in row[0]]
        text, _ = self.weighted(rows, [weight for _, weight in rows])
        if "{int}" in text:
            text = text.replace("{int}", self.expression("int", min(depth, 1) - 1))
        v = self.pick(variables) if variables else ""
        return (
            text.replace("{v}", v)
            .replace("{n}", self.size(symbol))
            .replace("{digit}", str(self.random.randrange(4)))
        )

    def element(self, kind, depth, *, written=False):
        name = self.tensor(kind, written=written)
        axes = (self.inputs | self.written)[name][1]
        index = ", ".join(self.index(symbol, depth) for symbol in axes)
        return f"{name}[{index or '()'}]"

    def expression(self, kind, depth):
        kinds = ("int", "real") if kind == "num" else (kind,)
        return self.drawn(EXPRESSIONS, (self.pick(kinds),), depth)[1]

    # statements

    def block(self, depth, scope=(), *, top=False):
        """Return the lines of a block; its names end with it."""
        self.scopes.append(list(scope))
        lines = []
        try:
            for _ in range(1 + self.chance(0.6) + self.chance(0.3) + 2 * top):
                self.left -= 1
                lines += self.statement(depth)
        finally:  # a statement may have no place
            self.scopes.pop()
        return lines

    def statement(self, depth):
        kinds = ["rows"] if self.chance(0.12) else ["statement"]
        if self.loops and kinds == ["statement"]:
            kinds.append("exit")
        along = {a[-1] for d, a in self.inputs.values() if a and kind_of(d) in ("real", "int")}
        self.part, self.symbol = self.pick(PARTS), self.pick(sorted(along))
        table = STATEMENTS
        if depth <= 0 or self.left <= 0:
            table = [row for row in STATEMENTS if "{block}" not in row.text]
        return self.drawn(table, kinds, self.pick((2, 3, 3, 4)))[1].split("\n")

    # the kernel

    def program(self):
        """Return the program. Raises ``Missing`` if the draw has no place for a statement."""
        self.declare()
        body = self.heads + self.block(DEPTH, top=True)
        if not any(
            re.search(rf"\b{name}\[", line.partition("=")[0]) for line in body for name in self.outputs
        ):
            body += [f"{name}{'[:]' if len(axes) == 1 else '[:, :]' if axes else '[()]'} = 1"
                     for name, (_, axes) in self.written.items() if name in self.outputs]  # fmt: skip
        body.append(f"return {', '.join(self.outputs)}")
        whole = "\n".join(body)
        tensors = dict(self.inputs)
        extra = [(n, t) for n, t in PARAMETERS if re.search(rf"(?<![\w.]){n}(?![\w(=])", whole)]
        tensors |= {n: row for n, row in self.extra.items() if n in dict(extra)}
        attributes = self.attributes([n for n, _ in extra])
        head = ", ".join([*self.inputs, *(t for _, t in extra)])
        text = "\n".join([f"def f({head}):", *(f"    {line}" for line in body)]) + "\n"
        program = Program(text, tensors, attributes, self.sizes, self.palette, self.counts)
        program.absent = ("w",) if "w" in tensors and self.chance(0.3) else ()
        program.deterministic = self.chance(0.2)
        if program.deterministic:
            self.counts["deterministic"] += 1
        elif self.chance(0.35):
            program.steps = self.steps(text)
            self.counts.update(f"schedule: {word}" for word, *_ in program.steps)
        return program

    def declare(self):
        every = [(kind, dtype) for kind, names in self.kinds.items() for dtype in names]
        self.random.shuffle(every)
        self.inputs["x0"] = (self.pick(self.kinds["real"]), ("N",))
        self.inputs["x1"] = (self.pick(every)[1], ("N", "M"))
        for _, dtype in every[: 1 + self.random.randrange(4)]:
            axes = self.pick((("N",), ("M",), ("N", "M"), ("M", "N"), ()))
            self.inputs[f"x{len(self.inputs)}"] = (dtype, axes)
        self.heads, self.outputs = [], []
        for _ in range(1 + self.chance(0.5)):
            self.make("output_tensor", f"y{len(self.outputs)}", self.pick(every)[1])
            self.outputs.append(f"y{len(self.outputs)}")
        if self.chance(0.25):
            self.make("allocate", "t", self.pick([d for k, d in every if k != "float8"]))
        if self.chance(0.15) and self.palette != "double":
            name = self.pick([n for n, (_, axes) in self.inputs.items() if n != "x0" and axes])
            self.written[name] = self.inputs[name]
            self.outputs.append(name)
            self.counts["in place"] += 1
        key = self.pick(("uint32", "int32", "uint64", "int64"))
        self.extra = {"key": (key, (2,)), "keys": (key, (2, 2)), "w": (self.pick(self.kinds["real"]), ("N",))}

    def make(self, word, name, dtype):
        axes = self.pick((("N",), ("N", "M"), ("M", "N"), ("M",), ()))
        if word == "allocate" and not axes:
            axes = ("N",)
        like = [n for n, row in self.inputs.items() if row == (dtype, axes)]
        of = [n for n, row in self.inputs.items() if row[0] == dtype]
        shape = f"({''.join(self.size(a) + ', ' for a in axes)})"
        text = f'"{dtype}"' if not of or self.chance(0.5) else f"{self.pick(of)}.dtype"
        if like and self.chance(0.5):
            shape = f"{self.pick(like)}.shape"
        self.heads.append(f"{name} = {word}({shape}, {text})")
        self.written[name] = (dtype, axes)

    def attributes(self, names):
        chosen = {
            "n": self.pick((1, 2, 3, -2, 300)),
            "alpha": self.pick((0.5, -1.25, 2.0)),
            "flag": self.chance(0.5),
            "mode": self.pick(("sum", "mean")),
        }
        found = {name: value for name, value in chosen.items() if name in names}
        if "p" in names:
            found |= {"p_size": self.pick((1, 2, 3)), "p_gain": self.pick((0.5, 2.0))}
        if "q" in names:
            found |= {"q_gain": self.pick((0.5, 2.0)), "q_size": self.pick((1, 2, 3))}
        return found

    def steps(self, text):
        """Return random steps of a schedule, which may be illegal."""
        loops = re.findall(r"for (\w+) in (?:range|serial|parallel)\(", text)
        if not loops:
            return ()
        forms = [lambda: ("tile", self.pick(loops), self.pick((2, 3))), lambda: ("parallel", self.pick(loops)),
                 lambda: ("vectorize", self.pick(loops)), lambda: ("unroll", self.pick(loops), 2)]  # fmt: skip
        if len(loops) > 1:
            forms += [lambda: ("interchange", *self.random.sample(loops, 2)),
                      lambda: ("fuse", *self.random.sample(loops, 2))]  # fmt: skip
        return tuple(self.pick(forms)() for _ in range(1 + self.chance(0.3)))


def program(seed, number):
    """Return kernel ``number`` of a seed: one of eight is a contraction."""
    if number % 8 == 5:
        return contractions.program(random_module.Random(f"{seed} {number}"))
    for attempt in range(50):
        try:
            return Draw(random_module.Random(f"{seed} {number} {attempt}")).program()
        except Missing:  # noqa: PERF203 - one of thousands has no place for a statement
            continue
    raise Missing(f"kernel {number} of seed {seed}")
