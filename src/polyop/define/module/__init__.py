"""C++ operator modules: ``CustomOpBuilder``."""
