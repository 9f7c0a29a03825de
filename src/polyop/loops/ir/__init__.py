"""The intermediate representation of loop kernels: grammar, types, verifier, interpreter."""
