"""Random contractions: linear layers, and matrix products of batches, some with an operand that all samples share."""

from collections import Counter
from dataclasses import dataclass

from language.program import Program


@dataclass(frozen=True)
class Form:
    """A contraction: the axes of the two operands and of the result; ``k`` is summed."""

    construct: str
    left: str
    right: str
    result: str


FORMS = (
    Form("linear layer", "nk", "mk", "nm"),
    Form("matrix product", "nk", "km", "nm"),
    Form("matrix product of a transpose", "kn", "km", "nm"),
    Form("batch of matrix products", "bnk", "bkm", "bnm"),
    Form("batch with a shared right operand", "bnk", "km", "bnm"),
    Form("batch with a shared left operand", "nk", "bmk", "bnm"),
    Form("sum over a batch", "bnk", "bkm", "nm"),
    Form("matrix and vector", "nk", "k", "n"),
)
AROUND = (
    "{}",
    "{}",
    "{} * alpha",
    "max({}, 0)",
    "{} + b0[{m}]",
    "tanh({})",
    "sigmoid({}) * {}",
    "{} / (abs({}) + 1)",
)
"""What becomes of an element of the result."""
DTYPES = ("float64", "float64", "float64", "float32", "float16", "bfloat16", "int32")
OTHERS = {
    "float32": ("float32", "float16", "bfloat16"),
    "float64": ("float64",),
    "int32": ("int32", "int8", "uint8"),
}


def program(random):
    """Return a kernel of a contraction; float64 is differentiated."""
    form, dtype = random.choice(FORMS), random.choice(DTYPES)
    size = lambda: random.choices((0, 1, random.randrange(2, 7), random.randrange(7, 20)), (1, 1, 8, 6))[0]  # noqa: E731
    sizes = {"n": size(), "m": size(), "k": size(), "b": random.choice((1, 2, 3))}
    narrow = random.choice(OTHERS.get(dtype, (dtype,)))
    tensors = {"x0": (narrow, tuple(form.left)), "x1": (narrow, tuple(form.right))}
    around = random.choice(AROUND[:5] if dtype == "int32" else AROUND)
    last = form.result[-1]
    if "b0" in around:
        tensors["b0"] = (dtype, (last,))
    around = around.replace("{m}", last)
    text, counts = text_of(random, form, dtype, tensors, around)
    attributes = {"alpha": random.choice((0.5, 2.0))} if "alpha" in around else {}
    if dtype == "int32" and attributes:
        attributes, text = {"alpha": 2}, text.replace("alpha: float = 0.5", "alpha: int = 2")
    palette = "double" if dtype == "float64" else "contraction"
    made = Program(text, tensors, attributes, sizes, palette, counts)
    made.deterministic = random.random() < 0.2
    return made


def text_of(random, form, dtype, tensors, around):
    """Return the text and what it has: a scalar, the memory, or the word ``dot`` as the place of the sum."""
    shape = {a: f"{n}.shape[{axes.index(a)}]" for n, (_, axes) in tensors.items() for a in axes}
    y = f"y0[{', '.join(form.result)}]"
    product = f"x0[{', '.join(form.left)}] * x1[{', '.join(form.right)}]"
    summed = [a for a in dict.fromkeys(form.left + form.right) if a not in form.result]
    outer, inner = list(form.result), list(summed)
    random.shuffle(inner)
    ways = ["in memory", "a scalar", "a scalar of the dtype"]
    if form.left[-1] == form.right[-1] == "k" and summed == ["k"]:
        ways.append("dot")
    way = random.choice(ways)
    head = ", ".join([*tensors, *(["alpha: float = 0.5"] if "alpha" in around else [])])
    zeros = ", ".join(shape[a] for a in form.result)
    lines = [f"def f({head}):", f'    y0 = output_tensor(({zeros},), "{dtype}")']

    def loops(names, depth):
        lines.extend(f"{'    ' * (depth + k)}for {a} in range({shape[a]}):" for k, a in enumerate(names))
        return "    " * (depth + len(names))

    if way == "in memory":  # any order of the loops, and the rest behind
        mixed = [*outer, *inner]
        random.shuffle(mixed)
        lines.append(loops(mixed, 1) + f"{y} += {product}")
        if around != "{}":
            lines.append(loops(outer, 1) + f"{y} = {around.replace('{}', y)}")
    else:
        at = loops(outer, 1)
        if way == "dot":
            left, right = (
                f"x{k}[{', '.join([*axes[:-1], ':'])}]" for k, axes in enumerate((form.left, form.right))
            )
            lines.append(at + f"total = dot({left}, {right})")
        else:
            lines.append(at + f"total = {'0' if way == 'a scalar' else f'{dtype}(0)'}")
            lines.append(loops(inner, 1 + len(outer)) + f"total += {product}")
        lines.append(at + f"{y} = {around.replace('{}', 'total')}")
    return "\n".join([*lines, "    return y0", ""]), Counter([form.construct, f"contraction: {way}"])
