"""Kinds of kernel: a library, a source, a Python function, a loop nest, a C++ module, a provider."""
