"""Translate the source of a Python function into a typed kernel of the IR.

language, plain                  the words of the language; a kernel run as plain Python, which is its meaning
wrapped, source                  the function inside its decorators, and its syntax tree
limits, checks,
check_expressions                checks of the syntax; their tables are rejected_syntax and suggestions
names, scope                     the variable of each name
ranks                            the numbers of dimensions that uses tell
access, expressions,
loop_heads, statements, parse    the translation, for given dtypes and numbers of dimensions
inductions, bounds_of_tests,
counted_whiles                   each ``while`` that counts becomes a loop with a bound
"""
