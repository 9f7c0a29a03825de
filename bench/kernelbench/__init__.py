"""The 100 problems of level 1 of KernelBench as loop kernels: operators of networks, beside PyTorch.

The list is https://github.com/ScalingIntelligence/KernelBench. rows.py has its operators and sizes; the loops
are ours.
"""

from .rows import PROBLEMS

__all__ = ["PROBLEMS"]
