"""The members of the suite: every operator that a file of ``operators/`` defines, with sample inputs."""

import importlib.util
import os
import pathlib
import sys
from dataclasses import dataclass

from polyop.binary import verified
from polyop.call import registry
from polyop.call.bound import BoundOperator
from polyop.define.kernel_operator import KernelOperator
from polyop.testing import samples
from polyop.testing.case import Case

FOLDER = pathlib.Path(__file__).parent / "operators"
PACKAGE = "polyop_contract_operators"


@dataclass(frozen=True)
class Member:
    """An operator, what kind of kernel it has, and a case with sample inputs."""

    name: str
    kind: str
    case: Case


def load(name):
    """Import a file of the folder; files of it may import each other."""
    if PACKAGE not in sys.modules:
        spec = importlib.util.spec_from_loader(PACKAGE, None, is_package=True)
        sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE].__path__ = [str(FOLDER)]
    return importlib.import_module(f"{PACKAGE}.{name}")


def modules():
    """Return every file of the folder, imported."""
    return [load(path.stem) for path in sorted(FOLDER.glob("*.py"))]


def members():
    """Return one member per operator: those defined in the folder, and others that its files name."""
    operators, sample_inputs = {}, {}
    for module in modules():
        sample_inputs.update(getattr(module, "polyop_samples", {}))
        for variable, value in vars(module).items():
            for bound in value if isinstance(value, list) else [value]:
                # loop kernels only those with samples: the others are given to operators of the folder
                if isinstance(bound, BoundOperator) and (
                    not isinstance(bound, KernelOperator) or bound.name in sample_inputs
                ):
                    # a Custom's name has a number, if the process has another of its function
                    name = f"custom::{variable}" if bound.name.startswith("custom::") else bound.name
                    operators[name] = bound
    for bound in registry.operators():
        if str(bound.operator.origin).startswith(str(FOLDER)) and bound not in operators.values():
            operators[bound.name] = bound
    return [
        _member(name, bound, sample_inputs.get(bound.name, ())) for name, bound in sorted(operators.items())
    ]


def _member(name, bound, args):
    arguments = samples.arguments(bound.operator, args, {}, seed=0)
    if bound.by_signature:  # its schema is that of a call
        bound = bound._for(arguments)
    kind = type(bound.operator.kernels[0]).__name__
    if kind == "LibraryKernel" and verified.is_ours(os.path.realpath(bound.operator.kernels[0].file)):
        kind = "source"
    case = Case(bound, arguments, bound.operator.reference, (), seed=0)
    return Member(name, kind, case)
