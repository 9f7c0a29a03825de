"""Modules of polyop that are found by name, when they are needed: one table.

A layer imports only what is below it. What is reached from below, or is one of several alike, is a row
here; nothing else in polyop imports polyop's own modules by name, beside the lazy names of a package.
"""

from __future__ import annotations

import importlib
from types import ModuleType

LATE = {
    "host": "polyop.hosts.{}",  # call/host.py: once a framework is imported, its host
    "provider": "polyop.providers.{}",  # kernels, rules: somebody else's operator by its name
    "framework": "polyop.testing.frameworks.{}",  # testing: each framework that a check runs in
    "verb": "polyop.cli.{}",  # cli/main.py: the file of a verb
}
"""Kind -> module, with the place of its name."""


def load(kind: str, name: str) -> ModuleType:
    """Return the module of a row of the table.

    >>> load("provider", "aclnn").__name__
    'polyop.providers.aclnn'
    """
    return importlib.import_module(LATE[kind].format(name))
