"""The rule of an operator in index notation: the grammar of ``dims=``.

::

    dims      = entries "->" entries        one entry per tensor argument "->" one per new output
    entries   = entry {"," entry}           attributes are skipped; no entry if there is no tensor
    entry     = ["..."] {dimension} ["*"]   blanks between dimensions; an empty entry is 0-dimensional
    dimension = name                        the same size wherever the name occurs
              | number                      this size
              | "_"                         any size, unchecked (in arguments)
              | arithmetic                  a size that follows from others (in outputs)
              | name "<=" arithmetic        a size that depends on data, and its bound (in outputs)
    arithmetic = names of dimensions, integer attributes, integers, + - * // / and parentheses, without blanks

``...`` stands for any number of dimensions, the same ones wherever it occurs; nothing is broadcast. ``*``
ends the entry of a ``Tensor[]``, and describes each of its tensors. The entry of an absent tensor is
ignored. ``//`` rounds down; ``/`` refuses sizes that it does not divide. A name of an argument that is
also an integer attribute has the size that the attribute says.

What is claimed of the dimensions, each with names separated by blanks:

::

    parallel="b o"           slices along them are computed alone
    sum="i"                  in outputs without i, the outputs of slices are added; max= and min= likewise
    halo={"n": (1, "k//2")}  a slice along n reads so many elements before and after it

Where every output has ``...``, an operator maps over it: slices are computed alone. Nothing is claimed of any
other dimension: it has to be whole. A name that occurs twice in one tensor has
equal sizes there, and has to be whole.
"""
