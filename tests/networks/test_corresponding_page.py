"""docs/reference/corresponding.md is the table of corresponding functions."""

import pathlib

from polyop.networks import corresponding

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "corresponding.md"
HEAD = """# Corresponding functions

For an operator of PyTorch, by its ATen name, the same in JAX, MindSpore and NumPy (`make golden` writes this page
again, from [the table](../../src/polyop/networks/corresponding.yaml)). `polyop missing net.py:Net --to jax` applies
it to a network, with the arguments of each call. Every expression is compared with PyTorch by the tests.

An expression reads the arguments of PyTorch's schema by their names, as `torch.ops.aten.gelu.default._schema` shows
them, but `self` is called `x`. A number for an `int[2]` is a list of two, a dtype a text. `scipy` is SciPy, `ops` is
`mindspore.ops`. JAX makes 32 bits of int64 and float64 unless `jax_enable_x64` is set, and on TPU and GPU multiplies
float32 with less precision unless `jax_default_matmul_precision` says otherwise. NumPy computes float64 from integers
where PyTorch computes float32.
"""


def page():
    same = {}
    for name, row in corresponding.table().items():
        same.setdefault(str(row._replace(name="")), (row, []))[1].append(name)
    return HEAD + "".join(section(", ".join(found), row) for row, found in same.values())


def section(title, row):
    text = f"\n## {title}\n\n"
    for target in corresponding.TARGETS:
        function = row.functions.get(target)
        text += f"* {corresponding.NAMES[target]}: "
        if function is None:
            text += f"none{f'; {row.no_function[target]}' if target in row.no_function else ''}\n"
            continue
        text += f"`{function.expression}`\n"
        for condition, reason in function.unless.items():
            text += f"  * not if `{condition}`: {reason}\n"
        if row.differs.get(target):
            text += f"  * note: {row.differs[target]}\n"
    return text


def test_the_page_is_the_table(request):
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page())
    assert page() == PAGE.read_text(), "docs/reference/corresponding.md: run 'make golden'"
