"""From a typed kernel to kernels derived from it: its gradient, its tangent, its batch.

Each is a Kernel of the same grammar, so it is scheduled, printed and derived again like any other.
``pipelines.py`` lists the passes of each derived form in order; a pass is in the file of its name.

    forms                               run the tables: a function for each derived form
    derivation, recording, start        the values that the passes hand to one another
    partials                            the derivative of every operator, a row each
    residuals                           which tensors the gradient reads, known without deriving it
    order                               which accesses meet, and which of the two comes first
    recorded_values                     where each value that the gradient reads comes from
    recompute                           the statements that compute such values again
    functional, shared_gradients        kernels that write inputs; gradients that are an output's, unchanged
"""
