"""The table of polyop's modules that are imported by name, when they are needed.

A room imports only from the rooms before it. A module that an earlier room needs, or one of several
alternatives such as the hosts, is a row here. Apart from the lazy names of packages, nothing else in polyop
imports polyop's own modules by name.
"""

from __future__ import annotations

import importlib
from types import ModuleType

LATE = {
    "host": "polyop.hosts.{}",  # for call/host.py: the host of a framework, once that is imported
    "sharding": "polyop.sharding.{}",  # for call/bound.py: what a call costs on a mesh
    "provider": "polyop.providers.{}",  # for kernels and rules: somebody else's operators by name
    "framework": "polyop.testing.frameworks.{}",  # for testing: each framework in which a check runs
    "report": "polyop.report.{}",  # for call/bound.py: the page of an operator
    "verb": "polyop.cli.{}",  # for cli/main.py: the module of a verb
}
"""Kind -> module; {} stands for the name."""


def load(kind: str, name: str) -> ModuleType:
    """Import and return the module ``name`` of a kind.

    >>> load("provider", "aclnn").__name__
    'polyop.providers.aclnn'
    """
    return importlib.import_module(LATE[kind].format(name))
