"""Translate the source of a Python function into a typed kernel of the IR."""
