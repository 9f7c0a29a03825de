"""Somebody else's operators by name."""
