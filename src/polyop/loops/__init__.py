"""Loop kernels: a Python loop nest, compiled to native code. It knows no operator and no host.

frontend    Python source, checked and typed          -> a Kernel
ir          the grammar of a Kernel, its verifier, and an interpreter that says what it means
analysis    what the passes ask of one: dependences, bounds, strides, costs
passes      Kernel -> Kernel, in the order of ``pipeline``
schedule    what each loop becomes: threads, lanes, tiles
emit        C and CUDA text
derive      other kernels made of one: its gradient, its tangent, its batch
library     the compiled library: made, cached, shipped
"""
