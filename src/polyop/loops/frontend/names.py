"""Names: what is bound, where, and what an expression may read.

A scalar lives in the loop (or the function) in which it is first assigned. Two loops may use
the same name: each gets a name of its own, ``t`` and ``t_1``.
"""

from __future__ import annotations

import ast
import difflib
import numbers
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NoReturn

from ...core.errors import ArgumentValueError, PolyopError
from .language import WORDS
from .source import Source
from .suggestions import ATTRIBUTES


@dataclass
class Scopes:
    """``names``: the unique name of each ``ast.Name`` that is bound in the function.

    ``kinds``: of each unique name "parameter", "output_tensor", "allocate", "loop" or "scalar";
    ``once``: scalars with one assignment, outside loops and ifs; ``written``: the first store into
    each tensor; ``tensors``: parameters that are used as tensors; ``inner``: tensors declared inside a
    loop or an if; ``outputs``: what is returned.
    """

    names: dict[ast.Name, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    once: set[str] = field(default_factory=set)
    written: dict[str, ast.AST] = field(default_factory=dict)
    tensors: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    outputs: tuple[str, ...] = ()


class Names:
    """The names that are bound so far; each method raises for a name that is misused."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found = Scopes()
        self.frames: list[dict[str, str]] = [{name: name for name in source.parameters}]
        self.definite = set(source.parameters)
        self.ended: dict[str, tuple[int, str]] = {}  # by name: the line of its loop, its kind
        self.branches = 0
        self.taken = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)} | set(source.parameters)
        self.used: set[str] = set()
        self.bound = {
            n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.found.kinds = dict.fromkeys(source.parameters, "parameter")
        self.assigned: dict[str, int] = {}

    def fail(
        self,
        rule: str,
        node: ast.AST,
        hint: str | None = None,
        kind: type[PolyopError] = ArgumentValueError,
    ) -> NoReturn:
        """Raise an error that points at the node."""
        raise self.source.error(kind, rule, node, hint=hint)

    def free(self, target: ast.Name) -> None:
        """Check that a name that is assigned is no word of the language."""
        if target.id in WORDS:
            rule = f"{target.id} is a word of the language and cannot be assigned"
            self.fail(rule, target, "give the variable another name")

    def declare(self, target: ast.Name, kind: str) -> None:
        """Bind a name in the innermost scope, under a unique name."""
        name, number = target.id, 0
        unique = name
        while unique in self.used or (number and unique in self.taken):
            number += 1
            unique = f"{name}_{number}"
        self.used.add(unique)
        self.frames[-1][name] = unique
        self.found.names[target] = unique
        self.found.kinds[unique] = kind
        self.definite.add(unique)
        self.ended.pop(name, None)

    def lookup(self, name: str) -> str | None:
        """Return the unique name of what a name is bound to here, or None."""
        return next((frame[name] for frame in reversed(self.frames) if name in frame), None)

    def load(self, node: ast.Name) -> None:
        """Resolve a name that is read; raise when it has no value here."""
        name = node.id
        known = self.lookup(name)
        if known is not None:
            if known not in self.definite:
                hint = f"assign {name} before the if, or in both branches"
                self.fail(f"{name} is assigned in only one branch of an if and used after it", node, hint)
            self.found.names[node] = known
        elif name in self.ended:
            rule = "there is a variable used out of the scope it is defined"
            line, kind = self.ended[name]
            hint = f"assign {name} before the loop of line {line}"
            if kind == "loop":
                hint = f"keep it: last = 0 before the loop of line {line}, and last = {name} in it"
            self.fail(f"{rule}: {name}", node, hint)
        elif name in self.bound:
            self.fail(f"there is a undeclared variable: {name}", node, "it is assigned only later")
        elif name in WORDS:
            self.fail(f"{name} is a word of the language: call it", node)
        else:
            self.constant(node)

    def constant(self, node: ast.Name) -> Any:
        """Return the number, module or tuple that a name outside the function stands for."""
        try:
            value = self.source.outer(node.id)
        except KeyError:
            known = [*self.frames[0], *self.taken, *WORDS]
            near = difflib.get_close_matches(node.id, [n for n in known if n != node.id], n=3)
            here = list(dict.fromkeys(name for frame in self.frames for name in frame))
            hint = f"the nearest are {', '.join(near)}" if near else f"known here are {', '.join(here)}"
            self.fail(f"there is a undeclared variable: {node.id}", node, hint)
        dimensions = getattr(value, "ndim", 0)  # a dtype's class has no number there
        array = isinstance(dimensions, int) and dimensions > 0
        known_kind = isinstance(value, (numbers.Real, ModuleType, tuple)) or hasattr(value, "dtype")
        if array or not known_kind:
            what = f"{node.id} is of type {type(value).__name__}"
            rule = f"only numbers can be read from outside the function: {what}"
            self.fail(rule, node, f"make {node.id} a parameter")
        return value

    def expression(self, node: ast.expr) -> None:
        """Resolve all names that an expression reads."""
        match node:
            case ast.Name():
                self.load(node)
            case ast.Call(func=func, args=args):
                if isinstance(func, ast.Name) and (self.lookup(func.id) or func.id in self.bound):
                    rule = f"function call id [{func.id}] not in intrinsics list of the Hybrid DSL"
                    self.fail(rule, node, f"{func.id} is a variable here")
                for item in args:
                    self.expression(item)
            case ast.Attribute():
                self.attribute(node)
            case _:
                if isinstance(node, ast.Subscript):
                    root = root_of(node)
                    if root is not None and self.found.kinds.get(self.lookup(root.id) or "") == "parameter":
                        self.found.tensors.add(root.id)
                for inner in ast.iter_child_nodes(node):
                    if isinstance(inner, ast.expr):
                        self.expression(inner)

    def attribute(self, node: ast.Attribute) -> None:
        """Check ``tensor.shape`` and ``tensor.dtype``, or a number of a module such as ``math.pi``."""
        root = root_of(node)
        assert root is not None
        known = self.lookup(root.id)
        if known is None and root.id not in self.bound and root.id not in self.ended:
            self.module_number(node, root)
            return
        if (
            known is None
            or self.found.kinds[known] in ("scalar", "loop")
            or not isinstance(node.value, ast.Name)
        ):
            rule = "getattr is only supported for a tensor variable after its declaration, not for"
            self.fail(f"{rule}: {ast.unparse(node.value)}", node)
        if node.attr not in ("shape", "dtype"):
            rule = f"a tensor object has no attribute called {node.attr}"
            hint = ATTRIBUTES.get(node.attr, "shape and dtype are all that a loop kernel knows")
            self.fail(rule, node, hint)
        self.load(root)
        if self.found.kinds[known] == "parameter":
            self.found.tensors.add(root.id)

    def module_number(self, node: ast.Attribute, root: ast.Name) -> None:
        """Check that ``module.name`` is a number."""
        value = self.constant(root)
        for name in path_of(node):
            value = getattr(value, name, None)
        if not isinstance(value, numbers.Real):
            rule = "getattr is only supported for a tensor variable after its declaration, not for"
            hint = f"{ast.unparse(node)} is no number"
            self.fail(f"{rule}: {root.id}", node, hint)


def root_of(node: ast.expr) -> ast.Name | None:
    """Return the name that ``a.b[c].d`` starts with, or None when it starts with something else."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def path_of(node: ast.expr) -> list[str]:
    """Return the attributes of ``a.b.c`` in order: b and c."""
    return [*path_of(node.value), node.attr] if isinstance(node, ast.Attribute) else []
