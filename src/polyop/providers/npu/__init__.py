"""Rehearsal of projects for Ascend's PyTorch: stand-ins for its packages, and PyTorch's compiler."""
