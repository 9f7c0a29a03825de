"""The syntax that loop kernels do not have, as a table: what is said, and what to write instead."""

from __future__ import annotations

import ast

from ...core.errors import ArgumentTypeError, PolyopError, UnsupportedError
from .source import Source

Rule = tuple[type[PolyopError], str, str]

LOOP_ONLY = "write a for loop over range(n), with an if inside where needed"
ELEMENTS = "write for loops over the elements"
REFUSED: dict[type[ast.AST], Rule] = {
    **{
        node: (ArgumentTypeError, f"Keyword '{node.__name__.lower()}' not accepted", LOOP_ONLY)
        for node in (ast.While, ast.Break, ast.Continue)
    },
    ast.Slice: (UnsupportedError, "slices of tensors are not compiled", ELEMENTS),
    ast.Lambda: (UnsupportedError, "a lambda is not compiled", "write the expression where it is used"),
    ast.FunctionDef: (UnsupportedError, "a function inside is not compiled", "write its statements in place"),
    ast.ListComp: (UnsupportedError, "a comprehension is not compiled", ELEMENTS),
    ast.SetComp: (UnsupportedError, "a comprehension is not compiled", ELEMENTS),
    ast.DictComp: (UnsupportedError, "a comprehension is not compiled", ELEMENTS),
    ast.GeneratorExp: (UnsupportedError, "a generator is not compiled", ELEMENTS),
    ast.NamedExpr: (UnsupportedError, ":= is not compiled", "assign in a line of its own"),
    ast.Assert: (UnsupportedError, "assert is not compiled", "check arguments before the operator is called"),
    ast.JoinedStr: (ArgumentTypeError, "strings are not values of a kernel", "use numbers"),
    ast.Starred: (UnsupportedError, "* is not compiled", "write the elements one by one"),
    ast.Yield: (UnsupportedError, "yield is not compiled", "return the tensors at the end"),
    ast.YieldFrom: (UnsupportedError, "yield is not compiled", "return the tensors at the end"),
    ast.MatMult: (UnsupportedError, "whole-tensor maths is not compiled: @", ELEMENTS),
    ast.LShift: (UnsupportedError, "<< is not compiled", "write x * 2**k"),
    ast.RShift: (UnsupportedError, ">> is not compiled", "write x // 2**k"),
    ast.In: (UnsupportedError, "in is not compiled", "compare with == and or"),
    ast.NotIn: (UnsupportedError, "not in is not compiled", "compare with != and and"),
    ast.Is: (UnsupportedError, "is is not compiled", "write =="),
    ast.IsNot: (UnsupportedError, "is not is not compiled", "write !="),
}
"""Syntax that is refused wherever it stands."""

STATEMENTS = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.If, ast.With, ast.Return, ast.Pass, ast.Expr,
)  # fmt: skip
EXPRESSIONS = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Call, ast.BinOp,
    ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Slice,
)  # fmt: skip
PLACES = {
    "buffer": "declares a tensor: assign it to a name, in a line of its own",
    "loop": "stands after for ... in only",
    "with": "stands after with only",
}
"""Where words stand that give no number."""
TVM = ("tvm", "ir_builder", "te", "topi")


def refuse_tvm(source: Source) -> None:
    """Recognise AKG's two other front ends, which build the kernel with TVM's Python API."""
    bound = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= set(source.parameters)
    for node in ast.walk(source.tree):
        names: list[str] = []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            names = [part for alias in node.names for part in alias.name.split(".")] + module.split(".")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [node.value.id] if node.value.id not in bound else []
        found = next((name for name in names if name in TVM), None)
        if found:
            raise source.error(
                UnsupportedError,
                f"{found}: kernels built with TVM (ir_builder, tvm.compute) are not compiled",
                node,
                hint="write loops: y = output_tensor(x.shape, x.dtype); for i in range(n): y[i] = ...",
            )
