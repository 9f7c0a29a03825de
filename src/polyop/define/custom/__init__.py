"""MindSpore's front end: ``Custom`` and ``CustomRegOp``."""
