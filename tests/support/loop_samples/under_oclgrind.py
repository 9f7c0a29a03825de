"""A program that oclgrind runs: sample kernels, compared with the interpreter, with a fault in their text if one is named.

oclgrind --data-races --log LOG python under_oclgrind.py FAULT FORM NAME...
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from loop_samples import emulate, on_opencl, programs, reference
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.printing import shown

FAULTS = {
    "none": lambda text: text,
    "no barrier": lambda text: text.replace("polyop_sync(width_);", ""),
    "past the end": lambda text: text.replace(
        " y[(i____) * y_n1 + d_1] =", " y[(i____) * y_n1 + d_1 + 4096 * y_n1] ="
    ),
}


def without_absent(kernel, arrays):
    """Return a kernel without the parameters that it leaves out, as a function too, and its arrays."""
    function = emulate.function_of(shown(kernel), kernel.name)
    buffers = [kernel.buffers[name] for name in kernel.parameters if name in kernel.buffers]
    present = [a for a, b in zip(arrays, buffers, strict=True) if not b.absent]
    return function, parse(function, [(a.dtype.name, a.ndim) for a in present], {}), present


def main(fault, form, *names):
    queue = on_opencl.queue()
    for program in programs.PROGRAMS:
        if program.name not in names:
            continue
        index = len(program.sizes()) // 2
        if form == "gradient":
            function, kernel, arrays = without_absent(
                reference.gradient(program), reference.gradient_arrays(program, index)
            )
            wanted = interpret(kernel, [array.copy() for array in arrays], program.attributes)
        else:
            kernel, arrays = reference.typed(program), program.arrays(program.sizes()[index])
            function, wanted = program.function, reference.expected(program, index)
        text = FAULTS[fault](on_opencl.text([kernel]))
        run = on_opencl.bound(function, program.rows, program.attributes, on_opencl.build(text), 0, queue)
        results = run(*arrays)
        if fault == "none":
            for one, other in zip(wanted, results, strict=True):
                close = max(program.rough, 1e-4 if form == "gradient" else 0)
                np.testing.assert_allclose(
                    other.astype(float), one.astype(float), close, close, err_msg=program.name
                )
        print(program.name, "ran")


if __name__ == "__main__":
    main(*sys.argv[1:])
