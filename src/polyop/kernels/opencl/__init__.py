"""Kernels that their author has written in OpenCL C."""
