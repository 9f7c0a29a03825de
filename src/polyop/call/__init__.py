"""Calling an operator: the operator as a value, its hosts, the choice of a kernel, the prepared launch."""
