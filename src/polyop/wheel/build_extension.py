"""setuptools' command ``build_ext`` for operators: polyop compiles them, one wheel serves all Pythons."""

from __future__ import annotations

import json
import shutil
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
from ..loops.library.tuned import SUFFIX
from . import wrappers
from .extension import OperatorExtension
from .information import FILE, describe, record, with_dims
from .loop_extension import LoopExtension
from .platforms import platform_tag


class BuildExtension(build_ext):  # type: ignore[misc]
    """Builds ``OperatorExtension`` and ``LoopExtension`` of a setup.py; setuptools builds all others.

    A wheel without other extensions has the tag ``py3-none`` and the oldest platform that its
    libraries run on, or that of ``--plat-name``. Sources that include PyTorch's headers become a
    module with the extension's name, as PyTorch's own command makes it; that wheel is for one Python.
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
        built = [self._build(one) for one in extensions if not _uses_pytorch(one)]
        for_pytorch = [self._build_for_pytorch(one) for one in extensions if _uses_pytorch(one)]
        built += self._build_loops()
        with self._others() as others:
            if others:
                super().run()
        if built and not (for_pytorch or others):
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
        if extension.names or extension.docs or extension.dims:
            rule = "names, docs and dims are not for PyTorch's sources: a module names its own functions"
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
        mine += [path for file in modules for path in file.parent.glob(f"{file.name}{SUFFIX}")]
        with self._others() as others:
            return [*map(str, mine), *(super().get_outputs() if others else [])]

    def get_output_mapping(self) -> dict[str, str]:
        """Return the files that setuptools copies; libraries of operators are built in their final place."""
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
            chosen = (wheel.plat_name if wheel.plat_name_supplied else "") or tag
            return "py3", "none", chosen.replace("-", "_").replace(".", "_")

        wheel.get_tag = get_tag


def _link_flags(extension: OperatorExtension) -> list[str]:
    """Return the linker's flags, with the GPUs: nvcc would link device code for its default one."""
    flags = extension.link_flags()
    if extension.cuda_architectures and any(str(path).endswith(".cu") for path in extension.sources):
        flags += architecture_flags(compilers.find("cuda"), extension.cuda_architectures)
    return flags


def _uses_pytorch(extension: OperatorExtension) -> bool:
    sources = gather(extension.sources, None, "c++", extension.include_dirs)
    return any(source.uses_pytorch for source in sources)
