"""Loop kernels: a Python loop nest, compiled to native code.

In pipeline order: ``language`` (the words), ``source``, ``scope`` and ``checks``, ``parse``, ``types``,
``ir`` (the grammar), ``interpret`` (the oracle), ``polyhedra`` and ``dependence`` (islpy), the passes
(``simplify coverage inline privatise structure accumulate split bounds plan``) in the order of
``compile``, ``emit`` (C and CUDA), ``library`` (the build cache), ``kernel`` (what an operator holds).
"""
