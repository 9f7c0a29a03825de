"""Seconds from a typed loop kernel to its library, for 40 kernels of the tests and their gradients.

Nothing is in the build cache, and everything is imported. One process compiles one kernel after the other.
"""

import functools
import json
import os
import subprocess
import sys
import tempfile

from kernels import FOLDER
from measure import Measured, Row, Settings

KERNELS = 40
CODE = """
import json, sys, time, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
from loop_samples import programs
import polyop
from polyop.core.errors import PolyopError
from polyop.core.spec import Spec
from polyop.kernels.loop.adjoints import Adjoints
from polyop.kernels.loop.derived import DerivedKernel
from polyop.kernels.loop.forms import GRADIENT
from polyop.kernels.loop.kernel import LoopKernel

rows = list({row.function: row for row in programs.PROGRAMS}.values())
count = int(sys.argv[2])
seconds = {"forward": {}, "gradient": {}}
for row in rows[:: max(1, len(rows) // count)][:count]:
    base = LoopKernel(row.function, tuple(row.attributes))
    specs = [Spec((1,) * len(axes), polyop.dtype(dtype)) for dtype, axes, _ in row.rows]
    start = time.perf_counter()
    base.library(base.typed(specs, row.attributes))
    seconds["forward"][base.name] = time.perf_counter() - start
    gradient = DerivedKernel.of(base, GRADIENT)
    adjoints = Adjoints(gradient, specs, row.attributes)
    start = time.perf_counter()
    try:
        adjoint = adjoints.adjoint().kernel
        if any(adjoints.differentiable_inputs()):
            gradient.library(adjoint)
            seconds["gradient"][base.name] = time.perf_counter() - start
    except PolyopError:  # it has no gradient
        pass
print(json.dumps(seconds))
"""


@functools.cache
def times() -> dict[str, dict[str, float]]:
    """Return the seconds by form and kernel; both rows of a form read one measurement."""
    support = str(FOLDER.parent / "tests" / "support")
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "XDG_CACHE_HOME": folder}
        command = [sys.executable, "-c", CODE, support, str(KERNELS)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def place(form: str, part: float, settings: Settings) -> Measured:
    """Return the time at a part of the sorted times: 0.5 is the median, 1 the worst."""
    del settings
    found = sorted(times()[form].values())
    at = found[round(part * (len(found) - 1))]
    return Measured(at, found[0], found[-1], at)


def rows() -> list[Row]:
    return [
        Row(f"compile cold, {KERNELS} kernels of the tests, {form}, {word}", "", bar, measure, "s")
        for form, bar in (("forward", 1.5), ("gradient", 3.0))
        for word, part in (("median", 0.5), ("worst", 1.0))
        for measure in (functools.partial(place, form, part),)
    ]
