"""Which variable each name of a loop kernel is, statement by statement."""

from __future__ import annotations

import ast

from ...core.errors import ArgumentTypeError
from .language import BUFFERS
from .names import Names, Scopes, root_of
from .source import Source

RETURNED = {
    "allocate": "declare it with output_tensor",
    "scalar": 'a number is returned in a tensor: y = output_tensor((), "float32"), and y[()] = ...',
}


def resolve(source: Source) -> Scopes:
    """Return the scopes of a function whose syntax has been checked.

    Raises ``ArgumentValueError`` or ``ArgumentTypeError`` for the first name that is misused.
    """
    return _Resolver(source).run()


class _Resolver(Names):
    """Walks statements in order."""

    def run(self) -> Scopes:
        for statement in self.source.tree.body:
            self.statement(statement)
        self.found.once = {
            name
            for name in self.found.once
            if self.assigned[name] == 1 and self.found.kinds[name] == "scalar"
        }
        return self.found

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
            case ast.If(test=test, body=body, orelse=orelse):
                self.expression(test)
                self.branch(body, orelse)
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
            wanted = node.args[1]
            owner = root_of(wanted)
            if owner is not None and owner.id in (self.bound | set(self.source.parameters)):
                self.expression(wanted)
        else:
            self.expression(node)

    def branch(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        before = set(self.definite)
        self.branches += 1
        for statement in body:
            self.statement(statement)
        after, self.definite = self.definite, before
        for statement in orelse:
            self.statement(statement)
        self.branches -= 1
        self.definite &= after

    def loop(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        for item in node.iter.args:
            self.expression(item)
        before = set(self.definite)
        self.frames.append({})
        targets = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
        for target in targets:
            assert isinstance(target, ast.Name)
            self.free(target)
            if self.lookup(target.id) is not None:
                kind = self.found.kinds[self.lookup(target.id) or ""]
                what = (
                    "iter var cannot be overwritten"
                    if kind == "loop"
                    else f"a loop would overwrite the {kind}"
                )
                self.fail(f"{what}: {target.id}", node, "give the loop variable another name")
            self.declare(target, "loop")
        for statement in node.body:
            self.statement(statement)
        for name, unique in self.frames.pop().items():
            self.ended[name] = (node.lineno, self.found.kinds[unique])
        self.definite = before  # the loop may run no time at all

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Subscript):
            self.expression(target)
            name = root_of(target)
            self.found.written.setdefault(
                self.found.names[name], target
            ) if name in self.found.names else None
            return
        assert isinstance(target, ast.Name)
        self.free(target)
        buffer = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in BUFFERS
        known = self.lookup(target.id)
        kind = self.found.kinds.get(known or "")
        if kind == "loop":
            self.fail(f"iter var cannot be overwritten: {target.id}", target, "use a variable of its own")
        if kind in ("parameter", *BUFFERS) or (kind == "scalar" and buffer):
            hint = "give it another name; the elements are written with name[i] = ..."
            self.fail(f"the tensor is redefined: {target.id}", target, hint)
        if buffer and isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            within = len(self.frames) > 1 or self.branches > 0
            if within and value.func.id == "output_tensor":
                rule = "output_tensor inside a loop or an if is not compiled"
                self.fail(f"{rule}: {target.id}", target, "declare it at the top of the function")
            self.declare(target, value.func.id)
            self.found.inner |= {self.found.names[target]} if within else set()
        elif known is None:
            self.declare(target, "scalar")
            if len(self.frames) == 1 and not self.branches:
                self.found.once.add(self.found.names[target])
        else:
            self.found.names[target] = known
            self.definite.add(known)
        unique = self.found.names[target]
        self.assigned[unique] = self.assigned.get(unique, 0) + 1

    def returned(self, node: ast.Return) -> None:
        value = node.value
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        names = [self.lookup(item.id) or "" for item in items if isinstance(item, ast.Name)]
        kinds = self.found.kinds
        for item in items:
            assert isinstance(item, ast.Name)
            unique = self.lookup(item.id) or ""
            if kinds.get(unique) not in ("parameter", "output_tensor"):
                rule = (
                    "the element in the return value should be either an input tensor or a tensor "
                    f"allocated by output_tensor, but get name: {item.id}"
                )
                hint = RETURNED.get(kinds.get(unique, ""))
                self.fail(rule, node, hint, ArgumentTypeError)
            self.found.names[item] = unique
            self.found.tensors |= {unique} if kinds[unique] == "parameter" else set()
        for name, kind in kinds.items():
            if kind == "output_tensor" and name not in names:
                rule = "the tensor is allocated as an output tensor but not in the return value"
                hint = "return it, or declare it with allocate"
                self.fail(f"{rule}: {name}", node, hint, ArgumentTypeError)
        for name, store in self.found.written.items():
            if kinds[name] == "parameter" and name not in names:
                hint = f"return {name} too, which makes it an output written in place; or write to a copy"
                self.fail(f"the input tensor is written but not in the return value: {name}", store, hint)
        self.found.outputs = tuple(names)
