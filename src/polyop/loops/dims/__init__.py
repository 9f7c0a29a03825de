"""Which dimensions of a loop kernel can be cut into slices, proved from its loops.

::

    dimension.py     axes of tensors and loops that run along one dimension
    sites.py         each statement with the coordinate at which it runs along a dimension
    index_values.py  where an index or a size is used as a value
    partial.py       results of slices that are combined: sums, maxima and minima
    halo.py          how many neighbours a slice reads
    invariance.py    the proof that a slice runs the same instances as the whole
    placed.py        the kernel of a slice that knows where it is in the whole
    derive.py        all of these, in order: the kind of each dimension, or why it has to be whole
    linear.py        the inputs in which the kernel is linear: addends of them give addends of outputs
    notation.py      the result as the text of ``dims=``
"""
