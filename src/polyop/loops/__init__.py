"""The loop compiler: a Python loop nest becomes native code. It knows no operator and no host.

frontend    Python source -> a typed Kernel
ir          the grammar of a Kernel, its verifier, and the interpreter that defines its meaning
analysis    dependences, bounds, initialisation, strides and costs of a Kernel
passes      Program -> Program, in the order of ``pipeline``
schedule    the role of each loop: threads, vector lanes, register tiles, bands
targets     the instruction sets, CUDA and OpenCL
emit        Program -> C, CUDA or OpenCL text
derive      a Kernel -> its gradient, its tangent, its batch
library     the compiled library: options, the build cache, libraries that packages ship
"""
