"""Operators of other libraries, looked up by name: PyTorch's and Ascend's."""
