"""Find the variable of each name of a loop kernel, statement by statement."""

from __future__ import annotations

import ast

from ...core.errors import ArgumentTypeError
from .desugar.nodes import Guard
from .language import BUFFERS
from .names import Names, Scopes, root_of
from .source import Source
from .syntax_tree import walk

RETURN_HINTS = {
    "allocate": "declare it with output_tensor",
    "scalar": 'a number is returned in a tensor: y = output_tensor((), "float32"), and y[()] = ...',
}


def resolve(source: Source) -> Scopes:
    """Return the scopes of a function whose syntax has been checked.

    Raises ``ArgumentValueError`` or ``ArgumentTypeError`` for the first name that is misused.
    """
    return _Resolver(source).run()


class _Resolver(Names):
    """Visits the statements in the order in which they run."""

    def run(self) -> Scopes:
        for statement in self.source.tree.body:
            self.statement(statement)
        self.scopes.once = {
            name
            for name in self.scopes.once
            if self.assignments[name] == 1 and self.scopes.kinds[name] == "scalar"
        }
        return self.scopes

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self.value(value)
                for item in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                    self.assign(item, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.value(value)
                self.assign(target, value)
            case ast.AugAssign(target=target, value=value):
                self.expression(value)
                if isinstance(target, ast.Name):
                    self.load(target)
                self.assign(target, value)
            case ast.If(test=test):
                self.expression(test)
                self.branch(node)
            case ast.For():
                self.loop(node)
            case ast.With(items=items, body=body):
                for entry in items:
                    self.expression(entry.context_expr)
                for inner in body:
                    self.statement(inner)
            case ast.Return():
                self.returned(node)

    def value(self, node: ast.expr) -> None:
        """Visit the right side of an assignment."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUFFERS:
            self.expression(node.args[0])
            dtype = node.args[1]  # x.dtype reads a name; float32 and "float32" do not
            tensor = root_of(dtype)
            if tensor is not None and tensor.id in (self.bound | set(self.source.parameters)):
                self.expression(dtype)
        else:
            self.expression(node)

    def branch(self, node: ast.If) -> None:
        before = set(self.definite)
        self.open_ifs += 1
        for statement in node.body:
            self.statement(statement)
        after, self.definite = self.definite, before
        for statement in node.orelse:
            self.statement(statement)
        self.open_ifs -= 1
        if not isinstance(node, Guard):
            self.definite &= after
        elif node.live == "body":
            self.definite = after

    def loop(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        for item in node.iter.args:
            self.expression(item)
        before = set(self.definite)
        self.frames.append({})
        targets = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
        for target in targets:
            assert isinstance(target, ast.Name)
            self.check_assignable(target)
            if self.lookup(target.id) is not None:
                kind = self.scopes.kinds[self.lookup(target.id) or ""]
                rule = f"a loop would overwrite the {kind}"
                rule = "iter var cannot be overwritten" if kind == "loop" else rule
                self.fail(f"{rule}: {target.id}", node, "give the loop variable another name")
            self.declare(target, "loop")
        for statement in node.body:
            self.statement(statement)
        for name, unique in self.frames.pop().items():
            self.ended[name] = (node.lineno, self.scopes.kinds[unique])
        self.definite = before  # the loop may have no iteration

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Subscript):
            self.expression(target)
            name = root_of(target)
            if name in self.scopes.names:
                self.scopes.written.setdefault(self.scopes.names[name], target)
            return
        assert isinstance(target, ast.Name)
        self.check_assignable(target)
        buffer = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in BUFFERS
        unique = self.lookup(target.id)
        kind = self.scopes.kinds.get(unique or "")
        if kind == "loop":
            self.fail(f"iter var cannot be overwritten: {target.id}", target, "assign another variable")
        if kind in ("parameter", *BUFFERS) or (kind == "scalar" and buffer):
            hint = f"give the variable another name, or write an element: {target.id}[i] = ..."
            self.fail(f"the tensor is redefined: {target.id}", target, hint)
        if buffer and isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            nested = len(self.frames) > 1 or self.open_ifs > 0
            if nested and value.func.id == "output_tensor":
                rule = "output_tensor inside a loop or an if is not compiled"
                self.fail(f"{rule}: {target.id}", target, "declare it at the top of the function")
            self.declare(target, value.func.id)
            self.scopes.inner |= {self.scopes.names[target]} if nested else set()
        elif unique is None:
            self.declare(target, "scalar")
            if len(self.frames) == 1 and not self.open_ifs:
                self.scopes.once.add(self.scopes.names[target])
        else:
            self.scopes.names[target] = unique
            self.definite.add(unique)
        unique = self.scopes.names[target]
        self.assignments[unique] = self.assignments.get(unique, 0) + 1

    def _way_to_return(self, name: str) -> str | None:
        """Return how a name that is another one of an input is returned; None for any other name."""
        for node in walk(self.source.tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=whole)):
                    if target == name and whole in self.source.parameters:
                        rest = f"return {whole}, or make a tensor of it first: {name} = {whole}.copy()"
                        return f"{name} is another name of {whole}: {rest}"
        return None

    def returned(self, node: ast.Return) -> None:
        value = node.value
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        names = [self.lookup(item.id) or "" for item in items if isinstance(item, ast.Name)]
        kinds = self.scopes.kinds
        for item in items:
            assert isinstance(item, ast.Name)
            unique = self.lookup(item.id) or ""
            if kinds.get(unique) not in ("parameter", "output_tensor"):
                rule = f"{item.id} cannot be returned: only inputs and tensors of output_tensor can"
                hint = self._way_to_return(item.id) or RETURN_HINTS.get(kinds.get(unique, ""))
                self.fail(rule, node, hint, ArgumentTypeError)
            self.scopes.names[item] = unique
            self.scopes.tensors |= {unique} if kinds[unique] == "parameter" else set()
        for name, kind in kinds.items():
            if kind == "output_tensor" and name not in names:
                rule = "the tensor is allocated as an output tensor but not in the return value"
                hint = "return it, or declare it with allocate"
                self.fail(f"{rule}: {name}", node, hint, ArgumentTypeError)
        for name, store in self.scopes.written.items():
            if kinds[name] == "parameter" and name not in names:
                hint = f"return {name} too, as an output written in place; or write into a copy"
                self.fail(f"the input tensor is written but not in the return value: {name}", store, hint)
        self.scopes.outputs = tuple(names)
