"""The cases: each member in each mode of each host, and the results that are expected."""

import functools
import os
import pathlib

import numpy as np
from catalogue import members

from polyop.testing import frameworks
from polyop.testing.difference import is_floating

SAMPLES = 3  # in a batch


def eager(framework, case):
    """Return the results of a plain call."""
    return numbered("output", framework.run(case))


def compiled(framework, case):
    """Return the results of a compiled call."""
    return numbered("output", framework.compiled(case))


def differentiated(framework, case):
    """Return the input gradients."""
    return gradients(framework.gradients(case, cotangents(case)))


def compiled_differentiated(framework, case):
    """Return the input gradients from a compiled program."""
    return gradients(framework.compiled_gradients(case, cotangents(case)))


def batched(framework, case):
    """Return the results of a batched call."""
    return numbered("output", framework.batched(batch(case)))


MODES = {  # mode -> the call, and the NumPy mode with the expected results
    "eager": (eager, "eager"),
    "compiled": (compiled, "eager"),
    "differentiated": (differentiated, "differentiated"),
    "compiled-differentiated": (compiled_differentiated, "differentiated"),
    "batched": (batched, "batched"),
}
ABSENT_MODES = {
    "numpy": {"compiled", "compiled-differentiated", "batched"},
    "paddle": {"batched"},
}
"""The modes that a framework does not have."""


def numbered(label, arrays):
    """Return arrays by name."""
    return {f"{label} {k}": np.asarray(array) for k, array in enumerate(arrays)}


def gradients(grads):
    """Return gradients by name, without those that are None."""
    return {f"gradient of {name}": grad for name, grad in grads.items() if grad is not None}


def cotangents(case):
    """Return an output gradient for each result, the same in every process."""
    rng = case.rng("cotangents")
    results = case.run()
    return [np.asarray(rng.standard_normal(x.shape) * is_floating(x)).astype(x.dtype) for x in results]


def batch(case):
    """Return cases with the same specs and other values."""

    def other(k):
        return case.mapped(lambda _, x: np.roll(x, k).reshape(x.shape))

    return [other(k) for k in range(SAMPLES)]


def plain(array):
    """Return an array that a file can hold; dtypes of ml_dtypes become float32."""
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)


@functools.cache
def peers():
    """Return the results of another environment, [(host, name of the array, array)] by member and mode.

    POLYOP_CONTRACT_PEER is the folder that it wrote them to.
    """
    results = {}
    for path in sorted(pathlib.Path(os.environ.get("POLYOP_CONTRACT_PEER", "-")).glob("*.npz")):
        with np.load(path) as file:
            for key in file.files:
                host, mode, name, label = key.split("|")
                results.setdefault((name, MODES[mode][1]), []).append((host, label, file[key]))
    return results


def applies(mode, case):
    """Whether an operator can be called in a mode at all."""
    if "differentiated" in mode:
        floating = any(is_floating(value) for _, value in case.tensors())
        return case.has_gradient and floating and not case.operator.schema.mutates
    return True


@functools.cache
def all_members():
    """Return the members by name."""
    return {member.name: member for member in members()}


LIST = pathlib.Path(__file__).parents[1] / "golden" / "contract" / "members.txt"
"""A line for each member: its name and its modes. Collecting the cases compiles nothing, so it reads this file."""


def members_and_modes():
    """Return the text of the list, from the operators themselves."""
    rows = [
        [name, *(mode for mode in MODES if applies(mode, member.case))]
        for name, member in all_members().items()
    ]
    return "".join(f"{' '.join(row)}\n" for row in rows)


@functools.cache
def listed():
    """Return the modes of each member."""
    rows = (line.split() for line in LIST.read_text().splitlines()) if LIST.exists() else ()
    return {name: modes for name, *modes in rows}


def names(mode):
    """Return the names of the members that have a mode."""
    return [name for name, modes in listed().items() if mode in modes]


def of_host(host):
    """Return (mode, member's name) of every case of a host."""
    absent = ABSENT_MODES.get(host, ())
    return [(mode, name) for name, modes in listed().items() for mode in modes if mode not in absent]


@functools.cache
def expected(name, mode):
    """Return NumPy's results: those of the reference function, if the operator has one."""
    case = all_members()[name].case
    numpy = frameworks.load("numpy")
    if mode == "differentiated":
        return differentiated(numpy, case)
    if mode == "batched":
        each = [reference(sample) for sample in batch(case)]
        return numbered("output", [np.stack(column) for column in zip(*each, strict=True)])
    return numbered("output", reference(case))


def reference(case):
    """Return the results of the reference function, else those of the NumPy host."""
    results, references = case.run(), case.expected()
    if references is None:
        return results
    return [a.astype(b.dtype) for a, b in zip(references, results, strict=True)]


def result_of(host, mode, name):
    """Return the results of a host; raises ``NotRunError`` with the reason."""
    return MODES[mode][0](frameworks.load(host), all_members()[name].case)
