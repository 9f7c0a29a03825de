"""Resolve names: the scopes of a loop kernel, and what an expression may read there.

A scalar lives in the loop (or the function) in which it is first assigned. If two loops assign the same
name, these are two variables, with two unique names:

    for i in range(n):          t
        t = x[i]
    for i in range(n):          t_1
        t = y[i]
"""

from __future__ import annotations

import ast
import difflib
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NoReturn

from ...core.errors import ArgumentValueError, PolyopError
from .language import WORDS, is_word
from .rejected_syntax import is_dtype_test
from .source import Source
from .suggestions import ATTRIBUTES, suggestion_for_outside, suggestion_for_text
from .syntax_tree import path_of_names, walk

TENSOR_ATTRIBUTES = ("shape", "dtype", "ndim", "size")


@dataclass
class Scopes:
    """What the text of a function says about its names, by unique name.

    ``names``: the unique name of each ``ast.Name`` that is bound in the function; ``kinds``: "parameter",
    "output_tensor", "allocate", "loop" or "scalar"; ``once``: scalars with one assignment, outside loops
    and ifs; ``written``: the first store into each tensor; ``tensors``: parameters that are used as
    tensors; ``inner``: tensors declared inside a loop or an if; ``outputs``: the returned tensors.
    ``webs``: the scalar of each web; ``read``: the webs that are read; ``read_as``: the unique name that a
    target of ``+=`` reads, where it assigns another.
    """

    names: dict[ast.Name, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    once: set[str] = field(default_factory=set)
    written: dict[str, ast.AST] = field(default_factory=dict)
    tensors: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    outputs: tuple[str, ...] = ()
    webs: dict[str, str] = field(default_factory=dict)
    read: frozenset[str] = frozenset()
    read_as: dict[ast.Name, str] = field(default_factory=dict)


class Names:
    """The names that are bound at the current statement; each method raises for a name that is misused.

    ``frames``: for each open scope, the unique names by name; ``definite``: the unique names that have a
    value whichever branches of ifs were taken.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scopes = Scopes()
        self.frames: list[dict[str, str]] = [{name: name for name in source.parameters}]
        self.definite = set(source.parameters)
        self.ended: dict[str, tuple[int, str]] = {}  # names whose scope has ended: line of the loop, kind
        self.open_ifs = 0
        self.all_names = {n.id for n in walk(source.tree) if isinstance(n, ast.Name)} | set(source.parameters)
        self.unique_names: set[str] = set()
        self.bound = {
            n.id for n in walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.scopes.kinds = dict.fromkeys(source.parameters, "parameter")
        self.assignments: dict[str, int] = {}  # how many, by unique name

    def fail(
        self,
        rule: str,
        node: ast.AST,
        hint: str | None = None,
        kind: type[PolyopError] = ArgumentValueError,
    ) -> NoReturn:
        """Raise an error that points at the node."""
        raise self.source.error(kind, rule, node, hint=hint)

    def check_assignable(self, target: ast.Name) -> None:
        """Check that the target of an assignment is not a word of the language."""
        if is_word(target.id):
            rule = f"{target.id} is a word of the language and cannot be assigned"
            self.fail(rule, target, "give the variable another name")

    def declare(self, target: ast.Name, kind: str) -> None:
        """Bind a name in the innermost scope, under a unique name."""
        name, number = target.id, 0
        unique = name
        while unique in self.unique_names or (number and unique in self.all_names):
            number += 1
            unique = f"{name}_{number}"
        self.unique_names.add(unique)
        self.frames[-1][name] = unique
        self.scopes.names[target] = unique
        self.scopes.kinds[unique] = kind
        self.definite.add(unique)
        self.ended.pop(name, None)

    def lookup(self, name: str) -> str | None:
        """Return the unique name of the variable that a name is bound to here, or None."""
        return next((frame[name] for frame in reversed(self.frames) if name in frame), None)

    def load(self, node: ast.Name) -> None:
        """Resolve a name that is read; raise when it has no value here."""
        name = node.id
        unique = self.lookup(name)
        if unique is not None:
            if unique not in self.definite:
                hint = f"assign {name} before the if, or in both branches"
                self.fail(f"{name} is assigned in only one branch of an if and used after it", node, hint)
            self.scopes.names[node] = unique
        elif name in self.ended:
            rule = "a variable ends with the loop or the if that assigns it"
            line, kind = self.ended[name]
            hint = f"assign {name} before the loop of line {line}"
            if kind == "loop":
                hint = (
                    f"keep its last value: last = 0 before the loop of line {line}, and last = {name} in it"
                )
            self.fail(f"{rule}: {name}", node, hint)
        elif name in self.bound:
            self.fail(f"there is no variable {name} yet", node, f"{name} is assigned only later")
        elif name in WORDS:
            self.fail(f"{name} is a word of the language: call it", node)
        else:
            self.constant(node)

    def _way_to_define(self, name: str, here: Sequence[str]) -> str:
        """Return how a name that nothing defines gets a value."""
        known = f"known here are {', '.join(here)}"
        if name in stored_into(self.source.tree):
            return f"{known}; make the tensor before the loops: {name} = output_tensor(shape, dtype)"
        return f"{known}; assign it above the function, or make it a parameter, {name}: float"

    def constant(self, node: ast.Name) -> Any:
        """Return the value of a name from outside the function: a number, a module or a tuple."""
        try:
            value = self.source.outer(node.id)
        except KeyError:
            candidates = dict.fromkeys([*self.frames[0], *self.all_names, *WORDS])
            others = [name for name in candidates if name != node.id]
            near = difflib.get_close_matches(node.id, others, n=3, cutoff=0.7)
            here = list(dict.fromkeys(name for frame in self.frames for name in frame))
            hint = f"did you mean {' or '.join(near)}?" if near else self._way_to_define(node.id, here)
            hint = suggestion_for_text(node.id) or hint
            self.fail(f"there is no variable {node.id}", node, hint)
        dimensions = getattr(value, "ndim", 0)  # of a class such as np.float32 it is no number
        array = isinstance(dimensions, int) and dimensions > 0
        readable = isinstance(value, (numbers.Complex, ModuleType, tuple)) or hasattr(value, "dtype")
        if array or not readable:
            rule = "only numbers can be read from outside the function"
            rule = f"{rule}: {node.id} is of type {type(value).__name__}"
            self.fail(rule, node, suggestion_for_outside(node.id, value))
        return value

    def expression(self, node: ast.expr) -> None:
        """Resolve all names that an expression reads."""
        match node:
            case ast.Name():
                self.load(node)
            case ast.Call():
                self.call(node)
            case ast.Attribute():
                self.attribute(node)
            case ast.Compare(left=left, comparators=[right]) if is_dtype_test(node):
                self.expression(left)
                root = root_of(right)
                if root is not None and self.lookup(root.id) is not None:
                    self.expression(right)
            case _:
                if isinstance(node, ast.Subscript):
                    root = root_of(node)
                    if root is not None and self.scopes.kinds.get(self.lookup(root.id) or "") == "parameter":
                        self.scopes.tensors.add(root.id)
                for inner in ast.iter_child_nodes(node):
                    if isinstance(inner, ast.expr):
                        self.expression(inner)

    def call(self, node: ast.Call) -> None:
        """Resolve the names in the inputs of a word."""
        func, args = node.func, node.args
        if isinstance(func, ast.Name) and (self.lookup(func.id) or func.id in self.bound):
            rule = f"{func.id} is no function of loop kernels"
            self.fail(rule, node, f"{func.id} is a variable here")
        for item in args:
            root = root_of(item)
            of_kernel = root is not None and self.lookup(root.id) is not None
            if of_kernel or not (isinstance(func, ast.Name) and func.id in ("finfo", "iinfo")):
                self.expression(item)  # the dtype float32 is no name of the kernel
        if isinstance(func, ast.Name) and (word := WORDS.get(func.id)) is not None:
            for keyword in node.keywords:
                root = root_of(keyword.value)  # dtype=x.dtype
                if root is not None and self.lookup(root.id) is not None:
                    self.expression(keyword.value)
            if word.kind == "random":
                args = args[:1]
            rows = args if word.kind in ("reduction", "random") or (word.reduces and len(args) == 1) else []
            names = {item.id for item in rows if isinstance(item, ast.Name)}
            self.scopes.tensors |= {n for n in names if self.scopes.kinds.get(n) == "parameter"}

    def attribute(self, node: ast.Attribute) -> None:
        """Check ``tensor.shape`` and ``tensor.dtype``, or a number of a module such as ``math.pi``."""
        root = root_of(node)
        assert root is not None
        unique = self.lookup(root.id)
        if unique is None and root.id not in self.bound and root.id not in self.ended:
            self.module_number(node, root)
            return
        if (
            unique is None
            or self.scopes.kinds[unique] in ("scalar", "loop")
            or not isinstance(node.value, ast.Name)
        ):
            rule = "getattr is only supported for a tensor variable after its declaration, not for"
            self.fail(f"{rule}: {ast.unparse(node.value)}", node)
        if node.attr not in TENSOR_ATTRIBUTES:
            rule = f"a tensor object has no attribute called {node.attr}"
            hint = ATTRIBUTES.get(node.attr, f"a tensor of a loop kernel has {', '.join(TENSOR_ATTRIBUTES)}")
            self.fail(rule, node, hint)
        self.load(root)
        if self.scopes.kinds[unique] == "parameter":
            self.scopes.tensors.add(root.id)

    def module_number(self, node: ast.Attribute, root: ast.Name) -> None:
        """Check that ``module.name`` is a number."""
        self.constant(root)
        try:
            value = self.source.outer(path_of_names(node))
        except KeyError:
            value = None
        if not isinstance(value, numbers.Complex):
            rule = "getattr is only supported for a tensor variable after its declaration, not for"
            hint = f"{ast.unparse(node)} is not a number"
            self.fail(f"{rule}: {root.id}", node, hint)


def stored_into(tree: ast.AST) -> list[str]:
    """Return the names of the tensors into which a function stores elements, in the order of the text."""
    stores = (n for n in walk(tree) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    return list(dict.fromkeys(root.id for root in map(root_of, stores) if root is not None))


def root_of(node: ast.expr) -> ast.Name | None:
    """Return the name that ``a.b[c].d`` starts with, or None when it starts with something else."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node if isinstance(node, ast.Name) else None
