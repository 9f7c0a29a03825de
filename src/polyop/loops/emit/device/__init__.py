"""Text for devices: CUDA C++ and OpenCL C, printed by one walk."""
