"""The language of loop kernels as a table: a row for each construct that the guide describes.

A text has holes, which the generator fills:

    {int} {real} {num} {bool} {complex}   an expression of that kind; num is int or real
    {row} {part} {partial} {unit}         what is computed of rows; a row that is read, or written, or of size 1
    {x:real}                              an element of a tensor of that kind; {y:real} of one that is written
    {s:real}                              a scalar of that kind; {set:real} one that may be assigned
    {var} {size} {digit} {number}         a loop variable, a size, 0 to 3, a number with a point
    {v:real} {vy:real} {same_v}           a tensor of one dimension, one that is written, the same one again
    {tensor} {matrix}                     any tensor, one of two dimensions
    {new} {new2}                          new names; ``after`` and ``inside`` give their kinds
    {to:int} {same}                       a dtype of that kind which the kernel has, the same one again
    {block} {exit}                        statements; a break, continue or return
    {a|b|c}                               one of these words

A construct without a place in the generator's state is left out of that draw: ``{x:bool}`` where no tensor is bool.
"""

from dataclasses import dataclass

INT = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REAL = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


@dataclass(frozen=True)
class Row:
    """A construct: its name, the kind of its value (or "statement"), and its text.

    ``after`` and ``inside`` are the kinds of the new names behind the statement and in its block: "index"
    is a loop variable. ``only`` is a word of the palette without which the row is not drawn, ``weight`` how
    often it is.
    """

    construct: str
    kind: str
    text: str
    weight: float = 1.0
    after: str = ""
    inside: str = ""
    only: str = ""


_FUNCTIONS = (
    *("exp(-abs({num}))", "exp2(-abs({real}))", "expm1(-abs({num}))", "log(abs({num}) + 0.5)"),
    *("log1p(abs({real}))", "log2(abs({real}) + 0.5)", "sqrt(abs({num}))", "rsqrt(abs({real}) + 0.5)"),
    *("sinh(tanh({real}))", "cosh(tanh({real}))", "tanh({num})", "sigmoid({real})", "erf({real})"),
    *("erfc(tanh({real}))", "lgamma(abs({real}) + 0.5)", "digamma(abs({real}) + 0.5)", "sin({num})"),
    *("trigamma(abs({real}) + 0.5)", "cos({real})", "tan(tanh({real}))", "asin(0.5 * tanh({real}))"),
    *("acos(0.5 * tanh({real}))", "atan({num})", "atan2({real}, abs({real}) + 0.5)", "hypot({real}, {num})"),
    *(
        "cbrt({num})",
        "copysign({real}, {num})",
        "degrees({real})",
        "radians({num})",
        "np.square(tanh({real}))",
    ),
    *("np.exp(-abs({real}))", "math.sin({real})", "np.sqrt(abs({num}) + 0.5)"),
)
EXPRESSIONS = (
    # integers
    Row("element", "int", "{x:int}", 4),
    Row("scalar", "int", "{s:int}", 2),
    Row("loop variable", "int", "{var}", 1.5),
    Row("size", "int", "{{size}|len({tensor})|{tensor}.ndim|{tensor}.size}", 0.5),
    Row("number", "int", "{digit}", 0.7),
    Row("integer arithmetic", "int", "({int} {+|-|*} {int})", 2),
    Row("ceil_div", "int", "ceil_div({int}, {2|3})", 0.3),
    Row("floor division", "int", "({int} {//|%} {2|3|-3|5})", 0.7),
    Row("floor division by any", "int", "({int} {//|%} {int})", 0.2),
    Row("remainder of C", "int", "fmod({int}, {2|3|-5})", 0.2),
    Row("mod", "int", "{mod|np.remainder}({int}, {2|3})", 0.2),
    Row("divisors", "int", "{gcd|lcm}({to:int}({int}), {same}({digit}))", 0.3),
    Row("quotient and remainder", "int", "divmod({int}, {2|3})[{0|1}]", 0.2),
    Row("square of an integer", "int", "square({x:int})", 0.2),
    Row("limits of integers", "int", "np.iinfo(np.int8).{min|max}", 0.2),
    Row("limits of integers by a word", "int", "iinfo(int16).max", 0.1),
    Row("integer of a real", "int", "math.{floor|ceil|trunc}(tanh({real}) * 4)", 0.3),
    Row("bits", "int", "({int} {&|^|\\|} {int})", 0.6),
    Row("complement", "int", "(~{int})", 0.2),
    Row("shift", "int", "({int} {<<|>>} {digit})", 0.5),
    Row("shift by any", "int", "({x:int} {<<|>>} {x:int})", 0.15),
    Row("negation", "int", "(-{int})", 0.3),
    Row("positive power", "int", "{({int} ** 2)|pow({x:int}, 2)|power({x:int}, 3)}", 0.3),
    Row("power of any integer", "int", "({to:int}({x:int}) ** {same}({x:int}))", 0.06),
    Row("abs and sign", "int", "{abs|sign}({int})", 0.4),
    Row("max and min", "int", "{max|min}({int}, {int})", 0.6),
    Row("rounding of an integer", "int", "{floor|ceil|trunc|round}({x:int})", 0.15),
    Row("cast between integers", "int", "{to:int}({int})", 1.2),
    Row("cast of a bool", "int", "{to:int}({bool})", 0.4),
    Row("cast of a real to int64", "int", "{int64|int}({real})", 0.5),
    Row("cast of a real to narrow integers", "int", "{int8|int16|int32}({real}{| * 100})", 0.5),
    Row("cast of a real to unsigned integers", "int", "{uint8|uint16|uint32|uint64}({real})", 0.4),
    Row("conditional", "int", "({to:int}({int}) if {bool} else {same}({int}))", 0.5),
    Row("conditional of mixed dtypes", "int", "({int} if {bool} else {int})", 0.7),
    Row("where", "int", "where({bool}, {to:int}({int}), {same}({int}))", 0.2),
    Row("number of the module", "int", "SHIFT", 0.3),
    Row("array of the module", "int", "STEPS[{int} % 4]", 0.3),
    Row("attribute", "int", "n", 0.4),
    Row("field of a record", "int", "{p|q}.size", 0.3),
    Row("attribute that is a bool", "int", "({digit} if flag else {digit})", 0.1),
    Row("helper of an expression", "int", "scaled({int}, {digit})", 0.3),
    Row("helper with branches", "int", "clamped({to:int}({int}), {same}(0), {same}(3))", 0.3),
    Row("helper with a while", "int", "digits({int})", 0.2),
    Row("helper with keywords and defaults", "int", "{scaled({int}, w=3)|scaled(w={int}, v={int})|scaled({int})}", 0.3),
    # real numbers
    Row("element", "real", "{x:real}", 5),
    Row("element of float8", "real", "{x:float8}", 1.5),
    Row("scalar", "real", "{s:real}", 2.5),
    Row("number", "real", "{number}", 0.7),
    Row("integer as a real", "real", "{int}", 0.7),
    Row("real arithmetic", "real", "({real} {+|-|*} {real})", 3),
    Row("mixed arithmetic", "real", "({real} {+|-|*} {int})", 1),
    Row("division", "real", "({num} / {(abs({real}) + 0.5)|2|4.0|3})", 0.7),
    Row("floor division of reals", "real", "({real} {//|%} {2|0.5|3|-1.5})", 0.4),
    Row("negation", "real", "(-{real})", 0.3),
    Row("positive power", "real", "({real} ** {2|3})", 0.2),
    Row("abs and sign", "real", "{abs|sign}({real})", 0.4),
    Row("max and min", "real", "{max|min}({real}, {num})", 0.6),
    Row("max and min of three", "real", "{max|min}({real}, {real}, {real})", 0.2),
    Row("clip", "real", "{clip|np.clip}({real}, -1.0, 2)", 0.3),
    Row("remainder of C of reals", "real", "fmod({real}, {2|0.5|-3})", 0.2),
    Row("mod of reals", "real", "mod({real}, {2|0.5})", 0.2),
    Row("rounding to digits", "real", "round({real}, {1|2})", 0.2),
    Row("limits of reals", "real", "{finfo|np.finfo}(float32).{eps|max}", 0.2),
    Row("number in a string", "real", 'min(float("inf"), {real})', 0.2),
    Row("rounding", "real", "{floor|ceil|trunc|round}({real})", 0.4),
    *(Row("functions", "real", text, 1.5 / len(_FUNCTIONS)) for text in _FUNCTIONS),
    Row("cast between reals", "real", "{to:real}({num})", 1),
    Row("cast to float8", "real", "{float8_e4m3fn|float8_e5m2}({real})", 0.1),
    Row("float()", "real", "float({int})", 0.2),
    Row("conditional", "real", "({to:real}({num}) if {bool} else {same}({num}))", 0.5),
    Row("conditional of mixed dtypes", "real", "({num} if {bool} else {num})", 0.6),
    Row("where", "real", "where({bool}, {to:real}({num}), {same}({real}))", 0.2),
    Row("number of the module", "real", "{SCALE|math.pi}", 0.3),
    Row("array of the module", "real", "TAPS[{int} % 3]", 0.3),
    Row("attribute", "real", "alpha", 0.4),
    Row("field of a record", "real", "{p|q}.gain", 0.3),
    Row("random numbers", "real", "{random|random_normal}(key, {int}{|, {int}|, {int}, {digit}})", 0.3),
    Row("random numbers of float64", "real", '{random|random_normal}(key, {int}, dtype="float64")', 0.15),
    Row("random numbers with a row of keys", "real", "random(keys[{int} % 2], {int})", 0.1),
    Row("stop_gradient", "real", "stop_gradient({real})", 0.15),
    Row("with_gradient", "real", "with_gradient({s:real}, {s:real}, 1.0)", 0.1),
    Row("parts of a complex number", "real", "{real|imag|abs|angle}({complex})", 1, only="complex"),
    Row("attributes of a complex number", "real", "{{s:complex}|{x:complex}}.{real|imag}", 0.5, only="complex"),
    Row("helper of an expression", "real", "scaled({real}, {num})", 0.4),
    Row("helper in a helper", "real", "{bent({real}, {num})|bent({real}, w={num})}", 0.4),
    Row("helper inside an argument", "real", "bent(scaled({real}, {number}), clamped({number}, 0.5, 2.0))", 0.2),
    Row("helper with branches", "real", "clamped({to:real}({real}), {same}(0), {same}(1.5))", 0.3),
    Row("helper of a tensor", "real", "total_of({v:real})", 0.3),
    Row("helper that takes a record", "real", "gained(p, {real}{|, {number}|, more={number}})", 0.3),
    Row("helper that takes a record and calls one", "real", "gained_twice(p, {real})", 0.2),
    Row("helper of an annotated record", "real", "typed_gain(p, {real}{|, {number}})", 0.3),
    # bools
    Row("comparison of integers", "bool", "{int} {<|<=|>|>=|==|!=} {int}", 1.5),
    Row("comparison of integers of one dtype", "bool", "({to:int}({int}) {<|<=|>|==|!=} {same}({int}))", 1),
    Row("comparison of reals", "bool", "({real} {<|<=|>|>=|!=} {num})", 2),
    Row("comparison with a loop variable", "bool", "{var} {<|<=|>|>=|==|!=} {digit}", 1.5),
    Row("chain of comparisons", "bool", "(0 {<|<=} {var} < {size})", 0.3),
    Row("in a tuple", "bool", "({{x:int}|{s:int}|{var}} {in|not in} (1, 2))", 0.3),
    Row("and, or", "bool", "({bool} {and|or} {bool})", 0.7),
    Row("not", "bool", "(not {bool})", 0.4),
    Row("element", "bool", "{x:bool}", 1.5),
    Row("scalar", "bool", "{s:bool}", 0.7),
    Row("cast to bool", "bool", "{bool_|bool}({num})", 0.3),
    Row("isnan, isinf, isfinite", "bool", "{isnan|isinf|isfinite}({real})", 0.2),
    Row("logical functions", "bool", "{logical_and|logical_or|np.logical_xor}({num}, {bool})", 0.3),
    Row("logical_not", "bool", "logical_not({num})", 0.2),
    Row("isclose", "bool", "{isclose|math.isclose}({real}, {num})", 0.2),
    Row("bits of bools", "bool", "({bool} {&|^|\\|} {bool})", 0.2),
    Row("attribute that is a bool", "bool", "flag", 0.2),
    Row("comparison of complex numbers", "bool", "({complex} {==|!=} {complex})", 0.4, only="complex"),
    # complex numbers
    Row("element", "complex", "{x:complex}", 4),
    Row("scalar", "complex", "{s:complex}", 2),
    Row("complex of two parts", "complex", "complex({real}, {real})", 1),
    Row("imaginary number", "complex", "({1j|2j|0.5j} {*|+} {real})", 1),
    Row("complex arithmetic", "complex", "({complex} {+|-|*} {complex})", 2),
    Row("complex arithmetic", "complex", "({complex} {+|-|*} {real})", 0.7),
    Row("complex division", "complex", "({complex} / {(2 + 1j)|(abs({real}) + 1)})", 0.4),
    Row("conjugate", "complex", "{conj({complex})|{s:complex}.conj()}", 0.5),
    Row("power of a complex number", "complex", "({complex} ** {2|3})", 0.2),
    Row("functions of a complex number", "complex",
        "{exp|log|sqrt|sin|cos|sinh|cosh}(complex(tanh({real}), {number}))", 0.6),
    Row("cast to complex", "complex", "{to:complex}({{complex}|{real}})", 0.5),
    Row("conditional", "complex", "({to:complex}({complex}) if {bool} else {same}({complex}))", 0.4),
    # rows
    Row("row of a tensor", "row", "{part}", 4),
    Row("arithmetic of rows", "row", "({row} {+|-|*} {row})", 2),
    Row("row and number", "row", "({row} {+|-|*} {real})", 1.5),
    Row("functions of rows", "row", "{abs({row})|exp(-abs({row}))|sqrt(abs({row}))|floor({row})}", 0.7),
    Row("max and min of rows", "row", "{max|min}({row}, {row})", 0.3),
    Row("where of rows", "row", "where({row} > {digit}, {row}, {row})", 0.3),
    Row("slice of size 1", "row", "{unit}", 0.5),
    Row("helper of a row", "row", "scaled({row}, {number})", 0.2),
)  # fmt: skip
STATEMENTS = (
    Row("range", "statement", "for {new} in range({size}):\n    {block}", 3, inside="index"),
    Row("range from 1", "statement", "for {new} in range(1, {size}):\n    {block}", 0.5, inside="index"),
    Row("range by steps", "statement", "for {new} in range(0, {size}, {2|3}):\n    {block}", 0.3, inside="index"),
    Row("range downwards", "statement", "for {new} in range({size} - 1, -1, -1):\n    {block}", 0.4, inside="index"),
    Row("range of data", "statement", "for {new} in range(min(abs({s:int}), 3)):\n    {block}", 0.3, inside="int"),
    Row("triangle", "statement", "for {new} in range({var} + 1):\n    {block}", 0.3, inside="int"),
    Row("hints", "statement", "for {new} in {serial|parallel|vectorize|reduce|prange}({size}):\n    {block}", 0.5,
        inside="index"),
    Row("grid", "statement", "for {new}, {new2} in grid(({size}, {2|3})):\n    {block}", 0.3, inside="index int"),
    Row("reversed", "statement", "for {new} in reversed(range({size})):\n    {block}", 0.3, inside="index"),
    Row("enumerate", "statement", "for {new}, {new2} in enumerate({v:real}):\n    {block}", 0.4, inside="int real"),
    Row("zip", "statement", "for {new}, {new2} in zip({v:real}, range({2|3})):\n    {block}", 0.3, inside="real int"),
    Row("for over a tensor", "statement", "for {new} in {v:real}:\n    {block}", 0.3, inside="real"),
    Row("for over a tuple", "statement", "for {new} in (1, 0, 2):\n    {block}", 0.3, inside="int"),
    Row("while", "statement", "{new} = 0\nwhile {new} < {1|2|3}:\n    {new} += 1\n    {block}", 0.8, inside="int"),
    Row("while with a condition of data", "statement",
        "{new} = 0\nwhile {bool} and {new} < 3:\n    {new} += 1\n    {block}", 0.4, inside="int"),
    Row("while that breaks", "statement",
        "{new} = 0\nwhile True:\n    {new} += 1\n    if {new} > {digit}:\n        break\n    {block}", 0.3, inside="int"),
    Row("two whiles side by side", "statement",
        "{new} = 0\nwhile {new} < {1|2|3}:\n    {new} += 1\n    {block}\n{new2} = 0\n"
        "while {new2} < {1|2|3}:\n    {new2} += 1\n    {block}", 0.4, inside="int int"),
    Row("counted while", "statement", "{new} = -1\nwhile {new} < {size} - 1:\n    {new} += 1\n    {block}", 0.5,
        inside="index"),
    Row("counted while", "statement", "{new} = {size}\nwhile {new} > 0:\n    {new} -= 1\n    {block}", 0.4,
        inside="index"),
    Row("counted while by steps", "statement",
        "{new} = -{2|3}\nwhile {new} {< {size} - 3|<= {size} - 4|+ 3 < {size}}:\n    {new} += 3\n    {block}", 0.3,
        inside="int"),
    Row("counted while of a dtype", "statement",
        "{new} = {to:int}({digit})\nwhile {new} {<|!=} 3:\n    {new} += 1\n    {block}", 0.3, inside="int"),
    Row("counted while that breaks", "statement",
        "{new} = 0\nwhile True:\n    if {new} >= {size}:\n        break\n    {new} += {1|2}\n    {block}", 0.3,
        after="int", inside="int"),
    Row("while of two counters", "statement",
        "{new} = 0\n{new2} = {size}\nwhile {new} < {new2}:\n    {new} += 1\n    {new2} -= {1|2}\n    {block}", 0.4,
        after="int int", inside="int int"),
    Row("exit", "exit", "if {bool}:\n    {exit}", 0.8),
    Row("if", "statement", "if {bool}:\n    {block}", 1.2),
    Row("else", "statement", "if {bool}:\n    {block}\nelse:\n    {block}", 0.7),
    Row("elif", "statement", "if {bool}:\n    {block}\nelif {bool}:\n    {block}\nelse:\n    {block}", 0.4),
    Row("choice by dtype", "statement", 'if {tensor}.dtype {== "float32"|in (float64, int32)|== np.int8}:\n'
        "    {block}\nelse:\n    {block}", 0.2),
    Row("choice by rank", "statement", "if {tensor}.ndim == 2:\n    {block}\nelse:\n    {block}", 0.1),
    Row("choice by a string", "statement", 'if mode == "sum":\n    {block}\nelse:\n    {block}', 0.2),
    Row("optional tensor", "statement", "if w is not None:\n    {y:real} += w[{int} % w.shape[0]]", 0.2),
    Row("scalar", "statement", "{new} = {int}", 0.6, after="int"),
    Row("scalar", "statement", "{new} = {real}", 0.8, after="real"),
    Row("scalar", "statement", "{new} = {bool}", 0.3, after="bool"),
    Row("scalar", "statement", "{new} = {complex}", 1, after="complex", only="complex"),
    Row("scalar of one dtype", "statement", "{new} = {to:int}({int})", 0.6, after="int"),
    Row("scalar of one dtype", "statement", "{new} = {to:real}({num})", 0.8, after="real"),
    Row("two names at once", "statement", "{new} = {new2} = {real}", 0.2, after="real real"),
    Row("tuple of scalars", "statement", "{new}, {new2} = {int}, {real}", 0.3, after="int real"),
    Row("sizes as a tuple", "statement", "{new}, {new2} = {matrix}.shape", 0.2, after="int int"),
    Row("scalar in both branches", "statement",
        "if {bool}:\n    {new} = {to:real}({num})\nelse:\n    {new} = {same}({num})", 0.4, after="real"),
    Row("scalar of mixed dtypes in branches", "statement",
        "{new} = {num}\nif {bool}:\n    {new} = {num}", 0.5, after="real"),
    Row("scalar reassigned with another type", "statement", "{set:real} = {num}", 0.7),
    Row("scalar updated", "statement", "{set:real} {+=|-=} {real}", 0.8),
    Row("scalar updated", "statement", "{set:int} {+=|-=|\\|=|^=|&=} {int}", 0.7),
    Row("scalar multiplied", "statement", "{set:real} *= {number}", 0.2),
    Row("shift with =", "statement", "{set:int} {<<=|>>=} {digit}", 0.2),
    Row("division with =", "statement", "{set:real} {/=|//=} {2|4}", 0.2),
    Row("scalar updated by max", "statement", "{set:real} = {max|min}({set:real}, {real})", 0.2),
    Row("scalar updated", "statement", "{set:complex} {+=|*=} {complex}", 0.5, only="complex"),
    Row("swap", "statement", "{set:real}, {set2:real} = {set2:real}, {set:real}", 0.3),
    Row("reduction", "statement", "{new} = {0|0.0|{real}}\nfor {new2} in range({size}):\n    {new} += {real}", 0.8,
        after="real", inside="real index"),
    Row("reduction of integers", "statement", "{new} = int64(0)\nfor {new2} in range({size}):\n    {new} += {int}", 0.5,
        after="int", inside="int index"),
    Row("greatest element", "statement",
        "{new} = -math.inf\n{new3} = 0\nfor {new2} in range({v:real}.shape[0]):\n"
        "    if {same_v}[{new2}] > {new}:\n        {new} = {same_v}[{new2}]\n        {new3} = {new2}", 0.3,
        after="real none int"),
    Row("store", "statement", "{y:real} = {real}", 3),
    Row("store", "statement", "{y:int} = {int}", 3),
    Row("store", "statement", "{y:bool} = {bool}", 1),
    Row("store", "statement", "{y:complex} = {complex}", 3, only="complex"),
    Row("store", "statement", "{y:float8} = {real}", 1),
    Row("store of a bool as an integer", "statement", "{y:int} = {bool}", 0.3),
    Row("store of an integer as a real", "statement", "{y:real} = {int}", 0.5),
    Row("store of a real as int64", "statement", "{y:int64} = {real}", 0.5),
    Row("store of a real as narrow integers", "statement", "{y:narrow} = {real}{| * 100}", 0.4),
    Row("store of a real as unsigned integers", "statement", "{y:unsigned} = {real}", 0.4),
    Row("update of an element", "statement", "{y:real} {+=|-=} {real}", 1.5),
    Row("update of an element", "statement", "{y:int} {+=|-=} {int}", 1.5),
    Row("update of an element", "statement", "{y:complex} += {complex}", 1, only="complex"),
    Row("bits with =", "statement", "{y:int} {&=|^=|\\|=} {to:int}({int})", 0.3),
    Row("helper that is a statement", "statement", "add_into({vy:real}, {int} % {same_vy}.shape[0], {real})", 0.4),
    Row("helper that is a statement in one", "statement", "add_twice({vy:real}, 0, {real})", 0.3),
    Row("helper inside an argument of a statement", "statement", "add_into({vy:real}, 0, bent({real}, {number}))", 0.3),
    Row("helper of several results", "statement", "{new}, {new2} = folded({real}, {number})", 0.4, after="real real"),
    Row("helper with an early return", "statement", "{new} = first_above({v:real}, {number})", 0.3, after="int"),
    Row("row stored", "rows", "{partial} = {row}", 1.5),
    Row("row updated", "rows", "{partial} {+=|-=|*=} {row}", 0.7),
    Row("sum and prod of a row", "rows", "{new} = {sum|prod}({row})", 0.7, after="real"),
    Row("max and min of a row", "rows", "{new} = {max|min}({row})", 0.4, after="real"),
    Row("mean of a row", "rows", "{new} = {mean({row})|np.mean({row})}", 0.4, after="real"),
    Row("any and all of a row", "rows", "{new} = {any|all}({row} > {digit})", 0.4, after="bool"),
    Row("max of an empty row", "rows", "{new} = {max|min}({part}[3:1])", 0.1, after="real"),
    Row("dot", "rows", "{new} = dot({row}, {row})", 0.4, after="real"),
    Row("row with a name", "rows", "{new} = {row}\n{partial} = {new} + {row}", 0.4),
    Row("rows that overlap", "statement", "{vy:real}[1:] = {same_vy}[:-1]", 0.2),
    Row("table", "statement", "{new} = [{real}, {number}, 2.0]\n{y:real} = {new}[{int} % 3]", 0.3),
    Row("with attr", "statement", 'with attr("pragma", 1):\n    {block}', 0.1),
)  # fmt: skip

PARTS = (":", ":", ":", "1:", ":-1", "1:-1", "::2", "::-1", "-2:", ":2")
"""Parts of a row; a statement uses one of them."""
UNITS = ("{index} : {index} + 1", "0:1", "-1:")
"""Slices of size 1."""

MODULE = """import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

SHIFT, SCALE = 2, 1.5
STEPS = np.array([1, 0, 2, -1])
STEPS.setflags(write=False)
TAPS = np.array([0.25, 0.5, -1.0])
TAPS.setflags(write=False)


class Window(NamedTuple):
    size: int = 1
    gain: float = 0.5


@dataclass
class Options:
    gain: float = 2.0
    size: int = 3


def scaled(v, w=2):
    return v * w


def clamped(v, low, high):
    if v < low:
        return low
    return min(v, high)


def bent(v, w=1.0):
    folded_back = scaled(v, 2) - clamped(w, 0, 2)
    return scaled(folded_back) if w > 0 else scaled(v, w=w)


def digits(v):
    rest, count = int64(v), 0
    while rest > 0 and count < 5:
        rest //= 2
        count += 1
    return count


def folded(v, w):
    total = v
    for step in range(3):
        if total > w:
            return total, step * 0.5
        if step == 1:
            continue
        total += 0.5
    return total, total - w


def first_above(x, limit):
    for k in range(x.shape[0]):
        if x[k] > limit:
            return k
    return -1


def total_of(x):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k]
    return total


def add_into(t, k, v):
    if t.shape[0] > 0:
        t[k] += v


def add_twice(t, k, v):
    add_into(t, k, v)
    add_into(t, k - 1, v * 0.5)


def gained(p, v, more=1):
    return v * p.gain + more


def gained_twice(p, v):
    return gained(p, v) + gained(p, v, more=p.size)


def typed_gain(p: Window, v, w=1.0):
    return v * p.gain * w
"""
"""What stands before each kernel: numbers, arrays, records and helpers of the module."""
