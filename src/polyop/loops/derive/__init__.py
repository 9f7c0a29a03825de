"""From a typed kernel to kernels derived of it: its gradient, its tangent, its batch.

Each is a Kernel of the same grammar, so it is scheduled, printed and derived again like any other.

    partials              the derivative of every operator, a row each
    memory                the starting form: temporaries of their own loops, scalars in memory
    keep_argmax_operands  what a maximum compares, in memory too
    order                 which accesses meet, and which of the two comes first
    to_be_recorded        where each value that a derivative reads comes from: final, recomputed, taped
    recompute             the statements that compute such values once more
    reverse               the loops backwards, with what each statement hands to what it read
    forward_substitution  values that are only passed on, read where they are
    loop_fission          nests that add to several targets, one for each
    scatter_to_gather     accumulations into shifted elements, as loops over the elements
    pad                   zeros around a factor, so that sums keep their range
    tidy                  zeros that nobody reads, first accumulations that are stores
    saving                temporaries that the forward hands over, as further outputs
    tangent               forward mode
    batch                 one more parallel loop
"""
