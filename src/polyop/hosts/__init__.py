"""Frameworks whose tensors can be passed to an operator: translation, no numerics."""
