"""The rules of C++ modules, whose Forward and Backward are recorded."""
