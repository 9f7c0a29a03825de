"""Flags to compile and link against the installed PyTorch, which is found without importing it.

PyTorch's heaviest headers are left out if the sources do not use them (:class:`Tier`), which makes a build
several times faster. ``make`` repeats a build that fails because of an unknown name with all headers.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import BuildError
from .compilers import Compiler
from .paths import include_dir
from .sources import has

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
    """How much of ``torch/extension.h`` the sources need.

    ``overlays`` are folders of polyop's that hold lighter headers of the same names; they are searched first.
    ``python`` says whether the sources use Python's API.
    """

    overlays: tuple[str, ...]
    python: bool


TENSORS = Tier(("tensors_only", "without_python"), python=False)
EVERYTHING = Tier((), python=True)


@dataclass(frozen=True, slots=True)
class LibTorch:
    """An installed PyTorch: its folder, version and git commit, and the CUDA it was built for, if any."""

    root: Path
    version: str
    commit: str
    cuda: str | None

    @property
    def standard(self) -> str:
        """The C++ standard that its headers require.

        >>> LibTorch(Path(), "2.13.0+cpu", "", None).standard
        'c++20'
        """
        number = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])
        return "c++20" if number >= (2, 12) else "c++17"

    def header_flags(self, tier: Tier) -> list[str]:
        """Return the flags that name its header folders. Raises ``BuildError`` if Python's are missing."""
        overlays = include_dir() / "polyop" / "torch"
        headers = self.root / "include"
        flags = [f"-I{overlays / name}" for name in tier.overlays]
        flags += ["-isystem", str(headers), "-isystem", str(headers / "torch" / "csrc" / "api" / "include")]
        if tier.python:
            import sysconfig

            python = sysconfig.get_paths()["include"]
            if not (Path(python) / "Python.h").is_file():
                rule = "is needed by a source that uses Python's API, and is missing"
                raise BuildError(
                    f"{python}/Python.h", rule, hint="install Python's development files (python3-dev)"
                )
            # torch/torch.h has Python's part only where this is defined, as PyTorch's own builder does
            flags += ["-isystem", python, "-DTORCH_API_INCLUDE_EXTENSION_H"]
        return flags

    def link_flags(self, *, python: bool, cuda: bool, run_path: str | None = None) -> list[str]:
        """Return the flags that link its libraries, with a run path so that the loader finds them.

        ``python``: a source uses Python's API. ``cuda``: a source is in CUDA.
        """
        folder = self.root / "lib"
        names = ["c10", "torch_cpu", "torch", *(["c10_cuda", "torch_cuda"] if cuda else [])]
        names += ["torch_python"] if python else []
        # kernels register themselves when their library is loaded: the linker must not drop any as unused
        libraries = [f"-l{name}" for name in names]
        return [f"-L{folder}", "-Wl,--no-as-needed", *libraries, f"-Wl,-rpath,{run_path or folder}"]

    def check_cuda(self, subject: object, nvcc: Compiler) -> None:
        """Raise ``BuildError`` unless nvcc and this PyTorch have the same CUDA major version."""
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


def tier_of(text: str) -> Tier:
    """Return the smallest tier that has all names used in a source."""
    python = has(_PYTHON_WORDS, text)
    light = ("without_nn",) if has(_LIBRARY_WORDS, text) else ("tensors_only",)
    frontend = () if has(_NN_WORDS, text) else light
    return Tier((*frontend, *(() if python else ("without_python",))), python)


def find(subject: object) -> LibTorch:
    """Return the installed PyTorch. Raises ``BuildError``, about ``subject``, if there is none."""
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
    match = re.search(rf"^{name}(?:\s*:[^=\n]+)?\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return match[1] if match else None
