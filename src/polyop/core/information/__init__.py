"""Operator information, as MindSpore registers it."""
