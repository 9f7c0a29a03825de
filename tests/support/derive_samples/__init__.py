"""Loop kernels whose derivatives are tested, and differences to compare these with."""
