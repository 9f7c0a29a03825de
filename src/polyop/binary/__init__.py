"""Shared libraries as files: whether they may be opened, what they hold, and why one cannot be loaded."""
