"""The instruction sets that kernels are compiled for."""
