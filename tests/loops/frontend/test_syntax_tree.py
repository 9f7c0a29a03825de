"""Walking over a syntax tree and copying it, beside Python's own, on the texts of this folder."""

import ast
from pathlib import Path

import pytest

from polyop.loops.frontend.syntax_tree import copied, walk

FILES = sorted(Path(__file__).parent.glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nodes_come_in_the_order_of_ast_walk(file):
    tree = ast.parse(file.read_text())
    assert walk(tree) == list(ast.walk(tree))


def test_nodes_that_a_debugger_puts_beside_the_fields_are_not_copied():
    """Python has one Load for all trees, and IPython's tracebacks give each node its parent."""
    tree = ast.parse("y = x")
    tree.body[0].value.ctx = ast.Load()
    tree.body[0].value.ctx.parent = tree.body[0].value
    copy = copied(tree)
    assert ast.dump(copy) == ast.dump(tree)
    assert not hasattr(copy.body[0].value.ctx, "parent")


@pytest.mark.slow(3)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_copy_is_the_same_text_in_other_nodes(file):
    tree = ast.parse(file.read_text())
    copy = copied(tree)
    assert ast.dump(copy, include_attributes=True) == ast.dump(tree, include_attributes=True)
    assert {*map(id, ast.walk(tree))}.isdisjoint(map(id, ast.walk(copy)))
