"""The front ends: what users write, turned into operators."""
