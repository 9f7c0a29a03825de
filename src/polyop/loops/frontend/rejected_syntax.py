"""Syntax that loop kernels cannot have, as a table: the error, its rule, and what to write instead."""

from __future__ import annotations

import ast

from ...core.errors import ArgumentTypeError, PolyopError, UnsupportedError
from .source import Source
from .syntax_tree import walk

Rule = tuple[type[PolyopError], str, str]

NEVER_NONE = 'compare numbers with == or !=; only a tensor may be None: b: "Tensor | None" = None'
ELEMENTS = "write for loops over the elements"
OUTSIDE_KERNEL = "write it with def, outside of the kernel: a call of it is inlined"
IN_NUMBERS = "it takes numbers: x[i] in (1, 2); for a tensor write found = found or x[i] == a, in a loop"
TABLE = "a table of numbers is a list: w = [1.0, 2.0], and w[k]; or pass a tensor"
REJECTED: dict[type[ast.AST], Rule] = {
    ast.Lambda: (UnsupportedError, "a lambda is not compiled", OUTSIDE_KERNEL),
    ast.FunctionDef: (UnsupportedError, "a function inside is not compiled", OUTSIDE_KERNEL),
    ast.AsyncFunctionDef: (UnsupportedError, "a function inside is not compiled", OUTSIDE_KERNEL),
    ast.ClassDef: (
        UnsupportedError,
        "a class is not compiled",
        "pass numbers as attributes, one parameter each",
    ),
    ast.Dict: (UnsupportedError, "a dict is not compiled", TABLE),
    ast.Set: (UnsupportedError, "a set is not compiled", TABLE),
    ast.Await: (UnsupportedError, "await is not compiled", "remove it: a kernel waits for nothing"),
    ast.ListComp: (UnsupportedError, "a comprehension is not compiled", ELEMENTS),
    ast.SetComp: (UnsupportedError, "a comprehension is not compiled", ELEMENTS),
    ast.DictComp: (UnsupportedError, "a comprehension is not compiled", ELEMENTS),
    ast.GeneratorExp: (UnsupportedError, "a generator is not compiled", ELEMENTS),
    ast.NamedExpr: (
        UnsupportedError,
        "the operator ':=' is not compiled",
        "write the assignment in a separate line",
    ),
    ast.Assert: (UnsupportedError, "assert is not compiled", "check arguments before you call the operator"),
    ast.JoinedStr: (
        ArgumentTypeError,
        "strings are not values of a kernel",
        "remove it: numbers are stored in a tensor",
    ),
    ast.Starred: (
        UnsupportedError,
        "'*' before an argument is not compiled",
        "write them one by one: max(x[0], x[1]), range(x.shape[0])",
    ),
    ast.Yield: (UnsupportedError, "yield is not compiled", "return the tensors at the end"),
    ast.YieldFrom: (UnsupportedError, "yield is not compiled", "return the tensors at the end"),
    ast.MatMult: (UnsupportedError, "whole-tensor maths is not compiled: @", ELEMENTS),
    ast.In: (UnsupportedError, "the operator 'in' is not compiled", IN_NUMBERS),
    ast.NotIn: (UnsupportedError, "the operator 'not in' is not compiled", IN_NUMBERS),
    ast.Is: (UnsupportedError, "the operator 'is' is not compiled", NEVER_NONE),
    ast.IsNot: (UnsupportedError, "the operator 'is not' is not compiled", NEVER_NONE),
}
"""Syntax that is rejected everywhere in a kernel."""

OUTSIDE = "check arguments before you call the operator: compiled code raises no errors"
STATEMENT_HINTS: dict[str, str] = {
    "raise": OUTSIDE,
    "try": OUTSIDE,
    "trystar": OUTSIDE,
    "match": "write if and elif",
    "delete": "remove it: a tensor of allocate needs no end",
    "asyncfor": "write for",
    "asyncwith": "remove it",
    "import": "import at the top of the file",
    "importfrom": "import at the top of the file",
    "global": "return the value in a tensor",
    "nonlocal": "return the value in a tensor",
}
"""What to write instead of a statement that is not part of the language, by its name."""
STATEMENT_WORDS = {
    "delete": "del", "importfrom": "import", "trystar": "try", "asyncfor": "async for",
    "asyncwith": "async with",
}  # fmt: skip
"""What Python calls a statement, where the name in its syntax tree is another one."""
STATEMENTS = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.If, ast.With, ast.Return, ast.Pass, ast.Expr,
)  # fmt: skip
EXPRESSIONS = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Call, ast.BinOp,
    ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Slice,
)  # fmt: skip
ALLOWED_USE = {
    "buffer": "declares a tensor: assign it to a name, in a separate line",
    "loop": "can only be used in the head of a for loop",
    "with": "can only be used in a with statement",
}
"""How words that do not give a number may be used, by their kind."""
TVM_NAMES = ("tvm", "ir_builder", "te", "topi")


def is_dtype_test(node: ast.expr) -> bool:
    """Whether an expression is ``x.dtype == ...`` or ``x.dtype != ...``: known at compile time."""
    match node:
        case ast.Compare(left=ast.Attribute(value=ast.Name(), attr="dtype"), ops=[ast.Eq() | ast.NotEq()]):
            return True
    return False


def reject_functions_inside(source: Source) -> None:
    """Raise for a function or a class in a kernel, before its returns are taken for those of the kernel."""
    inside = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in (one for top in source.tree.body for one in walk(top)):
        if isinstance(node, inside):
            kind, rule, hint = REJECTED[type(node)]
            raise source.error(kind, rule, node, node.name, hint)


def reject_tvm(source: Source) -> None:
    """Raise for the two other front ends of AKG, which build a kernel with TVM's Python API."""
    bound = {n.id for n in walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= set(source.parameters)
    for node in walk(source.tree):
        names: list[str] = []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            names = [part for alias in node.names for part in alias.name.split(".")] + module.split(".")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [node.value.id] if node.value.id not in bound else []
        tvm_name = next((name for name in names if name in TVM_NAMES), None)
        if tvm_name:
            raise source.error(
                UnsupportedError,
                f"{tvm_name}: kernels built with TVM (ir_builder, tvm.compute) are not compiled",
                node,
                hint="write loops: y = output_tensor(x.shape, x.dtype); for i in range(n): y[i] = ...",
            )
