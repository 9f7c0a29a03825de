"""Plan the commands that build a library: one compile command per source, and one link command."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import BuildError
from ..core.versions import ABI_VERSION
from . import compilers
from .compilers import Compiler
from .options import BuildOptions
from .paths import include_folder
from .sources import Source, has

if TYPE_CHECKING:
    from pathlib import Path

    from .libtorch import LibTorch, Tier

RECIPE = 1
"""Part of the cache's key: raise it when the same inputs are built in another way."""
_ENVIRONMENT = (
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX",
    "SOURCE_DATE_EPOCH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN",
    "HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND", "ROCM_PATH", "HIP_PATH",
)  # fmt: skip
"""Environment variables that change the result of the same compile command."""
_STANDARD = r"-std=(c\+\+|gnu\+\+)?"
_ASCEND_SOURCE = (
    r'#[ \t]*include[ \t]*[<"](?:[^">\n]*/)?pytorch_npu_helper\.hpp'
    r"|\bTORCH_LIBRARY_IMPL\s*\(\s*\w+\s*,\s*(?:Autograd)?(?:PrivateUse1|XLA)\b"
)
"""Found in sources for Ascend: polyop's pytorch_npu_helper.hpp is included first, not the project's copy."""
_MODULE = "PYBIND11_MODULE"
"""Found in the source of Python's functions; in a project for Ascend, npu/module.h is included first."""

_RELEASES_LOCK = r"\bgil_scoped_release\b|\bPyEval_SaveThread\b|\bPy_(?:BEGIN_ALLOW|UNBLOCK)_THREADS\b"
"""Found in sources that release Python's lock."""


class Unit(NamedTuple):
    """One source, its compiler and its flags; ``headers`` are the flags that say where headers are.

    ``search`` are the folders with the author's and polyop's headers, in the order of the search. ``tier``
    says which of PyTorch's headers the source gets, None for none of them. ``folder`` is the working
    directory if it matters (relative paths in flags, debug information), else "".
    """

    source: Source
    compiler: Compiler
    flags: tuple[str, ...]
    headers: tuple[str, ...]
    search: tuple[str, ...]
    tier: Tier | None
    folder: str

    @property
    def may_release_lock(self) -> bool:
        """Whether it may release Python's lock, which the thread that calls it need not hold."""
        return _may_release_lock(self.source, self.tier)

    @property
    def request(self) -> list[Any]:
        """Its part of the cache's key."""
        return [self.source.path, self.compiler.identity, self.flags, self.headers]

    def command(self, output: Path, depfile: Path, first: Sequence[str] = ()) -> list[str]:
        """Return the compile command, with the flags ``first`` before all others."""
        names = ["-MD", "-MF", str(depfile), "-MT", "object", "-c", self.source.path, "-o", str(output)]
        return [*self.compiler.command, *first, *self.headers, *self.flags, *names]


class Plan(NamedTuple):
    """The commands of a whole build. ``torch`` is None for a build without PyTorch."""

    units: tuple[Unit, ...]
    linker: Compiler
    link_flags: tuple[str, ...]
    torch: LibTorch | None
    folder: str
    """As that of a unit, for the linker too."""

    @property
    def request(self) -> dict[str, Any]:
        """The part of the cache's key that is known before the build; the rest is the inputs' content."""
        units = [unit.request for unit in self.units]
        return {**self._around, "units": units, "link": [self.linker.identity, self.link_flags]}

    def object_request(self, unit: Unit) -> dict[str, Any]:
        """Return the same for the object of one unit: neither the linker nor another unit changes it."""
        return {**self._around, "object": unit.request, "folder": unit.folder}

    @property
    def _around(self) -> dict[str, Any]:
        """What changes every result of this build."""
        return {
            "recipe": RECIPE,
            "abi": ABI_VERSION,
            "torch": [self.torch.version, self.torch.commit] if self.torch else None,
            "environment": {name: os.environ.get(name) for name in _ENVIRONMENT},
            "folder": self.folder,
        }

    def link_command(self, objects: Sequence[Path], output: Path) -> list[str]:
        """Return the command that links the objects."""
        return [*self.linker.command, "-o", str(output), *map(str, objects), *self.link_flags]


def make_plan(sources: Sequence[Source], options: BuildOptions, name: str, tier: Tier | None = None) -> Plan:
    """Return the plan of a build. ``name`` is the library's, for MS_EXTENSION_NAME and TORCH_EXTENSION_NAME.

    Without a ``tier`` each source gets the smallest one that it needs, so that an edit of one source does not
    change the flags of the others.
    Raises ``BuildError`` if a compiler or PyTorch is missing, or if they do not fit together.
    """
    _check_hip(sources, options)
    users = [s for s in sources if s.uses_pytorch] if options.torch is None else list(sources)
    torch = None
    if users and options.torch is not False:
        from . import libtorch

        torch = libtorch.find(users[0].path)
        for source in users:
            if source.language == "cuda":
                torch.check_cuda(source.path, compilers.find("cuda"))
    _check_file_flags(sources, options)
    ascend = any(has(_ASCEND_SOURCE, source.text) for source in sources)
    units = tuple(_unit(source, options, torch, tier, name, ascend) for source in sources)
    languages = {source.language for source in sources}
    main = next((one for one in ("cuda", "hip", "c++") if one in languages), "c++" if torch else "c")
    linker = next((u.compiler for u in units if u.source.language == main), None) or compilers.find(main)
    flags = [*options.flags, *options.link_flags, "-lm"]
    if any(unit.may_release_lock for unit in units):
        flags.append("-Wl,--wrap=PyEval_SaveThread,--wrap=PyEval_RestoreThread")  # python_unlocked.h has them
    if torch is not None:
        python = any(unit.tier.python for unit in units if unit.tier)
        flags += torch.link_flags(python=python, cuda=main == "cuda", run_path=options.run_path)
    if main == "cuda":
        from . import cuda

        flags = [*cuda.host_compiler(), "-shared", *(part for flag in flags for part in cuda.link_flag(flag))]
    else:
        flags = ["-shared", "-fPIC", *flags]
    folder = os.getcwd() if options.link_flags or any(unit.folder for unit in units) else ""
    return Plan(units, linker, tuple(flags), torch, folder)


def _check_hip(sources: Sequence[Source], options: BuildOptions) -> None:
    """Raise ``BuildError`` for what a build with a HIP source cannot have."""
    found = next((source.path for source in sources if source.language == "hip"), None)
    if found is None:
        return
    if any(source.language == "cuda" for source in sources):
        raise BuildError(
            found, "is HIP, and other sources of this build are CUDA", hint="build two libraries"
        )
    users = [f"{source.path} includes PyTorch's headers" for source in sources if source.uses_pytorch]
    if users or options.torch:
        rule = f"is HIP, and {users[0] if users else 'torch=True'}: PyTorch for ROCm is not supported"
        raise BuildError(found, rule)
    if options.cuda_architectures:
        hint = 'HIPCXX="hipcc --offload-arch=gfx90a"'
        raise BuildError(found, "is HIP, and CUDA architectures are given", hint=hint)


def _check_file_flags(sources: Sequence[Source], options: BuildOptions) -> None:
    paths = {source.path for source in sources}
    for path, _ in options.file_flags:
        if path not in paths:
            hint = f"the sources are {', '.join(source.path for source in sources)}"
            raise BuildError("file_flags", "must name sources of this build", path, hint=hint)


def _unit(
    source: Source,
    options: BuildOptions,
    torch: LibTorch | None,
    tier: Tier | None,
    name: str,
    ascend: bool,
) -> Unit:
    compiler = compilers.find(source.language)
    headers = include_folder()
    search = [*options.include_paths, os.path.dirname(source.path), headers, f"{headers}/polyop"]
    uses_torch = torch is not None and source.language != "c"
    standard = "c11" if source.language == "c" else torch.standard if torch and uses_torch else "c++17"
    flags = [
        *(["-O0", "-g"] if options.debug else ["-O3"]),
        f"-std={standard}",
        "-fPIC",
        "-fvisibility=default",
    ]
    if uses_torch and not options.debug:
        # PyTorch's own extensions are built so too: its headers assert in constant expressions
        flags.append("-DNDEBUG")
    given = options.flags_of(source.path)
    flags += [flag for flag in given if _fits(flag, source.language)]
    header_flags = [f"-I{folder}" for folder in search]
    if "MS_EXTENSION_NAME" in source.text and not any("MS_EXTENSION_NAME" in flag for flag in given):
        header_flags.append(f"-DMS_EXTENSION_NAME={_identifier(name)}")
    tier = _tier(source, tier) if uses_torch else None
    if torch is not None and tier is not None:
        header_flags += [*torch.header_flags(tier), *_extension_name(source, given, name)]
        if has(_ASCEND_SOURCE, source.text):
            header_flags += ["-include", f"{headers}/polyop/pytorch_npu_helper.hpp"]
        if ascend and _MODULE in source.text:
            header_flags += ["-include", f"{headers}/polyop/npu/module.h"]
    if _may_release_lock(source, tier):
        header_flags += ["-include", f"{headers}/polyop/python_unlocked.h"]
    if source.language == "cuda":
        from . import cuda

        flags = [part for flag in flags for part in cuda.compile_flag(flag)]
        flags += [*cuda.architecture_flags(compiler, options.cuda_architectures), *cuda.host_compiler()]
        flags += [*(["-G"] if options.debug else []), *(["--expt-relaxed-constexpr"] if uses_torch else [])]
    folder = os.getcwd() if given or options.debug else ""
    return Unit(source, compiler, tuple(flags), tuple(header_flags), tuple(search), tier, folder)


def _may_release_lock(source: Source, tier: Tier | None) -> bool:
    return (tier is not None and tier.python) or has(_RELEASES_LOCK, source.text)


def _tier(source: Source, tier: Tier | None) -> Tier:
    from .libtorch import tier_of

    return tier or tier_of(source.text)


def _extension_name(source: Source, given: Sequence[str], name: str) -> list[str]:
    """Return the flag that names a Python module. Raises ``BuildError`` if Python cannot import that name."""
    macro = "TORCH_EXTENSION_NAME"
    if macro not in source.text or any(macro in flag for flag in given):
        return []
    import keyword

    if not name.isidentifier() or keyword.iskeyword(name):
        rule = f"is a Python module ({macro}), and the library's name must be one that import takes"
        raise BuildError(source.path, rule, repr(name), hint=f"as in -o {_identifier(name)}.so")
    return [f"-D{macro}={name}"]


def _identifier(name: str) -> str:
    """Return the name of a library, changed into a valid name of a Python module.

    >>> _identifier("my-ops"), _identifier("2d"), _identifier("import")
    ('my_ops', '_2d', 'import_')
    """
    import keyword

    identifier = re.sub(r"\W|^(?=\d)", "_", name)
    return f"{identifier}_" if keyword.iskeyword(identifier) else identifier


def _fits(flag: str, language: str) -> bool:
    """Whether a flag is for this language: a -std= flag of C is not for C++, and vice versa."""
    match = re.match(_STANDARD, flag)
    return match is None or (match[1] is None) == (language == "c")
