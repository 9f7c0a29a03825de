"""Functions of ``@triton.jit`` as kernels: launched by Triton on a GPU, else run by Triton's interpreter."""
