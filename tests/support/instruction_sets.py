"""The instruction sets of this machine as parameters of a fixture that compiles: the best one for every change."""

import pytest

from polyop.loops.targets import isa

BEST, *OTHERS = isa.available()
EACH = [BEST, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
