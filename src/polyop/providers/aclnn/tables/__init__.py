"""The operators, one row each, by topic."""
