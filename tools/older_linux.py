"""Link a library for systems that are older than this one.

What is linked here needs the newest version of each function that this system's C and C++ libraries have, and
it does not load where that version is missing. Most functions have their older versions beside the newest. So
the linker reads other libraries in their place: they have the same names, no code, and no version newer than
``NEWEST``. The few functions that have no older version are in older_linux.cc.

The C++ library stays a shared one. Kernels throw exceptions that the core catches, and MindSpore hands over
strings: neither is safe with a second copy of the library inside the core.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from polyop.wheel import platforms

NEWEST = platforms.allowed((2, 28))
"""The newest version of each family that manylinux_2_28 allows."""
LIBRARIES = ("libstdc++.so.6", "libm.so.6", "libc.so.6")
# Their functions are in libc.so.6 since glibc 2.34. An older system finds them only if these are loaded.
MERGED = ("libdl.so.2", "libpthread.so.0")
OWN = Path(__file__).with_suffix(".cc")
# A row of `readelf --dyn-syms --wide` with a definition.
ROW = re.compile(
    r"\s*\d+: [0-9a-f]+ +(?P<size>\w+) (?P<kind>\w+) +(GLOBAL|WEAK|UNIQUE) +DEFAULT +(\[.*\] +)?\d+ "
    r"(?P<name>[^@\s]+)@@?(?P<family>[A-Z]+)_(?P<version>[\d.]+)"
)
UNDEFINED = re.compile(r"\s*\d+: [0-9a-f]+ +\w+ \w+ +GLOBAL +DEFAULT +UND (?P<name>\S+)( \(\d+\))?$")
# What comes before the label of a symbol, by its kind.
SECTIONS = {
    "FUNC": ".text\n.type {name}, %function",
    "IFUNC": ".text\n.type {name}, %function",
    "NOTYPE": ".text",
    "OBJECT": ".data\n.type {name}, %object\n.size {name}, {size}",
    "TLS": '.section .tbss,"awT",%nobits\n.type {name}, %tls_object\n.size {name}, {size}',
}


@dataclass(frozen=True)
class Symbol:
    """A definition in a shared library."""

    name: str
    kind: str
    size: int
    family: str
    version: tuple[int, ...]

    @property
    def node(self) -> str:
        """The name of its version."""
        return f"{self.family}_{'.'.join(map(str, self.version))}"


def flags(compiler: str, folder: Path) -> list[str]:
    """Return the flags with which a compiler links for older systems; make in the folder what they name.

    There are none on a system that is old enough itself.
    """
    libraries = {name: location(compiler, name) for name in LIBRARIES}
    symbols = {name: list(definitions(path)) for name, path in libraries.items()}
    if all(symbol.version <= NEWEST[symbol.family] for row in symbols.values() for symbol in row):
        return []
    folder.mkdir(parents=True, exist_ok=True)
    for name, row in symbols.items():
        hollow(compiler, folder / name, oldest(row))
        plain = folder / name.rpartition(".")[0]
        plain.unlink(missing_ok=True)
        plain.symlink_to(name)
    script = location(compiler, "libc.so").read_text(encoding="utf-8")  # it names a static library too
    script = re.sub(r"\S+/libc\.so\.6", str(folder / "libc.so.6"), script)
    (folder / "libc.so").unlink()
    (folder / "libc.so").write_text(script, encoding="utf-8")
    own = folder / "own.o"
    call(compiler, "-std=c++17", "-O2", "-fPIC", "-fno-lto", "-Wall", "-Wextra", "-c", OWN, "-o", own)
    merged = ",".join(f"-l:{name}" for name in MERGED)
    return [f"-L{folder}", str(own), f"-Wl,--push-state,--no-as-needed,{merged},--pop-state"]


def missing(library: Path) -> list[str]:
    """Return the symbols of others that a library needs in no version, except Python's.

    They are those that `flags` left out because they are too new.
    """
    rows = call("readelf", "--dyn-syms", "--wide", library).splitlines()
    names = [found["name"] for row in rows if (found := UNDEFINED.match(row))]
    return [name for name in names if "@" not in name and not re.match("_?Py", name)]


def location(compiler: str, name: str) -> Path:
    """Return the file that the compiler links for a name."""
    path = Path(call(compiler, f"-print-file-name={name}").strip())
    if not path.is_absolute():
        raise SystemExit(f"{compiler} does not find {name}, which it links for older systems")
    return path


def definitions(library: Path) -> Iterator[Symbol]:
    """Yield what a library defines in a version of the families of `NEWEST`."""
    for row in call("readelf", "--dyn-syms", "--wide", library).splitlines():
        found = ROW.match(row)
        if found and found["family"] in NEWEST:
            version = tuple(map(int, found["version"].split(".")))
            yield Symbol(found["name"], found["kind"], int(found["size"], 0), found["family"], version)


def oldest(symbols: Iterable[Symbol]) -> list[Symbol]:
    """Return each symbol in the newest version that older systems have; those without one are left out."""
    chosen: dict[str, Symbol] = {}
    for symbol in symbols:
        known = chosen.get(symbol.name)
        if symbol.version <= NEWEST[symbol.family] and (known is None or symbol.version > known.version):
            chosen[symbol.name] = symbol
    return list(chosen.values())


def hollow(compiler: str, path: Path, symbols: Iterable[Symbol]) -> None:
    """Make a shared library that has the symbols, and no code."""
    nodes: dict[str, list[str]] = defaultdict(list)
    assembly = []
    for symbol in symbols:
        nodes[symbol.node].append(f'"{symbol.name}";')
        section = SECTIONS[symbol.kind].format(name=symbol.name, size=symbol.size)
        space = 0 if ".text" in section else symbol.size
        assembly.append(f"{section}\n.globl {symbol.name}\n{symbol.name}:\n.zero {space}\n")
    source, versions = path.with_suffix(".s"), path.with_suffix(".map")
    source.write_text("".join(assembly), encoding="utf-8")
    script = "".join(f"{node} {{ {' '.join(names)} }};\n" for node, names in nodes.items())
    versions.write_text(script, encoding="utf-8")
    named = f"-Wl,-soname,{path.name},--version-script={versions}"
    call(compiler, "-shared", "-nostdlib", named, source, "-o", path)


def call(*command: object) -> str:
    """Return the output of a command; if it fails, exit with its output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout
