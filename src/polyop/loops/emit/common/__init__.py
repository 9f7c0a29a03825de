"""What the printers for C and for CUDA share."""
