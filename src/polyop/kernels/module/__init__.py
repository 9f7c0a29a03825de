"""Kernels that are functions of a C++ operator module."""
