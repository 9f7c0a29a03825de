"""Moving a network to another framework: what is missing there, corresponding functions, weights."""
