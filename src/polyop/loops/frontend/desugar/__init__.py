"""Rewrite the syntax tree of a kernel until only the core of the language is left.

Each file removes one kind of syntax, before types are known. Nodes keep their line numbers, so later
errors show the author's line.
"""
