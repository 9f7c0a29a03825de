"""Loop kernels as kernels: the author's, and those that polyop derives of it."""
