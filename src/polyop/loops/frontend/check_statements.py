"""Check each statement of a loop kernel, by its syntax alone.

Later, ``scope`` checks names, and ``expressions`` and ``statements`` check dtypes and dimensions.
"""

from __future__ import annotations

import ast

from ...core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from .check_expressions import ExpressionChecker, called
from .desugar.nodes import WHILE
from .language import BUFFERS, LOOPS, WORDS
from .limits import check_limits
from .names import stored_into
from .rejected_syntax import STATEMENT_HINTS, STATEMENT_WORDS, STATEMENTS
from .source import Source
from .suggestions import suggestion_for_loop, suggestion_for_target
from .syntax_tree import walk

COMPUTATIONS = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Compare, ast.BoolOp, ast.IfExp, ast.Subscript)
WHOLE_TENSOR_HINT = (
    "whole-tensor maths is not compiled: write loops into an output_tensor, and return its name"
)


def check_syntax(source: Source) -> None:
    """Raise for the first statement or expression that is outside the language."""
    check_limits(source)
    body = source.tree.body
    for statement in body:
        Checker(source).statement(statement)
    returns = [n for n in walk(source.tree) if isinstance(n, ast.Return)]
    if not returns:
        hint = _return_hint(source.tree)
        raise source.error(ArgumentValueError, "No valid return found in the function body", hint=hint)
    for statement in returns:
        if statement not in body:
            rule = "Return should not be in a loop body or an if"
            raise source.error(ArgumentValueError, rule, statement, hint="return once, in the last line")
        if statement is not body[-1]:
            raise source.error(ArgumentValueError, "nothing may follow the return", statement)


def _return_hint(tree: ast.FunctionDef) -> str:
    """Return a hint with the last line that the function should have."""
    names = [
        target.id
        for node in walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name) and called(node.value) == "output_tensor"
    ]
    if names:
        return f"end with: return {', '.join(dict.fromkeys(names))}"
    parameters = {argument.arg for argument in tree.args.args}
    written = [name for name in stored_into(tree) if name in parameters]
    if written:
        return f"end with: return {', '.join(written)}, which the loops write in place"
    return "end with: return y, where y = output_tensor(shape, dtype)"


class Checker(ExpressionChecker):
    """Walks one function; each method raises for what it does not accept."""

    def statement(self, node: ast.stmt) -> None:
        """Check a statement and all inside it."""
        self.reject(node)
        if not isinstance(node, STATEMENTS):
            name = type(node).__name__.lower()
            rule = f"the statement {STATEMENT_WORDS.get(name, name)} is not part of the language"
            self.fail(UnsupportedError, rule, node, hint=STATEMENT_HINTS.get(name))
        match node:
            case ast.Assign(targets=targets, value=value):
                self.assignment(targets, value, node)
            case ast.AnnAssign(target=target, value=value):
                if value is None:
                    self.fail(ArgumentValueError, "a declaration needs a value", node, hint="write x = 0.0")
                self.assignment([target], value, node)
            case ast.AugAssign(target=target, value=value, op=op):
                self.reject(op, node)
                self.target(target)
                self.expression(value)
            case ast.For():
                self.loop(node)
            case ast.If(test=test):
                self.expression(test)
            case ast.With():
                self.context(node)
            case ast.Return():
                self.returned(node)
            case ast.Expr(value=value):
                self.unused(value, node)
        for inner in (*getattr(node, "body", ()), *getattr(node, "orelse", ())):
            self.statement(inner)

    def unused(self, value: ast.expr, node: ast.stmt) -> None:
        """Check a line that is only an expression: it is a text."""
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return
        if isinstance(value, ast.Constant) and value.value is ...:
            rule = "... is not part of the language"
            self.fail(UnsupportedError, rule, node, hint="write pass, or the statements")
        self.expression(value)
        hint = "assign it to a name, or to an element: y[i] = ..."
        self.fail(ArgumentValueError, "the value of this line is not used", node, hint=hint)

    def assignment(self, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> None:
        """Check ``a = ..`` and ``n, m = x.shape``."""
        (target, *more) = targets
        if isinstance(target, (ast.Tuple, ast.List)) and not more:
            of_shape = isinstance(value, ast.Attribute) and value.attr == "shape"
            of_row = isinstance(value, (ast.Subscript, ast.Name))
            if (of_shape or of_row) and all(isinstance(item, ast.Name) for item in target.elts):
                if of_row:
                    self.expression(value)
                return
            more = [target]
        if more:
            rule = "One statement with multiple assignments is not allowed"
            self.fail(
                ArgumentValueError,
                rule,
                node,
                hint="write each assignment in its own line; n, m = x.shape and a, b = b, a are allowed",
            )
        self.target(target)
        if isinstance(value, ast.Call) and called(value) in BUFFERS:
            if not isinstance(target, ast.Name):
                self.fail(ArgumentValueError, f"{called(value)} must be assigned to a name", node)
            self.call(value)
        else:
            self.expression(value)

    def target(self, node: ast.expr) -> None:
        """Check the left side of an assignment: a name, or an element of a tensor."""
        if isinstance(node, ast.Subscript):
            self.expression(node)
        elif not isinstance(node, ast.Name):
            hint = suggestion_for_target(node)
            self.fail(
                ArgumentValueError, "only names and elements of tensors can be assigned", node, hint=hint
            )

    def loop(self, node: ast.For) -> None:
        """Check the head of a for loop."""
        if node.orelse:
            hint = "set a flag before the break, and write an if after the loop"
            self.fail(UnsupportedError, "else after a for is not compiled", node.orelse[0], hint=hint)
        word = called(node.iter) if isinstance(node.iter, ast.Call) else None
        if word == WHILE:
            return
        if word not in LOOPS:
            if word is not None and word not in WORDS:
                self.call(node.iter)  # type: ignore[arg-type]
            rule = f"a for loop runs over {', '.join(LOOPS)}"
            self.fail(ArgumentValueError, rule, node, ast.unparse(node.iter), suggestion_for_loop(node.iter))
        names = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
        if not all(isinstance(name, ast.Name) for name in names):
            self.fail(
                ArgumentValueError, "the target of a for loop must be a name", node, ast.unparse(node.target)
            )
        if isinstance(node.target, (ast.Tuple, ast.List)) and word != "grid":
            self.fail(ArgumentValueError, "only grid has several loop variables", node, f"{word}")
        self.call(node.iter)  # type: ignore[arg-type]

    def context(self, node: ast.With) -> None:
        """Check ``with attr(...)`` and ``with block_realize(...)``, hints to AKG without effect here."""
        for item in node.items:
            call = item.context_expr
            word = called(call) if isinstance(call, ast.Call) else None
            if not isinstance(call, ast.Call) or word not in ("attr", "block_realize") or item.optional_vars:
                rule = "Unsupported function in With scope"
                self.fail(
                    ArgumentValueError,
                    rule,
                    node,
                    hint="remove it: only attr and block_realize can stand here, without effect",
                )
            inputs = call.args
            if word == "attr":
                if len(inputs) != 2:
                    self.fail(ArgumentValueError, f"attr takes two inputs, but got {len(inputs)}", node)
                if not (isinstance(inputs[0], ast.Constant) and isinstance(inputs[0].value, str)):
                    rule = "the first input of 'attr' should be a string"
                    self.fail(ArgumentValueError, rule, node, ast.unparse(inputs[0]))
                if not (
                    isinstance(inputs[1], ast.Constant) and isinstance(inputs[1].value, (str, int, float))
                ):
                    rule = "the second input of 'attr' should be a string, number or bool value"
                    self.fail(ArgumentValueError, rule, node, ast.unparse(inputs[1]))
            elif len(inputs) != 1:
                rule = f"block_realize takes one input, but got {len(inputs)}"
                self.fail(ArgumentValueError, rule, node)
            elif not isinstance(inputs[0], ast.Name):
                rule = "the input of 'block_realize' should be a tensor name"
                self.fail(ArgumentValueError, rule, node, ast.unparse(inputs[0]))

    def returned(self, node: ast.Return) -> None:
        """Check that a return gives a name or a tuple of names, each once."""
        value = node.value
        if not isinstance(value, (ast.Name, ast.Tuple)):
            seen = "None" if value is None else ast.unparse(value)
            rule = "the return value should be either a single tensor or a tuple"
            hint = WHOLE_TENSOR_HINT if isinstance(value, COMPUTATIONS) else _return_hint(self.source.tree)
            self.fail(ArgumentTypeError, rule, node, seen, hint)
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        for item in items:
            if not isinstance(item, ast.Name):
                rule = "the element in the return value should be the name of a tensor"
                way_out = WHOLE_TENSOR_HINT if isinstance(item, COMPUTATIONS) else None
                self.fail(ArgumentTypeError, rule, node, ast.unparse(item), way_out)
        names = [item.id for item in items if isinstance(item, ast.Name)]
        for name in names:
            if names.count(name) > 1:
                self.fail(ArgumentValueError, "Duplicated tensors in the return tuples", node, name)
