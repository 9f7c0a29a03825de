"""The source of a function is read whole, and nothing else is, for any layout of the file."""

import ast
import importlib.util
import pathlib

import pytest

from polyop.loops.frontend.source import _definition, read

PLAIN = "def f(a):\n    return a\n"
LAYOUTS = {
    "plain": PLAIN,
    "last of its file": "x = 1\n\n\ndef f(a):\n    return a",
    "followed": f"{PLAIN}x = 1\n",
    "followed by a decorated one": f"import functools\n{PLAIN}@functools.cache\ndef g():\n    pass\n",
    "decorators": (
        "def same(*_):\n    return lambda f: f\n@same(\n    1\n)\n# why\n@same()\n"
        "def f(\n    a,\n):\n    return a\nx = 1\n"
    ),
    "a bracket that closes at the left": "def f(a):\n    return (\n        a\n)\nx = 1\n",
    "a string that goes to the left": "def f(a):\n    b = '''\nnot the end\n'''\n    return b\nx = 1\n",
    "a comment at the left": "def f(a):\n    b = a\n# a remark\n\n    return b\nx = 1\n",
    "on one line": "def f(a): return a\nx = 1\n",
    "tabs": "def f(a):\n\tif a:\n\t\treturn a\n\treturn 0\nx = 1\n",
    "a last statement without code": "def f(a):\n    b = a\n    b: int\n    'a text'\nx = 1\n",
    "a line that is continued": "def f(a):\n    return a + \\\n1\nx = 1\n",
}  # fmt: skip
INSIDE = "def outer():\n    y = 2\n{text}\n    return f\nf = outer()\n"


def definition(text):
    return next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == "f")


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_function_is_found_whole(tmp_path, name, inside):
    text = LAYOUTS[name]
    if inside and "to the left" not in name:
        text = INSIDE.format(text="".join(f"    {line}" for line in text.splitlines(keepends=True)))
    path = tmp_path / "layout.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("layout", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = read(module.f)
    expected = definition(text)
    assert ast.dump(source.tree, include_attributes=True) == ast.dump(expected, include_attributes=True)
    lines = text.splitlines()
    first = min(node.lineno for node in (expected, *expected.decorator_list))
    expected_lines = {k: lines[k - 1].rstrip() for k in range(first, expected.end_lineno + 1)}
    assert source.lines.items() >= expected_lines.items()


def test_every_function_of_these_tests_is_found_whole():
    count = 0
    for path in pathlib.Path(__file__).parents[1].rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                first = min(at.lineno for at in (node, *node.decorator_list))
                module, end = _definition(text.splitlines(keepends=True), first - 1)
                top = module.body[0]
                tree = top.body[0] if isinstance(top, ast.If) else top
                assert ast.dump(tree) == ast.dump(node), (path.name, node.name)
                assert end >= node.end_lineno
                count += 1
    assert count > 100
