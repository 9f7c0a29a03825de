"""torchair_program.py runs in a process of its own: it imports what this one may not have."""

collect_ignore = ["torchair_program.py"]
