"""CUDA text for GPUs."""
