"""Loop kernels to measure and to check: those of PolyBench, and those of NPBench with peers."""
