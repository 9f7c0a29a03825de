"""Loop kernels: a Python loop nest, compiled to native code.

In pipeline order: ``language`` (the words), ``parse``, ``types``, ``ir`` (the grammar), ``interpret``
(the oracle), ``polyhedra`` and ``dependence`` (islpy), the passes that choose, ``emit`` (C).
"""
