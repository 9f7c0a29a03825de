"""Random kernels of the whole language of loop kernels, and their comparison with the plain Python function."""
