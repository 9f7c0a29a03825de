"""Moving a network to another framework: what is missing there, and the functions that correspond."""
