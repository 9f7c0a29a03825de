"""setuptools' command ``build_ext`` for operators: polyop compiles them, one wheel serves all Pythons."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setuptools.command.build_ext import build_ext

from ..binary.elf import python_modules, read
from ..build import build, compilers
from ..build.cuda import architecture_flags
from ..build.paths import include_folder
from ..build.show import line_per_file
from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..loops.library.shipped import FOLDER
from ..loops.library.tuned import SUFFIX
from . import for_pytorch as pytorch
from . import requirement, wrappers
from .extension import OperatorExtension
from .information import FILE, Described, describe, record, with_dims
from .loop_extension import LoopExtension
from .platforms import platform_tag


class BuildExtension(build_ext):  # type: ignore[misc]
    """Builds ``OperatorExtension`` and ``LoopExtension`` of a setup.py; setuptools builds all others.

    A wheel without other extensions has the tag ``py3-none`` and the oldest platform that its
    libraries run on, or that of ``--plat-name``. Sources that include PyTorch's headers and bind functions
    become a module with the extension's name, as PyTorch's own command makes it; that wheel is for one
    Python. A wheel with code for PyTorch requires the PyTorch that it was compiled for.
    """

    extensions: list[Any]

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """Return the command. It accepts ``use_ninja`` and ``no_python_abi_suffix`` and ignores them.

        Raises ``ArgumentTypeError`` for any other option.
        """
        unknown = set(options) - {"use_ninja", "no_python_abi_suffix"}
        if unknown:
            rule = "with_options takes use_ninja and no_python_abi_suffix"
            raise ArgumentTypeError("BuildExtension", rule, min(unknown))
        return cls

    def run(self) -> None:
        """Build all, and tag the wheel."""
        extensions = [one for one in self.extensions if isinstance(one, OperatorExtension)]
        with line_per_file():
            for_pytorch = [one for one in extensions if pytorch.uses_pytorch(one)]
            built = [self._build(one) for one in extensions if one not in for_pytorch]
            built += [self._build_for_pytorch(one) for one in for_pytorch]
        built += self._build_loops()
        with self._others() as others:
            if others:
                super().run()
        if for_pytorch:
            self._require_pytorch()
        if built and not (others or any(requirement.needs_python(read(path)) for path in built)):
            self._tag(built)

    @contextmanager
    def _others(self) -> Iterator[list[Any]]:
        """Within this context, ``self.extensions`` holds only those that setuptools builds."""
        extensions = self.extensions
        self.extensions = [
            one for one in extensions if not isinstance(one, (OperatorExtension, LoopExtension))
        ]
        try:
            yield self.extensions
        finally:
            self.extensions = extensions

    def _build_loops(self) -> list[Path]:
        """Compile the loop kernels and return the libraries; last, as their modules may import operators."""
        extensions = [one for one in self.extensions if isinstance(one, LoopExtension)]
        if not extensions:
            return []
        if not (self.inplace or self.editable_mode):
            self._build_modules()
            for one in extensions:
                self._copy_tuned(one.name)
        from .loop_build import compile_module

        return [path for one in extensions for path in compile_module(one, *self._module(one.name))]

    def _build_modules(self) -> None:
        """Copy the project's modules into the build folder, also into that of ``build_ext -b DIR``."""
        if Path(self.get_finalized_command("build_py").build_lib) == Path(self.build_lib):
            self.run_command("build_py")
            return
        copy = self.distribution.get_command_class("build_py")(self.distribution)
        copy.build_lib = self.build_lib
        copy.ensure_finalized()
        copy.run()

    def _copy_tuned(self, name: str) -> None:
        """Copy the schedules that ``polyop tune`` kept beside a module, or remove those of an old build."""
        file, _ = self._module(name)
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        source = Path(self.get_finalized_command("build_py").get_package_dir(package), f"{file.name}{SUFFIX}")
        target = file.with_name(source.name)
        if source.is_file():
            shutil.copyfile(source, target)
        else:
            target.unlink(missing_ok=True)

    def _module(self, name: str) -> tuple[Path, Path]:
        """Return the file of a module in the build folder, and the folder that it is imported from."""
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
        operators = with_dims(describe(library, extension.names), extension.dims)
        self._write_package(extension, library, operators)
        return library

    def _write_package(
        self, extension: OperatorExtension, library: Path, operators: list[Described], torch: str = ""
    ) -> None:
        """Write the files beside a library; ``torch`` is the version of PyTorch that it is for, if it is."""
        texts = {
            "__init__.py": wrappers.module(library.name, operators, extension.docs, torch),
            "__init__.pyi": wrappers.stubs(library.name, operators, extension.docs),
            "py.typed": "",
            FILE: json.dumps(record(library, operators, torch), indent=2) + "\n",
        }
        for name, text in texts.items():
            (library.parent / name).write_text(text, encoding="utf-8")

    def _build_for_pytorch(self, extension: OperatorExtension) -> Path:
        """Write the library of sources for PyTorch, and return it.

        Sources that bind functions for Python become a module for this Python. Sources that only register
        operators, by TORCH_LIBRARY, become a package that loads the library for every framework.
        """
        subject, last = f"OperatorExtension {extension.name}", extension.name.rpartition(".")[2]
        if extension.docs or extension.dims:
            rule = "docs and dims are not for PyTorch's sources, which register their own"
            raise ArgumentValueError(subject, rule)
        if pytorch.binds_python(extension):
            path = self._folder(extension.name).parent / Path(self.get_ext_filename(extension.name)).name
            library = self._compile_for_pytorch(extension, path, package=False)
            modules = python_modules(read(library))
            if modules and last not in modules:
                rule = f"its PYBIND11_MODULE must be called {last}, which is imported"
                hint = "write PYBIND11_MODULE(TORCH_EXTENSION_NAME, m): the build fills the name in"
                raise ArgumentValueError(subject, rule, modules[0], hint=hint)
            if modules and extension.names:
                rule = "names are not for a module of Python, which names its own functions"
                raise ArgumentValueError(subject, rule)
            if modules:
                return library
            library.unlink()
        path = self._folder(extension.name) / f"lib{last.lstrip('_')}.so"
        library = self._compile_for_pytorch(extension, path, package=True)
        operators = pytorch.describe(library, extension.names)
        self._write_package(extension, library, operators, pytorch.version())
        return library

    def _compile_for_pytorch(self, extension: OperatorExtension, path: Path, *, package: bool) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        here = self.inplace or self.editable_mode  # PyTorch is elsewhere
        return build(
            extension.sources,
            flags=[f"-ffile-prefix-map={Path.cwd()}/=", *extension.compile_flags()],
            link_flags=_link_flags(extension),
            include_paths=extension.include_dirs,
            debug=extension.debug,
            cuda_architectures=extension.cuda_architectures,
            run_path=None if here else pytorch.run_path(extension.name, package=package),
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
        mine += [path for file in modules for path in file.parent.glob(f"{file.name}{SUFFIX}")]
        with self._others() as others:
            return [*map(str, mine), *(super().get_outputs() if others else [])]

    def get_output_mapping(self) -> dict[str, str]:
        """Return the files that setuptools copies; libraries of operators are built in their final place."""
        with self._others() as others:
            mapping: dict[str, str] = super().get_output_mapping() if others else {}
            return mapping

    def _require_pytorch(self) -> None:
        """Let the wheel require the PyTorch that its libraries are compiled for."""
        wheel = self.distribution.get_command_obj("bdist_wheel")
        write, version = wheel.write_wheelfile, pytorch.version()

        def write_wheelfile(folder: str, *args: Any, **kwargs: Any) -> None:
            requirement.require(Path(folder, "METADATA"), version)
            write(folder, *args, **kwargs)

        wheel.write_wheelfile = write_wheelfile

    def _tag(self, libraries: list[Path]) -> None:
        wheel = self.distribution.get_command_obj("bdist_wheel")
        files = [read(path) for path in libraries]
        inside = {path.name for path in libraries}
        needed = [name for file in files for name in file.needed if name not in inside]
        needed = [name for name in needed if not requirement.is_pytorchs(name)]  # the wheel requires it
        tag = platform_tag(files[0].machine, [one for file in files for one in file.versions], needed)

        def get_tag() -> tuple[str, str, str]:
            chosen = (wheel.plat_name if wheel.plat_name_supplied else "") or tag
            return "py3", "none", chosen.replace("-", "_").replace(".", "_")

        wheel.get_tag = get_tag


def _link_flags(extension: OperatorExtension) -> list[str]:
    """Return the linker's flags, with the GPUs: nvcc would link device code for its default one."""
    flags = extension.link_flags()
    if extension.cuda_architectures and any(str(path).endswith(".cu") for path in extension.sources):
        flags += architecture_flags(compilers.find("cuda"), extension.cuda_architectures)
    return flags
