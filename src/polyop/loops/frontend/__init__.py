"""From the source of a Python function to a typed kernel."""
