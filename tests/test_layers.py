"""The architecture: which room may import which. Every import is checked, those inside functions too."""

import ast
import functools
import pathlib
import re

import pytest

from polyop.core.late import LATE

# A room imports from itself and from the rooms before it.
ROOMS = (
    "core",
    "binary",
    "build",
    "loops",
    "kernels",
    "call",
    "rules",
    "sharding",
    "hosts",
    "providers",
    "define",
    "graph",
    "wheel",
    "export",
    "testing",
    "bench",
    "tune",
    "report",
    "networks",
    "mindspore",
    "cli",
)
INSIDE = {
    "loops": (
        "debug",
        "ir",
        "frontend",
        "analysis",
        "program",
        "listing",
        "loop_tree",
        "runner",
        "passes",
        "schedule",
        "vectors",
        "targets",
        "emit",
        "dims",
        "derive",
        "pipeline",
        "library",
    ),
}
"""Rooms whose folders and files have an order of their own."""
APART = {
    "hosts": ("numpy", "torch", "jax", "mindspore", "paddle", "dask", "xarray", "pyopencl", "dlpack"),
    "loops/emit": ("c", "device"),
    "providers": ("aten", "aclnn"),
}
"""Folders and files that do not import one another."""
FRAMEWORKS = {
    "torch": (
        "hosts/torch",
        "providers/aten",
        "providers/npu",
        "testing/frameworks",
        "bench/frameworks",
        "networks",
        "mindspore",
    ),
    "jax": ("hosts/jax", "testing/frameworks", "bench/frameworks"),
    "mindspore": ("hosts/mindspore", "testing/frameworks"),
    "paddle": ("hosts/paddle", "testing/frameworks"),
    "dask": ("hosts/dask",),
    "xarray": ("hosts/xarray",),
    "pyopencl": ("hosts/pyopencl", "testing/frameworks", "cli/races"),
}
"""Framework -> where it is imported."""
SOURCE = pathlib.Path(__file__).parents[1] / "src" / "polyop"


@functools.cache
def nodes(path):
    """Return the imports and the calls of a file."""
    found = ast.walk(ast.parse(path.read_text()))
    return [node for node in found if isinstance(node, (ast.Import, ast.ImportFrom, ast.Call))]


class Tree:
    """The modules below a folder, and each import of one by another: (importer, imported, line)."""

    def __init__(self, root):
        self.files = {self.name(path.relative_to(root)): path for path in sorted(root.rglob("*.py"))}
        self.imports = [edge for name, path in self.files.items() for edge in self.of(name, path)]

    @staticmethod
    def name(path):
        parts = path.with_suffix("").parts
        return "/".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def of(self, name, path):
        package = name.split("/") if path.name == "__init__.py" else name.split("/")[:-1]
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = package[: len(package) + 1 - node.level]
                base += node.module.split(".") if node.module else []
                module = "/".join(base)
                for alias in node.names:
                    inner = "/".join([*base, alias.name])
                    target = inner if inner in self.files else module
                    if target != name:
                        yield name, target, node.lineno


@functools.cache
def tree(root=SOURCE):
    return Tree(root)


def upward(modules):
    """Return the imports that point to a later room, or to a later part of the same one."""
    wrong = []
    for name, target, line in modules.imports:
        (room, *path), (other, *other_path) = name.split("/"), target.split("/")
        if room in ROOMS and other in ROOMS and ROOMS.index(other) > ROOMS.index(room):
            wrong.append(f"{name}:{line}: {room} may not import {other}")
        order = INSIDE.get(room, ())
        parts = [p[0] for p in (path, other_path) if p and p[0] in order and room == other]
        if len(parts) == 2 and order.index(parts[1]) > order.index(parts[0]):
            wrong.append(f"{name}:{line}: {room}/{parts[0]} may not import {room}/{parts[1]}")
    return wrong


def cycles(modules):
    """Return the groups of files that import each other, by Tarjan's algorithm."""
    after, number, low, stack, groups = {}, {}, {}, [], []
    for name, target, _ in modules.imports:
        after.setdefault(name, set()).add(target)

    def visit(name):
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(after.get(name, ())):
            if other not in number:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for name in sorted(after):
        if name not in number:
            visit(name)
    return groups


def test_imports_point_down():
    assert upward(tree()) == []


def test_no_import_cycles():
    assert cycles(tree()) == []


def test_every_folder_and_file_is_in_a_room():
    assert {name.split("/")[0] for name in tree().files} - {"", "__main__"} == set(ROOMS)
    for room, order in INSIDE.items():
        parts = {name.split("/")[1] for name in tree().files if name.startswith(f"{room}/")}
        assert parts == set(order)


@pytest.mark.parametrize("folder", APART)
def test_no_import_between_independent_folders(folder):
    def part(name):
        rest = name.removeprefix(f"{folder}/") if name.startswith(f"{folder}/") else ""
        return rest.split("/")[0]

    wrong = [
        f"{name}:{line} imports {target}"
        for name, target, line in tree().imports
        if part(name) in APART[folder] and part(target) in set(APART[folder]) - {part(name)}
    ]
    assert wrong == []


def test_nothing_but_the_core_is_imported_from_the_root():
    wrong = []
    for name, path in tree().files.items():
        depth = len(path.relative_to(SOURCE).parts)
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.level == depth and node.module is None:
                wrong += [f"{name}: {a.name}" for a in node.names if a.name not in (*ROOMS, "_core")]
    assert wrong == []


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_is_imported_where_its_tensors_are_handled(framework):
    wrong = []
    for name, path in tree().files.items():
        file = str(path.relative_to(SOURCE))
        if file.startswith(FRAMEWORKS[framework]):
            continue
        for node in nodes(path):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            wrong += [f"{name}:{node.lineno}" for n in names if n.split(".")[0] == framework]
    assert wrong == []


def test_modules_found_by_name_are_one_table():
    """Only ``core/late`` imports a module of polyop by name, and each package's ``__init__``, which re-exports."""
    wrong = []
    for name, path in tree().files.items():
        if path.name == "__init__.py" or name == "core/late":
            continue
        for node in nodes(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                text = ast.unparse(node.args[0])
                own = "__package__" in ast.unparse(node) or re.match(r"""f?['"](\.|polyop)""", text)
                wrong += [f"{name}:{node.lineno}: {text}"] if own else []
    assert wrong == []


@pytest.mark.parametrize("kind", LATE)
def test_a_row_of_the_late_table_is_used(kind):
    used = re.compile(rf"late\.load\(\s*\"{kind}\"")
    assert any(used.search(path.read_text()) for path in tree().files.values())


@pytest.mark.parametrize("text", ["from .. import hosts", "def f():\n    from ..hosts import base"])
def test_the_check_of_layers_can_fail(tmp_path, text):
    for folder in ("core", "hosts"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "core" / "bad.py").write_text(text)
    assert upward(Tree(tmp_path)) == [f"core/bad:{text.count(chr(10)) + 1}: core may not import hosts"]


def test_the_check_of_cycles_can_fail(tmp_path):
    (tmp_path / "a.py").write_text("def f():\n    from . import b")
    (tmp_path / "b.py").write_text("from .c import x")
    (tmp_path / "c.py").write_text("from . import a")
    assert cycles(Tree(tmp_path)) == [["a", "b", "c"]]
