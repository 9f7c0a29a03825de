"""``op_def`` and ``op_doc`` files, read and written."""
