"""setuptools' ``build_ext`` for operator libraries: compiled by polyop, one wheel for all Pythons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setuptools.command.build_ext import build_ext

from ..binary.elf import read
from ..build import build, compilers
from ..build.cuda import architecture_flags
from ..build.paths import include_folder
from ..build.sources import gather
from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..loops.library.shipped import FOLDER
from . import wrappers
from .extension import OperatorExtension
from .information import FILE, describe, record
from .loop_extension import LoopExtension
from .platforms import platform_tag


class BuildExtension(build_ext):  # type: ignore[misc]
    """Builds ``OperatorExtension`` and ``LoopExtension`` of a setup.py; others are left to setuptools.

    A wheel with nothing else in it is tagged ``py3-none`` and with the oldest platform that its
    libraries run on; ``--plat-name`` gives another. Sources that include PyTorch's headers become a
    module of the extension's name, as with PyTorch's own command; its wheel is for one Python.
    """

    extensions: list[Any]

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """Return the command with options: ``use_ninja`` and ``no_python_abi_suffix`` change nothing here.

        Raises ``ArgumentTypeError`` for another.
        """
        unknown = set(options) - {"use_ninja", "no_python_abi_suffix"}
        if unknown:
            rule = "with_options takes use_ninja and no_python_abi_suffix"
            raise ArgumentTypeError("BuildExtension", rule, min(unknown))
        return cls

    def run(self) -> None:
        """Build all, and tag the wheel."""
        mine = [one for one in self.extensions if isinstance(one, OperatorExtension)]
        built = [self._build(one) for one in mine if not _uses_pytorch(one)]
        for_pytorch = [self._build_for_pytorch(one) for one in mine if _uses_pytorch(one)]
        built += self._build_loops()
        with self._others() as others:
            if others:
                super().run()
        if built and not (for_pytorch or others):
            self._tag(built)

    @contextmanager
    def _others(self) -> Iterator[list[Any]]:
        """While this is open, the extensions are those that setuptools builds."""
        every = self.extensions
        self.extensions = [one for one in every if not isinstance(one, (OperatorExtension, LoopExtension))]
        try:
            yield self.extensions
        finally:
            self.extensions = every

    def _build_loops(self) -> list[Path]:
        """Compile the loop kernels, last: their modules may import the operators; return the libraries."""
        mine = [one for one in self.extensions if isinstance(one, LoopExtension)]
        if not mine:
            return []
        if not (self.inplace or self.editable_mode):
            self._build_modules()
        from .loop_build import compile_module

        return [path for one in mine for path in compile_module(one, *self._module(one.name))]

    def _build_modules(self) -> None:
        """Copy the project's modules to where the extensions are built, ``build_ext -b DIR`` included."""
        if Path(self.get_finalized_command("build_py").build_lib) == Path(self.build_lib):
            self.run_command("build_py")
            return
        copy = self.distribution.get_command_class("build_py")(self.distribution)
        copy.build_lib = self.build_lib
        copy.ensure_finalized()
        copy.run()

    def _module(self, name: str) -> tuple[Path, Path]:
        """Return the file of a module where it is built, and the folder that it is imported from."""
        folder = self._folder(name)
        file = folder / "__init__.py" if folder.is_dir() else folder.with_name(f"{folder.name}.py")
        return file, folder.parents[name.count(".")]

    def _build(self, extension: OperatorExtension) -> Path:
        """Write the package of one extension and return its library."""
        folder = self._folder(extension.name)
        folder.mkdir(parents=True, exist_ok=True)
        root = Path.cwd()
        maps = {f"{root}/": "", f"{include_folder()}/": ""}  # no path of the builder in the wheel
        library = build(
            extension.sources,
            flags=[
                *(f"-ffile-prefix-map={old}={new}" for old, new in maps.items()),
                *extension.compile_flags(),
            ],
            link_flags=[*_link_flags(extension), *([] if extension.debug else ["-Wl,-s"])],
            include_paths=extension.include_dirs,
            debug=extension.debug,
            cuda_architectures=extension.cuda_architectures,
            torch=False,
            output=folder / f"lib{extension.name.rpartition('.')[2].lstrip('_')}.so",
        )
        operators = describe(library, extension.names)
        texts = {
            "__init__.py": wrappers.module(library.name, operators, extension.docs),
            "__init__.pyi": wrappers.stubs(library.name, operators, extension.docs),
            "py.typed": "",
            FILE: json.dumps(record(library, operators), indent=2) + "\n",
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        return library

    def _build_for_pytorch(self, extension: OperatorExtension) -> Path:
        """Write the library of sources for PyTorch: a module for this Python, and this PyTorch."""
        if extension.names or extension.docs:
            rule = (
                "names and docs are for sources without PyTorch's headers: a module names its own functions"
            )
            raise ArgumentValueError(f"OperatorExtension {extension.name}", rule)
        path = self._folder(extension.name).parent / Path(self.get_ext_filename(extension.name)).name
        path.parent.mkdir(parents=True, exist_ok=True)
        return build(
            extension.sources,
            flags=[f"-ffile-prefix-map={Path.cwd()}/=", *extension.compile_flags()],
            link_flags=[*_link_flags(extension), "-Wl,-rpath,$ORIGIN/torch/lib"],
            include_paths=extension.include_dirs,
            debug=extension.debug,
            cuda_architectures=extension.cuda_architectures,
            output=path,
        )

    def _folder(self, name: str) -> Path:
        if not (self.inplace or self.editable_mode):
            return Path(self.build_lib, *name.split("."))
        package, _, last = name.rpartition(".")
        return Path(self.get_finalized_command("build_py").get_package_dir(package), last)

    def get_outputs(self) -> list[str]:
        """Return the files that are written."""
        folders = [self._folder(one.name) for one in self.extensions if isinstance(one, OperatorExtension)]
        mine = [path for one in folders for path in [*one.glob("*"), *one.parent.glob(f"{one.name}.*so")]]
        modules = [self._module(one.name)[0] for one in self.extensions if isinstance(one, LoopExtension)]
        mine += [path for folder in {file.parent / FOLDER for file in modules} for path in folder.glob("*")]
        with self._others() as others:
            return [*map(str, mine), *(super().get_outputs() if others else [])]

    def get_output_mapping(self) -> dict[str, str]:
        """Return what setuptools copies; libraries of operators are built where they are used."""
        with self._others() as others:
            mapping: dict[str, str] = super().get_output_mapping() if others else {}
            return mapping

    def _tag(self, libraries: list[Path]) -> None:
        wheel = self.distribution.get_command_obj("bdist_wheel")
        files = [read(path) for path in libraries]
        own = {path.name for path in libraries}
        needed = [name for file in files for name in file.needed if name not in own]
        tag = platform_tag(files[0].machine, [one for file in files for one in file.versions], needed)

        def get_tag() -> tuple[str, str, str]:
            given = wheel.plat_name if wheel.plat_name_supplied else None
            return "py3", "none", (given or tag).replace("-", "_").replace(".", "_")

        wheel.get_tag = get_tag


def _link_flags(extension: OperatorExtension) -> list[str]:
    """Return the linker's flags; nvcc links device code for its own default where nothing is said."""
    flags = extension.link_flags()
    if extension.cuda_architectures and any(str(path).endswith(".cu") for path in extension.sources):
        flags += architecture_flags(compilers.find("cuda"), extension.cuda_architectures)
    return flags


def _uses_pytorch(extension: OperatorExtension) -> bool:
    sources = gather(extension.sources, None, "c++", extension.include_dirs)
    return any(source.uses_pytorch for source in sources)
