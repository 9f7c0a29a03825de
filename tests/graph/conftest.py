"""Keeps pytest from collecting torchair_program.py, which runs in another process because of its imports."""

collect_ignore = ["torchair_program.py"]
