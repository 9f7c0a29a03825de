"""The walk over a syntax tree that finds what can be changed, with the text that stands there instead."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from nodes import end, is_logged, is_text, rows_of, start, without_docstring

COMPARISONS: dict[type, str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
ARITHMETIC: dict[type, str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//", ast.Pow: "*",
    ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
WORD = re.compile(r"[A-Za-z0-9_.:+*/<>=-]{1,24}")  # other texts are for readers
NAMES_OF_PYTHON = frozenset(("__all__", "__slots__"))


class Edit(NamedTuple):
    """A part of a text, by lines and bytes as the syntax tree counts them, and what stands there instead."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class Finder(ast.NodeVisitor):
    """Collects edits with their scopes and kinds."""

    def __init__(self, text: str) -> None:
        self.lines = text.encode().splitlines(keepends=True)
        self.edits: list[tuple[str, str, Edit]] = []
        self.scope: list[str] = []
        self.first_argument: str | None = None
        self.in_function = False

    def add(self, kind: str, node: ast.AST, text: str) -> None:
        """Note that a node may be replaced by a text."""
        self.edits.append((".".join(self.scope), kind, Edit(start(node), end(node), text)))

    def text(self, node: ast.AST) -> str:
        """Return the text of a node."""
        (first, begin), (last, stop) = start(node), end(node)
        if first == last:
            return self.lines[first - 1][begin:stop].decode()
        middle = b"".join(self.lines[first : last - 1])
        return (self.lines[first - 1][begin:] + middle + self.lines[last - 1][:stop]).decode()

    def between(self, left: ast.AST, right: ast.AST, kind: str, sign: str) -> None:
        """Replace the operator between two neighbours, which may be in parentheses."""
        (first, begin), (last, stop) = end(left), start(right)
        if first == last:
            gap = self.lines[first - 1][begin:stop].decode()
            match = re.fullmatch(r"(\)*\s*)([^\s()]+|not in|is not)(\s*\(*)", gap)
            if match:
                edit = Edit((first, begin), (last, stop), f"{match[1]}{sign}{match[3]}")
                self.edits.append((".".join(self.scope), kind, edit))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Look at the defaults and the body of a function."""
        kept = self.scope, self.first_argument, self.in_function
        names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        self.scope, self.in_function = [*self.scope, node.name], True
        self.first_argument = next((name for name in names if name not in ("self", "cls")), None)
        defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
        for part in (*defaults, *without_docstring(node.body)):
            self.visit(part)
        self.scope, self.first_argument, self.in_function = kept

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - a name of ast

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the body of a class."""
        kept, self.scope = self.scope, [*self.scope, node.name]
        for part in without_docstring(node.body):
            self.visit(part)
        self.scope = kept

    def visit_Module(self, node: ast.Module) -> None:
        """Look at all but texts that stand alone."""
        for part in without_docstring(node.body):
            self.visit(part)

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        """Look at the value; outside of functions the name is a scope, and a literal has rows."""
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if node.value is None or (isinstance(target, ast.Name) and target.id in NAMES_OF_PYTHON):
            return
        kept = self.scope
        if isinstance(target, ast.Name) and not self.in_function:
            self.scope = [*self.scope, target.id]
            for place in rows_of(node.value):
                self.row(*place)
        self.visit(node.value)
        self.scope = kept

    visit_AnnAssign = visit_Assign  # noqa: N815 - a name of ast

    def row(self, first: ast.AST, last: ast.AST) -> None:
        """Leave out what is from one node to another, and the comma behind."""
        line, stop = end(last)
        comma = re.match(rb"\s*,\s?", self.lines[line - 1][stop:])
        edit = Edit(start(first), (line, stop + len(comma[0].rstrip(b"\n")) if comma else stop), "")
        self.edits.append((".".join(self.scope), "row", edit))

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> None:
        """Negate the condition."""
        if "TYPE_CHECKING" in (test := self.text(node.test)) or test == '__name__ == "__main__"':
            return
        self.add("negated", node.test, f"not ({test})")
        self.generic_visit(node)

    visit_While = visit_IfExp = visit_If  # noqa: N815 - names of ast

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out a call."""
        if isinstance(node.value, ast.Call) and not is_logged(node.value):
            self.add("call", node, "pass")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Look at the arguments, unless they are the texts of a log or of an error."""
        if not is_logged(node) and not self.text(node.func).endswith(("Error", "Warning")):
            self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Return nothing, or the first argument."""
        if node.value is not None and self.text(node.value) != "None":
            self.add("return", node.value, "None")
            if self.first_argument and self.text(node.value) != self.first_argument:
                self.add("return", node.value, self.first_argument)
            self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Turn each comparison of a chain."""
        lefts = [node.left, *node.comparators]
        for left, right, operator in zip(lefts, node.comparators, node.ops, strict=False):
            self.between(left, right, "comparison", COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Swap the operator; a sum of texts and a union of types have no other."""
        is_union = isinstance(node.op, ast.BitOr) and not self.in_function
        if type(node.op) in ARITHMETIC and not is_union and not any(map(is_text, (node.left, node.right))):
            self.between(node.left, node.right, "arithmetic", ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Swap ``and`` and ``or``."""
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, "and_or", "or" if isinstance(node.op, ast.And) else "and")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a number, a truth value or a word."""
        match node.value:
            case bool():
                self.add("constant", node, str(not node.value))
            case int():
                self.add("constant", node, str(node.value + 1))
            case float():
                self.add("constant", node, repr(node.value * 2 + (node.value == 0)))
            case str() if WORD.fullmatch(node.value) and start(node)[0] == end(node)[0]:
                self.add("constant", node, repr(f"{node.value}_").replace("'", '"'))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave a text with values in it as it is."""

    visit_Raise = visit_Assert = visit_JoinedStr  # type: ignore[assignment]  # noqa: N815 - names of ast
