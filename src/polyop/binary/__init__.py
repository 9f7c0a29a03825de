"""Shared libraries as files: whether they may be opened, what they hold, why one cannot be loaded."""
