"""``CustomOpBuilder``: build a module of operators from C++ sources, with MindSpore's names and rules."""

from __future__ import annotations

import hashlib
import keyword
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import locks
from ...core.errors import ArgumentValueError, BuildError, SchemaError
from ...core.origin import Origin, caller
from ..op_def.op_def import OperatorDef
from . import pybind, sanitizer
from .builder_options import Options, checked
from .module import OperatorModule, numpy_like

_HEADER_OF_PYTORCH = (
    r"error: '?((?:torch|ATen|c10)/[^\s:']+)'?:? (?:No such file|file not found)"  # gcc's words, and clang's
)
DEVICES = {"CPU": "cpu", "GPU": "cuda", "Ascend": "cpu"}


@dataclass
class _Loaded:
    digest: str
    sources: tuple[str, ...]
    origin: Origin | None
    rules: tuple[dict[str, Any], Any]
    device: str
    definitions: tuple[OperatorDef, ...]
    module: OperatorModule


_loaded: dict[str, _Loaded] = {}


class CustomOpBuilder:
    """Builds C++ (or CUDA) sources into a module and loads it.

    ``name``          the module's name, which MS_EXTENSION_NAME in ``PYBIND11_MODULE(MS_EXTENSION_NAME, m)``
                      stands for; its operators are ``name::function``.
    ``sources``       a path or a list of paths.
    ``backend``       "CPU" (the default), "GPU" for CUDA, or "Ascend": that runs with CANN where it is
                      installed, and with ``POLYOP_ASCEND=rehearse`` on the CPU.
    ``include_paths`` folders with headers.
    ``cflags``, ``ldflags``  options of the compiler and the linker, one str each.
    ``build_dir``     a folder that gets a copy of the library, ``<name>.so``.
    ``debug_mode``    build with ``-g -O0``.
    ``sanitize``      sanitisers of the compiler, as "address,undefined".
    ``op_def``        YAML files with signatures; ``op_doc``: YAML files with their documentation.
    ``enable_atb``, ``enable_asdsip``  need CANN's libraries, and backend "Ascend".

    The ``get_*`` methods return the sources and options of the build; a subclass may override them. Raises
    ``ArgumentTypeError`` and ``ArgumentValueError`` for arguments of a wrong type or value.

    >>> CustomOpBuilder("my_ops", ["ops.cpp"], backend="CPU").get_cflags()
    '-DMS_EXTENSION_NAME=my_ops -O2'
    """

    def __init__(
        self,
        name: str,
        sources: Any,
        backend: str | None = None,
        include_paths: Any = None,
        cflags: str | None = None,
        ldflags: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.origin = caller()
        self.options: Options = checked(
            self.origin,
            name=name,
            sources=sources,
            backend=backend,
            include_paths=include_paths,
            cflags=cflags,
            ldflags=ldflags,
            **kwargs,
        )
        self.name, self.backend = name, self.options.backend
        if not name.isidentifier() or keyword.iskeyword(name):
            rule = "must be an identifier, as it names a module and a namespace"
            raise ArgumentValueError("For 'CustomOpBuilder', the 'name'", rule, repr(name), where=self.origin)

    def get_sources(self) -> list[str]:
        """Return the paths of the sources, and of the generated one that binds the operators of op_def."""
        return [*self.options.sources, *self._get_op_def()]

    def get_include_paths(self) -> list[str]:
        """Return the folders with the author's headers; those of polyop are added to them."""
        return list(self.options.include_paths)

    def get_cflags(self) -> str:
        """Return the compiler's flags, as one text; the author's come last."""
        flags = [f"-DMS_EXTENSION_NAME={self.name}"]
        flags += [] if self.options.debug_mode else ["-O2"]
        flags += ["-DCUSTOM_ASCEND_OP"] if self.backend == "Ascend" else []
        flags += [f"-fsanitize={self.options.sanitize}"] if self.options.sanitize else []
        flags += [self.options.cflags] if self.options.cflags else []
        return " ".join(flags)

    def get_ldflags(self) -> str:
        """Return the linker's flags, as one text."""
        flags = [f"-fsanitize={self.options.sanitize}"] if self.options.sanitize else []
        flags += [self.options.ldflags] if self.options.ldflags else []
        return " ".join(flags)

    def build(self) -> str:
        """Build the library if anything has changed, and return its path.

        With ``build_dir`` that is ``<build_dir>/<name>.so``. Raises ``BuildError`` with the
        compiler's own text, ``HostError`` for a backend this machine does not have.
        """
        from ...build import build

        self._check_backend()
        folder = self.options.build_dir
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
        try:
            built = build(
                self.get_sources(),
                flags=[*shlex.split(self.get_cflags()), *self._pybind_flags()],
                link_flags=shlex.split(self.get_ldflags()),
                include_paths=self.get_include_paths(),
                debug=self.options.debug_mode,
                torch=False,
                output=Path(folder) / f"{self.name}.so" if folder else None,
            )
        except BuildError as problem:
            header = re.search(_HEADER_OF_PYTORCH, str(problem))
            if header is not None:
                raise self._needs_pytorch(header[1], str(problem)) from None
            if "multiple definition of `polyop_module'" not in str(problem):
                raise
            rule = "several sources have a PYBIND11_MODULE, and a module may have only one"
            raise BuildError(f"module {self.name}", rule, where=", ".join(self.get_sources())) from None
        return str(built)

    def _needs_pytorch(self, header: str, problem: str) -> BuildError:
        """Return the error for a source of a PyTorch extension; it says which way takes such sources."""
        where = re.search(r"defined at (.+)", problem)
        paths = ", ".join(map(repr, self.get_sources()))
        sources = paths if len(self.get_sources()) == 1 else f"[{paths}]"
        rule = "is compiled without the headers of PyTorch, because it runs under every framework"
        hint = (
            f"polyop.load_library({sources}) takes a PyTorch extension that registers its operators by "
            "TORCH_LIBRARY; one that has only a PYBIND11_MODULE needs these registrations too: "
            'TORCH_LIBRARY(my, m) { m.def("f(Tensor x) -> Tensor"); } and TORCH_LIBRARY_IMPL(my, CPU, m) '
            '{ m.impl("f", &f); }; a module of polyop includes ms_extension.h instead'
        )
        subject, place = f"module {self.name}", where[1] if where else self.origin
        return BuildError(subject, rule, f"#include <{header}>", where=place, hint=hint)

    def load(self, *, infer: Mapping[str, Any] | None = None, dims: Mapping[str, Any] | None = None) -> Any:
        """Return the :class:`OperatorModule`, built if necessary.

        If the sources include pybind11, the result is a Python module of plain functions instead.
        ``infer`` has infer rules, as :func:`polyop.operator` takes them, by the names of functions whose
        shapes depend on data. ``dims`` has the dimensions of functions, by their names: a text, or a mapping
        of the keywords ``dims``, ``parallel``, ``sum``, ``max``, ``min`` and ``halo`` of
        :func:`polyop.operator`, and of ``infer``, which gives the dtypes there. A function has a rule in
        ``infer`` or in ``dims``, not in both.

        The same library gives the same object; one that was built again, or that is loaded with other
        rules, replaces the operators. Raises as :meth:`build` does, ``LibraryError`` for a library that is
        no module, ``SchemaError`` when another module has the name, or for dimensions that do not fit a
        function, ``HostError`` for a module with AddressSanitizer in a Python that was started without it.
        """
        path = Path(self.build())
        sanitizer.check(f"module {self.name}", f"{self.get_cflags()} {self.get_ldflags()}", self.origin)
        if pybind.includes_pybind11(self.get_sources()):
            return self._plain_functions(path, dims)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        sources = tuple(str(Path(source).resolve()) for source in self.get_sources())
        rules = (dict(infer or {}), dims)
        definitions = self._definitions()
        device = DEVICES[self.backend or "CPU"]
        made_from = (digest, rules, device, definitions)
        with locks.define:
            old = _loaded.get(self.name)
            if old is not None and (old.digest, old.rules, old.device, old.definitions) == made_from:
                return old.module.in_mode(self._graph_mode())
            if old is not None and old.sources != sources:
                rule = "the name is taken by the module loaded at " + str(old.origin)
                hint = f"that one is built from {', '.join(old.sources)}; choose another name"
                raise SchemaError(f"module {self.name}", rule, where=self.origin, hint=hint)
            if old is not None:
                old.module.retire()
            module = OperatorModule(
                self.name,
                path,
                device=device,
                infer=rules[0],
                dims=dims,
                origin=self.origin,
                like=self._like(),
                graph_mode=self._graph_mode(),
                definitions=definitions,
            )
            _loaded[self.name] = _Loaded(digest, sources, self.origin, rules, device, definitions, module)
        return module

    def _plain_functions(self, path: Path, dims: Any) -> Any:
        if dims:
            rule = "includes pybind11, so it has plain functions, which take no dims="
            raise ArgumentValueError(f"module {self.name}", rule, where=self.origin)
        return pybind.load(self.name, path, self.origin)

    def _graph_mode(self) -> Callable[[], bool] | None:
        """Return a function that tells whether graph mode is on; None outside MindSpore-style scripts."""
        return None

    def _definitions(self) -> tuple[OperatorDef, ...]:
        """Return the operators of op_def; raises ``ArgumentValueError`` and ``FileNotFoundError``."""
        if not self.options.op_def and not self.options.op_doc:
            return ()
        from ..op_def.read import read_op_defs, read_op_docs, with_docs

        operators = read_op_defs(self.options.op_def)
        return with_docs(operators, read_op_docs(self.options.op_doc, [one.name for one in operators]))

    def _get_op_def(self) -> list[str]:
        """Write the C++ and Python files for op_def; return the paths of the C++ sources.

        The folder is ``<name>_auto_generate``, in ``build_dir`` or in the build cache.
        """
        definitions = self._definitions()
        if not definitions:
            return []
        from ...binary import trust
        from ...build.paths import cache_dir
        from ..op_def.write import write

        files = "\n".join((self.name, *(str(Path(file).resolve()) for file in self.options.op_def)))
        name = f"{self.name}-{hashlib.sha256(files.encode()).hexdigest()[:16]}"
        if not self.options.build_dir:
            trust.check_cache(str(cache_dir()))
        parent = Path(self.options.build_dir) if self.options.build_dir else cache_dir() / "generated" / name
        return [str(write(parent / f"{self.name}_auto_generate", self.name, definitions)[0])]

    def _pybind_flags(self) -> list[str]:
        sources = self.get_sources()
        return pybind.flags(self.name, self.origin) if pybind.includes_pybind11(sources) else []

    def _like(self) -> Callable[[], Any]:
        return numpy_like

    def _check_backend(self) -> None:
        if self.backend == "Ascend":
            from ...providers.aclnn.rehearsal import ascend

            ascend()
        self.options.check_cann(self.origin)
