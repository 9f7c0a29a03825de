"""The ATen toolkit: what it takes to compile and link against the installed PyTorch.

PyTorch is found without importing it. Its heaviest headers are left out where the sources do
not use them (:class:`Tier`), which makes a build several times faster; a build that fails for
lack of a name is tried again with all of them.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import BuildError
from .compilers import Compiler
from .paths import include_dir

_PYTHON_WORDS = (
    r"\bpy::|pybind11|PYBIND11_|\bPy(?:_|Object\b|[A-Z][A-Za-z]+_)|\bTHP|torch::python|torch/csrc/\w*python"
)
_NN_WORDS = r"torch::(?:nn|optim|data|jit|serialize|save|load|pickle_\w+|mps|xpu|OrderedDict)\b|torch/csrc/"
_LIBRARY_WORDS = (
    r"AutogradContext|GradMode|NoGradGuard|InferenceMode|InterOp"
    r"|torch::(?:autograd|cuda|enumtype|fft|linalg|sparse|special|nested|manual_seed|[gs]et_num_\w+)\b"
)


@dataclass(frozen=True, slots=True)
class Tier:
    """How much of ``torch/extension.h`` sources need: folders that stand before it, and Python or not."""

    instead: tuple[str, ...]
    python: bool


TENSORS = Tier(("tensors_only", "without_python"), python=False)
EVERYTHING = Tier((), python=True)


@dataclass(frozen=True, slots=True)
class LibTorch:
    """An installed PyTorch: its folder, version, the git commit, and the CUDA it was built for or None."""

    root: Path
    version: str
    commit: str
    cuda: str | None

    @property
    def standard(self) -> str:
        """The C++ standard its headers demand.

        >>> LibTorch(Path(), "2.13.0+cpu", "", None).standard
        'c++20'
        """
        number = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])
        return "c++20" if number >= (2, 12) else "c++17"

    def header_flags(self, tier: Tier) -> list[str]:
        """Return the flags that make its headers found. Raises ``BuildError`` without Python's headers."""
        light = include_dir() / "polyop" / "torch"
        headers = self.root / "include"
        flags = [f"-I{light / name}" for name in tier.instead]
        flags += ["-isystem", str(headers), "-isystem", str(headers / "torch" / "csrc" / "api" / "include")]
        if tier.python:
            import sysconfig

            python = sysconfig.get_paths()["include"]
            if not (Path(python) / "Python.h").is_file():
                rule = "is needed by a source that uses Python's API, and is missing"
                raise BuildError(
                    f"{python}/Python.h", rule, hint="install Python's development files (python3-dev)"
                )
            flags += ["-isystem", python]
        return flags

    def link_flags(self, tier: Tier, *, cuda: bool) -> list[str]:
        """Return the flags that link its libraries and find them again when the result is opened."""
        folder = self.root / "lib"
        names = ["c10", "torch_cpu", "torch", *(["c10_cuda", "torch_cuda"] if cuda else [])]
        names += ["torch_python"] if tier.python else []
        # kernels register themselves when their library is loaded: none may be left out as unused
        return [f"-L{folder}", "-Wl,--no-as-needed", *(f"-l{name}" for name in names), f"-Wl,-rpath,{folder}"]

    def check_cuda(self, subject: object, nvcc: Compiler) -> None:
        """Raise ``BuildError`` unless nvcc and this PyTorch are of the same CUDA major version."""
        toolkit = ".".join(map(str, nvcc.number))
        if self.cuda is None:
            rule = f"needs a PyTorch built for CUDA {nvcc.number[0]} (nvcc is {toolkit})"
            seen = f"PyTorch {self.version}, which is built for the CPU only"
        elif int(self.cuda.partition(".")[0]) == nvcc.number[0]:
            return
        else:
            rule = "needs an nvcc and a PyTorch of the same CUDA major version"
            seen = f"nvcc {toolkit} and PyTorch {self.version} for CUDA {self.cuda}"
        hint = f"install a PyTorch for CUDA {nvcc.number[0]}, or name another nvcc in CUDACXX"
        raise BuildError(subject, rule, seen, where=self.root, hint=hint)


def tier_of(texts: Sequence[str]) -> Tier:
    """Return the smallest tier that has the names used in these sources."""

    def used(words: str) -> bool:
        return any(re.search(words, text) for text in texts)

    python = used(_PYTHON_WORDS)
    frontend = () if used(_NN_WORDS) else ("without_nn",) if used(_LIBRARY_WORDS) else ("tensors_only",)
    return Tier((*frontend, *(() if python else ("without_python",))), python)


def find(subject: object) -> LibTorch:
    """Return the installed PyTorch. Raises ``BuildError`` when there is none."""
    loaded = sys.modules.get("torch")
    try:
        spec = loaded.__spec__ if loaded is not None else importlib.util.find_spec("torch")
    except ValueError:
        spec = None
    if spec is None or spec.origin is None:
        rule = "includes PyTorch's headers, and PyTorch is not installed for this Python"
        raise BuildError(subject, rule, where=sys.executable, hint="pip install torch")
    root = Path(spec.origin).parent
    try:
        text = (root / "version.py").read_text(encoding="utf-8")
    except OSError:
        text = ""
    version = _value(text, "__version__")
    if version is None or not (root / "include" / "torch").is_dir():
        rule = "needs a PyTorch with its headers and version.py"
        raise BuildError(subject, rule, root, hint="pip install --force-reinstall torch")
    return LibTorch(root, version, _value(text, "git_version") or "", _value(text, "cuda"))


def _value(text: str, name: str) -> str | None:
    found = re.search(rf"^{name}(?:\s*:[^=\n]+)?\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return found[1] if found else None
