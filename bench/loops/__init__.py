"""Loop kernels to measure and to check: PolyBench's, and those with peers beside them."""
