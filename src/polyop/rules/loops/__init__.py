"""The rules that polyop derives of loop kernels: gradient, tangent, batch."""
