"""Fill the holes of one row of the table of constructs."""

import re
from dataclasses import dataclass

from language.constructs import UNITS

DEPTH = 3
"""The most blocks inside one another."""
NAMED = re.compile(r"\w+(:\w+)?")


class Missing(Exception):
    """A construct has no place here: there is no tensor or name of the kind that it needs."""


@dataclass
class Name:
    """A scalar or a loop variable, over a size for an index."""

    name: str
    kind: str
    symbol: str = ""
    fixed: bool = False


class Fill:
    """Fills the holes of one row."""

    def __init__(self, draw, row, depth):
        self.draw, self.row, self.depth = draw, row, depth
        self.fresh, self.same, self.symbol = {}, {}, "N"
        self.made = set()

    def text(self):
        """Return the text. The names that stand behind the statement are known from then on."""
        if self.row.kind in ("statement", "rows", "exit"):
            for number, letter in enumerate(("{new}", "{new2}", "{new3}")):
                if letter in self.row.text:
                    inside = self.kind_inside(number)
                    self.fresh[letter[1:-1]] = self.draw.new("i" if inside == "index" else "s")
        lines = "\n".join(self.line(line) for line in self.row.text.split("\n"))
        for name, kind in zip(self.fresh.values(), self.row.after.split(), strict=False):
            if kind != "none":
                self.draw.scopes[-1].append(Name(name, kind))
        return lines

    def kind_inside(self, number):
        return dict(enumerate(self.row.inside.split())).get(number, "")

    def line(self, line):
        if line.strip() != "{block}":
            return self.filled(line)
        indent = line[: len(line) - len(line.lstrip())]
        symbol = self.symbol
        is_loop = self.row.text.startswith("for") or any(
            word in self.row.text for word in ("\nfor", "\nwhile")
        )
        scope = [
            Name(name, self.kind_inside(number), symbol, fixed=True)
            for number, name in enumerate(self.fresh.values())
            if self.kind_inside(number) and name in self.made
        ]
        self.draw.loops += is_loop
        try:
            lines = self.draw.block(self.depth_of_block(), scope)
        finally:
            self.draw.loops -= is_loop
        return "\n".join(indent + one for one in lines)

    def depth_of_block(self):
        return DEPTH - len(self.draw.scopes)

    def filled(self, text):
        """Return the text with its holes filled, from left to right."""
        result, at = [], 0
        while at < len(text):
            if text[at] == "\\":
                result.append(text[at + 1])
                at += 2
            elif text[at] == "{":
                end = closing(text, at)
                result.append(self.hole(text[at + 1 : end]))
                at = end + 1
            else:
                result.append(text[at])
                at += 1
        return "".join(result)

    def hole(self, text):
        words = choices(text)
        if len(words) > 1:
            return self.filled(self.draw.pick(words))
        if not NAMED.fullmatch(text):
            return self.filled(text)
        word, _, kind = text.partition(":")
        if word in ("int", "real", "num", "bool", "complex", "row"):
            return self.draw.expression(word, self.depth - 1)
        return getattr(self, f"hole_{word}", self.named)(kind or word)

    def named(self, word):
        if word in self.fresh:
            self.made.add(self.fresh[word])
            return self.fresh[word]
        if word in self.same:
            return self.same[word]
        raise LookupError(f"{self.row.construct}: there is no hole {word}")

    def hole_x(self, kind):
        return self.draw.element(kind, self.depth)

    def hole_y(self, kind):
        return self.draw.element(kind, self.depth, written=True)

    def hole_v(self, kind):
        self.same["same_v"] = name = self.draw.tensor(kind, rank=1)
        return name

    def hole_vy(self, kind):
        self.same["same_vy"] = name = self.draw.tensor(kind, rank=1, written=True)
        return name

    def hole_tensor(self, _):
        return self.draw.pick([n for n, (_, axes) in self.draw.inputs.items() if axes])

    def hole_matrix(self, _):
        return self.draw.tensor("any", rank=2)

    def scalar(self, kind, *, assigned=False):
        names = [n.name for n in self.draw.names(kind) if not (assigned and n.fixed)]
        if not names:
            raise Missing(kind)
        return self.draw.pick(names[-4:])

    def hole_s(self, kind):
        return self.scalar(kind)

    def hole_set(self, kind):
        self.same.setdefault("set", self.scalar(kind, assigned=True))
        return self.same["set"]

    def hole_set2(self, kind):
        self.same.setdefault("set2", self.scalar(kind, assigned=True))
        if self.same["set2"] == self.same.get("set"):
            raise Missing("a second name")
        return self.same["set2"]

    def hole_var(self, _):
        return self.scalar("index")

    def hole_size(self, _):
        self.symbol = self.draw.pick("NM")
        return self.draw.size(self.symbol)

    def hole_digit(self, _):
        return str(self.draw.random.randrange(4))

    def hole_number(self, _):
        return self.draw.pick(("0.5", "1.5", "2.0", "-1.0", "0.25", "3.0"))

    def hole_to(self, kind):
        self.same["same"] = name = self.draw.pick(self.draw.kinds[kind])
        return name

    def hole_exit(self, _):
        leave = f"return {', '.join(self.draw.outputs)}"
        return self.draw.pick(("break", "break", "continue", "continue", leave))

    def hole_part(self, _):
        return self.slice_of(self.draw.part)

    def hole_partial(self, _):
        return self.slice_of(self.draw.part, written=True)

    def hole_unit(self, _):
        unit = self.filled(self.draw.pick(UNITS).replace("{index}", self.draw.index(self.draw.symbol, 0)))
        return self.slice_of(unit)

    def slice_of(self, part, *, written=False):
        name = self.draw.tensor(self.draw.pick(("real", "int")), written=written, symbol=self.draw.symbol)
        axes = (self.draw.inputs | self.draw.written)[name][1]
        return f"{name}[{', '.join([*(self.draw.index(a, 0) for a in axes[:-1]), part])}]"


def closing(text, at):
    """Return where the brace at a place is closed."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    raise ValueError(text)


def choices(text):
    """Return the words between the bars of a hole that are in no hole inside and not escaped."""
    words, depth, word, at = [], 0, "", 0
    while at < len(text):
        here = text[at]
        if here == "\\" and depth == 0:
            word += text[at : at + 2]
            at += 2
            continue
        depth += (here == "{") - (here == "}")
        if here == "|" and depth == 0:
            words.append(word)
            word = ""
        else:
            word += here
        at += 1
    return [*words, word]
