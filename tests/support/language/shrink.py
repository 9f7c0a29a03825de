"""Make a failing kernel smaller, and print it as a program."""

import ast
import copy

import numpy as np

from language.constructs import MODULE


def smaller(text):
    """Yield texts of a kernel with a statement less, a block in place of its statement, or a part of an expression."""
    tree = ast.parse(text)
    for path, node in places(tree):
        for new in replacements(node):
            other = copy.deepcopy(tree)
            replaced(other, path, new)
            yield ast.unparse(ast.fix_missing_locations(other)) + "\n"


def places(tree):
    """Return each statement and each expression with its path: pairs of a field and a position in it."""
    found = []

    def visit(node, path):
        for name, value in ast.iter_fields(node):
            for at, child in enumerate(value) if isinstance(value, list) else ((None, value),):
                if isinstance(child, (ast.stmt, ast.expr)):
                    if path:  # not the function itself
                        found.append(((*path, (name, at)), child))
                    visit(child, (*path, (name, at)))

    visit(tree, ())
    # statements first, large ones before small ones
    return sorted(found, key=lambda row: (isinstance(row[1], ast.expr), -sum(1 for _ in ast.walk(row[1]))))


def replacements(node):
    """Return what may stand in the place of a node: lists of statements, or expressions."""
    if isinstance(node, ast.Return):
        return []
    if isinstance(node, ast.stmt):
        body = getattr(node, "body", [])
        return [[], *([body] if body else []), *([node.orelse] if getattr(node, "orelse", []) else [])]
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.IfExp, ast.Call, ast.UnaryOp, ast.Compare)):
        parts = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        parts = [c for c in parts if not (isinstance(node, ast.Call) and c is node.func)]
        return [*parts, *([ast.Constant(1)] if not isinstance(node, ast.UnaryOp) else [])]
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return [ast.Constant(1), ast.Constant(0.5)]
    return []


def replaced(tree, path, new):
    """Put a list of statements, or an expression, at a path of the tree."""
    node = tree
    for name, at in path[:-1]:
        node = getattr(node, name) if at is None else getattr(node, name)[at]
    name, at = path[-1]
    if at is None:
        setattr(node, name, new)
    elif isinstance(new, list):
        statements = getattr(node, name)
        statements[at : at + 1] = new
        if not statements:
            statements.append(ast.Pass())
    else:
        getattr(node, name)[at] = new


def shrunk(program, fails, tries):
    """Return the smallest program found that fails alike, after so many tries at most."""
    found = True
    while found and tries > 0:
        found = False
        for text in smaller(program.text):
            tries -= 1
            if tries < 0:
                break
            if len(text) >= len(ast.unparse(ast.parse(program.text))) + 1:
                continue
            other = copy.copy(program)
            other.text = text
            if fails(other):
                program, found = other, True
                break
    return program


def used_module(text):
    """Return the statements of the module that a kernel needs."""
    tree, needed = ast.parse(MODULE), {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    keep = []
    for node in reversed(tree.body):
        names = {node.name} if hasattr(node, "name") else {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name)
        } if not isinstance(node, (ast.Import, ast.ImportFrom)) else needed  # fmt: skip
        if names & needed and not isinstance(node, (ast.Import, ast.ImportFrom)):
            keep.append(ast.unparse(node))
            needed |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return "\n".join(reversed(keep))


def literal(array):
    """Return the text of an array."""
    if array is None:
        return "None"
    name = array.dtype.name
    kind = (
        f"np.{name}"
        if hasattr(np, name) and name != "bool"
        else "bool"
        if name == "bool"
        else f"ml_dtypes.{name}"
    )
    values = array.astype(np.float64) if name.startswith(("bfloat16", "float8")) else array
    shape = f".reshape({array.shape})" if array.size == 0 or array.ndim == 0 else ""
    return f"np.array({values.ravel().tolist() if shape else values.tolist()}, {kind}){shape}"


def runnable(program, arrays, what):
    """Return a program that shows a finding."""
    options = [f"schedule={schedule_text(program.steps)}"] if program.steps else []
    options += ['deterministic="batch"'] if program.deterministic else []
    decorator = f"@polyop.kernel({', '.join(options)})" if options else "@polyop.kernel"
    lines = [
        "import math",
        "from dataclasses import dataclass",
        "from typing import Literal, NamedTuple",
        "import ml_dtypes",
        "import numpy as np",
        "import polyop",
        used_module(program.text),
        decorator,
        program.text,
        f"tensors = [{', '.join(map(literal, arrays))}]",
        f"numbers = {program.attributes}",
        "copies = [[None if t is None else t.copy() for t in tensors] for _ in range(2)]",
        "print(f.python(*copies[0], **numbers))",
        "print(f(*copies[1], **numbers))",
    ]
    return "\n".join([*(f"# {line}" for line in what.splitlines()[-12:]), *lines])


def schedule_text(steps):
    return "polyop.Schedule()" + "".join(f".{word}({', '.join(map(repr, rest))})" for word, *rest in steps)
