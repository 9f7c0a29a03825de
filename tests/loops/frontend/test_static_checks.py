"""Errors about kernels outside the language: their class, words and line, and what to write instead."""

import ast
import itertools
import linecache
import math
import pathlib
import re

import numpy as np
import pytest

from polyop.core.errors import ArgumentTypeError, ArgumentValueError, PolyopError, UnsupportedError
from polyop.loops.frontend.parse import outline, parse, run_static_checks
from polyop.loops.frontend.plain import plain
from polyop.loops.frontend.suggestions import FUNCTIONS

NUMBERS = itertools.count()
NAMES = {"np": np, "math": math, "LIMIT": 3, "TEXT": "a", "WEIGHTS": np.ones(3)}


def function(text, name="f"):
    """Return a function made from text, whose source Python can find, as in a notebook."""
    file = f"<cell {next(NUMBERS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = dict(NAMES)
    exec(compile(text, file, "exec"), names)
    return names[name]


def kernel(*lines, returns="return y"):
    """Return ``f(x)`` with an output ``y`` and these lines; the first of them is line 3."""
    head = ["def f(x):", "    y = output_tensor(x.shape, x.dtype)"]
    return function("\n".join([*head, *(f"    {line}" for line in lines), f"    {returns}", ""]))


LOOP = "for i in range(x.shape[0]):"
V, T, U = ArgumentValueError, ArgumentTypeError, UnsupportedError

# the lines of a kernel, the line of the error, its class, its words
CHECKS = [
    # the rules and words of MindSpore's checker, row by row
    ((LOOP, "    i = 3"), 4, V, "iter var cannot be overwritten: i"),
    ((LOOP, "    i += 3"), 4, V, "iter var cannot be overwritten: i"),
    ((LOOP, "    for i in range(3):", "        pass"), 4, V, "iter var cannot be overwritten: i"),
    (("y[0] = z",), 3, V, "there is no variable z.*known here are x, y"),
    ((LOOP, "    k = 1", "    y[i] = q"), 5, V, "there is no variable q.*known here are x, y, i, k"),
    ((LOOP, "    y[i] = max(x[i], -inf)"), 4, V, "there is no variable inf.*write math.inf, with import math"),
    (("total = 1", "y[0] = totl"), 4, V, "there is no variable totl.*did you mean total"),
    (("t += 1",), 3, V, "there is no variable t"),
    ((LOOP, "    pass", "y[0] = i"), 5, V, "a variable ends with the loop or the if that assigns it: i.*keep its last value: last = 0 before the loop of line 3, and last = i in it"),
    ((LOOP, "    t = x[i]", "y[0] = t"), 5, V, "ends with the loop or the if that assigns it: t.*assign t before the loop of line 3"),
    (("y[0] = flor(x[0])",), 3, V, r"flor is no function of loop kernels.*did you mean floor"),
    (("y[0] = helper(x[0])",), 3, V, r"helper is no function.*\n  a kernel can call only the words of the language and functions made by def: write out what it computes$"),
    (("y[0] = sin()",), 3, T, r"sin takes one input, but got 0"),
    (("y[0] = sin(1, 2)",), 3, T, r"sin takes one input, but got 2"),
    (("y[0] = float16(1, 2)",), 3, T, r"float16 takes one input, but got 2"),
    (("y[0] = power(x[0])",), 3, T, r"power takes two inputs, but got 1"),
    (("t = allocate(x.shape)",), 3, T, r"allocate takes two inputs, but got 1.*write allocate\(x.shape, x.dtype\)"),
    (("t = allocate()",), 3, T, r"takes two inputs, but got 0.*write allocate\(x.shape, x.dtype\)"),
    (("t = allocate((3,))",), 3, T, r"write allocate\(\(3,\), x.dtype\)"),
    (("t = allocate(y.shape)",), 3, T, r"write allocate\(y.shape, y.dtype\)"),
    (("t = output_tensor(x.shape, x.dtype, 1)",), 3, T, r"output_tensor takes two inputs, but got 3"),
    (("with attr('a'):", "    pass"), 3, V, "attr takes two inputs, but got 1"),
    (("with attr(1, 2):", "    pass"), 3, V, "the first input of 'attr' should be a string"),
    (("with attr('a', x):", "    pass"), 3, V, "the second input of 'attr' should be a string, number or bool value"),
    (("with block_realize(x, y):", "    pass"), 3, V, "block_realize takes one input"),
    (("with block_realize(1):", "    pass"), 3, V, "the input of 'block_realize' should be a tensor name"),
    (("with open('a'):", "    pass"), 3, V, "Unsupported function in With scope"),
    (("with attr('a', 1), open('a'):", "    pass"), 3, V, "Unsupported function in With scope"),
    (("y = allocate(x.shape, x.dtype)",), 3, V, "the tensor is redefined: y"),
    (("y = exp(x[0])",), 3, V, "the tensor is redefined: y"),
    (("x = 3",), 3, V, "the tensor is redefined: x"),
    (("while True:", "    pass"), 3, V, "while True without break or return never ends.*write a condition, or a break"),
    (("while x[0] > 0:", "    break", "    y[0] = 1"), 5, V, "a line after a break, continue or return never runs"),
    (("while x[0] > 0:", "    pass", "else:", "    y[0] = 1"), 6, U, "else after a while is not compiled.*set a flag"),
    (("a, b = 1, 2, 3",), 3, V, r"\(1, 2, 3\) has 3 elements, but got 2 names"),
    (("y[0] = (x + 1).shape[0]",), 3, V, "getattr is only supported for a tensor object, not for the object with type: BinOp"),
    (("t = 1", "y[0] = t.shape[0]"), 4, V, "getattr is only supported for a tensor variable after its declaration, not for: t"),
    (("y[0] = t.shape[0]", "t = allocate(x.shape, x.dtype)"), 3, V, "after its declaration, not for: t"),
    (("y[0] = x.strides",), 3, V, r"no attribute called strides.*x\[i, j\] is right for all strides"),
    (("y[0] = x.grad",), 3, V, "no attribute called grad.*has shape, dtype, ndim, size"),
    # what that checker does not look at
    (("y = output_tensor(x.shape[foo(1):], x.dtype)",), 3, V, r"foo is no function"),
    (("y[0] = exp(**x)",), 3, T, r"exp takes no keyword arguments, but got \*\*"),
    (("y[0] = exp(x=x[0])",), 3, T, r"exp takes no keyword arguments, but got x=.*by position"),
    (("y[0] = x.shape[0]()",), 3, V, "is no function of loop kernels"),
    (("y[0] = range(3)",), 3, V, "range can only be used in the head of a for loop"),
    (("y[0] = output_tensor((3,), 'int8')",), 3, V, "output_tensor must be assigned to a name"),
    (("y[0] = 1 + allocate((3,), 'int8')",), 3, V, "allocate declares a tensor"),
    (("range = 3",), 3, V, "range is a word of the language and cannot be assigned"),
    (("y[0] = exp",), 3, V, "exp is a word of the language: call it"),
    (("sine = 1", "y[0] = sine(2)"), 4, V, r"sine is no function"),
    (("y[...] = 1",), 3, U, r"\[...\] is not compiled.*write a : for each dimension"),
    (("y[None] = 1",), 3, U, r"\[None\] is not compiled"),
    (("y[0] = lambda: 1",), 3, U, "a lambda is not compiled"),
    (("y[0] = [i for i in x]",), 3, U, "a comprehension is not compiled"),
    (("y[0] = {i for i in x}",), 3, U, "a comprehension is not compiled"),
    (("y[0] = {i: i for i in x}",), 3, U, "a comprehension is not compiled"),
    (("y[0] = max(i for i in x)",), 3, U, "a generator is not compiled"),
    (("y[0] = max(*x)",), 3, U, r"'\*' before an argument is not compiled"),
    (("y[0] = (t := 1)",), 3, U, "the operator ':=' is not compiled"),
    (("y[0] = f'{x}'",), 3, T, "strings are not values of a kernel"),
    (("y[0] = 'a'",), 3, T, "values are numbers, but got 'a'"),
    (("y[0] = '-inf'",), 3, T, "values are numbers, but got '-inf'.*write -math.inf, with import math"),
    (("y[0] = 'nan'",), 3, T, "write math.nan"),
    (("y[0] = '2.5'",), 3, T, "write 2.5"),
    (("y[0] = abs('3')",), 3, T, "write 3$"),
    (("y[0] = float('a')",), 3, T, "values are numbers, but got 'a'"),
    (("y[0] = finfo(x.dtype)",), 3, T, r"finfo\(x.dtype\) is no number.*write finfo\(x.dtype\).max"),
    (("y[0] = np.full(3, x[0])",), 3, V, r"make it in a line of its own: t = np.full\(shape, value, dtype\)"),
    (("y[0] = gcd(x[0])",), 3, T, r"gcd takes two or more inputs, but got 1"),
    (("y[0] = clip(x[0], low=0, high=1)",), 3, T, r"clip takes no keyword arguments, but got low=, high=.*its inputs are a, a_min, a_max"),
    (("y[0] = isclose(x[0])",), 3, T, r"isclose takes two to five inputs, but got 1"),
    (("y[0] = -math.inf",), None, None, ""),
    (("y[0] = 2**70",), 3, T, r"an integer must fit into 64 bits.*1180591620717411303424.*write a float: 2.0\*\*64"),
    (("y[0] = 20000000000000000000",), 3, V, "an integer must fit into 64 bits"),
    (("y[0] = {}",), 3, U, "a dict is not compiled.*a table of numbers is a list"),
    (("y[0] = 3 in x",), 3, U, r"the operator 'in' is not compiled.*numbers: x\[i\] in \(1, 2\); for a tensor"),
    (("y[0] = 3 not in x",), 3, U, "the operator 'not in' is not compiled.*in a loop"),
    (("y[0] = x[0] is None",), 3, U, "the operator 'is' is not compiled"),
    (("y[0] = x[0] is not None",), 3, U, "the operator 'is not' is not compiled.*only a tensor may be None"),
    (("y[0] = x @ x",), 3, U, "whole-tensor maths is not compiled: @"),
    (("y[0] = 8 >> 1",), None, None, ""),
    # each says what to write instead
    (("def g(t):", "    return t + 1", "y[0] = g(x[0])"), 3, U, "a function inside is not compiled, but got g.*with def, outside of the kernel"),
    (("async def g(t):", "    return t + 1"), 3, U, "a function inside is not compiled, but got g"),
    (("class A:", "    pass"), 3, U, "a class is not compiled, but got A.*pass numbers as attributes"),
    (("y[0] = {1, 2}",), 3, U, "a set is not compiled.*a table of numbers is a list"),
    (("with np.errstate(all='ignore'):", "    pass"), 3, V, "Unsupported function in With scope.*remove it"),
    (("global G",), 3, U, "the statement global .*return the value in a tensor"),
    (("from math import sin",), 3, U, "the statement import is not.*at the top of the file"),
    (("...",), 3, U, r"... is not part of the language.*write pass"),
    (("y[0] = None",), 3, T, "values are numbers, but got None.*a missing tensor is b"),
    (("if x.dtype.kind == 'f':", "    pass"), 3, U, "x.dtype.kind is not compiled.*compare the dtype"),
    (("y[0] = x.T[0]",), 3, V, r"no attribute called T.*swap the indices: x\[j, i\]"),
    (("y[0] = x[[0, 1]]",), 3, U, r"an index is a number or a slice, but got \[0, 1\].*write a loop: y\[i\] = x\[index\[i\]\]"),
    (("y[x > 0] = 1",), 3, U, r"an index is a number or a slice, but got x > 0.*write a loop with an if"),
    (("y[0] = x[np.newaxis]",), 3, U, r"\[np.newaxis\] is not compiled.*write a : for each dimension"),
    (("y[0] = sum(x, 1)",), 3, T, r"sum takes one input, but got 2.*write the row: sum\(x\[i\]\)"),
    (("y[0] = round(x[0], 2, 1)",), 3, T, r"round takes one to two inputs"),
    (("y.shape = (3,)",), 3, V, "only names and elements of tensors can be assigned.*given once, by output_tensor"),
    (("for i in 10:", "    pass"), 3, V, r"a for loop runs over .*write for i in range\(10\)"),
    (("for i in x.shape:", "    pass"), 3, V, r"a for loop runs over .*one by one, as x.shape\[0\]"),
    (("for i in np.arange(2, 3):", "    pass"), 3, V, r"write for i in range\(2, 3\)"),
    (("for i in np.prange(3):", "    pass"), 3, V, r"write for i in range\(n\)"),
    (("if MODE == 'a':", "    pass"), 3, T, "values are numbers, but got 'a'.*a string is compared with a parameter"),
    (("assert x[0] > 0",), 3, U, "assert is not compiled"),
    (("del y",), 3, U, "the statement del is not part of the language"),
    (("import os",), 3, U, "the statement import is not part of the language"),
    (("try:", "    pass", "finally:", "    pass"), 3, U, "the statement try is not part of the language"),
    (("raise ValueError",), 3, U, "the statement raise is not part of the language.*check arguments before you call"),
    (("match x.shape[0]:", "    case 1:", "        pass"), 3, U, "the statement match .*write if and elif"),
    (("yield x",), 3, U, "yield is not compiled"),
    (("x + 1",), 3, V, "the value of this line is not used"),
    (("t: float",), 3, V, "a declaration needs a value"),
    (("y.z = 1",), 3, V, "only names and elements of tensors can be assigned"),
    (("for i in rang(3):", "    pass"), 3, V, r"rang is no function.*did you mean range"),
    (("for i in exp(3):", "    pass"), 3, V, "a for loop runs over range"),
    (("for i in range():", "    pass"), 3, T, r"range takes one to three inputs, but got 0"),
    (("for y[0] in range(3):", "    pass"), 3, V, "the target of a for loop must be a name"),
    (("for i, j in range(3):", "    pass"), 3, V, "only grid has several loop variables"),
    (("for x in range(3):", "    pass"), 3, V, "a loop would overwrite the parameter: x"),
    (("for i in range(3):", "    pass", "else:", "    pass"), 6, U, "else after a for is not compiled"),
    (("if x[0] > 0:", "    t = 1", "y[0] = t"), 5, V, "t is assigned in only one branch of an if and used after it"),
    ((LOOP, "    if i > 0:", "        t = t + 1", "    else:", "        t = 1"), 5, V, "t is assigned only later|there is no variable t"),
    ((LOOP, "    t = output_tensor((2,), 'int8')"), 4, V, "output_tensor inside a loop or an if is not compiled: t"),
    ((LOOP, "    t = allocate((2,), 'int8')", "y[0] = t[0]"), 5, V, "ends with the loop or the if that assigns it: t"),
    (("y[0] = TEXT",), 3, V, "only numbers can be read from outside the function: TEXT is of type str.*make it a parameter: mode: str"),
    (("y[0] = WEIGHTS[0]",), 3, V, "the array WEIGHTS from outside the function may change after it was read.*write WEIGHTS.setflags.write=False. in the module; or make WEIGHTS a parameter"),
    (("y[0] = WEIGHTS.shape[0]",), 3, V, "the array WEIGHTS from outside the function may change after it was read.*write WEIGHTS.setflags.write=False. in the module; or make WEIGHTS a parameter"),
    (("y[0] = math",), 3, T, "only numbers can be read from outside the function, but got module"),
    (("y[0] = math.nope",), 3, V, "getattr is only supported .* not for: math.*math.nope is not a number"),
    (("x[0] = 1",), 3, V, "the input tensor is written but not in the return value: x"),
    (("return y", "y[0] = 1"), 4, V, "a line after a break, continue or return never runs"),
    # what the number of dimensions and the dtype decide
    (("y[0] = x + 1",), 3, T, r"x \+ 1 has 1 dimension, where a number is needed.*write its elements, in a loop"),
    (("y[0] <<= 1",), 3, T, "<< takes integers, but got float32.*cast first"),
    (("y[0] = x",), 3, T, r"x has 1 dimension, where a number is needed.*write x\[i\], in a loop"),
    (("y[0] = max(x[0])",), 3, T, r"max takes a row: x\[0\] is a number.*pass a part of a tensor"),
    (("while x:", "    pass"), 3, T, "x has 1 dimension, where a number is needed"),
    (("y[0] = not x",), 3, T, "x has 1 dimension, where a number is needed"),
    (("y[0:1, 0] = 1",), 3, V, r"y\[0:1, 0\] has more indices than there are dimensions, but got 2 for 1 dimension"),
    (("t = [0] * 3",), 3, T, r"a tuple is not a number: \[0\].*zeros are allocate"),
    (("s = x.shape", "s[0] = 3"), 4, T, "s is not a tensor and has no elements.*it is a tuple"),
    (("if x.dtype == np.floating:", "    pass"), 3, T, "the dtype of a tensor must be one of .*but got np.floating"),
    (("y[0] = x[1:2]",), 3, T, r"x\[1:2\] has 1 dimension, where a number is needed.*store it into a row"),
    (("y[0, 1] = 1",), 3, V, "y has 1 dimension and needs as many indices, but got 2"),
    (("y[0] = x[0][1]",), 3, V, "x has 1 dimension and needs as many indices, but got 2"),
    (("y[0.5] = 1",), 3, T, "index 0 of y must be an integer, but got float"),
    ((LOOP, "    y[x[i]] = 1"), 4, T, r"index 0 of y must be an integer, but got float32.*write int\(x\[i\]\)"),
    ((LOOP, "    y[x[i] / 2] = 1"), 4, T, r"index 0 of y must be an integer, .*divide with //: x\[i\] // 2"),
    (("for i in range(x.shape[0] / 2):", "    pass"), 3, T, r"a loop's bound must be an integer, .*divide with //: x.shape\[0\] // 2"),
    (("for i in range(x[0]):", "    pass"), 3, T, r"a loop's bound must be an integer, but got float32.*write int\(x\[0\]\)"),
    (("for i, j in grid((2, 3 / 2)):", "    pass"), 3, T, r"a loop's bound must be an integer, .*divide with //: 3 // 2"),
    (("t = allocate((x.shape[0] / 2,), 'int8')",), 3, T, r"a size must be an integer, .*divide with //: x.shape\[0\] // 2"),
    (("t = allocate(x.shape[:0] + (x.shape[0] / 2,), 'int8')",), 3, T, "a size must be an integer, but got float"),
    (("y[0] = len(x[0])",), 3, T, r"len takes a tensor or a shape, but got x\[0\].*write x.shape\[k\]"),
    (("y[True] = 1",), 3, T, "index 0 of y must be an integer, but got bool"),
    (("for i in range(2.5):", "    pass"), 3, T, "a loop's bound must be an integer, but got float"),
    (("for i in range(3, 0, 0):", "    pass"), 3, V, "the step of a range must not be 0"),
    (("for i in grid(3):", "    pass"), 3, T, r"grid takes a tuple of sizes, but got 3.*grid\(\(3,\)\)"),
    (("for i, j in grid(x.shape):", "    pass"), 3, V, "this grid has 1 dimension, but got 2 loop variables"),
    (("for i in grid((2, 2)):", "    y[i, 0] = 1"), 4, T, "a grid variable must be the whole index"),
    (("for i in grid((2,)):", "    y[0] = i"), 4, T, r"i is a tuple.*write i\[0\]"),
    (("for i in grid((2,)):", "    y[0] = i[1]"), 4, V, "i has 1 element, but got index 1"),
    ((LOOP, "    y[0] = x.shape[i]"), 4, T, "a tuple must be indexed by a constant"),
    (("y[0] = x.shape",), 3, T, r"x.shape is not a number.*write x.shape\[0\]"),
    (("n, m = x.shape",), 3, V, "x.shape has 1 element, but got 2 names"),
    (("y[0] = x.dtype",), 3, T, "x.dtype is not a number"),
    (("y[0] = (1, 2)",), 3, T, "a tuple is not a number"),
    (("if x[0] > 0:", "    s = x.shape"), 4, T, "a tuple can only be assigned to a name.*once, at the top"),
    (("y[0] = 1 + (1, 2)",), 3, T, "a tuple is not a number"),
    (("y[0] = x.real[0]",), 3, T, r"real\(x\) is not a tensor and has no elements.*write x\[0\].real"),
    (("y[0] = LIMIT[0]",), 3, T, "LIMIT is not a tensor and has no elements"),
    (("t = 1", "t = x[0] > 0", "y[0] = t"), 4, T, "t is a bool in one assignment and a number in another"),
    (("y[0] = -(x[0] > 0)",), 3, T, "neg is not defined for bool.*write not x"),
    (("y[0] = -(x.shape[0] > 0)",), None, None, ""),
    (("t = allocate((x[0],), 'int8')",), 3, T, "a size must be an integer, but got float32"),
    (("t = allocate((int(x[0]),), 'int8')",), 3, V, "a shape is computed from shapes of parameters, attributes and constants"),
    ((LOOP, "    t = allocate((i,), 'int8')"), 4, V, "a shape is computed from shapes of parameters"),
    (("t = allocate((-1,), 'int8')",), 3, V, "a size cannot be negative, but got -1"),
    (("t = allocate(3, 'int8')",), 3, None, ""),
    (("t = allocate(x[0], 'int8')",), 3, T, r"a size must be an integer, but got float32"),
    (("a, b = x",), 3, None, ""),
    (("a, b = y[0]",), 3, T, r"several names take a row of one dimension: y\[0\], but got a number"),
    (("a, b = x[:1]",), 3, None, ""),
    (("y[0] = round(x[0], len(x))",), 3, T, "the digits of round are a number in the text"),
    (("y[0] = iinfo(x.dtype).max",), 3, T, "iinfo of float32 has no number called max.*iinfo of integers"),
    (("y[0] = gcd(x[0], 2)",), 3, T, "gcd takes integers, but got float32"),
    (("t = allocate((3,), 'flot')",), 3, T, "the dtype of a tensor must be one of bool, int8.*but got 'flot'"),
    (("t = allocate((3,), 'float8_e5m2fnuz')",), 3, T, "the dtype of a tensor must be one of .*but got float8_e5m2fnuz"),
    (("t = allocate((3,), x)",), 3, T, "the dtype of a tensor must be one of"),
    (("t = allocate((3,), x.shape)",), 3, T, "x.shape is not a dtype"),
    (("y[0] = 1j",), 3, T, "a complex number is not converted to float32, but got complex.*write real"),
    (("if x[0] * 1j < 2: pass",), 3, T, "< of complex numbers is not compiled, but got complex64.*compare abs"),
    (("y[0] = abs(max(x[0], 1j))",), 3, T, "max of complex numbers is not compiled, but got complex64.*compare abs"),
    (("y[0] = abs(1j ** x[0])",), 3, T, "a power of a complex number is compiled only if the exponent is a constant int.*but got float32.*log.z"),
    (("y[0] = abs((1j * x[0]) ** 2.0)",), 3, T, r"a power of a complex number is compiled only if .*but got 2.0.*write z \*\* 2"),
    (("y[0] = abs(with_gradient(1j * x[0], x[0], 1.0))",), 3, T, "with_gradient takes real numbers, but got complex64.*give each part its own"),
    (("y[0] = real(floor(x[0] + 1j))",), 3, T, "floor of complex numbers is not compiled.*for real.z. and imag.z."),
    (("y[0] = x[0] & 1",), 3, T, "& takes integers and bool, but got float32"),
    (("y[0] = ceil_div(x[0], 2)",), 3, T, "ceil_div takes integers, but got float32"),
    (("y[0] = (x[0] > 0) - (x[1] > 0)",), 3, T, "- is not defined for bool.*write not x"),
    (("y[0] = int8(3) + 300",), 3, T, r"a Python int that meets int8 must fit into it, but got 300.*int64\(300\)"),
]  # fmt: skip


def text_of(lines):
    return "; ".join(line.strip() for line in lines)


@pytest.mark.parametrize(("lines", "line", "kind", "words"), CHECKS, ids=[text_of(c[0]) for c in CHECKS])
def test_the_error_names_the_rule_the_line_and_its_text(lines, line, kind, words):
    rejected = kernel(*lines)
    if kind is None:  # Python computes with these as numbers: they are compiled
        assert parse(rejected, [("float32", 1)], {}).name == "f"
        return
    with pytest.raises(kind) as caught:
        parse(rejected, [("float32", 1)], {})
    text = str(caught.value)
    assert re.search(words, text, re.DOTALL), text
    assert text.startswith("loop kernel f: ")
    file = rejected.__code__.co_filename
    assert f"defined at {file}:{line}\n    {linecache.getline(file, line).strip()}" in text


RETURNS = [
    ("return y + 1", T, r"the return value should be either a single tensor or a tuple, but got y \+ 1.*whole-tensor maths is not compiled: write loops into an output_tensor"),
    ("return", T, "the return value should be either a single tensor or a tuple, but got None.*end with: return y$"),
    ("return [y]", T, r"the return value should be either a single tensor or a tuple, but got \[y\].*end with: return y$"),
    ("return y, 1", T, "the element in the return value should be the name of a tensor, but got 1"),
    ("return y, x * 2", T, r"should be the name of a tensor, but got x \* 2.*whole-tensor maths is not compiled"),
    ("return t", T, "t cannot be returned: only inputs and tensors of output_tensor can.*with output_tensor"),
    ("return y, s", T, "s cannot be returned: only inputs and tensors of output_tensor can.*a number is returned in a tensor"),
    ("return nothing", T, "nothing cannot be returned: only inputs and tensors of output_tensor can"),
    ("return x", T, "the tensor is allocated as an output tensor but not in the return value: y"),
    ("return y, y", V, "Duplicated tensors in the return tuples, but got y"),
    ("pass", V, "No valid return found in the function body.*end with: return y$"),
    ("for i in range(3): return y", V, "No valid return found at the end of the function body.*end with: return y"),
    ("if x[0] > 0: return y", V, "No valid return found at the end of the function body"),
]  # fmt: skip


@pytest.mark.parametrize(("returns", "kind", "words"), RETURNS, ids=[r[0] for r in RETURNS])
def test_what_is_returned(returns, kind, words):
    rejected = kernel("t = allocate(x.shape, x.dtype)", "s = 1.0", returns=returns)
    with pytest.raises(kind, match="(?s)" + words):
        run_static_checks(rejected)


SUGGESTIONS = [  # an expression, what to write instead of it
    ("x.sum(0)", r"write sum\(x\[i\]\), of a row"),
    ("x.max(0)", r"write max\(x\[i\]\), of a row"),
    ("x.copy()", r"make it in a line of its own: t = x.copy\(\)"),
    ("x.rolled()", "write a loop over the elements"),
    ("x[0].astype('int32')", r"write int32\(x\[0\]\)"),
    ("x[0].astype(np.float16)", r"write float16\(x\[0\]\)"),
    ("x[0].astype(y.dtype)", r"write x\[0\]: a store converts it"),
    ("x.astype(int)", r"write int\(x\[i\]\)"),
    ("x.astype(LIMIT)", r"write float32\(x\[i\]\)"),
    ("print(x[0])", "remove it"),
    ("np.convolve(x, x)", "a kernel can call only the words .* functions made by def"),
    ("np.zeros(3)", r"make it in a line of its own: t = np.zeros\(shape, dtype\)"),
]


# hints that are loops, or words about tensors
TENSORS = (
    "arange",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "any",
    "all",
    "append",
    "where",
    "select",
    "ndindex",
    "divmod",
)


@pytest.mark.parametrize(("text", "words"), SUGGESTIONS, ids=[row[0] for row in SUGGESTIONS])
def test_a_call_that_is_not_compiled_says_what_to_write(text, words):
    with pytest.raises(
        ArgumentValueError, match=r"(?s) is no function of loop kernels.*\n  " + words
    ) as caught:
        run_static_checks(kernel(f"y[0] = {text}"))
    assert len(str(caught.value).splitlines()[-1].split()) < 25


def test_the_words_in_the_hints_are_compiled():
    """What a hint says to write for a function of numbers is in the language, and gives its value."""
    values = {"x": 0.3, "y": 0.4, "a": 0.3, "b": 0.4, "low": 0.0, "high": 0.2, "condition": True}
    checked = 0
    for name, hint in FUNCTIONS.items():
        library = math if hasattr(math, name) else np
        if not (hint.startswith("write ") and hasattr(library, name)) or name in (
            *TENSORS,
            "where",
            "select",
        ):
            continue
        text = hint.removeprefix("write ")
        inputs = sorted({n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)} & set(values))
        inputs = ["y", "x"] if name == "arctan2" else ["x", "low", "high"] if name == "clip" else inputs
        head = "".join(f"    {n} = {v}\n" for n, v in values.items() if n != "condition")
        body = f"def f(out):\n{head}    r = output_tensor((1,), out.dtype)\n    r[0] = {text}\n    return r\n"
        result = plain(function(body))(np.zeros(1))
        np.testing.assert_allclose(result[0], getattr(library, name)(*(values[n] for n in inputs)))
        checked += 1
    assert checked > 10


TVM = [
    "def f(a, b):\n    ib = tvm.ir_builder.create()\n    return ib.get()\n",
    "def f(inputs, attrs):\n    from akg import tvm\n    return tvm.compute(inputs[0].shape, lambda i: i)\n",
    "def f(inputs, attrs):\n    import akg.tvm as t\n    return t.compute(inputs[0].shape, lambda i: i)\n",
    "def f(a):\n    ib = ir_builder.create()\n    return ib\n",
    "def f(a):\n    return te.compute(a.shape, lambda i: a[i])\n",
]


@pytest.mark.parametrize("text", TVM)
def test_the_other_front_ends_of_akg_are_recognised(text):
    with pytest.raises(
        UnsupportedError, match=r"(?s)kernels built with TVM \(ir_builder, tvm.compute\).*write loops"
    ):
        outline(function(text))


def test_the_names_of_tvm_may_be_used_for_other_things():
    text = '''def f(te):
    """Like tvm.compute, but not ir_builder."""
    tvm = te.shape[0]
    y = output_tensor((tvm,), te.dtype)
    return y
'''
    assert outline(function(text)).outputs == ("y",)


def test_only_functions_made_by_def_are_compiled():
    with pytest.raises(ArgumentTypeError, match="must be a function made by def, but got a lambda"):
        run_static_checks(lambda x: x)
    for wrong in (len, "text", TestMethod().method, type):
        with pytest.raises(ArgumentTypeError, match="must be a function made by def"):
            run_static_checks(wrong)
    names = {}
    exec("def hidden(x):\n    return x\n", names)
    with pytest.raises(
        ArgumentValueError, match=r"(?s)the loop kernel hidden: its source cannot be read.*notebook"
    ):
        run_static_checks(names["hidden"])
    with pytest.raises(UnsupportedError, match="the loop kernel f: must be an ordinary def"):
        run_static_checks(function("async def f(x):\n    return x\n"))


class TestMethod:
    def method(self):
        return self


@pytest.mark.parametrize("parameters", ["*x", "x, *, k=1", "x, **k"])
def test_parameters_are_positional_and_named(parameters):
    with pytest.raises(
        ArgumentTypeError, match=r"parameters must be named and positional, but got (\*x|k after \*|\*\*k)\n"
    ):
        run_static_checks(function(f"def f({parameters}):\n    return x\n"))


def test_attributes_are_numbers_with_the_names_of_the_parameters():
    f = function("def f(x, k, n=2):\n    y = output_tensor((n,), x.dtype)\n    y[0] = k\n    return y\n")
    tensors = [("float32", 1)]
    assert {k: str(t) for k, t in parse(f, tensors, {"k": float}).attributes.items()} == {
        "k": "float",
        "n": "int",
    }
    assert str(parse(f, tensors, {"k": np.float32(1)}).attributes["k"]) == "float32"
    for wrong, words in (
        ({}, "needs the attribute k"),
        ({"k": 1, "m": 2}, "has no attribute m; its attributes are k, n"),
        ({"k": "a"}, "attributes are numbers: int, float or bool, but got 'a' for k"),
    ):
        with pytest.raises(ArgumentTypeError, match=words):
            parse(f, tensors, wrong)
    with pytest.raises(ArgumentTypeError, match="takes 3 parameters, but got 4 tensors"):
        parse(f, tensors * 4, {})
    with pytest.raises(ArgumentTypeError, match="the dtype of x must be one of .*, but got float8_e5m2fnuz"):
        parse(f, [("float8_e5m2fnuz", 1)], {"k": 1})
    with pytest.raises(
        ArgumentValueError, match="the number of dimensions of x must not be negative, but got -1"
    ):
        parse(f, [("float32", -1)], {"k": 1})
    with pytest.raises(ArgumentTypeError, match="x cannot be returned: only inputs .*, and x is a number"):
        parse(function("def f(x):\n    return x\n"), [], {"x": 1})
    with pytest.raises(ArgumentTypeError, match="x is a number here and has no shape|x.dtype is not a dtype"):
        parse(function("def f(x):\n    y = output_tensor((1,), x.dtype)\n    return y\n"), [], {"x": 1})


def test_checks_that_need_no_dtype_are_made_without():
    first = [c[0] for c in CHECKS].index(("y[0] = x + 1",))
    before_dtypes = [c for c in CHECKS[:first] if c[2] is not None]
    late = [lines for lines, _, kind, _ in before_dtypes if not refuses(kernel(*lines), kind)]
    assert late == [("y[0] = 2**70",), ("y[0] = math",)]  # a step to another number; a module before a dot


def refuses(rejected, kind):
    try:
        run_static_checks(rejected)
    except PolyopError as error:
        return isinstance(error, kind)
    return False


PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "not-compiled.md"
TABLE = re.compile(r"(<!-- not compiled -->\n)(.*?)(<!-- /not compiled -->)", re.S)


def row_of_page(lines, kind):
    """Return the row of a table for a construct: what is written, the rule, and what to write instead."""
    rejected = kernel(*lines)
    with pytest.raises(kind) as caught:
        parse(rejected, [("float32", 1)], {})
    message, _, _, *way_out = str(caught.value).splitlines()
    assert way_out, f"{text_of(lines)}: the error says no way out"
    rule = message.removeprefix("loop kernel f: ")
    written = text_of(lines).replace(":; ", ": ")
    cells = [f"`{written}`", rule, *map(str.strip, way_out)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def test_the_page_has_a_row_for_each_construct_that_is_not_compiled(request):
    rows = "".join(
        row_of_page(lines, kind) for lines, _, kind, words in CHECKS if kind is U or "complex" in words
    )
    table = f"| written | error | write |\n| --- | --- | --- |\n{rows}"
    text = PAGE.read_text()
    if request.config.getoption("--update-golden"):
        text = TABLE.sub(lambda m: m[1] + table + m[3], text)
        PAGE.write_text(text)
    assert TABLE.search(text)[2] == table, "docs/reference/not-compiled.md: run 'make golden'"
