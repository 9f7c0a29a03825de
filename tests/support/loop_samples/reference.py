"""What the interpreter makes of the programs of the table, computed once in a process."""

import functools

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret


@functools.cache
def typed(program):
    """Return the kernel of a program."""
    tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
    return parse(program.function, tensors, program.attributes)


@functools.cache
def expected(program, index):
    """Return the results of a program for sizes number ``index``."""
    arrays = program.arrays(program.sizes()[index])
    return interpret(typed(program), arrays, program.attributes)
