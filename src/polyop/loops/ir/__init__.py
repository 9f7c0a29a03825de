"""The intermediate representation of loop kernels: grammar, types, verifier, interpreter."""

from . import operate as operate  # which gives expressions Python's operators
