"""Loop kernels: the author's, and those that polyop derives from them."""
