"""The layer order is the architecture; this test is what keeps the listing true."""

import ast
import pathlib

import pytest

LAYERS = (
    "core",
    "kernels",
    "gradients",
    "hosts",
    "providers",
    "define",
    "graph",
    "wheel",
    "testing",
    "mindspore",
    "cli",
)
ROOT = pathlib.Path(__file__).parents[1] / "src" / "polyop"
FILES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT)


def imports(path, root=ROOT):
    """Yield (parts of the module below polyop, line) of each relative import, also inside functions."""
    package = path.relative_to(root).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) + 1 - node.level]
            module = tuple(node.module.split(".")) if node.module else ()
            for alias in node.names:
                yield (*base, *module, alias.name), node.lineno


def upward(path, root=ROOT):
    layer = path.relative_to(root).parts[0]
    later = LAYERS[LAYERS.index(layer) + 1 :]
    return [
        f"{path.relative_to(root)}:{line}: {layer} may not import {parts[0]}"
        for parts, line in imports(path, root)
        if parts[0] in later
    ]


def test_imports_point_down():
    wrong = [text for path in FILES for text in upward(path)]
    assert not wrong, "\n".join(wrong)


def test_every_folder_is_a_layer():
    assert {p.relative_to(ROOT).parts[0] for p in FILES} <= set(LAYERS)


def test_no_host_imports_another():
    hosts = {p.stem if p.is_file() else p.name for p in (ROOT / "hosts").iterdir()} - {
        "__init__",
        "arrival",
        "base",
        "batching",
        "bound",
        "explain",
        "foreign",
        "overlap",
        "__pycache__",
    }
    wrong = []
    for path in (ROOT / "hosts").rglob("*.py"):
        own = path.relative_to(ROOT / "hosts").parts[0].removesuffix(".py")
        for parts, line in imports(path):
            if parts[0] == "hosts" and len(parts) > 1 and parts[1] in hosts - {own}:
                wrong.append(f"{path.name}:{line}: imports the host {parts[1]}")
    assert not wrong, "\n".join(wrong)


def test_nothing_imports_the_root():
    wrong = [
        f"{path}:{line}"
        for path in FILES
        for parts, line in imports(path)
        if len(parts) == 1 and parts[0] not in (*LAYERS, "_core")
    ]
    assert not wrong, "\n".join(wrong)


def test_frameworks_are_imported_in_their_host_only():
    frameworks = {"torch", "jax", "mindspore"}
    wrong = []
    for path in FILES:
        parts = path.relative_to(ROOT).parts
        if parts[0] in ("hosts", "testing", "mindspore", "cli") or parts[:2] == ("providers", "aten"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
            wrong += [
                f"{path.relative_to(ROOT)}:{node.lineno}: {n}" for n in names if n.split(".")[0] in frameworks
            ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", ["from .. import hosts", "def f():\n    from ..hosts import base"])
def test_the_check_can_fail(tmp_path, text):
    path = tmp_path / "core" / "bad.py"
    path.parent.mkdir()
    path.write_text(text)
    assert upward(path, tmp_path) == [f"core/bad.py:{text.count(chr(10)) + 1}: core may not import hosts"]
