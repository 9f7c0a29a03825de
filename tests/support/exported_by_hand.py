"""Builds a library of tests/sources/exported_table.cc with one surface."""

import pathlib
import subprocess

from polyop.core.parse import parse
from polyop.export.operator import ExportedOperator

ROOT = pathlib.Path(__file__).parents[2]
TABLE = ROOT / "tests" / "sources" / "exported_table.cc"
SCHEMAS = (
    "toy::scale(Tensor x, float factor=2.0) -> Tensor",
    (
        'toy::weigh(Tensor x, Tensor? bias=None, *, int[] weights=[], str mode="plain", bool negate=False)'
        " -> (Tensor, Tensor)"
    ),
    "toy::add_(Tensor(a!) x, Tensor y) -> ()",
    "toy::copy(Tensor x) -> Tensor",
)


def operator(schema):
    """Return an operator with a schema and without kernels."""
    parsed = parse(schema)
    return ExportedOperator(parsed.qualified_name, parsed, (), (), "C++ source")


def build(surface, folder):
    """Compile the table and the source of a module of ``polyop.export.surfaces``."""
    return build_with(surface.source([operator(schema) for schema in SCHEMAS]), folder)


def build_with(text, folder, table=TABLE):
    """Compile a table and the source of a surface."""
    surface = folder / "surface.cc"
    surface.write_text(text)
    path = folder / "libtoy.so"
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-fPIC", "-shared"]
    command = ["g++", *flags, f"-I{ROOT / 'include'}", str(table), str(surface), "-o", str(path)]
    subprocess.run(command, check=True, timeout=120)
    return path


def exported(path):
    """Return the names of the functions that a library exports."""
    command = ["nm", "-D", "--defined-only", str(path)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
    return {line.split()[2] for line in listing.splitlines() if line.split()[1] == "T"}
