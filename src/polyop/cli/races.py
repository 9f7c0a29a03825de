"""``polyop check --races``: run operators on oclgrind's device, which finds races and invalid accesses.

This module is also the program that runs there: ``python -m polyop.cli.races SEED TARGET...``.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..call.host import map_tensors
from ..core import programs
from ..core.errors import HostError, PolyopError
from ..kernels.opencl.kernel import TEXTS
from ..testing import samples
from ..testing.races import COMMAND, findings
from .terminal import say, say_json


def check_races(targets: Sequence[str], seed: int, *, as_json: bool = False) -> int:
    """Print what is found in the calls and gradients of operators; return 0, or 1 if something is.

    Raises ``HostError`` if oclgrind is not installed.
    """
    if shutil.which(COMMAND[0]) is None:
        hint = "install it, as with apt-get install oclgrind, and pip install pyopencl"
        raise HostError("polyop check --races", f"needs {COMMAND[0]}, which is not on PATH", hint=hint)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [*COMMAND, "--log", str(log), sys.executable, "-m", __name__, str(seed), *targets]
        done = programs.run(command, env={**os.environ, TEXTS: folder})
        texts = [path.read_text() for path in sorted(Path(folder).glob("*.cl"))]
        found = findings(log.read_text(), texts) if log.exists() else []
    if as_json:
        say_json([finding._asdict() for finding in found])
        return 1 if found else done.returncode
    for finding in found:
        say(str(finding))
    if not found and done.returncode == 0:
        say("no race, and no invalid access")
    return 1 if found else done.returncode


def main(seed: str, *targets: str) -> int:
    """Call each operator of the targets on the device of this program, and its gradient if it has one."""
    import numpy as np
    import pyopencl as cl
    import pyopencl.array as cl_array

    from .load import operators_of

    queue, code = cl.CommandQueue(cl.Context(cl.get_platforms()[0].get_devices()[:1])), 0

    def there(_: str, value: Any, __: Any) -> Any:
        return cl_array.to_device(queue, value)

    for target in targets:
        for bound, given in operators_of(target):
            args, named = ((), given) if isinstance(given, dict) else (tuple(given), {})
            try:
                drawn = samples.arguments(bound.operator, args, named, int(seed))
                arguments = map_tensors(bound.operator, drawn, there)
                ran = f"ran on {queue.device.name}"
                if bound.operator.gradient is None:
                    bound(*arguments)
                else:
                    outputs, pull = bound.vjp(*arguments)
                    every = outputs if isinstance(outputs, tuple) else (outputs,)
                    ones = tuple(cl_array.to_device(queue, np.ones(one.shape, one.dtype)) for one in every)
                    pull(ones if isinstance(outputs, tuple) else ones[0])
                    ran += ", and its gradient"
                queue.finish()
            except PolyopError as problem:
                code, ran = 1, f"not run: {problem}"
            say(f"{bound.name}: {ran}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
