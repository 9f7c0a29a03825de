"""Builds a library of tests/sources/exported_table.cc with one surface."""

import pathlib
import subprocess

from polyop.core.dtypes import DTYPES

ROOT = pathlib.Path(__file__).parents[2]
TABLE = ROOT / "tests" / "sources" / "exported_table.cc"
OPERATORS = ("scale", "weigh", "add_", "copy")
NUMPY = {dtype.name: dtype.numpy for dtype in DTYPES}


def build(header, function, folder):
    """Compile the table and ``function``, a text with the fields ``name`` and ``number``, of each operator."""
    functions = [function.format(name=name, number=number) for number, name in enumerate(OPERATORS)]
    text = f'#include "polyop/export/{header}"\nusing namespace polyop;\n' + "".join(functions)
    return build_with(text, folder)


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
