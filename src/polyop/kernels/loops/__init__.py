"""Loop kernels: a Python loop nest, compiled to native code.

In pipeline order: ``language`` (the words), ``source``, ``scope`` and ``checks``, ``parse``, ``types``,
``ir`` (the grammar), ``interpret`` (the oracle), ``polyhedra`` and ``dependence`` (islpy), the passes
(``simplify busy coverage inline privatise structure accumulate split bounds plan``) in the order of
``compile``, ``emit`` (C and CUDA), ``make`` (what the build cache lacks), ``library`` (what it has),
``kernel`` (what an operator holds).
"""
