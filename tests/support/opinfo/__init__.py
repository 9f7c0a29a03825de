"""PyTorch's own test database (``op_db``) through ``polyop.aten``."""
