"""The digest of a definition: it changes with all that decides a compiled program, and with nothing else."""

import importlib.util

import pytest

from polyop.call import registry
from polyop.call.pickled import definition_digest
from polyop.kernels import described

MODULE = """
import dataclasses
import polyop
from polyop.core.spec import Spec

RATE, UNREAD, LATER = 2.0, 1.0, 3
WEIGHTS = (1.0, 2.0)

def scaled(dout):
    return dout * RATE + sum(w * dout for w in WEIGHTS)

def gradient(x, out, dout):
    return (scaled(dout) + other(x),)

def unread(x):
    return x

def specs(x):
    return Spec(x.shape, "float32")

def jvp(x, out, tangent):
    return tangent * 4

@dataclasses.dataclass
class Batched:
    axis: int = 0

    def __call__(self, in_dims, inputs):
        return op(*inputs), self.axis

def back(x, out, dout):  # calls the operator whose rule calls this one's operator: the rules are a cycle
    return (op(dout) * 8,)

def sized(x):
    return Spec(x.shape, "float16")

last = polyop.operator("edited::last(Tensor x) -> Tensor", lambda x: x, infer=sized, gradient=back)
other = polyop.operator(
    "edited::other(Tensor x) -> Tensor",
    lambda x: x * 5,
    infer="x",
    gradient=lambda x, out, dout: (last(dout) * 9,),
    batch="elementwise",
)
op = polyop.operator(
    "edited::op(Tensor x) -> Tensor", lambda x: x * 6, infer=specs, gradient=gradient, jvp=jvp, batch=Batched()
)
"""

EDITS = [
    # what an author edits, the old text, the new one, whether a compiled program has to be compiled again
    ("the kernel", "x * 6", "x * 7", True),
    ("the gradient rule", "+ other(x)", "- other(x)", True),
    ("a function that it calls", "dout * RATE +", "dout / RATE +", True),
    ("a number that this one reads", "RATE, UNREAD, LATER = 2.0", "RATE, UNREAD, LATER = 4.0", True),
    ("a tuple that a generator in it reads", "(1.0, 2.0)", "(1.0, 3.0)", True),
    ("an operator that it calls", "x * 5", "x * 8", True),
    ("the rule of an operator that it calls", "last(dout) * 9", "last(dout) * 10", True),
    ("a derived rule of that operator", 'batch="elementwise"', "batch=None", True),
    ("the rule of an operator that this rule calls", "op(dout) * 8", "op(dout) * 7", True),
    ("the dtype of the result of this one", '"float16"', '"int8"', True),
    ("the dtype of the result", '"float32"', '"float64"', True),
    ("the forward mode", "tangent * 4", "tangent * 5", True),
    ("a value in a batch rule", "axis: int = 0", "axis: int = 1", True),
    ("the schema", "op(Tensor x)", "op(Tensor a)", True),
    ("a line above", "import polyop\n", "import polyop\n\n\n# a comment\n", False),
    ("a function that no rule calls", "    return x\n", "    return -x\n", False),
    ("a number that no rule reads", "UNREAD, LATER = 2.0, 1.0", "UNREAD, LATER = 2.0, 5.0", False),
]


def digest_of(text, path):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    digest = definition_digest(module.op.operator)
    for bound in (module.op, getattr(module, "other", None), getattr(module, "last", None)):
        if bound is not None:
            registry.discard(bound)
    return digest


@pytest.mark.parametrize(("old", "new", "counts"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_edits(tmp_path, old, new, counts):
    assert MODULE.count(old) == 1
    first = digest_of(MODULE, tmp_path / "edited.py")
    again = digest_of(MODULE, tmp_path / "edited.py")
    edited = digest_of(MODULE.replace(old, new), tmp_path / "edited.py")
    assert first == again
    assert (first != edited) is counts


LAZY = """
import polyop

@polyop.kernel(name="edited_lazily::other")
def other(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y

last = polyop.operator("edited_lazily::last(Tensor x) -> Tensor", lambda x: x, infer="x", gradient=lambda *args: (other(args[2]),))
op = polyop.operator("edited_lazily::op(Tensor x) -> Tensor", lambda x: x, infer="x", gradient=lambda *args: (last(args[2]),))
USED
"""


def test_a_loop_kernel_that_a_rule_calls_counts_the_same_before_and_after_its_first_use(tmp_path):
    new = LAZY.replace("USED", "")
    edited = new.replace("x[i] * x[i]", "x[i]")
    used = LAZY.replace("USED", "other.schema")
    first, after, other = (digest_of(text, tmp_path / "lazy.py") for text in (new, used, edited))
    assert first == after != other


def test_a_function_of_numba_counts_by_its_text():
    numba = pytest.importorskip("numba", reason="Numba is not installed")
    square, again, cube = (numba.njit(f) for f in (lambda x: x * x, lambda x: x * x, lambda x: x * x * x))
    one, same, other = (b"".join(described.value(f)) for f in (square, again, cube))
    assert one == same != other


MADE = """
import numpy as np
import polyop

@polyop.kernel(name="edited_makers::op")
def op(x):
    t = np.full((3,), 2.0, x.dtype)
    y = np.ones_like(x)
    for i in range(x.shape[0]):
        y[i] += x[i] * t[0]
    return y
"""


def test_a_function_that_makes_an_array_is_a_word_of_the_kernel(tmp_path):
    edited = MADE.replace("np.full((3,), 2.0, x.dtype)", "np.ones((3,), x.dtype)")
    first, again, other = (digest_of(text, tmp_path / "made.py") for text in (MADE, MADE, edited))
    assert first == again != other
