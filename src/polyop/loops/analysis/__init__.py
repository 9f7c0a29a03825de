"""What the passes ask of a kernel: dependences, bounds, strides, costs."""
