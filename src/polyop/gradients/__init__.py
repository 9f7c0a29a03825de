"""Gradient rules: from operator to operator."""
