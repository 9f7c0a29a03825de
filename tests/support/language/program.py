"""A random kernel: its text, its tensors and its numbers."""

import itertools
import linecache
from collections import Counter
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from language.constructs import COMPLEX, FLOAT8, INT, MODULE, REAL

CHOICES = {"real": REAL, "int": INT, "bool": ("bool",), "complex": COMPLEX, "float8": FLOAT8}
_files = itertools.count()


def numpy_dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def kind_of(dtype):
    return next(kind for kind, names in CHOICES.items() if dtype in names)


@dataclass
class Program:
    """A kernel: its text, the dtypes and the dimensions of its tensors, its numbers, and what was drawn."""

    text: str
    tensors: dict
    attributes: dict
    sizes: dict
    palette: str
    counts: Counter = field(default_factory=Counter)
    steps: tuple = ()
    deterministic: bool = False
    absent: tuple = ()

    @property
    def source(self):
        return f"{MODULE}\n\n{self.text}"

    def function(self):
        """Return the function; inspect finds its source."""
        file = f"<random kernel {next(_files)}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        names = {"__name__": "random_kernel"}
        exec(compile(self.source, file, "exec"), names)
        return names["f"]

    def arrays(self, seed, *, smooth=False):
        """Return tensors: small numbers that are exact in every dtype, or any numbers."""
        random = np.random.default_rng(seed)
        arrays = {name: self.array(random, name, smooth) for name in self.tensors}
        return [None if name in self.absent else array for name, array in arrays.items()]

    @property
    def types(self):
        """The dtype and the rank of each tensor; None for one that is missing."""
        return [None if n in self.absent else (dtype, len(axes)) for n, (dtype, axes) in self.tensors.items()]

    def array(self, random, name, smooth):
        dtype, axes = self.tensors[name]
        shape = tuple(self.sizes[a] if isinstance(a, str) else a for a in axes)
        if name in ("key", "keys"):
            return random.integers(0, 100, shape).astype(dtype)
        if dtype == "bool":
            return random.random(shape) < 0.5
        if smooth and kind_of(dtype) == "real":
            most = 2 if random.random() < 0.8 else 300
            return random.uniform(-most, most, shape).astype(numpy_dtype(dtype))
        low = 0 if dtype.startswith("u") else -6
        numbers = random.integers(low, 7, shape) * (1 if "8" in dtype or random.random() < 0.8 else 32)
        if kind_of(dtype) == "complex":
            numbers = numbers + 1j * random.integers(-4, 5, shape)
        if kind_of(dtype) in ("real", "complex", "float8"):
            numbers = numbers / 2
        return np.asarray(numbers).astype(numpy_dtype(dtype))
