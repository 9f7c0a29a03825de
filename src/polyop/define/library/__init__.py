"""Operator libraries by schema, in C++ and in Python."""
